"""Packages whose public names are imported from their modules on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def import_on_first_use(package: str, names_by_module: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Build the function `__getattr__` of a package (PEP 562), so that importing it does not import its modules.

    Args:
        package: full name of the package.
        names_by_module: the public names, by the module of the package that defines them. No module may have the name
            of one of them: importing it would hide the public name.
    """
    module_by_name = {name: module for module, names in names_by_module.items() for name in names}

    def get_attribute(name: str) -> Any:
        """Import a public name from its module; AttributeError for any other name."""
        if name in module_by_name:
            return getattr(import_module(f"{package}.{module_by_name[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get_attribute
