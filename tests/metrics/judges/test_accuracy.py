"""Judges against labels: shares, agreement and differences, by hand and in simulated panels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, t as student

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import (
    NO_NEGATIVE_REASON,
    JudgeDifference,
    balanced_accuracy,
    difference_of_means,
    judge_quality,
    length_association,
    length_bias_against_labels,
    leniency_against_labels,
    mean_value,
    missing_difference,
    rogan_gladen,
)
from auditor.metrics.labels.prediction_powered import prediction_powered_mean
from tests.support.hand_jackknife import two_way_variance
from tests.support.judge_worlds import PanelWorld
from tests.support.known import known

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
    assert -1 <= known(kappa.ci_low) < known(kappa.value) < known(kappa.ci_high) <= 1
    alike = judge_quality(np.ones(20), np.where(np.arange(20) < 10, 1.0, NAN)).kappa
    assert (alike.value, "no agreement beyond chance" in (alike.reason or "")) == (None, True)


def test_kappa_without_a_labelled_disagreement_has_an_interval() -> None:
    judge = np.tile([1.0, 0.0], 500)
    kappa = judge_quality(judge, np.where(np.arange(1000) < 60, judge, NAN)).kappa
    assert kappa.value == 1.0
    assert 0.85 < known(kappa.ci_low) < 0.92


def test_a_share_of_raters_is_the_label_of_a_random_one() -> None:
    # Two traces of which half of the raters say VALID count as one VALID and one INVALID trace.
    judge = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    quality = judge_quality(judge, np.array([1.0, 0.5, 0.5, 0.0, 0.5]))
    assert quality.sensitivity.value == pytest.approx(2 / 2.5)
    assert quality.specificity.value == pytest.approx(1.5 / 2.5)
    assert quality.accuracy.value == pytest.approx(3.5 / 5)


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
    assert known(corrected.ci_low) <= truth.mean() <= known(corrected.ci_high)


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


def test_a_mean_over_items_with_one_trace_each_is_students_interval() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.3, size=40)
    mean = mean_value(values, {"item": np.arange(40)}, "experiment")
    low, high = student.interval(0.95, 39, values.mean(), values.std(ddof=1) / np.sqrt(40))
    assert (mean.value, mean.ci_low, mean.ci_high) == pytest.approx((values.mean(), low, high))
    assert (mean.n, mean.resampled, mean.evidence) == (40, ("item",), "experiment")
    t = values.mean() / (values.std(ddof=1) / np.sqrt(40))
    assert mean.p_value == pytest.approx(2 * student.sf(abs(t), 39))


def test_a_difference_is_recomputed_without_each_country_and_topic() -> None:
    panel = PanelWorld(8, 6, 3, missing=0.2).draw(2)
    [difference, *_] = length_association(panel.verdicts, panel.is_longer, panel.units)

    def recompute(keep: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
        row = panel.verdicts[0, keep]
        longer = panel.is_longer[keep] == 1
        return float(np.nanmean(row[longer]) - np.nanmean(row[~longer]))

    value = recompute(np.ones(panel.verdicts.shape[1], dtype=bool))
    variance = two_way_variance(recompute, **panel.units, cell=panel.units["country"] * 6 + panel.units["topic"])
    assert difference.value == pytest.approx(value)
    half_width = student.ppf(0.975, 5) * np.sqrt(variance)
    assert (difference.ci_low, difference.ci_high) == pytest.approx((value - half_width, value + half_width))


def test_what_cannot_be_measured_says_why() -> None:
    units = {"country": np.arange(12) % 4, "topic": np.arange(12) % 6}
    longer = np.arange(12) % 2 == 0
    few = difference_of_means(np.arange(12.0), longer.astype(float), units, "association")
    assert few.value is not None
    assert (few.ci_low, few.p_value) == (None, None)
    assert "5 countries" in (few.reason or "")
    assert difference_of_means(np.ones(12), np.ones(12), units, "association").reason == "one side has no verdict"
    assert mean_value(np.full(12, NAN), units, "truth").value is None
    with pytest.raises(ValueError, match="table"):
        length_association([1.0, 0.0], [1.0, 0.0], units)


def test_p_values_are_adjusted_over_all_tests() -> None:
    tests = [JudgeDifference(0.1, 9, 0.0, 0.2, resampled=("item",), p_value=p_value) for p_value in (0.02, 0.01, 0.03)]
    adjusted = adjust_tests([tests[0], missing_difference("none"), *tests[1:]], "bias")
    assert [difference.adjusted_p_value for difference in adjusted] == pytest.approx([0.04, None, 0.03, 0.04])
    assert {difference.test_family for difference in adjusted} == {"bias"}
    assert [difference.is_significant for difference in adjusted] == [True, False, True, True]


def test_a_judge_that_always_differs_is_tested_with_each_unit_as_one_case() -> None:
    rng = np.random.default_rng(3)
    units = {"country": np.repeat(np.arange(12), 8), "topic": np.tile(np.arange(8), 12)}
    opposite = mean_value(np.full(96, -1.0), units, "panel")
    assert (opposite.value, opposite.ci_low) == (-1.0, -1.0)
    assert -0.5 < (opposite.ci_high or 0.0) < -0.3
    assert (opposite.p_value or 1.0) < 0.01
    equal = mean_value(np.zeros(96), units, "panel")
    assert (equal.ci_low, equal.p_value) == (None, None)
    assert "uncertainty cannot be estimated" in (equal.reason or "")
    nearly = mean_value(np.where(rng.random(96) < 0.02, 0.0, -1.0), units, "panel")
    assert nearly.ci_low is not None
    in_few = mean_value(np.full(25, 1.0), {"country": np.repeat(range(5), 5), "topic": np.tile(range(5), 5)}, "panel")
    assert (in_few.p_value or 0.0) > 0.05  # five units that all agree occur by chance in 1 of 16 cases


def test_leniency_is_the_share_of_valid_minus_that_of_the_labels_on_the_same_traces() -> None:
    verdicts = np.tile([1.0, 1.0, 0.0, 1.0, NAN], 10)
    labels = np.tile([1.0, 0.0, 0.0, NAN, 1.0], 10)
    [difference] = leniency_against_labels([verdicts], labels, {"item": np.arange(50)})
    assert difference.n == 30
    assert difference.value == pytest.approx(2 / 3 - 1 / 3)
    assert difference.evidence == "truth"


def test_the_interval_for_wrong_labels_contains_those_of_each_rate() -> None:
    """With 10% wrong labels, a share of 0.7 among the labels stands for (0.7 - 0.1) / 0.8 = 0.75."""
    rng = np.random.default_rng(1)
    labels = (np.arange(200) < 140).astype(float)
    verdicts = (rng.random(200) < 0.9).astype(float)
    [difference] = leniency_against_labels([verdicts], labels, {"item": np.arange(200)})
    assert difference.value == pytest.approx(verdicts.mean() - 0.7)
    assert difference.label_error_ci_high == pytest.approx(difference.ci_high)
    # The centre moves by 0.05, and the labels vary more by 1 / 0.8.
    assert known(difference.label_error_ci_low) < known(difference.ci_low) - 0.05


@pytest.mark.parametrize("accuracies", [(1.5,) * 5, (0.8, 1.0, 1.5, 2.5, 4.0)])
def test_judges_that_err_at_random_are_not_called_biased(accuracies: tuple[float, ...]) -> None:
    """Better answers are longer, and a tenth of the labels are wrong: all judges favour longer answers, none too much.

    Without control all of them are found to favour longer answers.
    """
    world = PanelWorld(16, 12, 2, quality_by_length=0.6, accuracies=accuracies, label_errors=0.1)
    false_findings = associations = 0
    for seed in range(40):
        panel = world.draw(seed)
        differences = [
            *length_bias_against_labels(panel.verdicts, panel.truth, panel.is_longer, panel.units),
            *leniency_against_labels(panel.verdicts, panel.truth, panel.units),
        ]
        false_findings += any((difference.p_value or 0.0) < 0.05 / 10 for difference in differences)
        raw = length_association(panel.verdicts, panel.is_longer, panel.units)
        associations += sum((difference.p_value or 0.0) < 0.05 for difference in raw) >= 4
    assert false_findings <= 2
    assert associations >= 36


def test_a_judge_that_favours_longer_answers_is_found_among_items() -> None:
    world = PanelWorld(25, 20, 4, verbose=3.0, quality_by_length=0.3, label_errors=0.05)
    named = []
    for seed in range(20):
        panel = world.draw(seed)
        item = {"item": panel.units["country"] * 20 + panel.units["topic"]}
        differences = length_bias_against_labels(panel.verdicts, panel.truth, panel.is_longer, item)
        named.append([i for i, difference in enumerate(differences) if (difference.p_value or 0.0) < 0.01])
    assert sum(judges == [0] for judges in named) >= 19, named


def test_without_labels_there_is_no_figure() -> None:
    [difference] = leniency_against_labels([[1.0, 0.0]], [NAN, NAN], {"item": [1, 2]})
    assert (difference.value, difference.reason) == (None, "no trace has a verdict of this judge and a known truth")
