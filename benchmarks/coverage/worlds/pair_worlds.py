"""Worlds of pairs of answers: people label a random sample, stratified by model, and a measure scores questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.coverage.worlds.design import Floats, Indices

N_RATERS, RATER_ERROR = 3, 0.1
PAIRS_PER_QUESTION = 10
QUESTIONS_OF_TRUTH = 40_000


@dataclass(frozen=True, slots=True)
class PairDesign:
    """Number of questions, and the shares of its pairs that are labelled of each model."""

    n_questions: int
    shares: tuple[float, ...]

    @property
    def label(self) -> str:
        """The design in words."""
        shares = " and ".join(f"{share:.0%}" for share in self.shares)
        return f"{self.n_questions} questions, {shares} of the pairs"

    @property
    def smaller_side(self) -> int:
        """Number of questions."""
        return self.n_questions


PAIR_DESIGNS = (
    PairDesign(20, (0.3,) * 4),
    PairDesign(40, (0.5, 0.5, 0.1, 0.1)),
    PairDesign(100, (0.2, 0.2, 0.2, 0.05)),
)


@dataclass(frozen=True, slots=True, eq=False)
class PairSample:
    """The models' answers to the questions with a labelled pair, shape (groups,).

    Attributes:
        alike: share of the raters' labels that find a pair alike; measure: the consistency by a measure.
        weights: number of pairs that the labelled ones stand for.
        truths: r of both among the models' answers to other questions, labelled at the same rates.
    """

    question: Indices
    alike: Floats
    measure: Floats
    weights: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PairWorld:
    """Models whose answers are alike with a probability that differs between questions, and a measure of it.

    Attributes:
        noise: standard deviation of the measure's error; the consistency of questions has one of 0.25. Models share
            most of both, since they answer the same questions.
    """

    name: str
    noise: float

    def draw(self, design: PairDesign, rng: np.random.Generator) -> PairSample:
        """Simulate one audit."""
        sample = self._draw(design, rng)
        truths = {"r with people of a sample": _find_truth(self, design)}
        return PairSample(*sample, truths)

    def _draw(self, design: PairDesign, rng: np.random.Generator) -> tuple[Indices, Floats, Floats, Floats]:
        n_models = len(design.shares)
        common = rng.normal(size=design.n_questions)
        consistency = np.clip(
            0.55 + 0.25 * (0.9 * common + 0.44 * rng.normal(size=(n_models, design.n_questions))), 0.02, 0.98
        )
        rates = np.array(design.shares)[:, None, None]
        is_alike = rng.random((n_models, design.n_questions, PAIRS_PER_QUESTION)) < consistency[:, :, None]
        errs = rng.random((N_RATERS, *is_alike.shape)) < RATER_ERROR
        labels = (is_alike[None] != errs).mean(axis=0)
        is_drawn = rng.random(is_alike.shape) < rates
        counts = is_drawn.sum(axis=2)
        has_label = counts > 0
        alike = (labels * is_drawn).sum(axis=2)[has_label] / counts[has_label]
        errors = 0.9 * rng.normal(size=design.n_questions) + 0.44 * rng.normal(size=consistency.shape)
        measure = (consistency + self.noise * errors)[has_label]
        weights = (counts / rates[:, :, 0])[has_label]
        return np.nonzero(has_label)[1], alike, measure, weights


@cache
def _find_truth(world: PairWorld, design: PairDesign) -> float:
    """Weighted r of one very large audit of the design."""
    large = PairDesign(QUESTIONS_OF_TRUTH, design.shares)
    _, alike, measure, weights = world._draw(large, np.random.default_rng(1))
    covariance = np.cov(np.stack([alike, measure]), aweights=weights)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


PAIR_WORLDS = (PairWorld("a measure that follows people", 0.1), PairWorld("a measure of noise", 2.0))
