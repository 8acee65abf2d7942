"""The first audit of a process, run once by the fork server: a fork then has its compiled patterns, tables and schemas.

Only simulated models are asked: a fork copies no thread, and litellm leaves some.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from auditor import failpoints
from auditor.__main__ import main

AUDIT = {
    "name": "simulated-first",
    "survey": {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce"]},
    "embedding": {"model": "none"},
    "judges": "peers",
    "models": [{"name": name, "model": f"simulated/{name}"} for name in ("knows-every-culture", "western-everywhere")],
}


def run_first_audit() -> None:
    """Run the audit, and leave no thread, no handler of a signal, and nothing for a fork's garbage collection."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    output = StringIO()
    with TemporaryDirectory() as folder, redirect_stdout(output), redirect_stderr(output):
        file = Path(folder) / "audit.yaml"
        file.write_text(json.dumps(AUDIT), encoding="utf-8")  # JSON is YAML
        command = ["auditor", "run", str(file), "--storage", f"sqlite:///{folder}/audits.db"]
        try:
            with mock.patch.object(sys, "argv", command):
                main()
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(output.getvalue()) from ended
    for number, handler in handlers.items():
        signal.signal(number, handler)
    failpoints._configured_failpoint.cache_clear()  # each fork has one of its own
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()


run_first_audit()
