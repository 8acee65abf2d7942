"""Means corrected by labels: against ppi_py, textbook intervals, and cross-fitted predictions."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t as student

from auditor.metrics.intervals.estimate import Estimate, Floats
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.metrics.labels.prediction_powered import cross_fit_predictions, prediction_powered_mean
from tests.support.known import known

NAN = float("nan")


def _labelled(seed: int, kind: str) -> tuple[Floats, Floats]:
    """A judge's values of 400 traces, and people's labels of 80 of them."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(400) < 0.7).astype(float)
    if kind == "verdicts":
        judge = np.where(rng.random(400) < 0.15, 1 - truth, truth)
    elif kind == "probabilities":
        judge = np.clip(truth * 0.6 + rng.normal(0.2, 0.15, 400), 0, 1)
    elif kind == "useless":
        judge = (rng.random(400) < 0.5).astype(float)
    else:
        judge = 0.2 * truth + 0.1 * rng.random(400)  # compressed: the factor is clipped at 1
    return judge, np.where(rng.permutation(400) < 80, truth, NAN)


def _ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.ci_low is not None, estimate.reason
    return estimate.ci_low, known(estimate.ci_high)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("verdicts", 0.5802906933586313, 0.7382977084183094),
        ("probabilities", 0.619815126135293, 0.7431708693036917),
        ("useless", 0.5859302321979798, 0.7890697678020202),
        ("compressed", 0.6069266538391923, 0.7697465114301484),
    ],
)
def test_other_traces_agree_with_ppi_py(kind: str, low: float, high: float) -> None:
    # ppi_py.ppi_mean_ci(labels, judge of the labelled, judge of the unlabelled, alpha=0.05), ppi-python 0.2.3.
    judge, labels = _labelled(26, kind)
    estimate = prediction_powered_mean(judge, labels, target="super")
    assert _ends(estimate) == pytest.approx((low, high), abs=1e-12)
    assert estimate.value == pytest.approx((low + high) / 2)
    assert (estimate.n, estimate.generalizes_to) == (80, "other traces like these")
    equal = prediction_powered_mean(judge, labels, inclusion=np.full(400, 0.2), target="super")
    assert _ends(equal) == pytest.approx((low, high), abs=1e-12)


def test_these_traces_have_the_textbook_interval() -> None:
    judge, labels = _labelled(3, "verdicts")
    strata = np.where(judge == 1, "VALID", "INVALID") + np.repeat(["a", "b"], 200).astype(object)
    value, variance, df = 0.0, 0.0, 0
    for stratum in sorted(set(strata)):
        rows = strata == stratum
        errors = (labels - judge)[rows & ~np.isnan(labels)]
        size, n = int(rows.sum()), len(errors)
        value += size / 400 * (judge[rows].mean() + errors.mean())
        variance += (size / 400) ** 2 * (1 - n / size) * errors.var(ddof=1) / n
        df += n - 1
    half_width = float(student.ppf(0.975, df)) * sqrt(variance)
    estimate = prediction_powered_mean(judge, labels, strata=strata.astype(str))
    assert estimate.value == pytest.approx(value)
    assert _ends(estimate) == pytest.approx((value - half_width, value + half_width))
    assert estimate.generalizes_to == "these traces"
    clustered = prediction_powered_mean(judge, labels, strata=strata.astype(str), clusters={"topic": np.arange(400)})
    assert clustered == estimate  # how the sample was drawn does not depend on topics


def test_a_judge_without_variation_in_strata_adds_nothing() -> None:
    judge, labels = _labelled(4, "verdicts")
    with_judge = prediction_powered_mean(judge, labels, strata=judge)
    people_only = prediction_powered_mean(np.zeros(400), labels, strata=judge)
    assert with_judge.value == pytest.approx(people_only.value)
    assert _ends(with_judge) == pytest.approx(_ends(people_only))


def _rare_errors(seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Truth, verdicts, labels and strata: 20 labels in each of eight strata, errors among VALID verdicts only."""
    rng = np.random.default_rng(seed)
    model = np.repeat(np.arange(4), 250)
    judge = (rng.random(1000) < 0.93).astype(float)
    truth = np.where((rng.random(1000) < np.array([0.005, 0.05, 0.12, 0.23])[model]) & (judge == 1), 0.0, judge)
    strata, labels, order = 2 * model + judge, np.full(1000, NAN), rng.permutation(1000)
    for stratum in np.unique(strata):
        rows = order[strata[order] == stratum][:20]
        labels[rows] = truth[rows]
    return truth, judge, labels, strata


def test_bounds_keep_the_coverage_where_errors_are_rare() -> None:
    n_covered, widths, errors = 0, [], []
    for seed in range(200):
        truth, judge, labels, strata = _rare_errors(seed)
        estimate = prediction_powered_mean(judge, labels, strata=strata, bounds=(0, 1))
        low, high = _ends(estimate)
        n_covered += low <= truth.mean() <= high
        widths.append(high - low)
        errors.append((estimate.value or 0) - truth.mean())
    assert n_covered >= 0.94 * 200  # Student's interval: 91 to 93%
    assert float(np.mean(widths)) < 1.3 * 2 * 1.976 * float(np.std(errors))


def test_bounds_widen_the_interval_on_the_scale_of_the_labels() -> None:
    judge, labels = _labelled(7, "verdicts")
    plain, bounded = (_ends(prediction_powered_mean(judge, labels, bounds=b)) for b in ((-np.inf, np.inf), (0, 1)))
    assert bounded[0] <= plain[0] < plain[1] <= bounded[1]
    assert bounded[1] - bounded[0] < 1.25 * (plain[1] - plain[0])
    moved = _ends(prediction_powered_mean(3 * judge - 1, 3 * labels - 1, bounds=(-1, 2)))
    assert moved == pytest.approx([3 * end - 1 for end in bounded])
    perfect = np.where(np.isnan(labels), NAN, judge)
    low, high = _ends(prediction_powered_mean(judge, perfect, bounds=(0, 1)))
    assert low < judge.mean() < high  # without an error among the labels there may be some among the others
    with pytest.raises(ValueError, match="judge and labels must be from 0 to 1"):
        prediction_powered_mean(judge + 1, labels, bounds=(0, 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0), st.floats(0.1, 5.0))
def test_estimates_move_with_the_scale(seed: int, shift: float, scale: float) -> None:
    judge, labels = _labelled(seed, "probabilities")
    strata = np.arange(400) % 3
    for options in ({}, {"target": "super"}, {"target": "super", "strata": strata}):
        arguments: dict[str, Any] = options
        original = prediction_powered_mean(judge, labels, **arguments)
        moved = prediction_powered_mean(judge * scale + shift, labels * scale + shift, **arguments)
        assert _ends(moved) == pytest.approx(tuple(end * scale + shift for end in _ends(original)), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_only_ratios_of_inclusion_within_a_stratum_matter(seed: int) -> None:
    judge, labels = _labelled(seed, "verdicts")
    strata, rng = np.arange(400) % 2, np.random.default_rng(seed)
    inclusion = rng.uniform(0.1, 0.5, 400)
    full = prediction_powered_mean(judge, labels, inclusion=inclusion, strata=strata)
    halved = prediction_powered_mean(
        judge, labels, inclusion=np.where(np.isnan(labels), NAN, inclusion / (1 + strata)), strata=strata
    )
    assert _ends(full) == pytest.approx(_ends(halved))


def test_other_traces_are_less_certain_than_these() -> None:
    judge, labels = _labelled(5, "verdicts")
    finite = _ends(prediction_powered_mean(judge, labels, strata=judge))
    other = _ends(prediction_powered_mean(judge, labels, strata=judge, target="super"))
    quantile = float(student.ppf(0.975, 78))
    strata = [labels[(judge == verdict) & ~np.isnan(labels)] for verdict in (0, 1)]
    mean = sum((judge == verdict).mean() * strata[verdict].mean() for verdict in (0, 1))
    spread = sum((judge == verdict).mean() * ((strata[verdict] - mean) ** 2).mean() for verdict in (0, 1)) * 80 / 79
    widths = [(high - low) / 2 / quantile for low, high in (finite, other)]
    assert widths[1] ** 2 - widths[0] ** 2 == pytest.approx(spread / 400)


def test_every_trace_labelled_is_a_census() -> None:
    judge, labels = np.tile([1.0, 0.0], 50), np.repeat([1.0, 0.0], 50)
    census = prediction_powered_mean(judge, labels)
    assert (census.value, census.ci_low, census.ci_high) == (0.5, 0.5, 0.5)
    assert census.reason == "every trace is labelled, so there is no sampling error"
    half_width = float(student.ppf(0.975, 99)) * sqrt(labels.var(ddof=1) / 100)
    assert _ends(prediction_powered_mean(judge, labels, target="super")) == pytest.approx(
        (0.5 - half_width, 0.5 + half_width)
    )
    clusters = {"topic": np.arange(100) // 10}
    clustered = prediction_powered_mean(judge, labels, clusters=clusters, target="super")
    assert _ends(clustered) == pytest.approx(_ends(mean_over_units(labels, clusters)))


def test_a_stratum_labelled_in_full_has_no_sampling_error() -> None:
    judge = np.zeros(44)
    labels = np.full(44, NAN)
    labels[:10] = np.arange(10) % 2
    labels[40:] = [1.0, 1.0, 1.0, 0.0]
    strata = np.repeat([0, 1], [40, 4])
    estimate = prediction_powered_mean(judge, labels, strata=strata)
    sample_variance = labels[:10].var(ddof=1)
    half_width = float(student.ppf(0.975, 9)) * sqrt((40 / 44) ** 2 * (1 - 10 / 40) * sample_variance / 10)
    assert estimate.value == pytest.approx((40 * 0.5 + 3) / 44)
    assert np.subtract(*_ends(estimate)[::-1]) == pytest.approx(2 * half_width)


def test_too_few_labels_have_a_reason() -> None:
    judge, strata = np.tile([0.0, 1.0], 10), np.repeat([0, 1], 10)
    labels = np.full(20, NAN)
    for target in ("finite", "super"):
        none = prediction_powered_mean(judge, labels, target=target)
        assert (none.value, none.n, none.reason) == (None, 0, "no trace is labelled")
        labels[:5] = [1, 0, 1, 1, 1]
        empty = prediction_powered_mean(judge, labels, strata=strata, target=target)
        assert empty.reason == "1 stratum has no label: label at least 2 traces of each"
        labels[15] = 1
        single = prediction_powered_mean(judge, labels, strata=strata, target=target)
        assert single.value is not None
        assert single.ci_low is None
        assert single.reason == "1 stratum has a single label: an interval needs 2 of each"
        labels[:] = NAN
    few_topics = prediction_powered_mean(
        judge, np.where(np.arange(20) < 8, judge, NAN), clusters={"topic": np.arange(20) % 3}, target="super"
    )
    assert few_topics.reason == "an interval needs at least 5 topics, but there are 3 topics"
    assert few_topics.n == 8
    perfect = prediction_powered_mean(judge, np.where(np.arange(20) < 8, judge, NAN))
    assert (perfect.value, perfect.ci_low) == (0.5, None)
    assert perfect.reason == "the labels show no variation, so the uncertainty cannot be estimated"


def test_wrong_arguments_are_named() -> None:
    judge, labels = np.ones(3), np.array([1.0, 0.0, NAN])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"target": "all"}, "target must be 'finite' or 'super'"),
        ({"clusters": [1, 2, 3]}, "clusters must map each kind of unit"),
        ({"strata": [1]}, "strata must have the shape of judge"),
        ({"inclusion": [0.5]}, "inclusion must have the shape of judge"),
        ({"inclusion": [0.5, 0.0, NAN]}, "inclusion must be above 0 and at most 1"),
        ({"inclusion": [0.5, NAN, NAN]}, "inclusion must be above 0 and at most 1"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            prediction_powered_mean(judge, labels, **arguments)
    with pytest.raises(ValueError, match="one length"):
        prediction_powered_mean(judge, labels[:2])
    with pytest.raises(ValueError, match="judge has 1 values that are missing"):
        prediction_powered_mean(labels, labels)
    with pytest.raises(ValueError, match="labels must be finite"):
        prediction_powered_mean(judge, [1.0, np.inf, NAN])


def test_a_linear_relation_is_learnt() -> None:
    x = np.linspace(0, 1, 400)[:, None]
    labels = np.where(np.arange(400) % 2 == 0, 0.2 + 0.6 * x[:, 0], NAN)
    predictions = cross_fit_predictions(x, labels)
    assert np.abs(predictions - (0.2 + 0.6 * x[:, 0])).max() < 0.01


def test_a_label_does_not_predict_itself() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(60, 1)), rng.random(60)
    changed = labels.copy()
    changed[7] = 1 - changed[7]
    before, after = cross_fit_predictions(x, labels), cross_fit_predictions(x, changed)
    assert before[7] == after[7]
    assert (before != after).sum() > 30


def test_features_without_relation_do_not_bias_a_corrected_mean() -> None:
    rng = np.random.default_rng(1)
    covered, width, plain_width = 0, 0.0, 0.0
    for run in range(200):
        x = rng.normal(size=(600, 3))
        truth = (rng.random(600) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(float)
        labels = np.where(rng.permutation(600) < 100, truth, NAN)
        corrected = prediction_powered_mean(cross_fit_predictions(x, labels, seed=run), labels)
        plain = prediction_powered_mean(np.zeros(600), labels)
        covered += _end(corrected.ci_low) <= truth.mean() <= _end(corrected.ci_high)
        width += _end(corrected.ci_high) - _end(corrected.ci_low)
        plain_width += _end(plain.ci_high) - _end(plain.ci_low)
    assert covered >= 183  # 95% of 200, less 2.3 standard errors
    assert width < 0.9 * plain_width


def _end(end: float | None) -> float:
    return known(end)


def test_weights_count() -> None:
    x = np.zeros((40, 1))
    labels: Floats = np.tile([0.0, 1.0], 20)
    predictions = cross_fit_predictions(x, labels, weights=np.tile([1.0, 3.0], 20))
    assert predictions.mean() == pytest.approx(0.75, abs=0.03)


def test_wrong_arguments_of_cross_fitting_are_named() -> None:
    with pytest.raises(ValueError, match="features must have the shape"):
        cross_fit_predictions(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="features must be finite"):
        cross_fit_predictions(np.full((3, 1), NAN), np.zeros(3))
    with pytest.raises(ValueError, match="n_folds must be from 2 to the number of labels, 3, but is 5"):
        cross_fit_predictions(np.zeros((3, 1)), np.zeros(3))
