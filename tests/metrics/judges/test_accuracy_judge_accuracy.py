from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from auditor.metrics.intervals.estimate import Estimate, Floats
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import NO_NEGATIVE_REASON, balanced_accuracy, judge_quality, rogan_gladen
from auditor.metrics.labels.prediction_powered import prediction_powered_mean

NAN = float("nan")


def _world(rng: np.random.Generator, prevalence: float, n_traces: int = 1200) -> tuple[Floats, Floats, Floats]:
    """People's labels, a judge's verdicts and the models of traces; the judge says VALID too often."""
    model = rng.integers(0, 4, n_traces)
    truth = rng.random(n_traces) < prevalence
    verdicts = np.where(truth, rng.random(n_traces) < 0.9, rng.random(n_traces) > 0.8)
    return truth.astype(float), verdicts.astype(float), model.astype(float)


def _draw(rng: np.random.Generator, truth: Floats, strata: Floats, n_each: int) -> Floats:
    """Labels of a random sample of each stratum; nan elsewhere."""
    labels, order = np.full(len(truth), NAN), rng.permutation(len(truth))
    for stratum in np.unique(strata):
        rows = order[strata[order] == stratum][:n_each]
        labels[rows] = truth[rows]
    return labels


def _covers(estimate: Estimate, truth: float) -> bool:
    assert estimate.ci_low is not None, estimate.reason
    assert estimate.ci_high is not None
    return estimate.ci_low <= truth <= estimate.ci_high


def test_shares_are_weighted_by_stratum() -> None:
    # Of 40 VALID verdicts 4 are labelled, of 10 INVALID ones 5: they weigh 10 and 2.
    judge = np.repeat([1.0, 0.0], [40, 10])
    labels = np.full(50, NAN)
    labels[:4] = [1, 1, 1, 0]
    labels[40:45] = [0, 0, 0, 1, 0]
    quality = judge_quality(judge, labels, strata=judge)
    assert quality.sensitivity.value == pytest.approx(30 / 32)
    assert quality.specificity.value == pytest.approx(8 / 18)
    assert quality.accuracy.value == pytest.approx(38 / 50)
    assert [e.n for e in (quality.sensitivity, quality.specificity, quality.accuracy)] == [4, 5, 9]
    assert quality.accuracy.generalizes_to == "these traces"
    corrected = rogan_gladen(judge, labels, strata=judge)
    assert (corrected.value, corrected.ci_low) == (None, None)  # the divisor, 0.38, may be 0
    assert "do not show that the judge is better than chance" in (corrected.reason or "")
    unweighted = judge_quality(judge, labels)
    assert unweighted.accuracy.value == pytest.approx(7 / 9)


def test_a_judge_without_errors_has_clopper_and_pearsons_lower_end() -> None:
    # 100 of 10,000 labelled at random: nearly n independent cases.
    judge = np.tile([1.0, 0.0], 5000)
    labels = np.where(np.arange(10_000) < 100, judge, NAN)
    accuracy = judge_quality(judge, labels).accuracy
    assert (accuracy.value, accuracy.ci_high) == (1.0, 1.0)
    assert accuracy.ci_low == pytest.approx(beta.ppf(0.025, 100, 1), abs=1e-3)


def test_the_quality_of_all_traces_needs_no_interval() -> None:
    judge, labels = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    quality = judge_quality(judge, labels)
    assert (quality.accuracy.value, quality.accuracy.ci_low, quality.accuracy.ci_high) == (0.75, 0.75, 0.75)
    assert quality.accuracy.reason == "every trace is labelled, so there is no sampling error"
    corrected = rogan_gladen(judge, labels)
    assert corrected.value == pytest.approx(0.25)
    assert corrected.ci_low == corrected.ci_high == pytest.approx(0.25)


def test_kappa_is_cohens() -> None:
    # Weighted table of judge by people: 30, 10 / 2, 8 of 50. Observed 0.76, expected 0.8 * 0.64 + 0.2 * 0.36.
    judge = np.repeat([1.0, 0.0], [40, 10])
    labels = np.full(50, NAN)
    labels[:4] = [1, 1, 1, 0]
    labels[40:45] = [0, 0, 0, 1, 0]
    kappa = judge_quality(judge, labels, strata=judge).kappa
    assert kappa.value == pytest.approx((0.76 - 0.584) / (1 - 0.584))
    assert kappa.value is not None
    assert kappa.ci_low is not None
    assert kappa.ci_high is not None
    assert -1 <= kappa.ci_low < kappa.value < kappa.ci_high <= 1
    alike = judge_quality(np.ones(20), np.where(np.arange(20) < 10, 1.0, NAN)).kappa
    assert (alike.value, "no agreement beyond chance" in (alike.reason or "")) == (None, True)


def test_kappa_without_a_labelled_disagreement_has_an_interval() -> None:
    judge = np.tile([1.0, 0.0], 500)
    kappa = judge_quality(judge, np.where(np.arange(1000) < 60, judge, NAN)).kappa
    assert kappa.value == 1.0
    assert kappa.ci_low is not None
    assert 0.85 < kappa.ci_low < 0.92


def test_a_share_of_raters_is_the_label_of_a_random_one() -> None:
    # Two traces of which half of the raters say VALID count as one VALID and one INVALID trace.
    judge = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    quality = judge_quality(judge, np.array([1.0, 0.5, 0.5, 0.0, 0.5]))
    assert quality.sensitivity.value == pytest.approx(2 / 2.5)
    assert quality.specificity.value == pytest.approx(1.5 / 2.5)
    assert quality.accuracy.value == pytest.approx(3.5 / 5)


def test_kappa_covers() -> None:
    rng = np.random.default_rng(5)
    truth, judge, _ = _world(rng, 0.7)
    expected = judge.mean() + truth.mean() - 2 * judge.mean() * truth.mean()
    kappa = 1 - np.abs(judge - truth).mean() / expected
    strata = judge
    estimates = [judge_quality(judge, _draw(rng, truth, strata, 60), strata=strata).kappa for _ in range(300)]
    assert np.mean([_covers(estimate, kappa) for estimate in estimates]) > 0.92


def test_a_judge_with_one_answer_has_a_certain_sensitivity() -> None:
    labels = np.where(np.arange(60) < 30, np.arange(60) % 2, NAN)
    quality = judge_quality(np.ones(60), labels)
    assert (quality.sensitivity.value, quality.sensitivity.ci_low) == (1.0, 1.0)
    assert (quality.specificity.value, quality.specificity.ci_high) == (0.0, 0.0)
    assert "follows from the judge's own verdicts" in (quality.sensitivity.reason or "")
    assert rogan_gladen(np.ones(60), labels).reason == (
        "the judge is no better than chance on the labelled traces (sensitivity + specificity is at most 1), so its "
        "verdicts cannot be corrected"
    )


def test_missing_labels_have_a_reason() -> None:
    judge = np.tile([1.0, 0.0], 10)
    none = judge_quality(judge, np.full(20, NAN))
    assert {e.reason for e in (none.sensitivity, none.specificity, none.accuracy)} == {"no trace is labelled"}
    only_valid = np.where(np.arange(20) < 8, 1.0, NAN)
    quality = judge_quality(judge, only_valid)
    assert quality.specificity.value is None
    assert quality.specificity.reason == "people gave no labelled trace a 0, so the specificity is unknown"
    assert rogan_gladen(judge, only_valid).reason == quality.specificity.reason
    assert rogan_gladen(judge, only_valid - 1).reason == (
        "people gave no labelled trace a 1, so the sensitivity is unknown"
    )
    single = np.where(np.isin(np.arange(20), (0, 1, 15)), judge, NAN)
    accuracy = judge_quality(judge, single, strata=np.arange(20) // 10).accuracy
    assert (accuracy.value, accuracy.ci_low) == (1.0, None)
    assert accuracy.reason == "1 stratum has a single label: an interval needs 2 of each"
    with pytest.raises(ValueError, match="judge must be 1 for VALID or 0 for INVALID"):
        judge_quality(judge / 2, only_valid)
    with pytest.raises(ValueError, match="labels must be from 0, INVALID, to 1, VALID"):
        judge_quality(judge, only_valid * 2)


def test_rogan_gladen_of_a_simple_sample_is_close_to_the_corrected_mean() -> None:
    rng = np.random.default_rng(5)
    truth, judge, _ = _world(rng, 0.6, 4000)
    labels = _draw(rng, truth, np.zeros(4000), 1000)
    corrected, mean = rogan_gladen(judge, labels), prediction_powered_mean(judge, labels)
    assert corrected.value == pytest.approx(mean.value, abs=0.02)
    assert _covers(corrected, float(truth.mean()))


@pytest.mark.parametrize("prevalence", [0.6, 0.93])
def test_intervals_cover_under_stratification(prevalence: float) -> None:
    # With 93% VALID the errors among INVALID traces are few, and sit in strata of which a tenth is labelled.
    rng = np.random.default_rng(26)
    truth, judge, model = _world(rng, prevalence)
    truths = (judge[truth == 1].mean(), 1 - judge[truth == 0].mean(), (judge == truth).mean())
    strata, n_runs, covered = 2 * model + judge, 300, np.zeros(4)
    n_corrected = 0
    for _ in range(n_runs):
        labels = _draw(rng, truth, strata, 20)
        quality = judge_quality(judge, labels, strata=strata)
        estimates = (quality.sensitivity, quality.specificity, quality.accuracy)
        covered[:3] += [_covers(estimate, value) for estimate, value in zip(estimates, truths, strict=True)]
        corrected = rogan_gladen(judge, labels, strata=strata)
        if corrected.ci_low is not None:
            n_corrected += 1
            covered[3] += _covers(corrected, truth.mean())
    assert (covered[:3] / n_runs > 0.92).all()
    assert prevalence == 0.93 or covered[3] / n_corrected > 0.92


def test_balanced_accuracy_names_coins_in_few_audits_and_finds_judges_that_see_something() -> None:
    """Five judges that toss coins, Holm over them: one is said to be better than chance in at most 5% of audits."""
    rng, n_false, n_found = np.random.default_rng(8), 0, 0
    units = {"country": np.arange(480) % 12, "topic": np.arange(480) // 12 % 10}
    for _ in range(100):
        truth = (rng.random(480) < 0.6).astype(float)
        labels = np.where(rng.permutation(480) < 172, truth, NAN)
        coins = [balanced_accuracy((rng.random(480) < 0.7).astype(float), labels, units) for _ in range(5)]
        n_false += any(test.is_significant and (test.value or 0) > 0.5 for test in adjust_tests(coins, "judges"))
        fair = np.where(rng.random(480) < 0.35, 1 - truth, truth)
        estimate = balanced_accuracy(fair, labels, units)
        n_found += estimate.p_value is not None and 5 * estimate.p_value < 0.05
    assert n_false <= 10
    assert n_found >= 75


def test_balanced_accuracy_by_hand_and_without_errors() -> None:
    judge, labels = np.array([1, 1, 0, 0, 1, 0] * 10, dtype=float), np.array([1, 1, 1, 0, 0, 0] * 10, dtype=float)
    units = {"item": np.arange(60)}
    assert balanced_accuracy(judge, labels, units).value == pytest.approx((2 / 3 + 2 / 3) / 2)
    weighted = balanced_accuracy(judge, labels, units, strata=judge)  # all traces labelled: the weights are 1
    assert weighted.value == pytest.approx(2 / 3)
    perfect = balanced_accuracy(labels, labels, units)
    assert perfect.value == 1
    assert perfect.ci_low == pytest.approx(1 - 2**0.5 / 2 * (1 - 0.025 ** (1 / 30)), abs=1e-9)
    assert balanced_accuracy(1 - labels, labels, units).ci_low == 0
    assert balanced_accuracy(judge, np.ones(60), units).reason == NO_NEGATIVE_REASON
