"""Worlds in which agreement with people is more than a correlation: respondents, ranges, topics.

Truths are formulas. Only the design of an audit is taken from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices

PEOPLE_SDS = (0.3, 0.3, 0.15)
"""Of effects of country, topic and cell on people's scores."""
ERROR_SHARES = (0.25, 0.25, 0.5)
"""Shares of country, topic and cell in the variance of a model's error."""
RESPONDENTS = (15, 1500)
"""Smallest and largest number of respondents of a country; the logarithm is uniform between them."""
RANGE_SDS = (0.45, 0.12)
"""Standard deviation of people's scores in the first and in the second half of the countries."""
FACTOR_SDS = (0.2, 0.15, 0.12)
"""Of factors among topics, of countries, and of cells, on people's scores."""
N_FACTORS = 3


@dataclass(frozen=True, eq=False)
class AgreementSample:
    """One simulated audit, a value per cell; `truths` by the figure's key.

    Attributes:
        standard_errors: of people's scores; nan where all respondents are known.
        in_second: whether the cell's country is in the second of two groups.
    """

    country: Indices
    topic: Indices
    survey: Floats
    first: Floats
    standard_errors: Floats
    in_second: Bools
    truths: Mapping[str, float]


def _draw_effects(
    rng: np.random.Generator, country: Indices, topic: Indices, sds: tuple[float, float, float]
) -> Floats:
    """Sums of Gaussian effects of country, topic and cell."""
    by_country, by_topic = (
        sd * rng.normal(size=int(i.max()) + 1) for sd, i in zip(sds, (country, topic), strict=False)
    )
    return np.asarray(by_country[country] + by_topic[topic] + sds[2] * rng.normal(size=len(country)))


@dataclass(frozen=True, slots=True)
class SampledPeople:
    """15 to 1,500 respondents a country: people's scores have sampling error, and the truth is about the population.

    Attributes:
        error_sd: standard deviation of the model's error against the population.
        design_effect: by which the variance of people's scores is larger than their standard errors say.
    """

    name: str
    error_sd: float
    design_effect: float = 1.0

    def draw(self, design: Design, rng: np.random.Generator) -> AgreementSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        population = _draw_effects(rng, country, topic, PEOPLE_SDS) - 0.2
        sds = [self.error_sd * share**0.5 for share in ERROR_SHARES]
        model = population + _draw_effects(rng, country, topic, (sds[0], sds[1], sds[2]))
        fewest, most = np.log(RESPONDENTS)
        n = np.exp(rng.uniform(float(fewest), float(most), size=int(country.max()) + 1))[country]
        errors = np.sqrt(0.6 * np.clip(1 - population**2, 0.1, 1.0) / n)
        survey = population + self.design_effect**0.5 * errors * rng.normal(size=len(errors))
        people_variance = sum(sd**2 for sd in PEOPLE_SDS)
        truths = {
            "mae without sampling error": self.error_sd * (2 / np.pi) ** 0.5,
            "rmse without sampling error": self.error_sd,
            "r without sampling error": (people_variance / (people_variance + self.error_sd**2)) ** 0.5,
            "concordance without sampling error": 2 * people_variance / (2 * people_variance + self.error_sd**2),
        }
        return AgreementSample(country, topic, survey, model, errors, np.zeros(len(country), dtype=np.bool_), truths)


@dataclass(frozen=True, slots=True)
class UnequalRange:
    """Equal errors everywhere, while people's scores vary four times as much in one half of the countries."""

    name: str = "unequal range"
    slope: float = 0.9
    error_sd: float = 0.15

    def draw(self, design: Design, rng: np.random.Generator) -> AgreementSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        in_second = country >= design.n_countries // 2
        shares = np.array((0.4, 0.4, 0.2)) ** 0.5
        effects = _draw_effects(rng, country, topic, (shares[0], shares[1], shares[2]))
        survey = np.where(in_second, RANGE_SDS[1], RANGE_SDS[0]) * effects
        sds = [self.error_sd * share**0.5 for share in ERROR_SHARES]
        model = self.slope * survey + _draw_effects(rng, country, topic, (sds[0], sds[1], sds[2]))
        mean_variance = sum(sd**2 for sd in RANGE_SDS) / 2
        truths = {
            "r corrected for range": (1 + (self.error_sd / self.slope) ** 2 / mean_variance) ** -0.5,
            "gap in r corrected for range": 0.0,
            "slope on people's scores": self.slope,
            "residual sd": self.error_sd,
        }
        return AgreementSample(country, topic, survey, model, np.full(len(country), np.nan), in_second, truths)


@dataclass(frozen=True, slots=True)
class RelatedTopics:
    """Topics that share factors over countries.

    Attributes:
        kind: what the model is. `shifted`: it has other loadings. `noisy`: people's scores with noise of SD 0.15.
            `shuffled`: people's scores, each topic shuffled over countries. `country effect`: it knows each country's
            permissiveness only.
    """

    name: str
    kind: str

    def draw(self, design: Design, rng: np.random.Generator) -> AgreementSample:
        """Simulate one audit; its loadings are the same in all audits of the design's number of topics."""
        country, topic = (index.ravel() for index in np.indices((design.n_countries, design.n_topics)))
        loadings, model_loadings = self._make_loadings(design.n_topics)
        factors = rng.normal(size=(design.n_countries, N_FACTORS))
        by_country = rng.normal(size=(design.n_countries, 1))
        noise = rng.normal(size=(2, design.n_countries, design.n_topics))
        people = FACTOR_SDS[1] * by_country + factors @ loadings.T + FACTOR_SDS[2] * noise[0]
        model = {
            "shifted": 0.1 * by_country + factors @ model_loadings.T + 0.12 * noise[1],
            "noisy": people + 0.15 * noise[1],
            "shuffled": rng.permuted(people, axis=0),
            "country effect": 0.25 * by_country + 0.15 * noise[1],
        }[self.kind]
        truths = self._measure_distances(loadings, model_loadings) if self.kind in ("shifted", "noisy") else {}
        unknown, first_group = np.full(len(country), np.nan), np.zeros(len(country), dtype=np.bool_)
        return AgreementSample(country, topic, people.ravel(), model.ravel(), unknown, first_group, truths)

    @staticmethod
    def _make_loadings(n_topics: int) -> tuple[Floats, Floats]:
        """Loadings of people and of the model, shape (topics, factors)."""
        rng = np.random.default_rng(1)
        people, other = (rng.normal(size=(n_topics, N_FACTORS)) for _ in range(2))
        return FACTOR_SDS[0] * people, 0.7 * FACTOR_SDS[0] * people + 0.1 * other

    def _measure_distances(self, loadings: Floats, model_loadings: Floats) -> dict[str, float]:
        """The distances over the population of countries, from the covariance matrices."""
        n_topics = len(loadings)
        ones, identity = np.ones((n_topics, n_topics)), np.eye(n_topics)
        people = FACTOR_SDS[1] ** 2 * ones + loadings @ loadings.T + FACTOR_SDS[2] ** 2 * identity
        model = (
            people + 0.15**2 * identity
            if self.kind == "noisy"
            else 0.1**2 * ones + model_loadings @ model_loadings.T + 0.12**2 * identity
        )
        centring = identity - ones / n_topics
        off_diagonal = np.triu_indices(n_topics, 1)

        def measure(first: Floats, second: Floats) -> float:
            matrices = [c / np.sqrt(np.outer(np.diag(c), np.diag(c))) for c in (first, second)]
            return float(((matrices[0] - matrices[1])[off_diagonal] ** 2).mean() ** 0.5)

        return {
            "distance of topic correlations": measure(model, people),
            "distance of topic correlations without country means": measure(
                centring @ model @ centring, centring @ people @ centring
            ),
        }


AGREEMENT_WORLDS = (
    SampledPeople("few respondents, error 0.15", 0.15),
    SampledPeople("few respondents, error 0.08", 0.08),
    SampledPeople("few respondents, unknown design effect", 0.15, design_effect=2.0),
    UnequalRange(),
    RelatedTopics("other loadings", "shifted"),
    RelatedTopics("people and noise", "noisy"),
)
AGREEMENT_DESIGNS = (Design(12, 10), Design(17, 19), Design(55, 19))
