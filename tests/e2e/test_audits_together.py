"""Audits that are started together in one folder, and one that waits while another program writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from auditor.reports.data.verification import verify_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer
from tests.support.forked_commands import start
from tests.support.killed_runs import ALL_FAULTS

AUDITS = [f"audit-{number}" for number in range(10 if ALL_FAULTS else 6)]
ROUNDS = 20 if ALL_FAULTS else 1
SURVEY = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce"]}
PROBES = {"direct": {"samples": 2}}


def test_audits_started_together_in_one_folder_all_finish(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            _, stderr = run.communicate(timeout=300)
            assert run.returncode == 0, stderr
        with open_database("sqlite:///auditor.db") as db:
            assert {audit.name for audit in audits.load_audits(db)} == set(AUDITS)
            assert all(verify_audit(db, name).is_consistent for name in AUDITS)
        shutil.rmtree(folder)
