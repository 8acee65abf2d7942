"""Worlds of opinions on a scale of ten points: shares of people in each cell, and answers of a planted model.

Shares are of exponential form: the log odds of point x in [-1, 1] are a x + b x^2, where a and b have effects of
country, topic and cell. A planted model draws its answers from shares that are made of the true ones in a known way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.coverage.worlds.design import Design, Floats, Indices
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects

POINTS = np.linspace(-1, 1, 10)
WIDTH = 1 / 9
"""Of one step, as a share of the scale."""
SLOPE_SDS, CURVE_SDS = (0.9, 1.3, 0.4), (0.3, 0.5, 0.3)
"""Standard deviations of the effects of country, topic and cell on a and on b."""
MEAN_CURVE = 0.8
N_PEOPLE, N_ANSWERS = 1000, 10
"""Respondents of a cell, and answers of the model, half of them in each order of the scale."""
NEAR = 0.2
"""Distances of Wasserstein, as a share of the scale, below which a cell is near people."""
N_POPULATION = 250
"""Countries, and topics, of the population that a truth is computed from; repeated N_REPEATS times."""
N_REPEATS = 25


@dataclass(frozen=True, slots=True, eq=False)
class OpinionSample:
    """Shares of one simulated audit.

    Attributes:
        people: shape (cells, 10), shares of N_PEOPLE respondents.
        up, down: shape (cells, 10), counts of the model's answers in the two orders of the scale.
    """

    country: Indices
    topic: Indices
    people: Floats
    up: Floats
    down: Floats
    truths: Mapping[str, float]


Plant = Callable[[Floats, np.random.Generator], tuple[Floats, Floats]]
"""From the true shares, shape (cells, 10), to the model's shares in both orders of the scale."""


def mix(shares: Floats) -> tuple[Floats, Floats]:
    """The same shares in both orders."""
    return shares, shares


def collapse(shares: Floats) -> Floats:
    """All answers at the point next to the mean."""
    nearest = np.abs(POINTS - (shares @ POINTS)[:, None]).argmin(axis=1)
    collapsed: Floats = np.eye(10)[nearest]
    return collapsed


def sharpen(shares: Floats) -> Floats:
    """Shares to the power of 2, as a low temperature makes them."""
    squared: Floats = shares**2 / (shares**2).sum(axis=1, keepdims=True)
    return squared


def favour_first(shares: Floats, weight: float = 0.3) -> tuple[Floats, Floats]:
    """A part of the answers goes to the end that is shown first."""
    first, last = np.eye(10)[0], np.eye(10)[-1]
    return (1 - weight) * shares + weight * first, (1 - weight) * shares + weight * last


PLANTS: Mapping[str, Plant] = {
    "perfect": lambda p, rng: mix(p),
    "collapsed": lambda p, rng: mix(collapse(p)),
    "sharpened": lambda p, rng: mix(sharpen(p)),
    "uniform": lambda p, rng: mix(np.full_like(p, 0.1)),
    "order-biased": lambda p, rng: favour_first(p),
    "reversed scale": lambda p, rng: mix(p[:, ::-1]),
}
"""Models whose shares are a function of people's, by name."""


@dataclass(frozen=True, slots=True)
class OpinionWorld:
    """A population of audits.

    Attributes:
        plant: key of PLANTS.
        kind: of the effects of countries and topics.
    """

    plant: str
    kind: EffectKind = "gaussian"

    @property
    def name(self) -> str:
        """The planted model, and the effects if they are not Gaussian."""
        return self.plant if self.kind == "gaussian" else f"{self.plant}, {self.kind}"

    def draw(self, design: Design, rng: np.random.Generator) -> OpinionSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        shares = draw_true_shares(self.kind, rng, country, topic, design.n_countries, design.n_topics)
        up, down = PLANTS[self.plant](shares, rng)
        people = rng.multinomial(N_PEOPLE, shares) / N_PEOPLE
        answers = [rng.multinomial(N_ANSWERS // 2, order).astype(np.float64) for order in (up, down)]
        return OpinionSample(
            country, topic, people, answers[0], answers[1], measure_opinion_truth(self.plant, self.kind)
        )


def draw_true_shares(
    kind: EffectKind,
    rng: np.random.Generator,
    country: Indices,
    topic: Indices,
    n_countries: int,
    n_topics: int,
    *,
    is_clustered: bool = True,
) -> Floats:
    """True shares of cells, shape (cells, 10)."""
    slope, curve = (
        sds[0] * draw_effects(kind, rng, n_countries, is_clustered=is_clustered)[country]
        + sds[1] * draw_effects(kind, rng, n_topics, is_clustered=is_clustered)[topic]
        + sds[2] * rng.normal(size=len(country))
        for sds in (SLOPE_SDS, CURVE_SDS)
    )
    log_odds = np.clip(slope, -6, 6)[:, None] * POINTS + np.clip(curve + MEAN_CURVE, -6, 6)[:, None] * POINTS**2
    shares = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    divided: Floats = shares / shares.sum(axis=1, keepdims=True)
    return divided


@cache
def measure_opinion_truth(plant: str, kind: EffectKind) -> Mapping[str, float]:
    """True figures over the population of countries and topics, by simulation without sampling of people or answers."""
    rng = np.random.default_rng(1)
    country, topic = (index.ravel() for index in np.indices((N_POPULATION, N_POPULATION)))
    sums, n_near = np.zeros(5), 0.0
    for _ in range(N_REPEATS):
        people = draw_true_shares(kind, rng, country, topic, N_POPULATION, N_POPULATION, is_clustered=False)
        up, down = PLANTS[plant](people, rng)
        model = (up + down) / 2
        sums += [
            _squared_distances(people, model).mean(),
            _squared_distances(people, np.full_like(people, 0.1)).mean(),
            _variances(model).mean(),
            _variances(people).mean(),
            ((down - up) @ POINTS).mean() / 4,
        ]
        answers = sum(rng.multinomial(N_ANSWERS // 2, order) for order in (up, down)) / N_ANSWERS
        distances = np.abs(np.cumsum(people - answers, axis=1)[:, :-1]).sum(axis=1) * WIDTH
        n_near += float((distances < NEAR).mean())
    distance, uniform, model_variance, people_variance, shift = sums / N_REPEATS
    truths = {"order shift": float(shift), "variance ratio": float(model_variance / people_variance)}
    if n_near < 0.9 * N_REPEATS:  # else far cells are rare events, see `share_worlds`
        truths["cells near people"] = n_near / N_REPEATS
    if distance > 1e-9:  # the root of a mean that is 0 has no interval with a chance to cover
        truths["distribution distance"] = float(distance**0.5)
    if plant != "uniform":
        truths["distribution skill"] = float(1 - distance / uniform)
    return truths


def _squared_distances(first: Floats, second: Floats) -> Floats:
    """Squared differences of the cumulative shares over the scale, shape (cells,)."""
    return np.asarray((np.cumsum(first - second, axis=1)[:, :-1] ** 2).sum(axis=1) * WIDTH)


def _variances(shares: Floats) -> Floats:
    """Variances on the scale, shape (cells,)."""
    return np.asarray(shares @ POINTS**2 - (shares @ POINTS) ** 2)


OPINION_WORLDS = (
    OpinionWorld("perfect"),
    OpinionWorld("sharpened"),
    OpinionWorld("sharpened", "zones"),
    OpinionWorld("order-biased"),
    OpinionWorld("uniform"),
)


@dataclass(frozen=True, slots=True, eq=False)
class GapSample:
    """Gaps between two groups in the cells of one audit, shape (cells,) each."""

    country: Indices
    topic: Indices
    people: Floats
    model: Floats
    people_variance: Floats
    truths: Mapping[str, float] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GapWorld:
    """People's gaps between two groups, and a model's gaps, which are people's times a factor plus errors.

    Attributes:
        factor: how many times people's gaps the model's are.
        mean: people's mean gap.
        sds: of the effects of country, topic and cell on people's gap; the model's errors have the same at half size.
        noise: standard error of people's gap in a cell.
    """

    factor: float
    mean: float = 0.05
    sds: tuple[float, float, float] = (0.04, 0.06, 0.04)
    noise: float = 0.05
    kind: EffectKind = "gaussian"

    @property
    def name(self) -> str:
        """The factor, and the effects if they are not Gaussian."""
        return f"gaps times {self.factor:g}" + ("" if self.kind == "gaussian" else f", {self.kind}")

    def draw(self, design: Design, rng: np.random.Generator) -> GapSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        true_gaps, errors = (
            sum(
                sd * draw_effects(self.kind, rng, n)[unit]
                for sd, n, unit in zip(self.sds, (design.n_countries, design.n_topics), (country, topic), strict=False)
            )
            + self.sds[2] * rng.normal(size=len(country))
            for _ in range(2)
        )
        # Standard errors differ by cell, as the sizes of groups do.
        noise = self.noise * rng.uniform(0.7, 1.3, len(country))
        gaps = true_gaps + self.mean
        return GapSample(
            country,
            topic,
            gaps + noise * rng.normal(size=len(country)),
            self.factor * gaps + errors / 2,
            noise**2,
            {"gap slope": self.factor, "gap slope with intercept": self.factor},
        )


GAP_WORLDS = (*(GapWorld(factor) for factor in (1.6, 1.0, 0.4, 0.0, -1.0)), GapWorld(1.0, kind="zones"))
