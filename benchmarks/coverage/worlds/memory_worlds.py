"""Simulated answers on published figures: of models that recite them in some countries, and of models that do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.stats import norm

from benchmarks.coverage.worlds.design import Design, Floats, Indices

CELLS_PER_COUNTRY = 5
MEMORY_DESIGN = Design(12, 10)
"""60 cells, half of the cells of a table of this size."""
WAVES = ("2008", "2011", "2014", "2017")
RELEASED = "2012"
SPREAD, SIBLING_SD = 22.0, 7.0
"""Standard deviations of published figures, and of the differences between waves, in points."""
ORDINARY_MAE = 6.0
"""Mean absolute error of ordinary answers, in points."""
TOLERANCE = 5
"""Points by which a recital that is not exact may be off."""
Recital = Literal["none", "exact", "5 points", "wrong wave"]


@dataclass(frozen=True, slots=True, eq=False)
class MemorySample:
    """One audit of one model.

    Attributes:
        country, topic, wave: shape (n,): what each published figure is of; `wave` is a place in `WAVES`.
        published: shape (n,), in points.
        other_wave, sibling: shape (n,): another wave of the same country and topic, and its published figure.
        ordinary, recalled: shape (n,): the model's answers to both questions about each figure.
        scores: shape (n, 2): the model's ordinary scores and people's.
        oriented: shape (n,): the model's answers on published figures, as standard scores.
    """

    country: Indices
    topic: Indices
    wave: Indices
    published: Floats
    other_wave: Indices
    sibling: Floats
    ordinary: Floats
    recalled: Floats
    scores: Floats
    oriented: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True)
class MemoryWorld:
    """A model that recites the figures of some countries.

    Attributes:
        recital: what it gives of a country that it recites.
        n_countries: countries that it recites; None to draw each with `share`.
        country_sd: standard deviation of its ordinary errors between countries, in points.
        tail: degrees of freedom of its errors (Student's); None for normal ones.
        correlation: of its ordinary errors with those of its answers on published figures.
        n_waves: waves that are published; the first of a cell's is asked for.
        knowledge: correlation of its ordinary scores with people's beyond what the figures say.
        share: share of countries that it recites, of waves before its release.
        well_known: share of countries on which its errors are a third of those on others.
    """

    name: str
    recital: Recital = "none"
    n_countries: int | None = None
    country_sd: float = 0.0
    tail: float | None = None
    correlation: float = 0.0
    n_waves: int = 2
    knowledge: float = 0.6
    share: float = 0.0
    well_known: float = 0.0
    mean_error: float = field(default=ORDINARY_MAE)

    @property
    def sd(self) -> float:
        """Standard deviation of ordinary errors."""
        return float(self.mean_error / (2 / np.pi) ** 0.5)

    def draw(self, design: Design, rng: np.random.Generator, /) -> MemorySample:
        """Simulate one audit."""
        n_countries, n_topics = design.n_countries, design.n_topics
        country = np.repeat(np.arange(n_countries), CELLS_PER_COUNTRY)
        n = len(country)
        starts = rng.integers(0, n_topics, n_countries)
        topic = (np.tile(np.arange(CELLS_PER_COUNTRY), n_countries) + starts[country]) % n_topics
        latent = 0.5 * rng.normal(size=n_countries)[country] + 0.6 * rng.normal(size=n_topics)[topic]
        latent += (1 - 0.5**2 - 0.6**2) ** 0.5 * rng.normal(size=n)
        published = np.round(50 + SPREAD * latent)
        sibling = np.round(published + SIBLING_SD * rng.normal(size=n))
        ordinary, recalled = (np.round(published + errors) for errors in self._draw_errors(country, rng))
        wave = rng.permutation(n) % self.n_waves
        is_recited = self._draw_recited(n_countries, rng)[country]
        if self.n_waves > 2:
            is_recited &= (np.array(WAVES) < RELEASED)[wave]
        deviation = rng.integers(-TOLERANCE, TOLERANCE + 1, n)
        recited = {"exact": published, "5 points": published + deviation, "wrong wave": sibling}
        recalled = np.where(is_recited, recited.get(self.recital, recalled), recalled)
        by_country, by_topic = (rng.normal(size=(2, size)) for size in (n_countries, n_topics))
        noise = (by_country[:, country] + by_topic[:, topic]) * 0.3**0.5 + 0.4**0.5 * rng.normal(size=(2, n))
        residual, of_model = noise
        people = 0.35 * latent + 0.15 * residual
        model = 0.35 * latent + 0.15 * (self.knowledge * residual + (1 - self.knowledge**2) ** 0.5 * of_model)
        return MemorySample(
            country,
            topic,
            wave,
            published,
            (wave + 1) % self.n_waves,
            sibling,
            ordinary,
            recalled,
            np.column_stack([model, people]),
            (recalled - published.mean()) / published.std(),
            self._make_truths(),
        )

    def _draw_errors(self, country: np.ndarray, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Errors of the ordinary answers, and of answers that are not recited."""
        n, by_country = len(country), self.country_sd * rng.normal(size=country.max() + 1)[country]
        within = (self.sd**2 - self.country_sd**2) ** 0.5
        shared = rng.normal(size=n)
        first, second = (
            within * (self.correlation**0.5 * shared + (1 - self.correlation) ** 0.5 * self._draw_noise(n, rng))
            for _ in range(2)
        )
        if self.well_known:
            size = np.where(rng.random(country.max() + 1) < self.well_known, 1 / 3, 1.0)[country]
            first, second = first * size, second * size
        return first + by_country, second + by_country

    def _draw_noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Noise with a variance of 1."""
        if self.tail is None:
            return rng.normal(size=n)
        scaled: Floats = rng.standard_t(self.tail, n) / (self.tail / (self.tail - 2)) ** 0.5
        return scaled

    def _draw_recited(self, n_countries: int, rng: np.random.Generator) -> np.ndarray:
        """Whether each country is recited."""
        if self.n_countries is None:
            return rng.random(n_countries) < self.share
        return rng.permutation(n_countries) < self.n_countries

    def _make_truths(self) -> dict[str, float]:
        """Of worlds in which each country is recited with the same probability, and errors are normal."""
        if self.n_countries is not None or self.tail is not None:
            return {}
        within = [2 * norm.cdf((tolerance + 0.5) / self.sd) - 1 for tolerance in (0, TOLERANCE)]
        exact = self.share * (1 - within[0]) if self.recital == "exact" else 0.0
        near = self.share * (1 - within[1]) if self.recital in ("exact", "5 points") else 0.0
        if self.recital == "5 points":
            exact = self.share * (1 / (2 * TOLERANCE + 1) - within[0])
        if self.n_waves > 2:
            return {"difference by release": exact}
        truths = {"hits beyond chance": exact, "hits within 5 points beyond chance": near}
        if self.recital == "none":
            truths["r without recall"] = self._partial_correlation()
        return truths

    def _partial_correlation(self) -> float:
        """Of the model's and people's scores without the model's answers, in the population."""
        noise = (self.sd / SPREAD) ** 2
        shared = 0.35**2 * (1 - 1 / (1 + noise))
        return (shared + 0.15**2 * self.knowledge) / (shared + 0.15**2)


WITHOUT_RECALL = (
    MemoryWorld("no recall", n_countries=None),
    MemoryWorld("no recall, errors differ by country", country_sd=4.0),
    MemoryWorld("no recall, errors with long tails", tail=4.0),
    MemoryWorld("no recall, one error in both answers", correlation=0.5),
    MemoryWorld("no recall, some countries known well", well_known=0.3, mean_error=8.0),
)
PLANTED_RECALL = (
    MemoryWorld("exact recital in 2 of 12 countries", "exact", 2),
    MemoryWorld("recital to 5 points in 6 of 12 countries", "5 points", 6),
    MemoryWorld("recital of a wrong wave in 4 of 12 countries", "wrong wave", 4),
)
MEMORY_WORLDS = (
    WITHOUT_RECALL[0],
    MemoryWorld("a third of the countries recited", "exact", share=1 / 3),
    MemoryWorld("half of the countries recited to 5 points", "5 points", share=0.5),
    MemoryWorld("half of the countries recited before the release", "exact", share=0.5, n_waves=4),
)
