"""Answers and log-probabilities are compared as the interval of their difference supports."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Tested
from auditor.reports.data.agreement.languages import MethodDifferenceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.sections.self_comparisons import build_methods_section, describe_method_difference
from tests.reports.sections.block_access import cells_of


def make_method_row(
    value: float | None = 0.2, low: float | None = 0.1, high: float | None = 0.3
) -> MethodDifferenceRow:
    p_value = None if low is None or high is None else 0.3 if low < 0 < high else 0.01
    reason = None if low is not None else "too few"
    difference = Tested(value, 40, low, high, reason, p_value=p_value, adjusted_p_value=p_value)
    return MethodDifferenceRow(model="m", measures=["echo"], difference=difference, direct_r=0.6, logprob_r=0.4)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            make_method_row(),
            "agrees better with people by its answers than by its log-probabilities (r = 0.60 for answers, 0.40 for "
            "log-probabilities by echo; Δr = +0.20, 95% CI +0.10 to +0.30, 40 cells)",
        ),
        (make_method_row(-0.2, -0.3, -0.1), "agrees less with people by its answers"),
        (
            make_method_row(0.2, -0.1, 0.3),
            "shows no statistically distinguishable difference between answers and log-probabilities (",
        ),
        (make_method_row(0.2, None, None), "Δr = +0.20, 40 cells, no 95% CI: too few"),
        (make_method_row(None, None, None), "cannot be compared: too few"),
    ],
)
def test_the_difference_is_described_by_its_interval(row: MethodDifferenceRow, text: str) -> None:
    assert text in describe_method_difference(row)


def test_the_section_has_a_plot_and_a_table_of_the_difference(report: Report) -> None:
    row = make_method_row()
    section = build_methods_section(report.model_copy(update={"methods": [row, make_method_row(None, None, None)]}))
    assert section is not None
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    assert cells_of(table)[0] == ["m", 0.6, 0.4, "echo", row.difference, 0.01]
    [figure] = [block for block in section.blocks if isinstance(block, Figure)]
    assert figure.table_id == table.id


def test_no_section_for_one_method(report: Report) -> None:
    assert build_methods_section(report) is None
