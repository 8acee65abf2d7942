"""Worlds of several models that are compared with each other: equally good ones, and ones of different quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Design, Floats, Indices
from benchmarks.coverage.worlds.score_worlds import ERROR_SDS, SURVEY_SDS

COMMON_SHARE = 0.5
"""Share of the variance of an error that all models have in common."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingSample:
    """Scores of several models, shape (models, cells), and a survey's, shape (cells,)."""

    country: Indices
    topic: Indices
    survey: Floats
    scores: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RankingWorld:
    """A population of audits with several models.

    Attributes:
        factors: size of each model's errors, as a multiple; the last model is the one that the figures are about.
    """

    name: str
    factors: tuple[float, ...]

    def draw(self, design: Design, rng: np.random.Generator) -> RankingSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)

        def draw_sum(sds: tuple[float, float, float]) -> Floats:
            by_country, by_topic = (
                sd * rng.normal(size=n) for sd, n in zip(sds, (design.n_countries, design.n_topics), strict=False)
            )
            return np.asarray(by_country[country] + by_topic[topic] + sds[2] * rng.normal(size=len(country)))

        survey, common = draw_sum(SURVEY_SDS), draw_sum(ERROR_SDS)
        errors = [
            factor * (COMMON_SHARE**0.5 * common + (1 - COMMON_SHARE) ** 0.5 * draw_sum(ERROR_SDS))
            for factor in self.factors
        ]
        return RankingSample(country, topic, survey, survey + np.stack(errors), self.compute_truths())

    def compute_truths(self) -> dict[str, float]:
        """The differences of the last model from the best other one, in r and in MAE; 0 for false splits into tiers."""
        survey_variance, error_variance = (sum(sd**2 for sd in sds) for sds in (SURVEY_SDS, ERROR_SDS))
        factors = np.array(self.factors)
        r = (survey_variance / (survey_variance + factors**2 * error_variance)) ** 0.5
        mae = factors * (2 * error_variance / np.pi) ** 0.5
        truths = {
            "r from the best": float(r[-1] - r[:-1].max()),
            "mae from the best": float(mae[-1] - mae[:-1].min()),
        }
        if len(set(self.factors)) == 1:
            truths |= {"tiers of equal models by r": 0.0, "tiers of equal models by mae": 0.0}
        return truths


RANKING_WORLDS = (
    RankingWorld("20 equal models", (1.0,) * 20),
    RankingWorld("5 equal models", (1.0,) * 5),
    RankingWorld("4 better models", (0.8, 0.9, 0.9, 1.0, 1.2)),
    RankingWorld("best model", (1.2, 1.2, 1.1, 1.0, 0.7)),
)
