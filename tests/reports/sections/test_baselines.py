"""The section on baselines states the ceiling, r within topics and each baseline, as the intervals support."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.measurement_schema import BaselineRow, CeilingRow, GainRow, GuessClaim, GuessLevel
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.baselines import describe_ceiling, describe_gain, list_guess_findings, summarize_guesses
from tests.reports.sections.node_text import text_of
from tests.support.report_changes import change


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.2, 0.1, 0.3, "captures differences between countries"),
        (0.2, -0.1, 0.3, "is not shown to capture differences"),
        (-0.2, -0.3, -0.1, "is negatively correlated with the differences"),
        (0.2, None, None, "may or may not capture differences between countries"),
        (None, None, None, "cannot be tested on differences between countries: too few"),
    ],
)
def test_knowledge_of_countries_is_described_by_its_interval(
    value: float | None, low: float | None, high: float | None, text: str
) -> None:
    p_value = None if low is None or high is None else 0.3 if low < 0 < high else 0.01
    reason = None if low else "too few"
    estimate = Tested(value, 9, low, high, reason, p_value=p_value, adjusted_p_value=p_value)
    assert text in describe_gain(GainRow(model="m", method="direct", within_topics=estimate))


def test_the_ceiling_is_stated_with_the_reliability_or_the_reason(report: Report) -> None:
    assert describe_ceiling(report) == (
        "The highest attainable r is not available: 'population' is neither a built-in survey nor an existing file."
    )
    reliabilities = [Estimate(0.81, 100, 0.8, 0.82), Estimate(0.49, 100, 0.4, 0.5)]
    rows = [
        CeilingRow(scope=scope, reliability=reliability, largest_r=0.9)
        for scope, reliability in zip(("all", "within topics"), reliabilities, strict=True)
    ]
    assert describe_ceiling(change(report, ceiling=rows)) == (
        "A perfect model is expected to reach at most r = 0.90. The survey’s split-half reliability is "
        "0.81 over all cells (95% CI 0.80 to 0.82) and 0.49 within topics (95% CI 0.40 "
        "to 0.50)."
    )


LEVELS: dict[GuessLevel, str] = {"means": "topic mean", "similar countries": "nearest country"}
Comparison = tuple[float, float | None, bool]
"""The model's MAE minus that of a guess, the adjusted p-value, and whether a claim is made."""


def make_guesses(report: Report, comparisons: Sequence[Comparison]) -> tuple[list[BaselineRow], list[GuessClaim]]:
    """A guess of each level, and the claims of one model."""
    baselines, claims = [], []
    for (level, name), (difference, p_value, is_closer) in zip(LEVELS.items(), comparisons, strict=True):
        low, high = (None, None) if p_value is None else (difference - 0.05, difference + 0.05)
        update = {
            "baseline": name,
            "mae": Estimate(0.2, 40, 0.15, 0.25),
            "mae_difference": Tested(difference, 40, low, high, "too few" if p_value is None else None,
             p_value=p_value, adjusted_p_value=p_value),
        }  # fmt: skip
        row = change(report.baselines[0], **update)
        claim = {"model": row.model, "method": row.method, "level": level, "is_closer": is_closer}
        baselines.append(row)
        claims.append(GuessClaim.model_validate(claim | {"p_value": p_value, "adjusted_p_value": p_value}))
    return baselines, claims


@pytest.mark.parametrize(
    ("comparisons", "status", "texts"),
    [
        (((-0.1, 0.01, True), (-0.1, 0.01, True)), "positive",
         ("is closer to people than people’s means and similar countries",)),
        (((-0.1, 0.01, True), (-0.01, 0.6, False)), "unclear",
         ("is closer to people than people’s means", "and is not shown to be closer to people than similar countries")),
        (((0.1, 0.01, False), (0.1, 0.01, False)), "negative",
         ("is further from people than people’s means and similar countries",)),
        (((-0.1, None, False), (0.1, None, False)), "neutral",
         ("may or may not be closer to people than people’s means",)),
    ],
)  # fmt: skip
def test_a_model_is_compared_with_two_levels_of_guesses(
    report: Report, comparisons: Sequence[Comparison], status: str, texts: tuple[str, ...]
) -> None:
    baselines, claims = make_guesses(report, comparisons)
    [finding] = list_guess_findings(change(report, baselines=baselines, guesses=claims))
    assert finding.status == status
    for text in texts:
        assert text in text_of(finding.content)


def test_the_models_of_a_claim_are_named_by_level(report: Report) -> None:
    baselines, claims = make_guesses(report, ((-0.1, 0.01, True), (-0.01, 0.6, False)))
    both = [*claims, *(change(claim, model="b") for claim in claims)]
    one = [*claims, *(change(claim, model="b", is_closer=False) for claim in claims)]
    best = "(the best guess: mean absolute error 0.20)"
    for guesses, subject, other in (
        (claims, "The model is", "the model is not"),
        (both, "Both models are", "no model is"),
        (one, f"Of 2 models, {claims[0].model} is", "no model is"),
    ):
        update = {"guesses": guesses, "donor_countries": 54, "baselines": baselines}
        assert text_of(summarize_guesses(change(report, **update))) == (
            f"{subject} shown to be closer to people than people’s means of a topic, a country or a region {best}; "
            f"{other} shown to be closer to people than an estimate from similar countries, which uses the country’s "
            f"other answers {best}."
        )
    baselines, claims = make_guesses(report, ((-0.01, 0.6, False), (-0.01, 0.6, False)))
    update = {"guesses": claims, "donor_countries": 54, "baselines": baselines}
    assert text_of(summarize_guesses(change(report, **update))) == (
        f"The model is not shown to be closer to people than people’s means of a topic, a country or a region {best} "
        f"or than an estimate from similar countries, which uses the country’s other answers {best}."
    )
    few = change(report, guesses=claims, donor_countries=7)
    assert text_of(summarize_guesses(few)).endswith("Similar countries were looked for among 7 others only.")
    untested = [change(claim, p_value=None) for claim in claims]
    assert text_of(summarize_guesses(change(report, guesses=untested))).startswith("Whether a model is better than")
