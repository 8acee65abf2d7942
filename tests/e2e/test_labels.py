"""Labels of audits that were run: of a survey and of a task, before and after the audit is run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.domain.labels import LabelKind
from auditor.errors import ReviewError
from auditor.review.label_sampling import draw_sample
from auditor.review.labelling import LabellingSession, find_sampling_units
from auditor.run import run_audit
from auditor.storage import audits, labels
from auditor.storage.database import open_database
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor
from tests.support.fake_server import FakeServer
from tests.support.scripted_tasks import audit as task_audit
from tests.support.scripted_tasks import solver


def test_answers_to_a_task_are_sampled_labelled_and_imported(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = solver
    run_audit(task_audit(server.url, tmp_path, "exact", probes={"direct": {"samples": 2}}), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "sums")
        drawn = draw_sample(db, audit, LabelKind.TRACE, 40)
        assert (drawn.n_sampled >= 40, drawn.n_population) == (True, 60)
        session = LabellingSession(db, audit, "ada")
        assert list(session.aspect_questions) == ["logical_consistency", "score_fit"]
        first, second = session.sample[:2]
        session.save(first.unit, "VALID", {"score_fit": True})
        assert list(find_sampling_units([first.unit])) == ["item"]

    row = ",".join(("ben", *second.unit.parts, "INVALID", "false"))
    file = tmp_path / "labels.csv"
    file.write_text(f"rater,model,country,topic,sample,verdict,score_fit\n{row}\n", encoding="utf-8")
    monkeypatch.setenv("AUDITOR_STORAGE", storage)
    result = auditor("import", "labels", file, "--audit", "sums")
    assert result.stderr == "1 label of 1 rater in audit 'sums'.\n"
    with open_database(storage) as db:
        stored = labels.load_labels(db, audit.id, LabelKind.TRACE)
        assert [(label.unit, label.rater, label.value) for label in stored] == [
            (first.unit, "ada", "VALID"),
            (second.unit, "ben", "INVALID"),
        ]


def test_labels_outlast_a_run_that_adds_samples(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_audit(config(server.url, probes={"direct": {"samples": 1}}), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "scripted")
        draw_sample(db, audit, LabelKind.TRACE, 27)
        session = LabellingSession(db, audit, "ada")
        for sampled in session.sample[:5]:
            session.save(sampled.unit, "VALID")
    run_audit(config(server.url, probes={"direct": {"samples": 1}}), storage=storage)
    with open_database(storage) as db:
        assert draw_sample(db, audit, LabelKind.TRACE).n_sampled == 27  # the same run changes nothing

    run_audit(config(server.url, probes={"direct": {"samples": 2}}), storage=storage)
    with open_database(storage) as db:
        with pytest.raises(
            ReviewError, match=r"there were 27, and there are 54 now\. Of the 27 sampled traces, 0 no longer exist"
        ):
            draw_sample(db, audit, LabelKind.TRACE)
        assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == 5
        draw_sample(db, audit, LabelKind.TRACE, 54, redraw=True)
        assert LabellingSession(db, audit, "ada", second_rater_share=0).load_progress().n_left == 49
    monkeypatch.setenv("AUDITOR_STORAGE", storage)
    assert json.loads(auditor("verify", "scripted", "--json").stdout)["holds"]
