"""Import packages of optional extras when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from auditor.errors import UsageError


def load_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Args:
        module: the module's full name.
        extra: the extra of `auditor` that installs the package, named in the advice.

    Raises:
        UsageError: the package is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", 1)[0]
        problem = "is not installed" if error.name == package else f"cannot be loaded: {error}"
        raise UsageError(
            f"the package {package} {problem}.", f"Install the extra '{extra}': pip install 'auditor[{extra}]'"
        ) from None
