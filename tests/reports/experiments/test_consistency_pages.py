"""Pages of the consistency experiments: each headline follows from the intervals, and every figure has its n."""

from __future__ import annotations

from auditor.reports.data.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.reports.experiments import consistency_pages as consistency
from tests.reports.experiments.test_judge_pages import HOSTILE, checked_headline, make_estimate


def test_the_temperature_page_compares_paraphrase_with_sampling_noise() -> None:
    rows = [
        SemanticTemperatureRow(
            model=m,
            temperature=t,
            same_words=make_estimate(0.9),
            other_words=make_estimate(0.7),
            difference=make_estimate(d),
            p_value=0.001,
        )
        for m, t, d in (("a", 0.0, -0.2), (HOSTILE, 1.0, -0.05))
    ]
    assert checked_headline(consistency.temperature_page("x", rows)) == (
        "1 of 2 settings change more with other words than with the dice: a at 0."
    )


def test_the_rules_page_counts_models_that_improve_and_that_get_worse() -> None:
    rows = [
        RuleFollowingRow(
            model=m, before=make_estimate(0.5), after=make_estimate(0.7), change=make_estimate(c), p_value=None
        )
        for m, c in (("a", 0.2), (HOSTILE, -0.2), ("c", 0.0), ("d", None))
    ]
    assert checked_headline(consistency.rules_page("x", rows)) == (
        f"1 of 3 models are more consistent with a rule: a. 1 of 3 models are less so: {HOSTILE}."
    )


def test_the_accuracy_page_gives_the_correlation_of_accuracy_and_consistency() -> None:
    rows = [
        ConsistencyAccuracyRow(
            model=m,
            accuracy=make_estimate(0.6),
            consistency=make_estimate(0.5),
            n=30,
            r=r,
            p_value=0.02,
            ci_low=low,
            ci_high=high,
            reason=reason,
        )
        for m, r, low, high, reason in (("a", 0.4, 0.1, 0.6, None), (HOSTILE, None, None, None, "all are right"))
    ]
    assert checked_headline(consistency.accuracy_page("x", rows)) == (
        f"a: r = 0.40 (0.10 to 0.60; 30 questions). {HOSTILE}: cannot be told (all are right)."
    )


def test_the_judgements_page_names_the_measure_most_correlated_with_people() -> None:
    shared_fields = {"n": 20, "ci_low": 0.1, "ci_high": 0.8, "r_entropy": None}
    rows = [
        HumanCorrelationRow(text="answers", metric="SaGE", r=0.5, **shared_fields),
        HumanCorrelationRow(text="rules", metric=HOSTILE, r=None, reason="flat", **shared_fields),
    ]
    judgements = HumanJudgementReport(
        questions=20,
        judgements=80,
        alpha=make_estimate(0.6),
        entropy=make_estimate(0.3),
        correlations=rows,
        differences=[],
    )
    assert checked_headline(consistency.judgements_page("x", judgements)) == (
        "Of 1 measure, SaGE of answers goes with people's judgements most: r = 0.50 (0.10 to 0.80)."
    )
