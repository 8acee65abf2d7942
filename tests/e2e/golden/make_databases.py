"""Make the databases that `test_databases_of_earlier_versions.py` continues with.

    python -m tests.e2e.golden.make_databases DIRECTORY

Those in `databases/` are of an earlier version and are never replaced. For a version that stores something else, add
another directory.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auditor.domain import Conflict, ConflictState, Decision, Rating
from auditor.run import open_audit, resume_after_review, run_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.call_purposes import reply
from tests.support.fake_server import FakeServer
from tests.support.fixed_address import TRUST, at_fixed_address, word_encoder
from tests.support.stored_rows import add_rating

CONFIG = Path(__file__).with_name("databases") / "audit.toml"
NAME = "golden"
FIGURES = "figures.json"
KILLED_AFTER = 150
"""Requests; by then answers are elicited, and judges review them."""
TIMES = re.compile(r"_at$|^(order|latency\w*|config_hash|environment|version)$")
"""Keys of a report that two runs of one audit do not agree on."""


def storage_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'audits.db'}"


def open_conflicts(storage: str) -> list[Conflict]:
    with open_database(storage, create=False) as db:
        conflicts = results.load_conflicts(db, audits.get_audit(db, NAME).id)
    return [c for c in conflicts if c.state is ConflictState.OPEN]


def settle_all(storage: str) -> None:
    """Decide every conflict that the judges left open, as a person would, and let the audit go on."""
    for conflict in open_conflicts(storage):
        sides = (conflict.cell, conflict.left, conflict.right, conflict.score_left, conflict.score_right)
        with open_database(storage, create=False) as db:
            rating = Rating(*sides, "ada", Decision.LEFT, datetime.now(UTC))
            add_rating(db, audits.get_audit(db, NAME).id, rating)
    assert resume_after_review(NAME, storage=storage) == 0


def figures_of(storage: str) -> Any:
    """The report without times, sentences, and trailing digits."""
    return _figures(open_audit(NAME, storage=storage).report().model_dump(mode="json"))


def _figures(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _figures(v) for k, v in value.items() if not TIMES.search(k) and not _is_sentence(v)}
    if isinstance(value, list):
        return [_figures(v) for v in value if not _is_sentence(v)]
    return round(value, 6) + 0.0 if isinstance(value, float) else value


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and len(value.split()) > 2


def make_databases(target: Path) -> None:
    """Make the archives `finished`, `waiting` and `killed`; the first two hold the figures of their reports, too."""
    os.environ |= {KEY_VARIABLE: KEY, "AUDITOR_TRUST": TRUST}
    with FakeServer(reply) as server, at_fixed_address(server.url), word_encoder():
        for state in ("waiting", "finished", "killed"):
            folder = Path(tempfile.mkdtemp())
            if state == "killed":
                _run_and_kill(server, storage_in(folder))
            else:
                run_audit(CONFIG, storage=storage_in(folder))
            if state == "finished":
                settle_all(storage_in(folder))
            if state != "killed":
                text = json.dumps(figures_of(storage_in(folder)), indent=1, ensure_ascii=False)
                (folder / FIGURES).write_text(text, encoding="utf-8")
            for left in folder.glob("*-shm"):
                left.unlink()  # of the process that ended
            for locks in folder.glob(".*.locks"):
                shutil.rmtree(locks)
            shutil.make_archive(str(target / state), "xztar", folder)


def _run_and_kill(server: FakeServer, storage: str) -> None:
    server.requests.clear()
    server.script = lambda request: replace(reply(request), delay_s=0.02)
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(server.url, storage))
    process.start()
    while len(server.requests) < KILLED_AFTER:
        time.sleep(0.001)
    process.kill()
    process.join()


def _run(url: str, storage: str) -> None:
    with at_fixed_address(url), word_encoder():
        run_audit(CONFIG, storage=storage)


if __name__ == "__main__":
    make_databases(Path(sys.argv[1]))
