"""Run audits in processes that die at a failpoint; the fork server makes the heavy imports once."""

from __future__ import annotations

import os
from multiprocessing.context import ForkServerProcess
from multiprocessing.sharedctypes import Synchronized

import pytest

from auditor import bootstrap, failpoints
from auditor.config import AuditConfig
from auditor.run import run_audit
from tests.support.forked_commands import CONTEXT, start_fork_server
from tests.support.patience import PATIENCE_S

ALL_FAULTS = bool(os.environ.get("AUDITOR_ALL_FAULTS"))
"""Whether to test every failpoint (`make faults`) and not only a representative subset."""
needs_all_faults = pytest.mark.skipif(not ALL_FAULTS, reason="a fault of its own kind: run `make faults`")


def run_until(audit: AuditConfig, storage: str, point: str) -> tuple[int, int]:
    """Run an audit that dies at a failpoint.

    Returns:
        The process's exit code (-9 if it died), and how often the failpoint was reached if it did not.
    """
    count = CONTEXT.Value("i", 0)
    process: ForkServerProcess = CONTEXT.Process(target=_run, args=(audit, storage, point, dict(os.environ), count))
    start_fork_server()
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode is not None, "the run hangs"
    return process.exitcode, count.value


def _run(audit: AuditConfig, storage: str, point: str, environment: dict[str, str], count: Synchronized[int]) -> None:
    os.environ |= environment
    os.environ[failpoints.ENVIRONMENT_VARIABLE] = point
    bootstrap.prepare_environment()
    run_audit(audit, storage=storage)
    count.value = failpoints.hit_count()
