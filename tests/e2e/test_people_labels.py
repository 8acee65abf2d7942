"""People's labels of pairs of answers: only those of models, questions and wordings of the audit count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.experiments.stored_audit import ExperimentContext
from auditor.metrics.judges.agreement import krippendorff_alpha
from auditor.models import weights
from auditor.probes.semantic.answer_imports import import_answers
from auditor.probes.semantic.experiments.runs import judgements
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from tests.e2e.test_semantic import write
from tests.reports.sections.node_text import text_of

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


@pytest.fixture(autouse=True, scope="module")
def encoder() -> Path:
    return weights.pull_weights("all-MiniLM-L6-v2")


@pytest.fixture
def audit(storage: str, tmp_path: Path) -> str:
    """An imported audit of one model with answers to three wordings of five questions."""
    rows: list[list[object]] = [
        ["m", f"q{question}", f"wording {wording} of {question}", f"Answer {question * wording % 4}"]
        for question in range(5)
        for wording in range(1, 4)
    ]
    file = write(tmp_path / "answers.csv", ["model", "question_id", "paraphrase", "answer"], rows)
    import_answers(file, audit="given", storage=storage)
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
