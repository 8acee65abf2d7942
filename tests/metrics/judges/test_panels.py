from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.jackknife_interval import Labels as Units
from auditor.metrics.judges.panels import effective_judges, effective_number, panel_accuracy
from tests.support.known import known
from tests.support.rater_panels import CopyingWorld

INDEPENDENT = CopyingWorld(
    traces=4000, error_log_odds=(-1.2,) * 5, difficulty=0.0, cell_difficulty=(0.0, 0.0), judge_by_topic=0.0,
    judge_by_country=0.0,
)  # fmt: skip


@pytest.mark.parametrize(("n_judges", "correlation"), [(5, 0.0), (5, 0.3), (2, 0.9), (7, -0.1)])
def test_equally_correlated_judges_by_hand(n_judges: int, correlation: float) -> None:
    matrix = np.full((n_judges, n_judges), correlation) + (1 - correlation) * np.eye(n_judges)
    expected = n_judges / (1 + (n_judges - 1) * correlation)
    assert effective_number(matrix) == pytest.approx(expected)


def test_copies_outvote_the_others() -> None:
    """The number is that of votes as they are counted: seven clones of nine judges leave little."""
    for n_copies, n_judges, expected in ((2, 5, 25 / 7), (3, 5, 25 / 11), (5, 5, 1), (7, 9, 81 / 51)):
        matrix = np.eye(n_judges)
        matrix[:n_copies, :n_copies] = 1
        assert effective_number(matrix) == pytest.approx(expected)


def test_correlations_that_contradict_each_other_have_a_number() -> None:
    """Pairwise correlations of incomplete tables can."""
    matrix = np.array([[1, -0.9, -0.9], [-0.9, 1, -0.9], [-0.9, -0.9, 1]])
    assert 1 <= effective_number(matrix) <= 9
    assert np.isnan(effective_number(np.full((2, 2), np.nan)))


@pytest.mark.parametrize(("copies", "expected"), [((), 5), ((0, 1), 25 / 7), ((0, 1, 2), 25 / 11)])
def test_planted_copies_among_five(copies: tuple[int, ...], expected: float) -> None:
    number, counted = effective_judges(*CopyingWorld(**{**vars(INDEPENDENT), "copies": copies}).draw(1))
    assert number.value == pytest.approx(expected, abs=0.2)
    assert counted == [0, 1, 2, 3, 4]
    assert number.resampled == ("country", "topic")
    assert known(number.ci_low) < expected <= known(number.ci_high) + 0.1


def test_traces_that_are_hard_for_all_make_judges_count_for_less() -> None:
    number = effective_judges(*CopyingWorld(traces=2000, difficulty=2.0).draw(0)).number
    assert known(number.value) < 4


def test_why_there_is_no_number() -> None:
    panel = CopyingWorld(traces=400).draw(0)
    few = panel.truth.copy()
    few[100:] = np.nan
    assert effective_judges(panel.verdicts, few, panel.units).number.reason == (
        "200 labelled traces are needed, but there are 100"
    )
    perfect = panel.verdicts.copy()
    perfect[1:] = 0
    number, counted = effective_judges(perfect, panel.truth, panel.units)
    assert number.reason == "two judges with at least 10 errors and 10 right verdicts are needed"
    assert counted == [0]
    disjoint = panel.verdicts.copy()
    disjoint[0, ::2] = np.nan
    disjoint[1, 1::2] = np.nan
    reason = effective_judges(disjoint, panel.truth, panel.units).number.reason
    assert reason == "two judges have no labelled trace in common"


def _draw_panel(rng: np.random.Generator, shared: float, n_traces: int = 1200) -> tuple[Floats, Floats, Units]:
    """Verdicts of five judges that are right in 75%, whose errors share a part of their latent variance, and labels."""
    truth = (rng.random(n_traces) < 0.6).astype(float)
    latent = shared**0.5 * rng.standard_normal(n_traces) + (1 - shared) ** 0.5 * rng.standard_normal((5, n_traces))
    verdicts = np.where(latent > 0.6745, 1 - truth, truth)
    return verdicts, truth, {"country": np.arange(n_traces) % 12, "topic": np.arange(n_traces) // 12 % 10}


def test_a_panel_is_compared_with_its_best_judge_and_independent_judges() -> None:
    """Five independent judges that are right in 75% have a majority that is right in 89.6%."""
    rng = np.random.default_rng(3)
    for shared, expected_loss in ((0.0, 0.0), (0.7, -0.12)):
        panel = known(panel_accuracy(*_draw_panel(rng, shared, 12_000), np.ones(12_000)))
        assert panel.independent.value == pytest.approx(0.896, abs=0.01)
        assert panel.loss.value == pytest.approx(expected_loss, abs=0.02)
        assert panel.gain.value == pytest.approx(0.146 + expected_loss, abs=0.02)
        assert panel.majority.resampled == ("cell",)


def test_the_loss_by_shared_errors_is_covered() -> None:
    rng, n_covered = np.random.default_rng(4), 0
    for _ in range(100):
        verdicts, truth, units = _draw_panel(rng, 0.0, 240)
        labels = np.where(rng.permutation(240) < 200, truth, np.nan)
        panel = known(panel_accuracy(verdicts, labels, units, np.ones(240)))
        n_covered += known(panel.loss.ci_low) <= 0 <= known(panel.loss.ci_high)
    assert n_covered >= 90


def test_the_gain_over_the_best_judge_is_covered_although_the_same_labels_choose_the_judge() -> None:
    rng, gain, n_covered = np.random.default_rng(6), 0.896 - 0.75, 0
    for _ in range(150):
        verdicts, truth, units = _draw_panel(rng, 0.0, 120)
        panel = known(panel_accuracy(verdicts, truth, units, np.ones(120)))
        n_covered += known(panel.gain.ci_low) <= gain <= known(panel.gain.ci_high)
    assert n_covered >= 138


def test_judges_of_other_traces_have_panels_compared_where_majority_and_best_judge_decide() -> None:
    """Each judge leaves out a fifth of the traces, as peers do: majorities of four may tie."""
    verdicts, truth, units = _draw_panel(np.random.default_rng(5), 0.0, 6000)
    verdicts[np.arange(6000) % 5, np.arange(6000)] = np.nan
    panel = known(panel_accuracy(verdicts, truth, units, np.ones(6000)))
    right, wrong = 0.75**4 + 4 * 0.75**3 * 0.25, 0.25**4 + 4 * 0.25**3 * 0.75
    assert panel.independent.value == pytest.approx(right / (right + wrong), abs=0.01)
    assert panel.loss.value == pytest.approx(0, abs=0.02)
    assert panel_accuracy(verdicts[:1], truth, units, np.ones(6000)) is None
    # Ties are on hard traces, where the best judge errs more often: leaving them out is no gain.
    share = np.nanmean(verdicts, axis=0)
    both = ~np.isnan(verdicts[panel.best]) & (share != 0.5)
    hits = [(row[both] == truth[both]).mean() for row in (share > 0.5, verdicts[panel.best])]
    assert panel.gain.n == both.sum()
    assert panel.gain.value == pytest.approx(hits[0] - hits[1])
    assert known(panel.gain.value) < known(panel.majority.value) - 0.75 - 0.02


def test_an_adaptive_panel_is_as_accurate_as_the_full_one() -> None:
    """Two of three judges are asked, and the third one where they differ: the traces that they agree on are easier."""
    verdicts, truth, units = _draw_panel(np.random.default_rng(6), 0.0, 6000)
    asked = verdicts[:3]
    full = known(panel_accuracy(asked, truth, units, np.ones(6000)))
    always = np.array([np.arange(6000) % 3 != judge for judge in range(3)])
    adaptive = known(
        panel_accuracy(
            np.where(always, asked, np.nan), truth, units, np.ones(6000),
            valid_shares=asked.mean(axis=0), panels=np.ones_like(always),
        )
    )  # fmt: skip
    assert (adaptive.majority, adaptive.majority.n) == (full.majority, 6000)
    assert adaptive.independent.value == pytest.approx(known(full.independent.value), abs=0.01)
    assert known(full.majority.value) == pytest.approx(0.84, abs=0.02)
    easier = known(panel_accuracy(np.where(always, asked, np.nan), truth, units, np.ones(6000)))
    assert known(easier.majority.value) > 0.88
