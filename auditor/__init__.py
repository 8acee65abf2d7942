"""Audit the moral alignment of language models across cultures, and show how far the result can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.config import AuditConfig, load_config
    from auditor.run import AuditHandle, open_audit, run_audit

__all__ = ["AuditConfig", "AuditHandle", "__version__", "load_config", "open_audit", "run_audit"]

_HOMES = {
    "AuditConfig": "auditor.config",
    "load_config": "auditor.config",
    "AuditHandle": "auditor.run",
    "open_audit": "auditor.run",
    "run_audit": "auditor.run",
}


def __getattr__(name: str) -> Any:
    """Public names are imported on first use, so that `import auditor` costs next to nothing."""
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("auditor")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'auditor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
