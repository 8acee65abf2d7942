"""Worlds of models: two figures of each model, such as peer agreement and alignment, that are correlated over models.

Models of one family, such as sizes of one base model, share part of both figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Floats, Indices

CORRELATION = 0.6
FAMILY_SHARE = 0.85
"""Share of the variance of both figures that models of one family have in common."""


@dataclass(frozen=True, slots=True)
class ModelDesign:
    """Number of models, and how many of them are in one family."""

    n_models: int
    family_size: int = 1

    @property
    def label(self) -> str:
        """The design in words."""
        return f"{self.n_models} models" + (f" in families of {self.family_size}" if self.family_size > 1 else "")

    @property
    def smaller_side(self) -> int:
        """Number of families."""
        return self.n_models // self.family_size


MODEL_DESIGNS = (
    ModelDesign(8),
    ModelDesign(12),
    ModelDesign(20),
    ModelDesign(16, family_size=2),
    ModelDesign(24, family_size=3),
)


@dataclass(frozen=True, slots=True)
class ModelSample:
    """Two figures of each model, shape (models,), and its family."""

    first: Floats
    second: Floats
    family: Indices
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ModelWorld:
    """A population of models in which both figures are Gaussian, or rank-equivalent to Gaussian ones.

    Attributes:
        is_skewed: the first figure is the exponential of a Gaussian one; rank correlations are unchanged.
    """

    name: str
    is_skewed: bool = False

    def draw(self, design: ModelDesign, rng: np.random.Generator) -> ModelSample:
        """Simulate one audit."""
        family = np.arange(design.n_models) // design.family_size
        share = FAMILY_SHARE if design.family_size > 1 else 0.0

        def draw_effects() -> Floats:
            by_family = rng.normal(size=int(family.max()) + 1)[family]
            return np.asarray(share**0.5 * by_family + (1 - share) ** 0.5 * rng.normal(size=design.n_models))

        first = draw_effects()
        second = CORRELATION * first + (1 - CORRELATION**2) ** 0.5 * draw_effects()
        truths = {"rank correlation over models": float(6 / np.pi * np.arcsin(CORRELATION / 2))}
        if self.is_skewed:
            first = np.exp(first)
        else:
            truths["correlation over models"] = CORRELATION
        return ModelSample(first, second, family, truths)


MODEL_WORLDS = (ModelWorld("gaussian"), ModelWorld("skewed", is_skewed=True))
