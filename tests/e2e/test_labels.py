"""Labels of audits that were run: of a survey and of a task, before and after the audit is run again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from auditor.domain.labels import LabelKind
from auditor.errors import ReviewError
from auditor.reports.data.build import build_report
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession, find_sampling_units
from auditor.run import run_audit
from auditor.storage import audits, labels, sqlite_file
from auditor.storage.database import open_database
from auditor.tui.plain_text_app import run_plain_text_labelling
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor
from tests.support.fake_server import FakeServer
from tests.support.scripted_tasks import audit as task_audit, solver


def test_answers_to_a_task_are_sampled_labelled_and_imported(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = solver
    run_audit(task_audit(server.url, tmp_path, "exact", probes={"direct": {"samples": 2}}), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "sums")
        drawn = draw_label_sample(db, audit, LabelKind.TRACE, 40)
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


def test_plain_text_and_import_give_a_task_the_same_corrected_accuracy(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = solver
    run_audit(task_audit(server.url, tmp_path, "exact", probes={"direct": {"samples": 2}}), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "sums")
        draw_label_sample(db, audit, LabelKind.TRACE, 60)
    copy = f"sqlite:///{tmp_path}/copy.db"
    sqlite_file.copy_database(Path(storage.removeprefix("sqlite:///")), tmp_path / "copy.db")

    commands = io.StringIO("\n".join("12"[i % 3 == 0] for i in range(60)))
    run_plain_text_labelling(storage, "sums", rater="ada", second_rater_share=0, stdin=commands, stdout=io.StringIO())
    with open_database(storage) as db:
        by_command = labels.load_labels(db, audit.id, LabelKind.TRACE)
        in_plain_text = build_report(db, "sums").judge_quality
    rows = [",".join(("ada", *label.unit.parts, label.value)) for label in by_command]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["rater,model,country,topic,sample,verdict", *rows]), encoding="utf-8")
    monkeypatch.setenv("AUDITOR_STORAGE", copy)
    assert auditor("import", "labels", file, "--audit", "sums").returncode == 0
    with open_database(copy) as db:
        assert build_report(db, "sums").judge_quality == in_plain_text

    assert in_plain_text is not None
    assert len(by_command) == 60
    for row in in_plain_text.models:
        values = [label.value == "VALID" for label in by_command if label.unit.parts[0] == row.model]
        assert row.corrected.value == pytest.approx(sum(values) / len(values))  # all are labelled: nothing is estimated
        assert (row.corrected.ci_low, row.corrected.ci_high) == pytest.approx((row.corrected.value,) * 2)
        assert row.judges.value != pytest.approx(row.corrected.value)


def test_labels_outlast_a_run_that_adds_samples(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_audit(config(server.url, probes={"direct": {"samples": 1}}), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "scripted")
        draw_label_sample(db, audit, LabelKind.TRACE, 27)
        session = LabellingSession(db, audit, "ada")
        for sampled in session.sample[:5]:
            session.save(sampled.unit, "VALID")
    run_audit(config(server.url, probes={"direct": {"samples": 1}}), storage=storage)
    with open_database(storage) as db:
        assert draw_label_sample(db, audit, LabelKind.TRACE).n_sampled == 27  # the same run changes nothing

    run_audit(config(server.url, probes={"direct": {"samples": 2}}), storage=storage)
    with open_database(storage) as db:
        with pytest.raises(
            ReviewError, match=r"there were 27, and there are 54 now\. Of the 27 sampled traces, 0 no longer exist"
        ):
            draw_label_sample(db, audit, LabelKind.TRACE)
        assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == 5
        draw_label_sample(db, audit, LabelKind.TRACE, 54, redraw=True)
        assert LabellingSession(db, audit, "ada", second_rater_share=0).load_progress().n_left == 49
    monkeypatch.setenv("AUDITOR_STORAGE", storage)
    assert json.loads(auditor("verify", "scripted", "--json").stdout)["holds"]
