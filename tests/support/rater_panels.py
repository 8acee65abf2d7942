"""Simulated raters of items with a known truth, written apart from the estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def draw_raters(
    accuracy: list[float], items: int, seed: int, missing: float = 0.0, share: float = 0.5
) -> tuple[Floats, Floats]:
    """Ratings of 0 and 1, shape (raters, items), by raters that err independently, and the truth, shape (items,)."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(items) < share).astype(float)
    right = rng.random((len(accuracy), items)) < np.array(accuracy)[:, None]
    ratings = np.where(right, truth, 1 - truth)
    return np.where(rng.random(ratings.shape) < missing, np.nan, ratings), truth


class LabelledPanel(NamedTuple):
    """Verdicts on labelled traces, one column or entry per trace."""

    verdicts: Floats
    truth: Floats
    units: dict[str, NDArray[np.intp]]


@dataclass(frozen=True)
class CopyingWorld:
    """Judges that err on the logistic scale; some copy the verdicts of another.

    Attributes:
        traces: labelled traces, spread over the cells.
        error_log_odds: of each judge on a trace of mean difficulty.
        difficulty: standard deviation of the traces' difficulty, which is the same for all judges.
        two_classes: whether 15% of the traces are hard and the others easy, instead of a normal distribution.
        cell_difficulty: standard deviations of the difficulty of countries and of topics.
        judge_by_topic, judge_by_country: standard deviations of each judge's log odds over topics and countries.
        discrimination: how strongly each judge responds to difficulty.
        copies: the judge whose verdicts are copied, then those who copy it.
        copied: share of verdicts that are copied.
        lenient: log odds of VALID added for each judge.
        planted: whether all traces are INVALID; else half of them.
    """

    countries: int = 10
    topics: int = 8
    traces: int = 400
    error_log_odds: tuple[float, ...] = (-2.2, -1.6, -1.1, -0.6, -0.1)
    difficulty: float = 1.0
    two_classes: bool = False
    cell_difficulty: tuple[float, float] = (0.4, 0.5)
    judge_by_topic: float = 0.6
    judge_by_country: float = 0.2
    discrimination: tuple[float, ...] | None = None
    copies: tuple[int, ...] = ()
    copied: float = 1.0
    lenient: tuple[float, ...] | None = None
    planted: bool = True

    def draw(self, seed: int) -> LabelledPanel:
        rng = np.random.default_rng(seed)
        n, n_judges = self.traces, len(self.error_log_odds)
        cell = rng.permutation(np.arange(n) % (self.countries * self.topics))
        country, topic = cell // self.topics, cell % self.topics
        trait = np.where(rng.random(n) < 0.15, 2.2, -0.4) if self.two_classes else rng.normal(size=n)
        difficulty = (
            self.difficulty * trait
            + self.cell_difficulty[0] * rng.normal(size=self.countries)[country]
            + self.cell_difficulty[1] * rng.normal(size=self.topics)[topic]
        )
        slopes = np.ones(n_judges) if self.discrimination is None else np.array(self.discrimination)
        log_odds = (
            np.array(self.error_log_odds)[:, None]
            + slopes[:, None] * difficulty
            + self.judge_by_topic * rng.normal(size=(n_judges, self.topics))[:, topic]
            + self.judge_by_country * rng.normal(size=(n_judges, self.countries))[:, country]
        )
        truth = np.zeros(n) if self.planted else (rng.random(n) < 0.5).astype(np.float64)
        if self.lenient is not None:  # VALID is an error where the truth is INVALID
            log_odds += np.array(self.lenient)[:, None] * np.where(truth == 0, 1.0, -1.0)
        is_error = rng.random((n_judges, n)) < 1 / (1 + np.exp(-log_odds))
        verdicts = np.where(is_error, 1 - truth, truth)
        for judge in self.copies[1:]:
            verdicts[judge] = np.where(rng.random(n) < self.copied, verdicts[self.copies[0]], verdicts[judge])
        return LabelledPanel(verdicts, truth, {"country": country, "topic": topic})
