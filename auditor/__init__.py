"""Measure how well language models know what people in different countries find morally acceptable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.config import AuditConfig, load_config
    from auditor.run import AuditHandle, open_audit, run_audit

__all__ = ["AuditConfig", "AuditHandle", "__version__", "load_config", "open_audit", "run_audit"]

_MODULE_BY_NAME = {
    "AuditConfig": "auditor.config",
    "load_config": "auditor.config",
    "AuditHandle": "auditor.run",
    "open_audit": "auditor.run",
    "run_audit": "auditor.run",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import auditor` stays fast."""
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("auditor")
    if name in _MODULE_BY_NAME:
        return getattr(import_module(_MODULE_BY_NAME[name]), name)
    raise AttributeError(f"module 'auditor' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the public API, for completion in a shell."""
    return __all__
