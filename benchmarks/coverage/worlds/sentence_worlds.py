"""Worlds in which sentences of a report are false, or true: models that know nothing, that are equal, or that differ.

A model's score is `knowledge` times people's score plus a field of its own: effects of country, topic and cell. So all
truths are formulas, given the effects of the countries and topics of an audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from benchmarks.coverage.worlds.design import Floats

N_COUNTRIES, N_TOPICS, N_JUDGES = 12, 10, 5
PEOPLE_SDS = (0.25, 0.25, 0.2)
"""Of effects of country, topic and cell on people's scores, and on those of a model that knows nothing."""
ERROR_SDS = (0.05, 0.05, 0.12)
"""Of the errors of a good model."""


@dataclass(frozen=True, slots=True)
class PlantedModel:
    """One model: `knowledge` times people's score plus a field with these standard deviations.

    Attributes:
        country_factors, topic_factors: by which its cells' own errors are multiplied in the first countries and topics.
        valid_share: probability that a judge, who tosses a coin, says VALID.
    """

    knowledge: float
    sds: tuple[float, float, float]
    country_factors: tuple[float, ...] = ()
    topic_factors: tuple[float, ...] = ()
    valid_share: float = 0.7

    @property
    def difference_sds(self) -> Floats:
        """Of the effects of country, topic and cell on its difference from people."""
        spread: Floats = np.hypot((self.knowledge - 1) * np.array(PEOPLE_SDS), np.array(self.sds))
        return spread


def make_noise(share: float = 1.0) -> PlantedModel:
    """A model that knows nothing about people, or whose variance is this share of people's."""
    country, topic, cell = (share**0.5 * sd for sd in PEOPLE_SDS)
    return PlantedModel(0.0, (country, topic, cell))


GOOD = PlantedModel(1.0, ERROR_SDS)
CORRELATED = PlantedModel(0.7, tuple(0.51**0.5 * sd for sd in PEOPLE_SDS))
"""r = 0.7 with people."""


def make_structured(sd: float) -> PlantedModel:
    """A model whose errors have this standard deviation: a quarter from countries, a quarter from topics."""
    return PlantedModel(1.0, (sd / 2, sd / 2, sd / 2**0.5))


@dataclass(frozen=True, slots=True)
class SentenceSample:
    """One simulated audit with what is true of it.

    Attributes:
        survey: people's scores, shape (countries, topics).
        scores: shape (models, countries, topics).
        verdicts: 1 is VALID, shape (judges, models, countries, topics); None without judges.
        r, within_r, concordance: of each model in the population, shape (models,).
        mae: of each model in the population, shape (models,).
        bias_by_country, mae_by_country: over all topics, given the country, shape (models, countries); by topic alike.
        valid_shares: shape (models,).
        is_placed: as in `SentenceWorld`.
    """

    survey: Floats
    scores: Floats
    verdicts: Floats | None
    r: Floats
    within_r: Floats
    concordance: Floats
    mae: Floats
    bias_by_country: Floats
    bias_by_topic: Floats
    mae_by_country: Floats
    mae_by_topic: Floats
    valid_shares: Floats
    is_placed: bool


@dataclass(frozen=True, slots=True)
class SentenceWorld:
    """A population of audits of these models.

    Attributes:
        planted: what a report should state, as (family, subject); found only if a report states it.
        min_found: share of audits in which it has to be stated.
        is_placed: whether the countries are in six cultural zones and two regions; else in none, so that intervals
            take single countries as independent.
    """

    name: str
    models: tuple[PlantedModel, ...]
    has_judges: bool = False
    planted: tuple[str, str] | None = None
    min_found: float = 0.0
    n_audits: int = 600
    is_placed: bool = True

    def draw(self, rng: np.random.Generator) -> SentenceSample:
        """Simulate one audit of 12 countries and 10 topics."""
        people = [sd * rng.normal(size=size) for sd, size in zip(PEOPLE_SDS[:2], (N_COUNTRIES, N_TOPICS), strict=True)]
        shape = (N_COUNTRIES, N_TOPICS)
        survey = people[0][:, None] + people[1][None, :] + PEOPLE_SDS[2] * rng.normal(size=shape)
        scores, country_effects, topic_effects, cell_sds = [], [], [], []
        for model in self.models:
            by_country, by_topic = model.sds[0] * rng.normal(size=N_COUNTRIES), model.sds[1] * rng.normal(size=N_TOPICS)
            factors = np.outer(_pad(model.country_factors, N_COUNTRIES), _pad(model.topic_factors, N_TOPICS))
            cells = model.sds[2] * factors * rng.normal(size=shape)
            scores.append(model.knowledge * survey + by_country[:, None] + by_topic[None, :] + cells)
            country_effects.append((model.knowledge - 1) * people[0] + by_country)
            topic_effects.append((model.knowledge - 1) * people[1] + by_topic)
            cell_sds.append(np.hypot((model.knowledge - 1) * PEOPLE_SDS[2], model.sds[2] * factors))
        verdicts = None
        if self.has_judges:
            shares = np.array([model.valid_share for model in self.models])[None, :, None, None]
            verdicts = (rng.uniform(size=(N_JUDGES, len(self.models), *shape)) < shares).astype(float)
        spread = np.array([model.difference_sds for model in self.models])
        by_country, by_topic = np.stack(country_effects), np.stack(topic_effects)
        country_sds = np.sqrt(spread[:, 1, None] ** 2 + (np.stack(cell_sds) ** 2).mean(axis=2))
        topic_sds = np.sqrt(spread[:, 0, None] ** 2 + (np.stack(cell_sds) ** 2).mean(axis=1))
        return SentenceSample(
            survey, np.stack(scores), verdicts, *self._measure_agreement(),
            mae=(2 / np.pi) ** 0.5 * np.sqrt((spread**2).sum(axis=1)),
            bias_by_country=by_country, bias_by_topic=by_topic,
            mae_by_country=fold(by_country, country_sds), mae_by_topic=fold(by_topic, topic_sds),
            valid_shares=np.array([model.valid_share for model in self.models]), is_placed=self.is_placed,
        )  # fmt: skip

    def _measure_agreement(self) -> tuple[Floats, Floats, Floats]:
        """r, r within topics and the concordance of each model in the population."""
        people, errors = np.array(PEOPLE_SDS) ** 2, np.array([model.sds for model in self.models]) ** 2
        knowledge = np.array([model.knowledge for model in self.models])
        correlations = []
        for effects in ([0, 1, 2], [0, 2]):
            total = people[effects].sum()
            variances = knowledge**2 * total + errors[:, effects].sum(axis=1)
            correlations.append(knowledge * total / np.sqrt(total * variances))
        total = people.sum()
        concordance = 2 * knowledge * total / (total + knowledge**2 * total + errors.sum(axis=1))
        return correlations[0], correlations[1], concordance


def fold(mean: Floats, sd: Floats) -> Floats:
    """The mean of the absolute value of normal variables (Leone, Nelson & Nottingham, Technometrics 3, 1961)."""
    z = mean / sd
    folded: Floats = np.asarray(sd * (2 / np.pi) ** 0.5 * np.exp(-(z**2) / 2) + mean * (1 - 2 * norm.cdf(-z)))
    return folded


def _pad(factors: tuple[float, ...], size: int) -> Floats:
    """These factors for the first units, 1 for the others."""
    padded: Floats = np.concatenate([np.array(factors, dtype=np.float64), np.ones(size - len(factors))])
    return padded


COIN = PlantedModel(1.0, ERROR_SDS)
EVEN = PlantedModel(1.0, (0.0, 0.08, 0.12))
"""Its errors are equally large in all countries."""
FAR = PlantedModel(1.0, (0.0, 0.0, 0.12), country_factors=(0.45 / 0.12,))
TABOO = PlantedModel(1.0, (0.0, 0.0, 0.15), topic_factors=(5.0,))

GUESS_ERRORS: Mapping[str, float] = {"means": 0.269, "similar countries": 0.213}
"""Mean absolute error of the best guess of each level in these worlds, from 150 simulated audits (±0.003)."""
NULL_WORLDS = (
    SentenceWorld("2 noise models", (make_noise(),) * 2),
    SentenceWorld("5 noise models", (make_noise(),) * 5),
    SentenceWorld("8 noise models", (make_noise(),) * 8),
    SentenceWorld("4 good models, 4 noise models", (GOOD,) * 4 + (make_noise(),) * 4),
    SentenceWorld("4 equal models, coin-tossing judges", (COIN,) * 4, has_judges=True),
    SentenceWorld("4 models, equal in all countries", (EVEN,) * 4),
    SentenceWorld("4 models, whose errors are as large as topic means'", (make_structured(0.3373),) * 4),
)
ONE_OF_EIGHT = (CORRELATED, *(make_noise(),) * 7)
BEST_OF_FIVE = (make_structured(0.08), *(make_structured(0.15),) * 4)
POWER_WORLDS = (
    SentenceWorld(
        "r = 0.7 of one of eight models", ONE_OF_EIGHT, planted=("order", "m0"), min_found=0.75, n_audits=200,
        is_placed=False,
    ),
    SentenceWorld(
        "r = 0.7, 12 countries of six zones", ONE_OF_EIGHT, planted=("order", "m0"), min_found=0.4, n_audits=200
    ),
    SentenceWorld(
        "best of five, error SD 0.08 against 0.15", BEST_OF_FIVE, planted=("closest", "m0"), min_found=0.55,
        n_audits=200, is_placed=False,
    ),
    SentenceWorld(
        "best of five, 12 countries of six zones", BEST_OF_FIVE, planted=("closest", "m0"), min_found=0.4, n_audits=200
    ),
    SentenceWorld(
        "further in one of 12 countries, 0.45 against 0.12", (FAR,), planted=("further", "m0 country 0"),
        min_found=0.65, n_audits=200,
    ),
    SentenceWorld(
        "further, one of four models", (FAR, *(PlantedModel(1.0, (0.0, 0.0, 0.12)),) * 3),
        planted=("further", "m0 country 0"), min_found=0.65, n_audits=200,
    ),
    SentenceWorld(
        "VALID share of 0.55, 600 verdicts", (PlantedModel(1.0, ERROR_SDS, valid_share=0.55), *(COIN,) * 3),
        has_judges=True, planted=("shortfalls", "m0 valid share"), min_found=0.8, n_audits=200,
    ),
    SentenceWorld(
        "one taboo topic, errors five times as large", (TABOO,), planted=("influence", "m0 topic 0"), min_found=0.9,
        n_audits=200,
    ),
    SentenceWorld(
        "closer than people's means, error SD 0.15", (make_structured(0.15),), planted=("guesses", "m0 means"),
        min_found=0.75, n_audits=200,
    ),
    SentenceWorld(
        "closer than similar countries, error SD 0.15", (make_structured(0.15),),
        planted=("guesses", "m0 similar countries"), min_found=0.75, n_audits=200,
    ),
)  # fmt: skip
SENTENCE_WORLDS = (*NULL_WORLDS, *POWER_WORLDS)
