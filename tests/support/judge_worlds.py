"""Simulated panels of judges with known biases, written apart from the estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Panel(NamedTuple):
    """Verdicts with what is known of the traces; all arrays have one column or entry per trace."""

    verdicts: Floats
    units: dict[str, NDArray[np.intp]]
    is_longer: Floats
    truth: Floats
    is_own_family: Floats
    times: Floats


@dataclass(frozen=True)
class PanelWorld:
    """Judges who say VALID with a probability that depends on the quality of a trace, on the topic and the country.

    Attributes:
        traces: per cell, one for each author.
        lenient: log odds that the first judge adds to VALID.
        verbose: log odds that the first judge adds on longer traces; half of them, negative, on shorter ones.
        copied: share of the first judge's verdicts that repeat the second judge's.
        quality_by_length: correlation of the quality of a trace with its length.
        accuracies: for each judge, how strongly its log odds depend on the quality.
        judge_by_topic, judge_by_country: standard deviations of each judge's log odds over topics and over countries.
        label_errors: share of the known truths that are wrong.
    """

    countries: int = 20
    topics: int = 10
    traces: int = 4
    lenient: float = 0.0
    verbose: float = 0.0
    copied: float = 0.0
    quality_by_length: float = 0.0
    accuracies: tuple[float, ...] = (1.5,) * 5
    judge_by_topic: float = 0.4
    judge_by_country: float = 0.2
    label_errors: float = 0.0
    missing: float = 0.0

    def draw(self, seed: int) -> Panel:
        rng = np.random.default_rng(seed)
        n_cells, n_judges = self.countries * self.topics, len(self.accuracies)
        cell = np.repeat(np.arange(n_cells), self.traces)
        country, topic = cell // self.topics, cell % self.topics
        n = len(cell)
        quality = (
            0.5 * rng.normal(size=self.countries)[country]
            + 0.5 * rng.normal(size=self.topics)[topic]
            + 0.5 * rng.normal(size=n_cells)[cell]
            + rng.normal(size=n)
        )
        share = self.quality_by_length
        length = share * quality / np.sqrt(1.75) + np.sqrt(1 - share**2) * rng.normal(size=n)
        author = np.arange(n) % self.traces
        is_longer = np.zeros(n)
        for name in range(self.traces):
            is_longer[author == name] = length[author == name] > np.median(length[author == name])
        log_odds = (
            np.array(self.accuracies)[:, None] * (quality + 0.4)
            + self.judge_by_topic * rng.normal(size=(n_judges, self.topics))[:, topic]
            + self.judge_by_country * rng.normal(size=(n_judges, self.countries))[:, country]
        )
        log_odds[0] += self.verbose * (is_longer - 0.5)
        verdicts = (rng.random((n_judges, n)) < 1 / (1 + np.exp(-log_odds))).astype(np.float64)
        is_copied = rng.random(n) < self.copied
        verdicts[0, is_copied] = verdicts[1, is_copied]
        # A lenient judge says VALID to some traces that it would otherwise reject: log odds of VALID grow by `lenient`.
        share_valid = verdicts[0].mean()
        odds = share_valid / (1 - share_valid) * np.exp(self.lenient)
        upgraded = (odds / (1 + odds) - share_valid) / (1 - share_valid)
        verdicts[0] = np.where(rng.random(n) < upgraded, 1.0, verdicts[0])
        truth = (quality + 0.4 > 0).astype(np.float64)
        truth = np.where(rng.random(n) < self.label_errors, 1 - truth, truth)
        verdicts[rng.random(verdicts.shape) < self.missing] = np.nan
        return Panel(
            verdicts=verdicts, units={"country": country, "topic": topic}, is_longer=is_longer, truth=truth,
            is_own_family=np.stack([author == judge % self.traces for judge in range(n_judges)]).astype(np.float64),
            times=np.tile(rng.permutation(n).astype(np.float64), (n_judges, 1)),
        )  # fmt: skip
