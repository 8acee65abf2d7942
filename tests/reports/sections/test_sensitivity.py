"""How far figures depend on one zone, family or topic, and what halves their standard errors."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.sensitivity import (
    Figure,
    GroupNoun,
    HalfErrorSizes,
    LeftOutFigure,
    SensitivityRow,
    VarianceRow,
    VarianceShares,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List
from auditor.reports.sections.report import build_report_document
from auditor.reports.sections.sensitivity import (
    build_assumptions,
    build_sensitivity_section,
    build_variance_section,
    describe_purchase,
)
from tests.reports.sections.alignment_rows import make_alignment_row
from tests.reports.sections.node_text import blocks_of, text_of
from tests.support.known import known
from tests.support.report_changes import change


def make_row(
    figure: Figure = "pearson_r", without: GroupNoun = "cultural zone", low: float = 0.41, model: str = "alder"
) -> SensitivityRow:
    """A row whose figure ranges from `low` to 0.55."""
    return SensitivityRow(
        model=model, method="direct", figure=figure, without=without, groups=6, fewest_left=4,
        lowest=LeftOutFigure(value=low, left_out="Confucian"),
        highest=LeftOutFigure(value=0.55, left_out="Latin America"),
    )  # fmt: skip


def with_rows(report: Report, *rows: SensitivityRow) -> Report:
    """The report with these rows, of two models: r of each is 0.5, the mean absolute error 0.3, the bias 0."""
    mae = Estimate(0.3, 40, 0.2, 0.4)
    alignment = [make_alignment_row(model=model, mae=mae) for model in ("alder", "birch")]
    return change(report, sensitivity=list(rows), alignment=alignment)


def test_the_section_starts_with_the_largest_change_of_each_figure(report: Report) -> None:
    changed = with_rows(
        report, make_row(low=0.41), make_row(low=0.3, model="birch"), make_row("mae", low=0.2),
        make_row("bias", low=-0.1), make_row(without="topic family"),
    )  # fmt: skip
    document = build_report_document(changed)
    by_id = {section.id: section for section in document.sections}
    assert "95% CIs treat the countries and topics as a random draw from similar ones." in text_of(by_id["answer"])
    text = text_of(by_id["sensitivity"].blocks[0])
    assert (
        "Leaving out one cultural zone changes r by at most 0.20 (birch), the mean absolute error by at most 0.25 "
        "(alder) and the bias by at most 0.55 (alder). Leaving out one topic family, which leaves at least 4 topics, "
        "changes r by at most 0.09 (alder)."
    ) in text


def test_without_families_the_change_without_one_topic_is_named(report: Report) -> None:
    section = known(build_sensitivity_section(with_rows(report, make_row(without="topic"))))
    assert text_of(section.blocks[0]).startswith("Leaving out one topic changes r by at most 0.09 (alder).")
    assert section.title == "How much do the results depend on one cultural zone, or one topic?"


def test_without_zones_the_assumption_remains_and_the_section_is_left_out(report: Report) -> None:
    bare = with_rows(report)
    assert "random draw" in text_of(build_assumptions(bare))
    assert build_sensitivity_section(bare) is None
    assert build_assumptions(change(bare, alignment=[])) == []


def make_variance(cheapest: str | None, sizes: HalfErrorSizes | None) -> VarianceRow:
    return VarianceRow.model_validate(
        {
            "model": "m", "method": "direct", "figure": "MAE", "countries": 20, "topics": 10, "cells": 200,
            "samples": 2.0, "std_error": 0.0321, "negative": [], "cheapest": cheapest, "to_halve": sizes,
            "shares": VarianceShares(country=0.1, topic=0.6, cell=0.2, sample=0.1, language=None),
        }
    )  # fmt: skip


TOO_FEW = (
    "The 60 countries and 50 topics of this audit are too few to halve it, and more samples for each cell do not help."
)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (HalfErrorSizes(sample=None, topic=45, country=90),
         "To halve it, plan about 45 topics instead of 10 (900 cells instead of 200)."),
        (HalfErrorSizes(sample=9, topic=None, country=60),
         "To halve it, plan about 9 samples a cell instead of 2, or about 60 countries instead of 20 (600 cells "
         "instead of 200)."),
        (HalfErrorSizes(sample=None, topic=51, country=61), TOO_FEW),
        (HalfErrorSizes(sample=None, topic=None, country=None), TOO_FEW),
    ],
)  # fmt: skip
def test_the_advice_offers_no_more_than_the_survey_has(sizes: HalfErrorSizes, text: str) -> None:
    row = make_variance("topic", sizes)
    assert describe_purchase(row, 60, 50) == f"the standard error of its MAE is 0.032. {text}"


def test_advice_counts_usable_samples_where_some_are_lost() -> None:
    row = make_variance("sample", HalfErrorSizes(sample=9, topic=None, country=None))
    advice = describe_purchase(change(row, samples=2.4), 60, 50)
    assert advice.endswith("To halve it, plan about 9 usable samples a cell instead of 2.4.")


def test_advice_is_given_only_where_the_standard_error_is_worth_halving(report: Report) -> None:
    rows = [row for row in report.variance if row.shares is not None and row.figure == "r"]
    assert len(rows) > 1
    for std_error, n_advised in ((0.002, len(rows) - 1), (0.006, len(rows))):
        [advice] = blocks_of(
            known(build_variance_section(change(report, variance=rows, variance__0__std_error=std_error))), List
        )
        assert len(advice.items) == n_advised
    precise = change(report, variance=rows, variance__each__std_error=0.002)
    assert blocks_of(known(build_variance_section(precise)), List) == []
