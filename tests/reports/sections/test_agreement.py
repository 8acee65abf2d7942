"""Findings on agreement with people claim no more than the two-way intervals support."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES
from auditor.reports.data.coverage.lost_samples import WorstCaseFigures
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Paragraph, Table
from auditor.reports.sections.agreement import (
    build_agreement_section,
    classify_alignment,
    describe_alignment,
    describe_preference,
    summarize_alignment,
)
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.hostile_report import hostile_report
from tests.reports.sections.alignment_rows import make_alignment_row, make_concordance


@pytest.mark.parametrize(
    ("low", "high", "status", "text"),
    [
        (0.05, 0.4, "negative", "hardly agrees with people"),
        (-0.4, 0.4, "negative", "hardly agrees with people"),
        (-0.6, -0.1, "negative", "contradicts people: its scores fall where theirs rise"),
        (0.2, 0.6, "unclear", "agrees hardly to partly with people"),
        (0.51, 0.7, "positive", "agrees partly with people"),
        (0.6, 0.85, "positive", "agrees partly to well with people"),
        (0.75, 0.89, "positive", "agrees well with people"),
        (0.8, 0.95, "positive", "agrees well to closely with people"),
        (0.9, 0.99, "positive", "agrees closely with people"),
        (0.3, 0.95, "unclear", "agrees hardly to closely with people"),
        (None, None, "neutral", "cannot be judged without a 95% CI of its concordance"),
    ],
)
def test_words_hold_for_the_whole_interval_of_the_concordance(
    low: float | None, high: float | None, status: str, text: str
) -> None:
    row = make_alignment_row(**make_concordance(0.5, low, high))
    assert classify_alignment(row) == status
    assert describe_alignment(row).startswith(
        f"{text} (mean absolute error = 0.20, 95% CI 0.10 to 0.30, 40 cells; bias"
    )
    assert "None" not in describe_alignment(row)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.3, 0.7, "It orders countries and topics as people do, to some degree (r = 0.50, 95% CI 0.30 to 0.70)"),
        (-0.7, -0.3, "It orders countries and topics against people (r = −0.50"),
        (-0.1, 0.7, "It is not shown to order countries and topics as people do (r = 0.50"),
        (None, None, "Whether it orders countries and topics as people do cannot be judged (r = 0.50"),
    ],
)
def test_r_says_how_a_model_orders_countries_and_topics(low: float | None, high: float | None, text: str) -> None:
    r = -0.5 if (high or 0) < 0 else 0.5
    row = make_alignment_row(r, low, high)
    if low == -0.1:
        row = row.model_copy(update={"pearson_r": replace(row.pearson_r, p_value=0.2, adjusted_p_value=0.2)})
    assert f". {text}" in describe_alignment(row)


def test_an_interval_above_0_is_no_finding_if_the_test_is_not_significant_among_all_models() -> None:
    row = make_alignment_row(0.5, 0.05, 0.8)
    row = row.model_copy(update={"pearson_r": replace(row.pearson_r, p_value=0.03, adjusted_p_value=0.24)})
    assert describe_alignment(row).endswith(
        "It is not shown to order countries and topics as people do (r = 0.50, 95% CI 0.05 to 0.80; not beyond chance "
        "given all tests of this kind, p = 0.24)"
    )


def test_constant_perfect_and_reversed_models_have_words_of_their_own() -> None:
    constant = make_alignment_row(None, None, None, reason="x", **make_concordance(0))
    perfect = make_alignment_row(1.0, None, None, mae=Estimate(0.0, 40, reason="x"), **make_concordance(1))
    reversed_row = make_alignment_row(-1.0, None, None, **make_concordance(-0.5, -0.9, 0.2))
    for row, status, text in (
        (constant, "negative", "hardly agrees with people: it gives every cell the same score"),
        (perfect, "positive", "has people’s score in every cell"),
        (reversed_row, "negative", "reverses people: its scores fall exactly where theirs rise"),
    ):
        assert classify_alignment(row) == status
        assert describe_alignment(row).startswith(text)
        assert summarize_alignment([row]).startswith(f"The model {text}")
        named = summarize_alignment([make_alignment_row(), row.model_copy(update={"model": "elm"})])
        assert named.startswith(f"elm {text} (mean absolute error")
        assert "The other model agrees with people at least partly" in named


def test_scores_on_another_scale_have_r_only() -> None:
    missing = Estimate(None, 40, reason="another scale")
    figures: dict[str, Any] = {"mae": missing, "concordance": missing, "concordance_simultaneous": missing}
    assert describe_alignment(make_alignment_row(0.5, 0.3, 0.7, **figures)) == (
        "It orders countries and topics as people do, to some degree (r = 0.50, 95% CI 0.30 to 0.70, 40 cells); it has "
        "no mean absolute error: another scale"
    )
    none = make_alignment_row(None, None, None, reason="few pairs", **figures)
    assert describe_alignment(none) == "cannot be compared with people: few pairs"


def test_the_headline_counts_models_by_kind_of_agreement() -> None:
    rows = [
        *[make_alignment_row()] * 2,
        make_alignment_row(**make_concordance(0.4, 0.2, 0.6)),
        make_alignment_row(**make_concordance(0.4)),
    ]
    assert summarize_alignment(rows) == (
        "Of 4 models, 2 agree with people at least partly (mean absolute error 0.20), 1 may agree with "
        "people at least partly, or hardly at all (mean absolute error 0.20) and 1 cannot be judged without a 95% CI "
        "(mean absolute error 0.20)."
    )
    assert summarize_alignment(rows[:2]).startswith("Both models agree with people at least partly (mean")
    assert summarize_alignment(rows[:1]) == ("The model agrees partly to well with people (mean absolute error 0.20).")
    assert summarize_alignment([]).startswith("Agreement with people is not available: no scores")


def test_the_headline_has_the_bounds_of_models_that_lost_samples() -> None:
    mae = BoundedEstimate(0.2, 40, 0.1, 0.8, resampled=("country", "topic"), bound_low=0.15, bound_high=0.7)
    lossy = make_alignment_row(model="elm", worst_case=WorstCaseFigures(pearson_r=mae, mae=mae, bias=mae))
    bounds = " Whatever scores the lost samples would have had, the mean absolute error is within: elm 0.10 to 0.80."
    assert summarize_alignment([lossy, make_alignment_row()]).endswith(bounds)
    assert summarize_alignment([lossy]).endswith(bounds)
    assert "Whatever" not in summarize_alignment([make_alignment_row()])


def test_words_use_the_interval_that_holds_for_all_series() -> None:
    wide = make_concordance(0.6, 0.4, 0.8)["concordance"]
    row = make_alignment_row(**make_concordance(0.6, 0.55, 0.7) | {"concordance_simultaneous": wide})
    assert classify_alignment(row) == "unclear"
    assert describe_alignment(row).startswith("agrees hardly to well with people")


def test_the_headline_of_a_small_audit_states_the_size_that_is_needed() -> None:
    small = make_alignment_row(0.5, None, None, countries=4, **make_concordance(0.5))
    assert (
        summarize_alignment([small, small])
        == "This audit is too small to judge the models: it needs scores on at least 5 countries and 5 topics."
    )
    no_r = make_alignment_row(None, None, None, reason="x", countries=0)
    assert "too small" not in summarize_alignment([small, no_r])


def test_the_closest_model_is_named_after_its_tiers_only(report: Report) -> None:
    section = build_agreement_section(report)
    assert section is not None
    rankings = [ranking for ranking in report.tiers if ranking.by == "MAE" and ranking.scope == ALL_COUNTRIES]
    paragraphs = [str(block.content) for block in section.blocks if isinstance(block, Paragraph)]
    assert rankings
    assert [text for text in paragraphs if text.startswith("Over all countries")] == [
        describe_preference(ranking) for ranking in rankings
    ]


def test_the_section_starts_with_the_model_that_agrees_best(report: Report) -> None:
    section = build_agreement_section(report)
    assert section is not None
    assert (section.id, section.contents_title) == ("answer", "Agreement with people")
    finding = section.blocks[0]
    assert isinstance(finding, Paragraph)
    assert finding.role == "finding"
    assert str(finding.content).startswith("Over all countries, prefer alder")


def test_a_section_without_scores_has_no_plot(report: Report) -> None:
    section = build_agreement_section(report.model_copy(update={"alignment": [], "tiers": []}))
    assert section is not None
    assert not [block for block in section.blocks if isinstance(block, Figure | Table)]


def test_an_audit_without_a_survey_has_no_section(report: Report) -> None:
    survey = report.audit.survey.model_copy(update={"title": ""})
    audit = report.audit.model_copy(update={"survey": survey})
    assert build_agreement_section(report.model_copy(update={"audit": audit})) is None


def test_a_section_of_one_cell_and_one_of_hostile_names_can_be_built(db: Database) -> None:
    assert build_agreement_section(import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.2}))
    assert build_agreement_section(hostile_report(db))
