"""Worlds in which countries are not exchangeable, topics are not alike, or scores are not symmetric.

Countries of one cultural zone, or near each other on a map, have effects in common; a few topics are taboo; most scores
pile up at one end; whole cells are refused. The truth of a figure is its value over the population of zones, maps and
topics, by a formula or by `measure_harder_truth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm

from benchmarks.coverage.worlds.design import Design, Floats, Indices

SURVEY_SDS = (0.25, 0.45, 0.15)
"""Standard deviations of the effects of country, topic and cell on people's scores."""
ERROR_SDS = (0.20, 0.30, 0.20)
"""The same for the model's error."""
MEAN_ERROR = 0.1
N_ZONES = 8
ZONE_SHARE = 0.6
"""Share of the variance of a country's effect that its zone has in common; half of it for the effect of a cell."""
MAP_SCALE = 0.35
"""Distance on a map of side 1 over which the correlation of two countries falls to 1 / e."""
MAP_GRID = (2, 4)
"""Zones of a map: rectangles of this many rows and columns."""
TABOO_SHARE, TABOO_SDS, TABOO_BIAS = 0.1, (0.1, 0.5), 0.4
"""Of topics that are taboo; standard deviation of the error on other and on taboo topics; mean error on the latter."""
REFUSAL_LOG_ODDS = (-2.6, -4.4, 4.0)
"""Log odds that a cell is refused: at people's score 0 and an error of 0.2, per unit of both."""

CountryEffects = Literal["independent", "zones", "spatial"]


@dataclass(frozen=True, slots=True)
class HarderSample:
    """One simulated audit, a value per cell; `truths` by the figure's key.

    Attributes:
        zone: the zone of the cell's country.
        first: the model's scores; nan where it refused.
    """

    country: Indices
    topic: Indices
    zone: Indices
    survey: Floats
    first: Floats
    truths: Mapping[str, float]


def assign_zones(n_countries: int, rng: np.random.Generator) -> Indices:
    """The zone of each country: every zone has one, the others are in zones of unequal size, as those of the world."""
    weights = np.arange(1.0, N_ZONES + 1)
    others = rng.choice(N_ZONES, max(0, n_countries - N_ZONES), p=weights / weights.sum())
    zone: Indices = rng.permutation(np.concatenate([np.arange(N_ZONES), others])[:n_countries]).astype(np.intp)
    return zone


@dataclass(frozen=True, slots=True)
class RelatedCountries:
    """Sums of Gaussian effects of country, topic and cell; those of countries and cells are related.

    Attributes:
        effects: `zones`: countries of a zone have effects in common. `spatial`: effects are the more alike the nearer
            countries are. `independent`: neither.
    """

    name: str
    effects: CountryEffects

    def draw(self, design: Design, rng: np.random.Generator) -> HarderSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        n_countries, n_topics = design.n_countries, design.n_topics
        positions = rng.uniform(size=(n_countries, 2))
        zone = assign_zones(n_countries, rng)
        if self.effects == "spatial":
            zone = (positions * MAP_GRID).astype(np.intp) @ np.array((MAP_GRID[1], 1))
        distances = np.hypot(*(positions[:, None] - positions[None]).transpose(2, 0, 1))
        root = np.linalg.cholesky(np.exp(-distances / MAP_SCALE) + 1e-9 * np.eye(n_countries))

        def relate(n_columns: int, zone_share: float) -> Floats:
            """Effects of variance 1, shape (countries, columns)."""
            independent = rng.normal(size=(n_countries, n_columns))
            if self.effects == "independent":
                return independent
            if self.effects == "spatial":
                return np.asarray(root @ independent)
            common = rng.normal(size=(N_ZONES, n_columns))[zone]
            return np.asarray(zone_share**0.5 * common + (1 - zone_share) ** 0.5 * independent)

        def draw_sum(sds: tuple[float, float, float]) -> tuple[Floats, Floats]:
            """The sum of effects, and the effects of countries."""
            by_country = sds[0] * relate(1, ZONE_SHARE)
            by_topic = sds[1] * rng.normal(size=n_topics)
            halves = relate(n_topics, ZONE_SHARE), rng.normal(size=(n_countries, n_topics))
            by_cell = sds[2] * (halves[0] + halves[1]) / 2**0.5
            return by_country + by_topic + by_cell, by_country

        survey = draw_sum(SURVEY_SDS)[0][country, topic]
        errors, by_country = draw_sum(ERROR_SDS)
        sampled_truths = {"bias of these countries": MEAN_ERROR + float(by_country[country].mean())}
        first = survey + MEAN_ERROR + errors[country, topic]
        return HarderSample(country, topic, zone[country], survey, first, make_gaussian_truths() | sampled_truths)


def make_gaussian_truths() -> dict[str, float]:
    """The truths of sums of Gaussian effects, by formulas."""
    survey_variance, error_variance = (sum(sd**2 for sd in sds) for sds in (SURVEY_SDS, ERROR_SDS))
    sd = error_variance**0.5
    z = MEAN_ERROR / sd
    return {
        "r over zones": (survey_variance / (survey_variance + error_variance)) ** 0.5,
        "concordance over zones": 2 * survey_variance / (2 * survey_variance + error_variance + MEAN_ERROR**2),
        "mae over zones": float(sd * (2 / np.pi) ** 0.5 * np.exp(-(z**2) / 2) + MEAN_ERROR * (1 - 2 * norm.cdf(-z))),
        "bias over zones": MEAN_ERROR,
    }


@dataclass(frozen=True, slots=True)
class UnlikeTopics:
    """Independent countries.

    Attributes:
        kind: `taboo`: on a tenth of the topics errors are five times as large, and biased. `floor`: most of people's
            and the model's scores are at one end of the scale. `refused`: whole cells are refused, most often where
            people condemn and where the model errs.
    """

    name: str
    kind: Literal["taboo", "floor", "refused"]

    def draw(self, design: Design, rng: np.random.Generator) -> HarderSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        survey, first = self.draw_scores(rng, country, topic)
        if self.kind == "refused":
            level, by_score, by_error = REFUSAL_LOG_ODDS
            log_odds = level + by_score * survey + by_error * (np.abs(first - survey) - 0.2)
            first = np.where(rng.random(len(first)) < 1 / (1 + np.exp(-log_odds)), np.nan, first)
        zone = assign_zones(design.n_countries, rng)[country]
        return HarderSample(country, topic, zone, survey, first, HARDER_TRUTHS[self.name])

    def draw_scores(self, rng: np.random.Generator, country: Indices, topic: Indices) -> tuple[Floats, Floats]:
        """People's scores and the model's, refused cells included."""

        def draw_sum(sds: tuple[float, float, float]) -> Floats:
            by_country, by_topic = (
                sd * rng.normal(size=int(index.max()) + 1)[index]
                for sd, index in zip(sds, (country, topic), strict=False)
            )
            return np.asarray(by_country + by_topic + sds[2] * rng.normal(size=len(country)))

        if self.kind == "taboo":
            is_taboo = (rng.uniform(size=int(topic.max()) + 1) < TABOO_SHARE)[topic]
            survey = draw_sum((0.3, 0.3, 0.15))
            errors = np.where(is_taboo, TABOO_SDS[1], TABOO_SDS[0]) * draw_sum((0.4, 0.5, 0.75))
            return survey, survey + errors + TABOO_BIAS * is_taboo
        if self.kind == "floor":
            latent = draw_sum((0.5, 0.5, 0.3)) - 1.0
            return _cut(latent), _cut(latent + draw_sum((0.2, 0.2, 0.25)))
        survey = draw_sum((0.3, 0.35, 0.15))
        return survey, survey + draw_sum((0.1, 0.15, 0.2))


def _cut(latent: Floats) -> Floats:
    """Scores of a scale with steps of 0.05: what is below -1 is at -1."""
    return np.asarray(np.round(np.clip(latent, -1, 1) * 20) / 20)


def measure_harder_truth(world: UnlikeTopics, n_cells: int, seed: int = 1) -> dict[str, float]:
    """The true value of each figure, from cells that have nothing in common."""
    cells = np.arange(n_cells)
    survey, first = world.draw_scores(np.random.default_rng(seed), cells, cells)
    error = first - survey
    deviations = [values - values.mean() for values in (first, survey)]
    figures = {
        "r": float(np.corrcoef(first, survey)[0, 1]),
        "concordance": float(
            2 * (deviations[0] * deviations[1]).mean() / (first.var() + survey.var() + error.mean() ** 2)
        ),
        "mae": float(np.abs(error).mean()),
        "bias": float(error.mean()),
    }
    prefix = "worst-case " if world.kind == "refused" else ""
    return {
        f"{prefix}{name} over zones": value for name, value in figures.items() if not (prefix and name == "concordance")
    }


HARDER_DESIGNS = (Design(12, 10), Design(17, 19), Design(55, 19))
RELATED_WORLDS = (RelatedCountries("cultural zones", "zones"), RelatedCountries("spatial", "spatial"))
UNLIKE_WORLDS = (UnlikeTopics("taboo topics", "taboo"), UnlikeTopics("floor", "floor"))
REFUSED_CELLS = UnlikeTopics("refused cells", "refused")
HARDER_WORLDS = (*RELATED_WORLDS, *UNLIKE_WORLDS)
HARDER_TRUTHS: dict[str, dict[str, float]] = {
    "taboo topics": {
        "r over zones": 0.90009,
        "concordance over zones": 0.89194,
        "mae over zones": 0.12250,
        "bias over zones": 0.03998,
    },
    "floor": {
        "r over zones": 0.86202,
        "concordance over zones": 0.85583,
        "mae over zones": 0.14825,
        "bias over zones": 0.03343,
    },
    "refused cells": {
        "worst-case r over zones": 0.87433,
        "worst-case mae over zones": 0.21485,
        "worst-case bias over zones": 0.0,
    },
}
"""True values by world: the mean of three calls of `measure_harder_truth` with 2,000,000 cells (standard errors up to
0.0002)."""
