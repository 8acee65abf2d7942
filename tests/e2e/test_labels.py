"""Labels of audits that were run: of a survey and of a task, before and after the audit is run again."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from auditor.domain.labels import LabelKind
from auditor.errors import ImportFileError, ReviewError, UsageError
from auditor.experiments.stored_audit import ExperimentContext
from auditor.metrics.judges.agreement import krippendorff_alpha
from auditor.probes.semantic.answer_imports import import_answers
from auditor.probes.semantic.experiments.runs import judgements
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.build import build_report
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession, find_sampling_units
from auditor.run import run_audit
from auditor.storage import audits, labels
from auditor.storage.database import open_database
from auditor.tui.plain_text_app import run_plain_text_labelling
from tests.e2e.test_semantic import write
from tests.reports.sections.node_text import text_of
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer
from tests.support.fixed_address import word_encoder
from tests.support.scripted_tasks import audit as task_audit, solver


@pytest.fixture(scope="module")
def finished_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of an audit of a task with 60 answers."""
    folder = tmp_path_factory.mktemp("task")
    with FakeServer(solver) as server:
        audit = task_audit(server.url, folder, "exact", probes={"direct": {"samples": 2}})
        run_audit(audit, storage=f"sqlite:///{folder}/audits.db")
    return folder / "audits.db"


def test_answers_to_a_task_are_sampled_labelled_and_imported(
    finished_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = f"sqlite:///{shutil.copy(finished_task, tmp_path)}"
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
        decisions = [(label.unit, label.rater, label.value) for label in stored]
        assert decisions == [(first.unit, "ada", "VALID"), (second.unit, "ben", "INVALID")]


def test_plain_text_and_import_give_a_task_the_same_corrected_accuracy(
    finished_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = f"sqlite:///{shutil.copy(finished_task, tmp_path)}"
    with open_database(storage) as db:
        audit = audits.get_audit(db, "sums")
        draw_label_sample(db, audit, LabelKind.TRACE, 60)
    copy = f"sqlite:///{shutil.copy(tmp_path / 'audits.db', tmp_path / 'copy.db')}"

    commands = io.StringIO("\n".join("12"[i % 3 == 0] for i in range(60)))
    run_plain_text_labelling(storage, "sums", rater="ada", second_rater_share=0, stdin=commands, stdout=io.StringIO())
    with open_database(storage) as db:
        by_command = labels.load_labels(db, audit.id, LabelKind.TRACE)
        in_plain_text = build_report(db, "sums").judge_quality
    rows = [",".join(("ada", *label.unit.parts, label.value)) for label in by_command]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["rater,model,country,topic,sample,verdict", *rows]), encoding="utf-8")
    monkeypatch.setenv("AUDITOR_STORAGE", copy)
    succeed("import", "labels", file, "--audit", "sums")
    with open_database(copy) as db:
        assert build_report(db, "sums").judge_quality == in_plain_text

    assert in_plain_text is not None
    assert len(by_command) == 60
    for row in in_plain_text.models:
        values = [label.value == "VALID" for label in by_command if label.unit.parts[0] == row.model]
        assert row.corrected.value == pytest.approx(sum(values) / len(values))  # all are labelled: nothing is estimated
        assert (row.corrected.ci_low, row.corrected.ci_high) == pytest.approx((row.corrected.value,) * 2)
        assert row.judges.value != pytest.approx(row.corrected.value)


def test_labels_outlast_further_samples(server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_audit(config(server.url), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "scripted")
        draw_label_sample(db, audit, LabelKind.TRACE, 27)
        session = LabellingSession(db, audit, "ada")
        for sampled in session.sample[:5]:
            session.save(sampled.unit, "VALID")
    run_audit(config(server.url), storage=storage)
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


COLUMNS = ["rater", "model", "question_id", "left", "right", "judgement"]
PAIRS = [(1, 2), (1, 3), (2, 3)]
LABELS = {"ann": "YNNYYNNYNYYYNNY", "bob": "YNNYNNNYNYYYYNY"}
"""Of the three pairs of five questions, by rater."""
FOREIGN: list[list[object]] = [
    *([rater, "other", "q0", 1, 2, "Y"] for rater in LABELS),
    *([rater, "m", "q99", 1, 2, "Y"] for rater in LABELS),
    *([rater, "m", "q0", 1, 99, "Y"] for rater in LABELS),
    ["ann", "m", "q0", 98, 1, "N"],
]


@pytest.fixture
def audit(storage: str, tmp_path: Path) -> str:
    """An imported audit of one model with answers to three wordings of five questions."""
    rows: list[list[object]] = [
        ["m", f"q{question}", f"wording {wording} of {question}", f"Answer {question * wording % 4}"]
        for question in range(5)
        for wording in range(1, 4)
    ]
    file = write(tmp_path / "answers.csv", ["model", "question_id", "paraphrase", "answer"], rows)
    with word_encoder():
        import_answers(file, audit="given", probe=SemanticProbe(encoder="words"), storage=storage)
    return "given"


def own_labels() -> list[list[object]]:
    pairs = [(f"q{question}", *pair) for question in range(5) for pair in PAIRS]
    return [[rater, "m", *pair, label] for rater, row in LABELS.items() for pair, label in zip(pairs, row, strict=True)]


def compare(storage: str, file: Path, audit: str) -> HumanJudgementReport:
    report = judgements(ExperimentContext(storage), audit, file).data
    assert isinstance(report, HumanJudgementReport)
    return report


def test_labels_of_what_the_audit_does_not_have_change_nothing(audit: str, storage: str, tmp_path: Path) -> None:
    reports = [
        compare(storage, write(tmp_path / f"{name}.csv", COLUMNS, rows), audit)
        for name, rows in (("own", own_labels()), ("all", [*FOREIGN, *own_labels()]))
    ]
    expected = krippendorff_alpha(
        np.array([[float(label == "Y") for label in row] for row in LABELS.values()]),
        units={"question": [f"q{question}" for question in range(5) for _ in PAIRS]},
    )
    for report in reports:
        assert (report.questions, report.judgements, report.alpha.n) == (5, 30, 15)
        assert report.alpha.value == pytest.approx(expected.value)
    assert [report.left_out for report in reports] == [{}, {"other_model": 2, "other_question": 2, "other_wording": 3}]
    assert reports[0].model_copy(update={"left_out": reports[1].left_out}) == reports[1]


def test_the_page_says_which_labels_were_left_out(audit: str, storage: str, tmp_path: Path) -> None:
    file = write(tmp_path / "all.csv", COLUMNS, [*FOREIGN, *own_labels()])
    document = judgements(ExperimentContext(storage), audit, file).document
    assert (
        "30 judgements on 5 questions. 7 more judgements left out: 2 of models that the audit does not have, 2 of "
        "questions that it did not ask and 3 of wordings that it did not ask."
    ) in text_of(document.sections)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["ann", "m", "q0", 1, 1, "Y"], "line 2.*'right': 1 is the same wording as in the column 'left'"),
        (["ann", "m", "q0", 1, "first", "Y"], "line 2.*'right': 'first' is not a whole number"),
    ],
)
def test_pairs_that_are_none_are_refused(row: list[object], message: str, storage: str, tmp_path: Path) -> None:
    file = write(tmp_path / "people.csv", COLUMNS, [row])
    with pytest.raises(ImportFileError, match=message):
        judgements(ExperimentContext(storage), "given", file)


def test_labels_of_other_audits_alone_are_an_error(audit: str, storage: str, tmp_path: Path) -> None:
    file = write(tmp_path / "foreign.csv", COLUMNS, FOREIGN)
    with pytest.raises(UsageError, match=r"no row is about a model, question and wordings of the audit 'given'"):
        judgements(ExperimentContext(storage), audit, file)
