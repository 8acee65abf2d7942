"""One module for each provider; its `DIALECT` is found by its presence here, and its name is the module's."""

from __future__ import annotations

import importlib
import pkgutil

from tests.providers.dialect import Dialect

DIALECTS: dict[str, Dialect] = {
    module.name: importlib.import_module(f"{__name__}.{module.name}").DIALECT
    for module in pkgutil.iter_modules(__path__)
}
"""Dialects by provider, in alphabetical order."""
