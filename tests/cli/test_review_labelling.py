"""`auditor review --sample`: the sample is drawn, described, and opened for labelling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Outcome
from auditor.domain.labels import LabelKind
from auditor.storage import audits, labels, results
from auditor.storage.database import open_database
from auditor.storage.records import save_records
from tests.support.cli_runner import auditor
from tests.support.review_audit import save_review_audit


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with the audit `moral` of 180 traces."""
    url = f"sqlite:///{tmp_path / 'audits.db'}"
    monkeypatch.setenv("AUDITOR_STORAGE", url)
    with open_database(url) as db:
        save_review_audit(db)
    return url


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Arguments with which the plain text form was opened."""
    calls: list[dict[str, Any]] = []

    def run(url: str, audit: str, **options: Any) -> None:
        calls.append({"url": url, "audit": audit} | options)

    monkeypatch.setattr("auditor.tui.plain_text_app.run_plain_text_labelling", run, raising=False)
    return calls


def count_sampled(storage: str) -> int:
    with open_database(storage, create=False) as db:
        return len(labels.load_label_sample(db, audits.get_audit(db, "moral").id, LabelKind.TRACE))


def test_a_sample_is_drawn_and_opened(storage: str, opened: list[dict[str, Any]]) -> None:
    result = auditor("review", "moral", "--sample", "90", "--rater", "ada", "--second-share", "0.5", "--raters", "3")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "Label sample: 90 of 180 traces, from 6 strata (model × verdict).\n"
    assert opened == [
        {
            "url": storage,
            "audit": "moral",
            "rater": "ada",
            "kind": LabelKind.TRACE,
            "second_rater_share": 0.5,
            "raters_per_shared_unit": 3,
        }
    ]


@pytest.mark.parametrize("words", [("--sample",), ("--sample", "--plain"), ("--plain", "--sample")])
def test_without_a_number_the_drawn_sample_is_opened(
    storage: str, opened: list[dict[str, Any]], words: tuple[str, ...]
) -> None:
    assert "has no label sample of traces yet" in auditor("review", "moral", *words).stderr
    assert opened == []
    auditor("review", "moral", "--sample", "90")
    assert auditor("review", "moral", *words).stderr.startswith("Label sample: 90 of 180 traces,")
    assert auditor("review", "--sample", "moral").returncode == 0  # the name is not taken for the number
    assert len(opened) == 3


def test_a_sample_is_extended(storage: str, opened: list[dict[str, Any]]) -> None:
    auditor("review", "--sample", "90")
    extended = auditor("review", "--sample=120")
    assert "120 of 180 traces, 30 of them new" in extended.stderr
    assert count_sampled(storage) == 120


def test_a_sample_that_the_minimum_makes_larger_says_so(storage: str, opened: list[dict[str, Any]]) -> None:
    result = auditor("review", "--sample", "20", "--stratify", "model")
    assert (
        "30 of 180 traces, from 3 strata (model). It is larger than 20: every stratum has at least 10" in result.stderr
    )


def test_traces_that_no_judge_reviewed_are_left_out(storage: str, opened: list[dict[str, Any]]) -> None:
    with open_database(storage) as db:
        audit_id = audits.get_audit(db, "moral").id
        verdicts = [v for v in results.load_verdicts(db, audit_id) if v.model == "cedar"]
        save_records(db, audit_id, [replace(v, outcome=Outcome.REFUSED, ruling=None) for v in verdicts])
    result = auditor("review", "--sample", "60")
    assert "Label sample: 60 of 120 traces, from 4 strata" in result.stderr
    assert result.stderr.endswith("Left out: 60 traces without a judge's verdict.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--stratify", "model"), "--stratify works only with --sample"),
        (("--kind", "comparison"), "--kind works only with --sample"),
        (("--redraw",), "--redraw works only with --sample"),
        (("--sample", "5", "--open-book"), "--open-book cannot be combined with --sample"),
        (("--sample", "-5"), "'--sample'"),
        (("--sample", "5", "--stratify", "modell"), "Did you mean 'model'?"),
        (("--sample", "5", "--kind", "comparison"), "has no comparison to label"),
    ],
)
def test_a_wrong_option_draws_nothing(
    storage: str, opened: list[dict[str, Any]], words: tuple[str, ...], message: str
) -> None:
    result = auditor("review", "moral", *words)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert opened == []
    assert count_sampled(storage) == 0
