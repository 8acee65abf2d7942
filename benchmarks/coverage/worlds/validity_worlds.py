"""Worlds of a task: right and wrong answers of several models, and verdicts that follow accuracy or do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices

N_JUDGES = 3


@dataclass(frozen=True, slots=True, eq=False)
class ValiditySample:
    """Answers of one simulated audit, of shape (answers,): one of each model to each item.

    Attributes:
        shares: of VALID among the verdicts of three judges on each answer.
        truths: by how much being right raises the probability of VALID.
    """

    model: Indices
    item: Indices
    is_right: Bools
    shares: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ValidityWorld:
    """Judges that say VALID with a probability of 0.45, and more.

    Attributes:
        effect: what is added if the answer is right.
        halo: what is added for a unit of the model's skill, whatever its answer is.
        sds: of the effects of model and item on that probability.
    """

    name: str
    effect: float
    halo: float = 0.0
    sds: tuple[float, float] = (0.05, 0.08)

    def draw(self, design: Design, rng: np.random.Generator) -> ValiditySample:
        """Simulate one audit; the design's countries are models, and its topics items."""
        model, item = design.draw_cells(rng)
        skill = rng.normal(size=design.n_countries)
        difficulty = rng.normal(size=design.n_topics)
        is_right = rng.random(len(model)) < 1 / (1 + np.exp(-(skill[model] - difficulty[item])))
        by_model = self.sds[0] * rng.uniform(-1.5, 1.5, design.n_countries) + self.halo * np.tanh(skill)
        by_item = self.sds[1] * rng.uniform(-1.5, 1.5, design.n_topics)
        p_valid = np.clip(0.45 + self.effect * is_right + by_model[model] + by_item[item], 0, 1)
        shares = rng.binomial(N_JUDGES, p_valid) / N_JUDGES
        truths = {"VALID within models": self.effect}
        return ValiditySample(model, item, is_right, shares, truths)


VALIDITY_WORLDS = (
    ValidityWorld("verdicts follow accuracy", 0.25),
    ValidityWorld("verdicts do not follow accuracy", 0.0),
    ValidityWorld("verdicts follow the model", 0.0, halo=0.2),
)
VALIDITY_DESIGNS = (Design(6, 40), Design(8, 100), Design(12, 60), Design(12, 60, missing=0.3))
