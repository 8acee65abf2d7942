from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.labels.prediction_powered import cross_fit_predictions, prediction_powered_mean

NAN = float("nan")


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
    assert end is not None
    return end


def test_weights_count() -> None:
    x = np.zeros((40, 1))
    labels: Floats = np.tile([0.0, 1.0], 20)
    predictions = cross_fit_predictions(x, labels, weights=np.tile([1.0, 3.0], 20))
    assert predictions.mean() == pytest.approx(0.75, abs=0.03)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="features must have the shape"):
        cross_fit_predictions(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="features must be finite"):
        cross_fit_predictions(np.full((3, 1), NAN), np.zeros(3))
    with pytest.raises(ValueError, match="n_folds must be from 2 to the number of labels, 3, but is 5"):
        cross_fit_predictions(np.zeros((3, 1)), np.zeros(3))
