"""Findings on agreement with people claim no more than the two-way intervals support."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.metrics.estimate import BoundedEstimate, Estimate
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES
from auditor.reports.data.coverage.lost_samples import WorstCaseFigures
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Paragraph, Table
from auditor.reports.sections.agreement import (
    build_agreement_section,
    classify_alignment,
    describe_alignment,
    summarize_alignment,
)
from auditor.reports.sections.tiers import describe_preference
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.hostile_report import hostile_report
from tests.reports.sections.alignment_rows import make_alignment_row, make_correlation

NO_ERROR = Estimate(None, 40, reason="rescaled")


@pytest.mark.parametrize(
    ("row", "kind", "text"),
    [
        (
            make_alignment_row(0.5, 0.45, 0.6),
            "positive",
            "agrees moderately with people (r = 0.50, 95% CI 0.45 to",
        ),
        (
            make_alignment_row(0.5, 0.2, 0.75),
            "positive",
            "agrees with people, but the strength is uncertain: anywhere from weak to strong (r",
        ),
        (make_alignment_row(0.95, 0.92, 0.99), "positive", "very strongly"),
        (make_alignment_row(0.05, 0.01, 0.09), "positive", "agrees negligibly with people"),
        (make_alignment_row(-0.6, -0.69, -0.41), "negative", "is moderately negatively correlated with people"),
        (make_alignment_row(0.1, -0.2, 0.4), "unclear", "not statistically distinguishable from zero"),
        (make_alignment_row(0.5, -0.1, 0.9), "unclear", "95% CI −0.10 to 0.90"),
        (make_alignment_row(0.6, 0.5, 0.75), "positive", "agrees moderately to strongly with people"),
        (
            make_alignment_row(0.5, 0.05, 0.9),
            "positive",
            "from negligible to very strong",
        ),
        (
            make_alignment_row(0.5, None, None),
            "neutral",
            "cannot be judged (r = 0.50, 40 cells, no 95% CI: fewer than 5",
        ),
        (make_alignment_row(mae=NO_ERROR), "positive", "40 cells)"),
        (make_alignment_row(0.1, 0.0, 0.2), "unclear", "not statistically distinguishable from zero"),
        (
            make_alignment_row(0.9, None, None, n=3, reason="an interval needs 4 pairs"),
            "neutral",
            "cannot be judged (r = 0.90, 40 cells, no 95% CI: an interval needs 4 pairs)",
        ),
        (
            make_alignment_row(None, None, None, n=2, reason="fewer than 3 pairs (2)"),
            "neutral",
            "cannot be compared with people: fewer than 3 pairs (2)",
        ),
    ],
)
def test_agreement_is_described_by_its_interval(row: AlignmentRow, kind: str, text: str) -> None:
    assert classify_alignment(row) == kind
    assert text in describe_alignment(row)
    assert "None" not in describe_alignment(row)


def test_the_mean_absolute_error_is_stated_where_it_is_known() -> None:
    assert describe_alignment(make_alignment_row()).endswith("; its mean absolute error is 0.20 (95% CI 0.10 to 0.30)")
    few = make_alignment_row(mae=Estimate(0.2, 40, reason="few"))
    assert describe_alignment(few).endswith("; its mean absolute error is 0.20")
    assert "error" not in describe_alignment(make_alignment_row(mae=NO_ERROR))


def test_the_headline_counts_models_by_kind_of_agreement() -> None:
    rows = [
        *[make_alignment_row()] * 2,
        make_alignment_row(0.1, -0.2, 0.4),
        make_alignment_row(None, None, None, reason="x"),
    ]
    assert summarize_alignment(rows) == (
        "Of 4 models, 2 agree with people beyond chance (r from 0.50 to 0.50), 1 shows an agreement that is not "
        "statistically distinguishable from zero and 1 cannot be judged without a 95% CI."
    )
    assert (
        summarize_alignment([make_alignment_row(), make_alignment_row(0.6)])
        == "Both models agree with people beyond chance (r from 0.50 to 0.60)."
    )
    assert (
        summarize_alignment([make_alignment_row(-0.5, -0.6, -0.4)])
        == "The model is negatively correlated with people beyond chance (r = −0.50)."
    )
    assert summarize_alignment([make_alignment_row(0.1, -0.2, 0.4)]).startswith("The model shows an agreement that is")
    assert summarize_alignment([]).startswith("Agreement with people is not available: no scores")


def make_lossy_row(low: float, **more: Any) -> AlignmentRow:
    """A row with r from 0.3 to 0.7, or from `low` to 0.8 whatever the lost samples would have been."""
    r = BoundedEstimate(0.5, 40, low, 0.8, resampled=("country", "topic"), bound_low=low, bound_high=0.7)
    return make_alignment_row(worst_case=WorstCaseFigures(pearson_r=r, mae=r, bias=r), **more)


def test_the_headline_names_models_whose_finding_depends_on_lost_samples() -> None:
    condition = "holds only if the samples without a usable score are like the others."
    finding = "beyond chance (r = 0.50)."
    assert summarize_alignment([make_lossy_row(-0.1)]).endswith(f"{finding} This {condition}")
    assert summarize_alignment([make_lossy_row(0.1)]).endswith(finding)
    rows = [make_lossy_row(-0.1, model="elm"), make_lossy_row(0.1, model="oak"), make_alignment_row()]
    assert summarize_alignment(rows).endswith(f"(r from 0.50 to 0.50). For elm, this {condition}")
    unclear = make_lossy_row(-0.1, model="elm", pearson_r=make_correlation(0.1, -0.2, 0.4))
    assert "only if" not in summarize_alignment([unclear, make_alignment_row()])
    methods = [make_lossy_row(-0.1, model="elm"), make_lossy_row(-0.1, model="elm", method="logprob")]
    assert summarize_alignment(methods).endswith(f"For elm (direct), elm (logprob), this {condition}")


def test_the_headline_of_a_small_audit_states_the_size_that_is_needed() -> None:
    small = make_alignment_row(0.5, None, None, countries=4)
    assert (
        summarize_alignment([small, small])
        == "This audit is too small to judge the models: it needs scores on at least 5 countries and 5 topics."
    )
    no_r = make_alignment_row(None, None, None, reason="x", countries=0)
    assert "too small" not in summarize_alignment([small, no_r])


def test_the_headline_is_corrected_for_the_number_of_series() -> None:
    lucky = make_alignment_row(pearson_r=make_correlation(0.3, 0.01, 0.55, p_value=0.04))
    others = [make_alignment_row(pearson_r=make_correlation(0.1, -0.2, 0.4, p_value=0.6)) for _ in range(9)]
    assert classify_alignment(lucky) == "positive"
    single, several = (adjust_rows(rows, "pearson_r", "r") for rows in ([lucky], [lucky, *others]))
    assert summarize_alignment(single).startswith("The model agrees with people beyond chance")
    assert summarize_alignment(several) == (
        "All 10 models show an agreement that is not statistically distinguishable from zero."
    )


def test_the_best_model_by_r_is_named_after_its_tiers_only(report: Report) -> None:
    section = build_agreement_section(report)
    assert section is not None
    rankings = [ranking for ranking in report.tiers if ranking.by == "r" and ranking.scope == ALL_COUNTRIES]
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
    assert str(finding.content).startswith("Over all countries, alder has the highest r")


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
