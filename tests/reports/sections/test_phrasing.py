"""Labels of series, statuses of intervals, lists of names, and tables with an attribute in each column."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

import pytest

from auditor.domain import Cell, CellScore
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.data.build import build_report
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.document import Column, CountShare, Name, Row
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    compare_interval,
    join_first,
    list_counts,
    list_series_with_errors,
    make_columns,
    slugify_unique,
    tabulate,
    tabulate_matrix,
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


def test_columns_show_the_attribute_that_their_key_names_or_a_derived_cell() -> None:
    records = [SimpleNamespace(model="alder", score=SimpleNamespace(mae=0.5), n=3)]
    columns = [Column("Model", "name"), Column("MAE", "number", "score.mae"), Column("Twice n", "number", "double")]
    total = SimpleNamespace(model="all", score=SimpleNamespace(mae=None), n=4)
    table = tabulate("t", "T", "", records, columns, {"double": lambda record: 2 * record.n}, total)
    assert list(table.rows) == [Row(["alder", 0.5, 6]), Row(["all", None, 8], is_total=True)]


class ScoreRow(ReportModel):
    model: ModelName
    share: Annotated[ShareEstimate, Column("Share", note="of all answers", table="shares")]
    lost: Annotated[LostSamples, Column("Lost", part="as_count", key="lost")]
    repeated: Annotated[int | None, Column("Repeated", is_optional=True)] = None
    internal: str = ""


def test_a_column_is_one_field_with_its_title_its_kind_and_its_note() -> None:
    share = ShareEstimate(0.5, 4, reason="few")
    row = ScoreRow(model="alder", share=share, lost=LostSamples(planned=4, lost=1, share=0.25))
    shares = tabulate("shares", "T", "Shares.", [row], ScoreRow)
    assert [(column.title, column.kind, column.key) for column in shares.columns] == [
        ("Model", "name", "model"), ("Share", "estimate", "share"), ("Lost", "share", "lost")
    ]  # fmt: skip
    assert list(shares.rows) == [Row(["alder", share, CountShare(1, 4)])]
    assert shares.caption == ["Shares.", " Share: of all answers."]
    others = tabulate("others", "T", "", [row, row.model_copy(update={"repeated": 2})], ScoreRow)
    assert [column.title for column in others.columns] == ["Model", "Lost", "Repeated"]


def test_columns_of_one_kind_have_a_title_for_each_key() -> None:
    columns = make_columns("number", {"n_first": "First", "n_last": "Last"}, "signed")
    assert columns == [Column(key.title(), "number", f"n_{key}", style="signed") for key in ("first", "last")]


def test_a_key_that_is_no_attribute_is_an_error() -> None:
    with pytest.raises(AttributeError, match="missing"):
        tabulate("t", "T", "", [SimpleNamespace(model="alder")], [Column("Model", "name", "missing")])


def test_an_attribute_of_none_is_missing() -> None:
    table = tabulate("t", "T", "", [SimpleNamespace(score=None)], [Column("MAE", "number", "score.mae")])
    assert list(table.rows) == [Row([None])]


def test_a_matrix_has_a_column_for_each_name_of_any_row() -> None:
    table = tabulate_matrix("t", "T", "", Column("Country", "name"), {"Egypt": {"a": 1}, "Peru": {"b": 2, "a": 3}})
    assert [str(column.title) for column in table.columns] == ["Country", str(Name("a")), str(Name("b"))]
    assert list(table.rows) == [["Egypt", 1, None], ["Peru", 3, 2]]
