"""Modules that are imported on first use: by their names in a package, and where they load slow libraries."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def import_on_first_use(package: str, path: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Build `__getattr__` and `__dir__` of a package (PEP 562), so that importing it does not import its modules.

    Its public names are those that its `if TYPE_CHECKING:` imports, so that they are written once; `__all__` is the
    sorted list of them. No module of the package may have one of these names: importing it would hide the public name.

    Args:
        package: full name of the package.
        path: path of its `__init__.py`.
    """

    @cache
    def read_modules() -> dict[str, str]:
        """The module of each public name."""
        blocks = [node for node in ast.parse(Path(path).read_bytes()).body if isinstance(node, ast.If)]
        imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
        return {alias.asname or alias.name: node.module or "" for node in imports for alias in node.names}

    loaded_modules: dict[str, ModuleType] = {}

    def get_attribute(name: str) -> Any:
        """Import a public name from its module; AttributeError for any other name."""
        if (module := loaded_modules.get(name)) is not None:
            return getattr(module, name)
        if name == "__all__":
            return sorted(read_modules())
        if not name.startswith("__") and name in read_modules():
            module = loaded_modules[name] = import_module(read_modules()[name])
            return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get_attribute, lambda: sorted(read_modules())


_LOADED = "<loaded>"
"""Key of the real module; no attribute has this name."""


class _ModuleOnUse(ModuleType):
    """Stands for a module until an attribute of it is used; it is not in `sys.modules`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # tools that look at a module's names ask for `__wrapped__` and others
            raise AttributeError(f"module {self.__name__!r} has not been used yet, and has no {name!r} before")
        if (module := vars(self).get(_LOADED)) is None:
            module = vars(self)[_LOADED] = import_module(self.__name__)
        return getattr(module, name)


def import_when_used(name: str) -> Any:
    """A module that is imported when the first of its attributes is used, for modules that are slow to load.

    Type checkers, and the rules of who imports whom, read the real import beside it::

        if not TYPE_CHECKING:
            torch = import_when_used("torch")
        else:
            import torch

    Raises ImportError at the first use if the module cannot be imported.
    """
    return _ModuleOnUse(name)
