"""Experiments on consistency as pages: each answer says what the intervals show, and every figure has its n."""

from __future__ import annotations

from auditor.reports.experiments import consistency_pages as consistency
from auditor.reports.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from tests.reports.experiments.test_judge_pages import HOSTILE, e, told


def test_words_beside_dice() -> None:
    rows = [
        SemanticTemperatureRow(
            model=m, temperature=t, same_words=e(0.9), other_words=e(0.7), difference=e(d), p_value=0.001
        )
        for m, t, d in (("a", 0.0, -0.2), (HOSTILE, 1.0, -0.05))
    ]
    assert told(consistency.temperature_page("x", rows)) == (
        "1 of 2 settings change more with other words than with the dice: a at 0."
    )


def test_a_rule_may_help_or_harm() -> None:
    rows = [
        RuleFollowingRow(model=m, before=e(0.5), after=e(0.7), change=e(c), p_value=None)
        for m, c in (("a", 0.2), (HOSTILE, -0.2), ("c", 0.0), ("d", None))
    ]
    assert told(consistency.rules_page("x", rows)) == (
        f"1 of 3 models are more consistent with a rule: a. 1 of 3 models are less so: {HOSTILE}."
    )


def test_right_where_consistent() -> None:
    rows = [
        ConsistencyAccuracyRow(
            model=m, accuracy=e(0.6), consistency=e(0.5), n=30, r=r, p_value=0.02, ci_low=low, ci_high=high, reason=why
        )
        for m, r, low, high, why in (("a", 0.4, 0.1, 0.6, None), (HOSTILE, None, None, None, "all are right"))
    ]
    assert told(consistency.accuracy_page("x", rows)) == (
        f"a: r = 0.40 (0.10 to 0.60; 30 questions). {HOSTILE}: cannot be told (all are right)."
    )


def test_the_measure_that_goes_with_people_most() -> None:
    of = {"n": 20, "ci_low": 0.1, "ci_high": 0.8, "r_entropy": None}
    rows = [
        HumanCorrelationRow(text="answers", metric="SaGE", r=0.5, **of),
        HumanCorrelationRow(text="rules", metric=HOSTILE, r=None, reason="flat", **of),
    ]
    part = HumanJudgementReport(
        questions=20, judgements=80, alpha=e(0.6), entropy=e(0.3), correlations=rows, differences=[]
    )
    assert told(consistency.judgements_page("x", part)) == (
        "Of 1 measure, SaGE of answers goes with people's judgements most: r = 0.50 (0.10 to 0.80)."
    )
