"""The table of biases says of each difference what kind of evidence it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.metrics.judges.accuracy import JudgeDifference
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.panel import build_bias_table, build_padding_table
from tests.reports.sections.block_access import cells_of

DIFFERENCE = JudgeDifference(0.2, 40, 0.1, 0.3, resampled=("country", "topic"), p_value=0.01, adjusted_p_value=0.02)


def test_kinds_that_need_an_experiment_or_a_truth_are_left_out_without_it(report: Report) -> None:
    judges = report.panel.judges
    table = build_bias_table(judges)
    assert [column.title for column in table.columns] == ["Judge", "Kind", "Evidence", "Difference", "p (adjusted)"]
    assert sorted(str(row[1]) for row in cells_of(table)) == [
        kind for kind in ("Later verdicts", "Leniency", "Longer traces", "Own family") for _ in judges
    ]
    p_values = [row[-1] for row in cells_of(table) if row[-1] is not None]
    assert p_values == sorted(p_values, key=lambda value: float(str(value)))
    evidence_by_kind = {row[1]: row[2] for row in cells_of(table)}
    assert evidence_by_kind["Leniency"] == "Compared with the median judge"
    assert evidence_by_kind["Longer traces"] == "Association, not a bias"
    assert not build_padding_table(judges).rows


def test_experiments_and_truths_have_rows_of_their_own(report: Report) -> None:
    truth = replace(DIFFERENCE, evidence="truth", label_error_ci_low=0.05, label_error_ci_high=0.35)
    row = report.panel.judges[0].model_copy(
        update={"padding": replace(DIFFERENCE, evidence="experiment"), "verbosity_against_truth": truth}
    )
    table = build_bias_table([row])
    by_kind = {cells[1]: cells for cells in cells_of(table)}
    assert by_kind["Padded traces"][2:] == ["Experiment on the same text", row.padding, None, 0.02]
    with_errors = by_kind["Longer traces, compared with the truth"][4]
    assert isinstance(with_errors, JudgeDifference)
    assert (with_errors.value, with_errors.ci_low, with_errors.ci_high) == pytest.approx((0.2, 0.05, 0.35))
    assert cells_of(build_padding_table([row])) == [[row.judge, row.padding, 0.02]]
