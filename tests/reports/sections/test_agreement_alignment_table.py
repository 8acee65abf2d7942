"""The alignment table has the figures of the report, with two-way intervals, and reasons for missing ones."""

from __future__ import annotations

import json

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, CountShare, Reason, Row
from auditor.reports.render.table_files import column_key
from auditor.reports.sections.agreement import build_alignment_remarks, build_alignment_table
from auditor.reports.sections.phrasing import SeriesLabels, list_columns
from tests.reports.sections.alignment_rows import make_alignment_row

COLUMNS = list_columns(AlignmentRow, "alignment")


def list_cells(report: Report, row: AlignmentRow) -> list[Cell]:
    """The cells of one series after its label; a reason stands for each of the columns that it spans."""
    [cells] = build_alignment_table(report, [row], SeriesLabels(shows_method=False)).rows
    assert not isinstance(cells, Row)
    assert cells[0] == row.model
    spanned = [[cell] * (cell.columns if isinstance(cell, Reason) else 1) for cell in cells[1:]]
    assert sum(map(len, spanned)) == len(COLUMNS[1:])
    return [cell for group in spanned for cell in group]


def get_cells(report: Report, row: AlignmentRow) -> dict[str, Cell]:
    """The cells of one series by the key of their column."""
    cells = list_cells(report, row)
    return {column_key(column, 0): cell for column, cell in zip(COLUMNS[1:], cells, strict=True)}


def test_every_interval_is_that_over_countries_and_topics(report: Report) -> None:
    for row in report.alignment:
        cells = get_cells(report, row)
        assert [cells[key] for key in ("r", "spearman_rho", "corrected_r", "mae", "rmse", "bias")] == [
            row.pearson_r, row.spearman_rho, row.corrected_r, row.mae, row.rmse, row.bias
        ]  # fmt: skip
        assert row.pearson_r.resampled == row.mae.resampled == ("country", "topic")


def test_json_has_each_figure_once_as_a_key_of_the_row(report: Report) -> None:
    published = json.loads(report.model_dump_json())["alignment"]
    for row, keys in zip(report.alignment, published, strict=True):
        for prefix, value_key, estimate in (
            ("", "pearson_r", row.pearson_r),
            ("spearman_", "spearman_rho", row.spearman_rho),
            ("mae_", "mae", row.mae),
            ("rmse_", "rmse", row.rmse),
        ):
            ends = keys[f"{prefix}ci_low"], keys[f"{prefix}ci_high"]
            assert (keys[value_key], *ends) == (estimate.value, estimate.ci_low, estimate.ci_high)
        test = row.pearson_r.p_value, row.pearson_r.adjusted_p_value, row.pearson_r.test_family
        assert (keys["p_value"], keys["adjusted_p_value"], keys["test_family"]) == test
        assert keys["fisher_ci_high"] != keys["ci_high"]
        assert (keys["bias"]["value"], keys["reason"]) == (row.bias.value, row.pearson_r.reason)
        assert (keys["corrected_r"]["value"], keys["reliability"]) == (
            row.corrected_r.value,
            row.corrected_r.reliability,
        )
        assert not {"crossed", "reliability"} & (keys.keys() - {"reliability"} | keys["corrected_r"].keys())


def test_figures_equal_those_of_the_report(report: Report) -> None:
    for row in report.alignment:
        cells = get_cells(report, row)
        values = {key: cell.value if isinstance(cell, Estimate) else cell for key, cell in cells.items()}
        assert values == {
            "r": row.pearson_r.value, "spearman_rho": row.spearman_rho.value,
            "corrected_r": row.corrected_r.value, "ceiling": row.ceiling, "p_value": row.pearson_r.p_value,
            "concordance": row.concordance.value,
            "mae": row.mae.value, "rmse": row.rmse.value, "bias": row.bias.value, "n": row.n,
            "one_wording_mae": row.one_wording_mae,
            "bias_of_these_countries": row.bias_of_these_countries.value,
            "n_dropped": row.n_dropped, "lost_samples": CountShare(row.lost_samples.lost, row.lost_samples.planned),
        }  # fmt: skip


def test_corrected_r_is_reported_with_raw_r(report: Report) -> None:
    for row in report.alignment:
        assert row.pearson_r.value is not None
        assert row.corrected_r.value is not None
        assert abs(row.corrected_r.value) > abs(row.pearson_r.value)
        assert row.corrected_r.reliability == pytest.approx((row.pearson_r.value / row.corrected_r.value) ** 2)
        assert get_cells(report, row)["corrected_r"] == row.corrected_r
    missing = get_cells(report, make_alignment_row())["corrected_r"]
    assert isinstance(missing, Estimate)
    assert missing.reason == "no cell has two samples"


def test_a_missing_r_is_one_reason_across_its_columns(report: Report) -> None:
    reason = "fewer than 3 pairs (2)"
    row = make_alignment_row(None, None, None, reason=reason, ceiling=0.9)
    cells = get_cells(report, row)
    assert [cells[key] for key in ("r", "spearman_rho")] == [Reason(reason, 2)] * 2
    assert (cells["p_value"], cells["ceiling"]) == (None, 0.9)


def test_the_remark_counts_cells_without_people_only_where_there_are_any(report: Report) -> None:
    survey = report.audit.survey
    for asked, text in (
        (survey.cells, "are dropped. People were asked in every cell."),
        (survey.cells - 3, "In 3 cells, people were not asked."),
    ):
        changed_survey = survey.model_copy(update={"asked": asked})
        audit = report.audit.model_copy(update={"survey": changed_survey})
        assert text in str(build_alignment_remarks(report.model_copy(update={"audit": audit})).content)
