"""Planted models of the probe `reasoning`: what share of their cells takes over the donor's score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Design, Floats, Indices

N_CELLS = 60
"""Cells of an audit with one kind of intervention."""
MIN_DISTANCE = 0.5
MAX_SCORE = 0.8
"""Recorded scores are not at the ends of the scale, where a score could not follow with its noise."""
NOISE_SD, UNIT_SD = 0.12, 0.05
"""Standard deviations of a sample's score, and of what the moves of one country, or of one topic, have in common."""


@dataclass(frozen=True, slots=True, eq=False)
class ReasoningSample:
    """One simulated audit of one model, and the true values of its figures by their keys.

    Attributes:
        country, topic: shape (cells,).
        recorded, target: shape (cells,), scores of the recorded answer and of its donor.
        altered, control: shape (cells, samples), scores with the donor's norms, and with the cell's put back.
        usual: shape (cells,), mean score of all answers on the topic.
    """

    country: Indices
    topic: Indices
    recorded: Floats
    target: Floats
    altered: Floats
    control: Floats
    usual: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ReasoningWorld:
    """A model of which a share of the cells follows the donor, and the others do not.

    Attributes:
        to_topic_mean: share of the way to its mean score of the topic that a score moves when norms are exchanged.
    """

    name: str
    share: float
    samples: int = 3
    to_topic_mean: float = 0.0

    def draw(self, design: Design, rng: np.random.Generator) -> ReasoningSample:
        """Simulate one audit."""
        table = np.clip(
            rng.normal(0, 0.3, (design.n_countries, 1))
            + rng.normal(0, 0.3, (1, design.n_topics))
            + rng.normal(0, 0.3, (design.n_countries, design.n_topics)),
            -MAX_SCORE,
            MAX_SCORE,
        )
        all_cells = rng.permutation(table.size)
        rows: list[tuple[int, int, float, float, float]] = []
        for cell in all_cells:
            country, topic = divmod(int(cell), design.n_topics)
            recorded = table[country, topic]
            donors = table[np.abs(table[:, topic] - recorded) >= MIN_DISTANCE, topic]
            if len(donors) and len(rows) < N_CELLS:
                rows.append((country, topic, recorded, rng.choice(donors), table[:, topic].mean()))
        countries, topics, recorded, target, usual = (np.array(column) for column in zip(*rows, strict=True))
        follows = rng.random(len(rows)) < self.share
        common = rng.normal(0, UNIT_SD, design.n_countries)[countries] + rng.normal(0, UNIT_SD, design.n_topics)[topics]
        noise = rng.normal(0, NOISE_SD, (2, len(rows), self.samples))
        altered = recorded + np.where(follows, target - recorded, 0.0) + common
        altered += self.to_topic_mean * (table.mean(axis=0)[topics] - recorded)
        scores = np.round(np.clip(np.stack([altered, recorded])[:, :, None] + noise, -1, 1), 2)
        truths = dict.fromkeys(("slope on the donor", "way to a target", "cells that follow"), self.share)
        return ReasoningSample(countries, topics, recorded, target, scores[0], scores[1], usual, truths)


REASONING_WORLDS = (
    ReasoningWorld("follows its reasoning", 1.0),
    ReasoningWorld("ignores its reasoning", 0.0),
    ReasoningWorld("follows it in half of the cells", 0.5),
)
