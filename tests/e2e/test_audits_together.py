"""Audits that are started together in one folder."""

from __future__ import annotations

import json
import shutil
import threading
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.domain import CellScore
from auditor.reports.data.verification import verify_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.forked_commands import start
from tests.support.killed_runs import ALL_FAULTS
from tests.support.patience import PATIENCE_S

AUDITS = [f"audit-{number}" for number in range(10 if ALL_FAULTS else 6)]
ROUNDS = 20 if ALL_FAULTS else 1
SURVEY = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce"]}
PROBES = {"direct": {"samples": 2}}


def test_audits_started_together_finish(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        server.requests.clear()
        for seed, name in enumerate(AUDITS):
            audit = config(server.url, models=2, name=name, survey=SURVEY, probes=PROBES, judges=[], seed=seed)
            content = json.dumps(audit.model_dump(mode="json", exclude_none=True))
            Path(f"{name}.yaml").write_text(content, encoding="utf-8")
        runs = [start("run", f"{name}.yaml") for name in AUDITS]
        for run in runs:
            _, stderr = run.communicate(timeout=PATIENCE_S)
            assert run.returncode == 0, stderr
        with open_database("sqlite:///auditor.db") as db:
            assert {audit.name for audit in audits.load_audits(db)} == set(AUDITS)
            assert all(verify_audit(db, name).is_consistent for name in AUDITS)
        shutil.rmtree(folder)


def test_audits_that_ask_the_same_together_have_the_same_answers(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real models answer differently each time; each answer is sent when the second audit has asked for it too."""
    monkeypatch.chdir(tmp_path)
    arrivals: dict[str, list[threading.Event]] = defaultdict(list)
    lock = threading.Lock()

    def answer_differently(request: Request) -> Reply:
        with lock:
            events = arrivals[request.text]
            events.append(threading.Event())
            if len(events) == 2:
                for event in events:
                    event.set()
        score = len(events) / 10
        reply = completion(json.dumps({"norms": "Some.", "reasoning": f"So it is {score}.", "score": score}))
        return replace(reply, after=events[-1])

    server.script = answer_differently
    for name in ("one", "two"):
        audit = config(server.url, models=1, name=name, survey=SURVEY, judges=[])
        Path(f"{name}.yaml").write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    runs = [start("run", f"{name}.yaml") for name in ("one", "two")]
    for run in runs:
        _, stderr = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == 0, stderr
    assert {len(events) for events in arrivals.values()} == {2}
    with open_database("sqlite:///auditor.db") as db:
        assert all(verify_audit(db, name).is_consistent for name in ("one", "two"))
        one, two = (load_records(db, audits.get_audit(db, name).id, CellScore) for name in ("one", "two"))
        assert [row.score for row in one] == [row.score for row in two]
