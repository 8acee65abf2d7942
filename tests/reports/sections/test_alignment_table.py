"""The alignment table has the figures of the report, with two-way intervals, and reasons for missing ones."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, CountShare, Reason, Row
from auditor.reports.render.csv_tables import column_key
from auditor.reports.sections.alignment_table import ALIGNMENT_COLUMNS, build_alignment_remarks, build_alignment_table
from auditor.reports.sections.phrasing import SeriesLabels
from tests.reports.sections.alignment_rows import make_alignment_row, make_two_way_estimates


def list_cells(report: Report, row: AlignmentRow) -> list[Cell]:
    """The cells of one series after its label; a reason stands for each of the columns that it spans."""
    [cells] = build_alignment_table(report, [row], SeriesLabels(shows_method=False)).rows
    assert not isinstance(cells, Row)
    assert cells[0] == row.model
    spanned = [[cell] * (cell.columns if isinstance(cell, Reason) else 1) for cell in cells[1:]]
    assert sum(map(len, spanned)) == len(ALIGNMENT_COLUMNS[1:])
    return [cell for group in spanned for cell in group]


def get_cells(report: Report, row: AlignmentRow) -> dict[str, Cell]:
    """The cells of one series by the key of their column."""
    cells = list_cells(report, row)
    return {column_key(column, 0): cell for column, cell in zip(ALIGNMENT_COLUMNS[1:], cells, strict=True)}


def test_every_interval_is_that_over_countries_and_topics(report: Report) -> None:
    for row in report.alignment:
        cells = get_cells(report, row)
        figures = row.crossed
        assert [cells[key] for key in ("r", "spearman_rho", "corrected_r", "mae", "rmse", "bias")] == [
            figures.pearson_r, figures.spearman_rho, figures.corrected_r, figures.mae, figures.rmse, figures.bias
        ]  # fmt: skip
        assert (row.ci_low, row.ci_high) == (figures.pearson_r.ci_low, figures.pearson_r.ci_high)
        assert (row.ci_low, row.ci_high) != (row.fisher_ci_low, row.fisher_ci_high)


def test_figures_equal_those_of_the_report(report: Report) -> None:
    for row in report.alignment:
        cells = get_cells(report, row)
        values = {key: cell.value if isinstance(cell, Estimate) else cell for key, cell in cells.items()}
        assert values == {
            "r": row.pearson_r, "spearman_rho": row.spearman_rho,
            "corrected_r": row.corrected_r.value, "ceiling": row.ceiling, "p_value": row.p_value,
            "mae": row.mae, "rmse": row.rmse, "bias": row.bias.value, "n": row.n, "n_dropped": row.n_dropped,
            "lost_samples": CountShare(row.lost_samples.lost, row.lost_samples.planned),
        }  # fmt: skip


def test_corrected_r_is_reported_with_raw_r(report: Report) -> None:
    for row in report.alignment:
        assert row.pearson_r is not None
        assert row.corrected_r.value is not None
        assert abs(row.corrected_r.value) > abs(row.pearson_r)
        assert row.reliability == pytest.approx((row.pearson_r / row.corrected_r.value) ** 2)
        assert get_cells(report, row)["corrected_r"] == row.corrected_r
    missing = get_cells(report, make_alignment_row())["corrected_r"]
    assert isinstance(missing, Estimate)
    assert missing.reason == "no cell has two samples"


def test_a_missing_r_is_one_reason_across_its_columns(report: Report) -> None:
    reason = "fewer than 3 pairs (2)"
    row = make_alignment_row(
        None, None, None, reason=reason, p_value=None, ceiling=0.9, crossed=make_two_way_estimates(reason=reason)
    )
    cells = get_cells(report, row)
    assert [cells[key] for key in ("r", "spearman_rho")] == [Reason(reason, 2)] * 2
    assert (cells["p_value"], cells["ceiling"]) == (None, 0.9)


def test_the_remark_counts_cells_without_people_only_where_there_are_any(report: Report) -> None:
    survey = report.audit.survey
    for asked, text in (
        (survey.cells, "are dropped. In these, the model has no usable answer"),
        (survey.cells - 3, "not asked in 3 of them; in the others, the model"),
    ):
        changed_survey = survey.model_copy(update={"asked": asked})
        audit = report.audit.model_copy(update={"survey": changed_survey})
        assert text in str(build_alignment_remarks(report.model_copy(update={"audit": audit})).content)
