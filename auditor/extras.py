"""Packages that only exports to other programs need, loaded when they are asked for."""

from __future__ import annotations

import importlib
from types import ModuleType

from auditor.errors import UsageError


def load_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Args:
        module: its full name.
        extra: of ours, that brings it.

    Raises:
        UsageError: the package is not installed, or cannot be loaded here.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", 1)[0]
        what = f"{package} is not installed" if error.name == package else f"{package} cannot be loaded: {error}"
        raise UsageError(f"{what}.", f"pip install 'auditor[{extra}]'") from None
