"""Worlds of reasonings, as unit vectors whose similarities are known: a common part, those of the topic and of the
cell, and that of each sample.

The common part of a cell has effects of country, topic and cell. All parts are at right angles, so the similarity of
two reasonings is the sum of the products of the parts that they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Design, Floats, Indices

SAMPLE_PART = 0.12
"""Squared length of the part that only one sample has: samples of a cell have a similarity of 1 minus it."""


@dataclass(frozen=True, slots=True, eq=False)
class SimilaritySample:
    """One simulated audit, for cells of shape (cells,).

    Attributes:
        vectors: of one reasoning of each cell, shape (cells, dimensions).
        lengths: of these reasonings.
        consistency: self-consistency of the cell's samples.
        truths: similarity of reasonings about another country and topic, and about another country and the same topic,
            and self-consistency minus the first.
    """

    country: Indices
    topic: Indices
    vectors: Floats
    lengths: Floats
    consistency: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SimilarityWorld:
    """A population of audits.

    Attributes:
        common: mean length of the common part.
        sds: of the effects of country, topic and cell on it, relative to its mean.
        topic_part: squared length of the part that the reasonings of a topic share.
    """

    name: str
    common: float
    sds: tuple[float, float, float]
    topic_part: float

    def draw(self, design: Design, rng: np.random.Generator) -> SimilaritySample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        by_country, by_topic, by_cell = (
            sd * rng.standard_normal(size)
            for sd, size in zip(self.sds, (design.n_countries, design.n_topics, len(country)), strict=True)
        )
        lengths = self.common * (1 + by_country[country] + by_topic[topic] + by_cell)
        remainder = np.maximum(0.0, 1 - lengths**2 - self.topic_part)
        vectors = np.zeros((len(country), 1 + design.n_topics + len(country)))
        vectors[:, 0] = lengths
        vectors[np.arange(len(country)), 1 + topic] = self.topic_part**0.5
        vectors[np.arange(len(country)), 1 + design.n_topics + np.arange(len(country))] = remainder**0.5
        noise = [0.03 * rng.standard_normal(size) for size in (design.n_countries, design.n_topics, len(country))]
        consistency = 1 - SAMPLE_PART + noise[0][country] + noise[1][topic] + noise[2]
        characters = np.exp(rng.normal(6, 0.3, len(country)))
        chance = self.common**2
        truths = {
            "similarity by chance": chance,
            "similarity on the same topic": chance * (1 + self.sds[1] ** 2) + self.topic_part,
            "consistency above chance": 1 - SAMPLE_PART - chance,
        }
        return SimilaritySample(country, topic, vectors, characters, consistency, truths)


SIMILARITY_WORLDS = (
    SimilarityWorld("reasonings differ by topic", 0.65, (0.03, 0.05, 0.03), 0.15),
    SimilarityWorld("reasonings all alike", (1 - SAMPLE_PART) ** 0.5, (0.004, 0.004, 0.01), 0.0),
)
SIMILARITY_DESIGNS = (Design(8, 6), Design(12, 10), Design(17, 19), Design(17, 19, missing=0.3))
