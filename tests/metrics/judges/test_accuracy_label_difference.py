"""Judges compared with known labels, by hand and in simulated panels."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.judges.accuracy import length_association, length_bias_against_labels, leniency_against_labels
from tests.support.judge_worlds import PanelWorld

NAN = float("nan")


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
    assert difference.ci_low is not None
    assert difference.label_error_ci_low is not None
    assert difference.label_error_ci_high == pytest.approx(difference.ci_high)
    # The centre moves by 0.05, and the labels vary more by 1 / 0.8.
    assert difference.label_error_ci_low < difference.ci_low - 0.05


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
