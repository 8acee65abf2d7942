"""What a judge's comparisons are worth as the weight of its vote; and flips of its verdicts between two sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import cohens_kappa

from auditor.metrics.judges.agreement import fleiss_kappa
from auditor.metrics.judges.consistency import (
    ConsistencyMeasures,
    Measure,
    VoteWeight,
    compare_verdicts_over_units,
    consistency_weights,
    measure_consistency,
)
from auditor.metrics.logic.consistency import JudgeAnswers
from tests.support.known import known

N = 10
ORDER = np.arange(N)
TRUTH = (ORDER[:, None] > ORDER[None, :]).astype(float)
ASKED = np.ones((2, N, N), dtype=bool)
NONE = np.empty((0, 0))


def measured(
    preferences: np.ndarray, negated: np.ndarray | None = None, samples: np.ndarray = NONE
) -> ConsistencyMeasures:
    one = JudgeAnswers(preferences, 1 - preferences if negated is None else negated, ASKED, samples, TRUTH)
    return measure_consistency([one], 3, 1000, 0)


def measures(
    transitivity: float | None, commutativity: float | None, negation: float | None, self_agreement: float | None
) -> ConsistencyMeasures:
    """Measures with a chance level of one half."""
    values = (transitivity, commutativity, negation, self_agreement)
    first, second, third, fourth = (None if value is None else Measure(value, 0.5) for value in values)
    return ConsistencyMeasures(first, second, third, fourth, 90, 90, 90, 90, 0.5)


def weights_of(**judges: ConsistencyMeasures) -> dict[str, VoteWeight]:
    return consistency_weights(judges)


def random_answers(rng: np.random.Generator, first: float = 0.5) -> np.ndarray:
    return (rng.random((N, N)) < first).astype(float)


# --- planted judges ---------------------------------------------------------------------------------------------


def test_a_consistent_judge_has_weight_1() -> None:
    consistent = measured(TRUTH, samples=np.tile([[1.0], [0.0]], (3, 5)))
    assert [measure and measure.above_chance for measure in consistent.measures] == pytest.approx([1, 1, 1, 1])
    assert weights_of(good=consistent)["good"] == pytest.approx((1.0, 1.0, 1.0, None))


def test_a_judge_that_always_ties_has_no_weight() -> None:
    ties = np.full((N, N), 0.5)
    weights = weights_of(good=measured(TRUTH), ties=measured(ties, samples=np.full((4, 5), 0.5)))
    assert weights["ties"] == (None, None, 0.0, "90 of its 90 answers are ties")
    assert weights["good"].weight == pytest.approx(1.0)
    # Half of the answers of a form must be decisions.
    some = TRUTH.copy()
    some[:5] = 0.5
    some[np.arange(N), np.arange(N)] = np.nan
    assert weights_of(some=measured(some, 1 - TRUTH))["some"].reason is None
    some[5, :2] = 0.5
    assert weights_of(some=measured(some, 1 - TRUTH))["some"].reason == "47 of its 90 answers are ties"
    assert weights_of(some=measured(TRUTH, some))["some"].reason == "47 of its 90 answers are ties"


@pytest.mark.parametrize("side", [0.0, 1.0])
@pytest.mark.parametrize("negated_side", [0.0, 1.0])
def test_a_judge_that_always_names_the_same_side_has_no_weight(side: float, negated_side: float) -> None:
    constant = measured(np.full((N, N), side), np.full((N, N), negated_side), np.full((6, 5), side))
    weight = weights_of(good=measured(TRUTH), constant=constant)["constant"]
    assert weight == (None, None, 0.0, "it names the same side in 100% of its decisions, whatever the items")
    assert (known(constant.commutativity).value, known(constant.self_agreement).value) == (0.0, 1.0)
    assert known(constant.self_agreement).above_chance == 0.0


def test_a_side_in_one_order_counts_where_no_pair_was_asked_in_both() -> None:
    one_order = np.triu(np.ones((N, N), dtype=bool), 1)
    asked = np.stack([one_order, np.zeros((N, N), dtype=bool)])
    one = JudgeAnswers(np.where(one_order, 1.0, np.nan), np.full((N, N), np.nan), asked, NONE, TRUTH)
    constant = measure_consistency([one], 3, 1000, 0)
    assert known(constant.transitivity).value == 1.0  # the order of the items is no order of its own
    assert "same side" in str(weights_of(constant=constant)["constant"].reason)


@pytest.mark.parametrize("first", [0.5, 0.8])
def test_a_random_judge_has_little_weight(first: float) -> None:
    """Of answers that do not depend on the items, also where they favour a side or are always repeated."""
    rng = np.random.default_rng(0)
    redrawn, repeated = [], []
    for _ in range(60):
        answers, negated = random_answers(rng, first), random_answers(rng, first)
        drawn = (rng.random((8, 10)) < first).astype(float)
        redrawn.append(weights_of(judge=measured(answers, negated, drawn))["judge"].weight)
        same = np.repeat((rng.random((8, 1)) < first).astype(float), 10, axis=1)
        repeated.append(weights_of(judge=measured(answers, negated, same))["judge"].weight)
    assert np.mean(redrawn) < 0.06
    assert max(redrawn) < 0.25
    assert np.mean(repeated) < 0.06


def test_noise_lowers_the_weight() -> None:
    rng = np.random.default_rng(1)
    means = []
    for noise in (0.0, 0.05, 0.15, 0.3, 0.5):
        weights = []
        for _ in range(20):
            answers, negated = (np.where(rng.random((N, N)) < noise, 1 - form, form) for form in (TRUTH, 1 - TRUTH))
            weights.append(weights_of(judge=measured(answers, negated))["judge"].weight)
        means.append(float(np.mean(weights)))
    assert means == sorted(means, reverse=True)
    assert means[0] == pytest.approx(1.0)
    assert means[-1] < 0.1


# --- chance levels ----------------------------------------------------------------------------------------------


def test_negation_above_chance_is_cohens_kappa() -> None:
    rng = np.random.default_rng(2)
    answers, negated = random_answers(rng, 0.7), random_answers(rng, 0.4)
    off_diagonal = ~np.eye(N, dtype=bool)
    plain, reversed_negated = answers[off_diagonal].astype(int), 1 - negated[off_diagonal].astype(int)
    table = np.bincount(2 * plain + reversed_negated, minlength=4).reshape(2, 2)
    kappa = cohens_kappa(table, return_results=False)
    negation = known(measured(answers, negated).negation)
    assert negation.above_chance == pytest.approx(kappa, abs=1e-9)


def test_chance_of_the_other_measures() -> None:
    rng = np.random.default_rng(3)
    answers = random_answers(rng, 0.7)
    repeats = (rng.random((5, 4)) < 0.7).astype(float)
    consistency = measured(answers, samples=repeats)
    off_diagonal = ~np.eye(N, dtype=bool)
    p = answers[off_diagonal].mean()
    assert known(consistency.commutativity).chance == pytest.approx(2 * p * (1 - p), abs=1e-12)
    assert known(consistency.transitivity).chance == 0.75
    q = repeats.mean()
    majority = sum(math.comb(4, x) * q**x * (1 - q) ** (4 - x) * max(x, 4 - x) / 4 for x in range(5))
    assert known(consistency.self_agreement).chance == pytest.approx(majority, abs=1e-12)
    assert consistency.side_share == pytest.approx(max(p, 1 - p), abs=1e-12)


# --- who is compared on what ------------------------------------------------------------------------------------


def test_a_judge_that_fails_to_answer_has_no_weight() -> None:
    once = np.full((N, N), np.nan)
    once[3, 2] = 1.0
    most = TRUTH.copy()
    most[0, 1:] = np.nan  # 81 of 90
    weights = weights_of(good=measured(TRUTH), mute=measured(once), most=measured(most))
    assert weights["mute"] == (None, None, 0.0, "it answered 1 of 90 questions")
    assert weights["good"] == weights["most"] == pytest.approx((1.0, 1.0, 1.0, None))


def test_a_form_that_is_not_answered_counts() -> None:
    deaf = measured(TRUTH, np.full((N, N), np.nan))
    assert (deaf.answered, deaf.questions) == (0, 90)
    assert weights_of(deaf=deaf)["deaf"].weight == 0


def test_a_measure_that_one_judge_lacks_still_counts_for_the_others() -> None:
    weights = weights_of(
        a=measures(0.6, 1.0, 1.0, None), b=measures(0.9, 1.0, 1.0, None), c=measures(None, 1.0, 1.0, None)
    )
    assert weights["a"].weight == pytest.approx((0.2 + 1 + 1) / 3)
    assert weights["b"].weight == pytest.approx((0.8 + 1 + 1) / 3)
    assert weights["c"] == (None, None, 0.0, "its transitivity cannot be measured, unlike that of other judges")


def test_a_measure_that_most_judges_lack_is_not_compared() -> None:
    weights = weights_of(
        a=measures(0.9, 1.0, None, 0.9), b=measures(0.7, 0.8, None, None), c=measures(0.8, 0.8, None, None)
    )
    assert weights["a"] == pytest.approx((0.95, 0.9, 0.9, None))
    assert weights["b"] == pytest.approx((0.75, 0.5, 0.5, None))


def test_self_agreement_counts_at_most_as_much_as_the_others() -> None:
    assert weights_of(a=measures(0.75, 0.75, 0.75, 1.0))["a"].weight == pytest.approx(0.5)
    assert weights_of(a=measures(1.0, 1.0, 1.0, 0.5))["a"].weight == pytest.approx(0.75)
    arbitrary = weights_of(a=measures(0.5, 0.5, 0.5, 1.0))["a"]
    assert (arbitrary.weight, arbitrary.reason) == (0.0, "it is no more consistent than random answers")


def test_judges_below_the_threshold_have_no_vote() -> None:
    judges = {"a": measures(0.6, 0.8, None, None), "b": measures(0.7, 0.8, None, None)}
    weights = consistency_weights(judges, bench_below=0.72)
    assert weights["a"].value == pytest.approx(0.7)
    assert (weights["a"].weight, weights["a"].reason) == (0.0, "its consistency is below 0.72")
    assert weights["b"] == pytest.approx((0.75, 0.5, 0.5, None))


def test_judges_without_a_common_measure_cannot_be_compared() -> None:
    single_measures = [
        measures(0.9, None, None, None),
        measures(None, 0.9, None, None),
        measures(None, None, 0.9, None),
    ]
    weights = weights_of(a=single_measures[0], b=single_measures[1], c=single_measures[2])
    assert {weight.reason for weight in weights.values()} == {"the judges have no measure in common"}
    nothing = ConsistencyMeasures(None, None, None, None, 0, 0, 0, 0, None)
    assert weights_of(none=nothing)["none"].reason == "it made no comparison"
    only_repeats = measures(None, None, None, 0.9)
    assert weights_of(a=only_repeats)["a"].reason == "none of its answers can be compared"


def _units(n_countries: int, n_topics: int) -> dict[str, NDArray[np.intp]]:
    return {"country": np.repeat(np.arange(n_countries), n_topics), "topic": np.tile(np.arange(n_topics), n_countries)}


def test_scotts_pi_and_its_interval_are_fleiss_kappa_of_two() -> None:
    one_each = np.random.default_rng(0).permutation(np.repeat(np.eye(4), [20, 9, 16, 15], axis=0))
    units = _units(10, 6)
    flips = compare_verdicts_over_units(one_each, units)
    assert flips.change.value == pytest.approx(-7 / 60)
    assert (flips.change.n, flips.kappa.n) == (60, 60)
    counts = one_each @ [[2, 0], [1, 1], [1, 1], [0, 2]]
    assert flips.kappa.value == pytest.approx(fleiss_kappa(counts).value)
    kappa = fleiss_kappa(counts, units=units)
    assert (flips.kappa.ci_low, flips.kappa.ci_high) == pytest.approx((kappa.ci_low, kappa.ci_high))
    assert flips.kappa.generalizes_to == "other countries and topics like these"


def test_kappa_has_no_interval_where_the_rarer_verdict_is_in_few_countries() -> None:
    units = _units(6, 5)
    counts = np.tile([4, 0, 0, 0], (30, 1))
    counts[units["country"] < 4] = [2, 1, 0, 1]
    flips = compare_verdicts_over_units(counts, units)
    assert (flips.kappa.ci_low, flips.kappa.ci_high) == (None, None)
    assert flips.kappa.reason == (
        "the rarer of the two ratings occurs in fewer than 5 countries, too few for an interval for other countries "
        "and topics"
    )
    assert flips.change.ci_low is not None


def test_many_judges_of_one_trace_are_no_more_cells() -> None:
    rng, units = np.random.default_rng(1), _units(8, 5)
    once = rng.multinomial(1, [0.4, 0.25, 0.1, 0.25], 40)
    one, ten = compare_verdicts_over_units(once, units), compare_verdicts_over_units(10 * once, units)
    assert (one.change.n, ten.change.n) == (40, 400)
    assert (one.change.ci_low, one.change.ci_high) == pytest.approx((ten.change.ci_low, ten.change.ci_high))
    assert (one.kappa.ci_low, one.change.p_value) == pytest.approx((ten.kappa.ci_low, ten.change.p_value))


def test_missing_figures_have_a_reason() -> None:
    units = _units(6, 5)
    assert compare_verdicts_over_units(np.zeros((0, 4)), {"item": []}).change.reason == "no verdict on both sides"
    same = compare_verdicts_over_units([[3, 0, 0, 0]] * 30, units)
    assert (same.change.value, same.kappa.value) == (0.0, None)
    assert same.kappa.reason == "all verdicts are the same"
    few = compare_verdicts_over_units([[3, 1, 0, 2]] * 12, _units(4, 3))
    assert (few.change.ci_low, few.kappa.ci_low, few.change.p_value) == (None, None, None)
    assert "but there are 4 countries and 3 topics" in str(few.change.reason)
    with pytest.raises(ValueError, match="at least 0"):
        compare_verdicts_over_units([[1, -1, 0, 0]], {"item": [1]})
