"""Labels of series, statuses of intervals and lists of names in sentences."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, CellScore
from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.build import build_report
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    compare_interval,
    join_first,
    list_counts,
    list_series_with_errors,
    slugify_unique,
)
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import import_scores


def test_names_with_the_same_slug_get_numbers() -> None:
    assert slugify_unique(["../x", "./x", "x-2"]) == ["x", "x-2", "x-2-2"]


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [(0.1, 0.3, "positive"), (-0.3, -0.1, "negative"), (0.0, 0.3, "unclear"), (None, None, "neutral")],
)
def test_an_interval_is_compared_with_zero(low: float | None, high: float | None, status: str) -> None:
    assert compare_interval(Estimate(0.2, 9, low, high, None if low is not None else "too few")) == status


@pytest.mark.parametrize(("reference", "status"), [(0.5, "negative"), (0.15, "unclear"), (None, "neutral")])
def test_an_interval_is_compared_with_a_reference(reference: float | None, status: str) -> None:
    assert compare_interval(Estimate(0.2, 9, 0.1, 0.3), reference) == status


def test_only_the_first_labels_are_named() -> None:
    assert join_first("abc", "model", 3) == "a, b, c"
    assert join_first("abcd", "model", 3) == "a, b, c and 1 more model"
    assert join_first("abcde", max_labels=3) == "a, b, c and 2 more"


def test_causes_are_listed_with_their_counts() -> None:
    assert list_counts({"refused": 3, "rate_limited": 1}) == "3 refused, 1 rate limited"


def test_two_methods_are_named_and_rescaled_scores_have_no_errors(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    import_scores(db, truth, {("m", *cell): score for cell, score in truth.items()})
    rows = [CellScore("m", Cell(*cell), "logprob", -score, n_ok=1, n_planned=1) for cell, score in truth.items()]
    save_records(db, audits.get_audit(db, "imported").id, rows)
    report = build_report(db, "imported")
    labels = SeriesLabels.of(report)
    assert {labels.label(row) for row in report.alignment} == {"m (direct)", "m (logprob)"}
    assert [labels.label(row) for row in list_series_with_errors(report)] == ["m (direct)"]
