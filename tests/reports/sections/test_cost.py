"""The section on cost states known, estimated and unknown parts."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.reports.data.cost import CostReport, CostRow, SavingsRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Table
from auditor.reports.number_format import format_usd
from auditor.reports.sections.cost import build_cost_section, describe_cost, describe_savings
from auditor.storage.costs import CallSums
from tests.reports.sections.node_text import blocks_of, titled_cells_of


def describe_total(cost: CostReport, **figures: object) -> str:
    """The sentences on a cost whose total has these figures."""
    return " ".join(describe_cost(cost.model_copy(update={"total": change_row(cost.total, **figures)})))


def change_row(row: CostRow, **figures: Any) -> CostRow:
    """The row with other figures; those of `CallSums` by their names there."""
    sums = {name: figures.pop(name) for name in CallSums._fields if name in figures}
    return row.model_copy(update={"sums": row.sums._replace(**sums), **figures})


def test_an_unknown_cost_is_not_described_as_zero(report: Report) -> None:
    assert "unknown, which does not mean zero" in describe_total(report.cost, usd=None)
    assert "cost at least" in describe_total(report.cost)
    assert "at least" not in describe_total(report.cost, lower_bound=False)
    assert "not known" in describe_total(report.cost, calls=0)


def test_estimated_and_cached_parts_are_stated(report: Report) -> None:
    text = describe_total(report.cost, estimated_usd=0.5, estimated_attempts=1)
    assert f"Of this, {format_usd(0.5)} is an estimate: 1 request returned no usable token counts" in text
    assert "Of the prompt tokens in answers that report this, providers read 75% from their caches." in text
    assert "caches" not in describe_total(report.cost, prompt_tokens_with_cache_count=0)


@pytest.mark.parametrize(("lost_usd", "amount"), [(None, "the amount is unknown"), (2.0, "up to $2.00")])
def test_calls_without_an_answer_may_have_been_charged(report: Report, lost_usd: float | None, amount: str) -> None:
    text = " ".join(describe_cost(report.cost.model_copy(update={"lost": 3, "lost_usd": lost_usd})))
    assert f"3 further requests without an answer may have been charged, {amount}" in text


def test_savings_are_relative_to_the_full_design() -> None:
    row = SavingsRow(stage="review", made=50, full=100, means=["panel.judges_per_trace = 1", "panel.adaptive"])
    assert describe_savings(row) == (
        "50 verdicts were requested (50% of the full design), because of panel.judges_per_trace = 1 and "
        "panel.adaptive. Without these settings, it would be about 100."
    )
    one = describe_savings(row.model_copy(update={"stage": "direct", "means": ["samples"]}))
    assert one.endswith("because of samples. Without this setting, it would be 100.")


def test_hidden_reasoning_has_columns_and_a_sentence_only_where_it_is_reported(report: Report) -> None:
    [table] = blocks_of(build_cost_section(report), Table)
    assert not any("reasoning" in str(column.title) for column in table.columns)
    tokens = {"reasoning_tokens": 600, "answers_with_reasoning_count": 1, "completion_tokens": 1000}
    figures = {**tokens, "reasoning_usd": 0.25}
    rows = [change_row(row, **figures) for row in report.cost.rows[:1]] + report.cost.rows[1:]
    total = change_row(report.cost.total, **figures)
    cost = report.cost.model_copy(update={"rows": rows, "total": total})
    text = " ".join(describe_cost(cost))
    assert "Of the completion tokens, 60% were hidden reasoning, for $0.25" in text
    assert "at an unknown cost" in describe_total(report.cost, **{**figures, "reasoning_usd": None})
    [table] = blocks_of(build_cost_section(report.model_copy(update={"cost": cost})), Table)
    first, second, *_ = titled_cells_of(table)
    figures_of_rows = [(row["Of these, reasoning"], row["Of the cost, reasoning"]) for row in (first, second)]
    assert figures_of_rows == [(600, 0.25), (None, None)]
