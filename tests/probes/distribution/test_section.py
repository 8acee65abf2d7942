"""The section on distributions: one sentence a model, floors beside distances, and what the figures lack."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.distribution.figures.schema import (
    DistributionBaselineRow,
    DistributionCellRow,
    DistributionDimensionRow,
    DistributionGapRow,
    DistributionGroupRow,
    DistributionModelRow,
    DistributionReport,
    DistributionStep,
)
from auditor.probes.distribution.section import build_distribution_section
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.render.figures import export_svg
from tests.reports.sections.node_text import blocks_of, text_of
from tests.support.known import known

NOT_ASKED = Estimate(None, 0, reason="not asked")


def estimate(value: float, low: float, high: float) -> Estimate:
    """An estimate over countries and topics."""
    return Estimate(value, 40, low, high, resampled=("country", "topic"))


def make_row(skill: Estimate, mode: str = "sampled", unusable: int = 0) -> DistributionModelRow:
    """A row of a model with a skill and 40% of people's variance."""
    return DistributionModelRow(
        model="m", mode=mode, n_cells=40, incomplete=unusable, answers=100, unusable=unusable,
        losses={"refused": unusable} if unusable else {}, rescaled=1, unlisted=2, mass=0.9,
        w1=estimate(0.1, 0.08, 0.12), w1_floor=estimate(0.05, 0.04, 0.06), w1_near=estimate(0.72, 0.6, 0.8),
        distance=estimate(0.1, 0.05, 0.15), skill=skill, exact_mean_skill=0.1,
        skill_region=skill, variance_ratio=estimate(0.4, 0.3, 0.5),
        collapse=estimate(0.2, 0.1, 0.3), order_effect=NOT_ASKED, country_gain=NOT_ASKED,
        total_variation=estimate(0.2, 0.1, 0.3), jensen_shannon=estimate(0.2, 0.1, 0.3),
    )  # fmt: skip


def make_distribution(
    *rows: DistributionModelRow, is_ordered: bool = True, has_sizes: bool = True
) -> DistributionReport:
    """A report with these models, one baseline and two groups."""
    group = DistributionGroupRow(
        model="m",
        mode="verbalized",
        dimension="sex",
        first="men",
        second="women",
        n=40,
        slope=estimate(1.6, 1.2, 2.0),
        intercept_slope=NOT_ASKED,
        r=estimate(0.5, 0.3, 0.7),
        specificity=estimate(0.01, 0.0, 0.02),
        steering_gain=NOT_ASKED,
        people_gaps=[0.1, -0.05],
        model_gaps=[0.15, -0.1],
        steps=[
            DistributionStep(group="men", before=0.5, after=0.4, people=0.45),
            DistributionStep(group="women", before=None, after=None, people=None),
        ],
    )
    return DistributionReport(
        points=["1", "2"],
        is_ordered=is_ordered,
        scales={},
        has_sample_sizes=has_sizes,
        models=list(rows),
        groups=[group] if is_ordered else [],
        dimensions=[
            DistributionDimensionRow(
                model="m", mode="verbalized", dimension="sex", n=40, coherence=estimate(0.02, 0.01, 0.03),
                within_variance_ratio=estimate(0.4, 0.3, 0.5),
            )
        ],
        cells=[
            DistributionCellRow(
                model="m", mode="sampled", rank=rank, country="Japan", topic="divorce", w1=0.1, people=[0.2, 0.8],
                answers=[0.4, 0.6],
            )
            for rank in ("closest", "middle", "furthest")
        ]
        if is_ordered
        else [],
        knowledge=[DistributionGapRow(model="m", n=40, knowledge_gap=estimate(0.02, 0.01, 0.03))],
        baselines=[DistributionBaselineRow(name="equal shares", n_cells=40, w1=0.3, distance=0.36)]
        if is_ordered
        else [],
    )  # fmt: skip


def describe(report: Report, distribution: DistributionReport) -> str:
    """All texts of the section."""
    return text_of(build_distribution_section(report.model_copy(update={"distribution": distribution})))


KNOWS = make_row(estimate(0.5, 0.3, 0.7), "verbalized")
SAMPLED = make_row(estimate(0.1, -0.3, 0.4))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([KNOWS, SAMPLED],
         "knows how opinions are spread better than the mean of the other countries does, but its answers show 40% "
         "of people’s diversity (stated shares: skill = 0.50, 95% CI 0.30 to 0.70; sampled answers: variance ratio "
         "= 0.40, 95% CI 0.30 to 0.50)."),
        ([make_row(estimate(0.5, 0.3, 0.7))], "shows how opinions are spread better"),
        # Below the skill of the exact mean, 0.1, and above 0: neither worse nor better.
        ([make_row(estimate(0.05, 0.02, 0.08))], "is not shown to be closer to people’s opinions"),
        ([make_row(estimate(-0.5, -0.8, -0.1))],
         "is further from people’s opinions than the mean of the other countries, and its answers show 40%"),
        ([SAMPLED], "is not shown to be closer to people’s opinions"),
        ([make_row(estimate(0.15, 0.05, 0.25))], "is not shown to be closer to people’s opinions"),
        ([make_row(NOT_ASKED)], "(sampled answers) cannot be compared: not asked"),
    ],
)  # fmt: skip
def test_one_sentence_says_what_a_model_knows_and_how_diverse_it_is(
    report: Report, rows: list[DistributionModelRow], sentence: str
) -> None:
    assert sentence in describe(report, make_distribution(*rows))


def test_the_section_compares_the_skill_of_each_model_with_0_given_the_number_of_models(report: Report) -> None:
    """A skill of 0.6 (0.2 to 1.0) is above 0.1 alone, not among ten; nor is one below 0."""
    unclear = estimate(0.6, 0.2, 1.0), estimate(-0.5, -0.9, -0.1)
    rows = [make_row(skill).model_copy(update={"model": f"m{i}"}) for i, skill in enumerate(unclear * 5)]
    text = describe(report, make_distribution(*rows))
    assert text.count("is not shown to be closer to people’s opinions") == len(rows)
    assert "is further from people’s opinions" not in text


def test_figures_show_examples_gaps_and_steering(report: Report) -> None:
    section = known(build_distribution_section(report.model_copy(update={"distribution": make_distribution(KNOWS)})))
    assert [figure.id for figure in blocks_of(section, Figure)] == [
        "opinions-m--sampled-answers",
        "gaps-m--stated-shares--sex--women-minus-men",
        "steering-m--stated-shares",
    ]
    assert all(export_svg(figure.spec).startswith(b"<svg") for figure in blocks_of(section, Figure))


def test_distances_have_a_column_with_their_floor(report: Report) -> None:
    distribution = make_distribution(make_row(NOT_ASKED))
    section = known(build_distribution_section(report.model_copy(update={"distribution": distribution})))
    models, _, _, baselines, _, groups, _ = blocks_of(section, Table)
    titles = [text_of(column.title) for column in models.columns]
    assert titles.index("Floor of W1") == titles.index("W1 (lower is better)") + 1
    assert "equal shares" in text_of(baselines.rows)
    assert "sex: women minus men" in text_of(groups.rows)


def test_missing_answers_and_sizes_are_stated(report: Report) -> None:
    text = describe(report, make_distribution(make_row(NOT_ASKED, unusable=3), has_sizes=False))
    assert "3 answers could not be used and are in no figure (refused: 3)." in text
    assert "3 cells of a model and mode had too few usable answers" in text
    assert "has no sample sizes, so there is no floor" in text
    assert "1 answer of stated shares did not add up to 100% and is divided by the sum." in text
    assert "2 answers of next-token probabilities have an option that the provider did not list" in text
    assert "Mean probability of all options together as the next token: m 90%." in text
    assert "has no sample sizes" not in describe(report, make_distribution(make_row(NOT_ASKED)))


def test_choices_have_distances_for_options(report: Report) -> None:
    text = describe(report, make_distribution(make_row(NOT_ASKED), is_ordered=False))
    assert "Jensen-Shannon distance (bits)" in text
    assert "Floor of W1" not in text


def test_there_is_no_section_without_answers(report: Report) -> None:
    assert build_distribution_section(report.model_copy(update={"distribution": None})) is None
