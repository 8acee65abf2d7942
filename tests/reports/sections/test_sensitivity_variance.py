"""The section on the sources of uncertainty: shares that add up, and what to buy next."""

from __future__ import annotations

import pytest

from auditor.reports.data.agreement.sensitivity import HalfErrorSizes, VarianceRow, VarianceShares
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List, Table
from auditor.reports.sections.sensitivity import build_variance_section, describe_purchase
from tests.reports.sections.block_access import blocks_of


def make_row(cheapest: str | None, sizes: HalfErrorSizes | None) -> VarianceRow:
    return VarianceRow.model_validate(
        {
            "model": "m", "method": "direct", "figure": "MAE", "countries": 20, "topics": 10, "cells": 200,
            "samples": 2.0, "std_error": 0.0321, "negative": [], "cheapest": cheapest, "to_halve": sizes,
            "shares": VarianceShares(country=0.1, topic=0.6, cell=0.2, sample=0.1, language=None),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (
            HalfErrorSizes(sample=None, topic=45, country=90),
            "To halve it, plan about 45 topics instead of 10 (900 cells instead of 200).",
        ),
        (
            HalfErrorSizes(sample=9, topic=None, country=60),
            "To halve it, plan about 9 samples a cell instead of 2, or about 60 countries instead of 20 (600 cells "
            "instead of 200).",
        ),
        (
            HalfErrorSizes(sample=None, topic=51, country=61),
            "The 60 countries and 50 topics of this audit are too few to halve it, and more samples for each cell do "
            "not help.",
        ),
        (
            HalfErrorSizes(sample=None, topic=None, country=None),
            "The 60 countries and 50 topics of this audit are too few to halve it, and more samples for each cell do "
            "not help.",
        ),
    ],
)
def test_the_advice_offers_no_more_than_the_survey_has(sizes: HalfErrorSizes, text: str) -> None:
    row = make_row("topic", sizes)
    assert describe_purchase(row, 60, 50) == f"the standard error of its MAE is 0.032. {text}"


def test_each_series_and_figure_has_a_row_whose_shares_add_up(report: Report) -> None:
    section = build_variance_section(report)
    assert section is not None
    [table] = blocks_of(section, Table)
    rows = [row for row in report.variance if row.shares is not None]
    assert len(table.rows) == len(rows) == 3 * len(report.alignment)
    for row in rows:
        assert row.shares is not None
        parts = (row.shares.country, row.shares.topic, row.shares.cell, row.shares.sample or 0.0)
        assert sum(parts) == pytest.approx(1)
        assert min(parts) >= 0
    [advice] = blocks_of(section, List)
    assert len(advice.items) == len(report.alignment)


def test_without_shares_there_is_no_section(report: Report) -> None:
    rows = [row.model_copy(update={"shares": None, "reason": "too few"}) for row in report.variance]
    assert build_variance_section(report.model_copy(update={"variance": rows})) is None


def test_advice_is_given_only_where_the_standard_error_is_worth_halving(report: Report) -> None:
    rows = [row for row in report.variance if row.shares is not None and row.figure == "r"]
    assert len(rows) > 1
    for std_error, n_advised in ((0.002, len(rows) - 1), (0.006, len(rows))):
        variance = [rows[0].model_copy(update={"std_error": std_error}), *rows[1:]]
        section = build_variance_section(report.model_copy(update={"variance": variance}))
        assert section is not None
        [advice] = blocks_of(section, List)
        assert len(advice.items) == n_advised
    precise = [row.model_copy(update={"std_error": 0.002}) for row in rows]
    section = build_variance_section(report.model_copy(update={"variance": precise}))
    assert section is not None
    assert blocks_of(section, List) == []
