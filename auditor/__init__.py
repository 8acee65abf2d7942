"""Measure how well language models know what people in different countries find morally acceptable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.config import AuditConfig, load_config
    from auditor.run import AuditHandle, open_audit, run_audit

__all__ = ["AuditConfig", "AuditHandle", "__version__", "load_config", "open_audit", "run_audit"]

_import_name, _ = import_on_first_use(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import auditor` stays fast."""
    if name != "__version__":
        return _import_name(name)
    from importlib.metadata import version

    return version("auditor")


def __dir__() -> list[str]:
    """Names of the public API, for completion in a shell."""
    return __all__
