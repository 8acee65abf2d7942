"""Measure how well language models know what people in different countries find morally acceptable."""

from __future__ import annotations

import signal
import sys

_is_program = sys.orig_argv[1:3] == ["-m", "auditor"] or sys.orig_argv[1:2] == [f"{sys.prefix}/bin/auditor"]
if _is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `__main__` handles it: Ctrl-C printed a traceback

from typing import TYPE_CHECKING, Any  # noqa: E402 - see above

from auditor.lazy_imports import import_on_first_use  # noqa: E402

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
