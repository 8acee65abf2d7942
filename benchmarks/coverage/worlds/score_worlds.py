"""Worlds of scores: a survey's and two models' scores in cells of countries and topics.

A survey's score has effects of country, topic and cell, and so has a model's error. The truth of a figure is its value
over the population of countries and topics, that is, over cells that have nothing in common: `measure_truth` draws
millions of them, and `SCORE_TRUTHS` stores what it returned. Where there is a formula, the constant is from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects

SURVEY_SDS = (0.25, 0.45, 0.15)
"""Standard deviations of the effects of country, topic and cell on a survey's score."""
ERROR_SDS = (0.20, 0.30, 0.20)
"""The same for a model's error."""
MEAN_ERROR = 0.1
WORSE_FACTOR = 1.3
"""Errors of the worse model, as a multiple."""
NOISE_SD = 0.4
"""Standard deviation of the samples of a cell around the first model's score."""
N_SAMPLES = 5
REGION_SIZE = 5
"""Countries in a region; the last region has the remainder too."""


@dataclass(frozen=True, slots=True)
class ScoreSample:
    """One simulated audit, a value per cell, shape (cells,); `truths` has the true value of each figure.

    Attributes:
        first, second: scores of two models with equal error; worse: with 1.3 times the error of `second`.
        uneven: scores of a model with half the error in one group of countries.
        in_group: whether the cell's country is in that group.
        region: region of the cell's country; the group consists of regions.
        sampled, sample_variance: mean and variance of five samples of the first model, which add noise to its score.
    """

    country: Indices
    topic: Indices
    survey: Floats
    first: Floats
    second: Floats
    worse: Floats
    uneven: Floats
    in_group: Bools
    region: Indices
    sampled: Floats
    sample_variance: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class AdditiveWorld:
    """Additive effects of country, topic and cell, all of one kind.

    Attributes:
        difficulty_sd: standard deviation of the logarithm of a topic's difficulty, which multiplies errors on it.
    """

    name: str
    kind: EffectKind
    difficulty_sd: float = 0.0

    def draw(self, design: Design, rng: np.random.Generator) -> ScoreSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        scores = self.draw_scores(rng, country, topic)
        return build_sample(design, rng, country, topic, scores, SCORE_TRUTHS[self.name])

    def draw_scores(
        self, rng: np.random.Generator, country: Indices, topic: Indices, *, is_clustered: bool = True
    ) -> list[Floats]:
        """The survey's scores, and those of two models with independent errors of equal size."""
        n_units = (int(country.max()) + 1, int(topic.max()) + 1)

        def draw_sum(sds: tuple[float, float, float]) -> Floats:
            by_country, by_topic = (
                sd * draw_effects(self.kind, rng, n, is_clustered=is_clustered)
                for sd, n in zip(sds, n_units, strict=False)
            )
            by_cell = sds[2] * draw_effects(self.kind, rng, len(country), is_clustered=False)
            return np.asarray(by_country[country] + by_topic[topic] + by_cell)

        survey = draw_sum(SURVEY_SDS)
        # Scaled so that the mean squared factor, and with it the variance of the error, is the same as without.
        factor = np.exp(self.difficulty_sd * rng.normal(size=n_units[1]) - self.difficulty_sd**2)[topic]
        return [survey, *(survey + MEAN_ERROR + factor * draw_sum(ERROR_SDS) for _ in range(2))]


@dataclass(frozen=True, slots=True)
class BoundedWorld:
    """Scores in [-1, 1] from beta-binomial answers of 50 respondents, and of 5 samples of a model.

    A respondent chooses among two answers, a model's sample among 11. The log odds have effects of country, topic and
    cell. The answers to one cell are correlated: their probability varies between respondents' groups as a beta.
    """

    name: str = "bounded"

    def draw(self, design: Design, rng: np.random.Generator) -> ScoreSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        scores = self.draw_scores(rng, country, topic)
        return build_sample(design, rng, country, topic, scores, SCORE_TRUTHS[self.name])

    def draw_scores(
        self, rng: np.random.Generator, country: Indices, topic: Indices, *, is_clustered: bool = True
    ) -> list[Floats]:
        """The survey's scores, and those of two models."""
        n_units = (int(country.max()) + 1, int(topic.max()) + 1)

        def draw_log_odds(scale: float) -> Floats:
            by_country, by_topic = (sd * rng.normal(size=n) for sd, n in zip((0.7, 1.2), n_units, strict=True))
            return np.asarray(scale * (by_country[country] + by_topic[topic] + 0.4 * rng.normal(size=len(country))))

        def draw_score(log_odds: Floats, n_answers: int, n_steps: int) -> Floats:
            p = 1 / (1 + np.exp(-log_odds))
            varied = np.clip(rng.beta(10 * p, 10 * (1 - p)), 1e-9, 1 - 1e-9)
            return 2 * rng.binomial(n_answers * n_steps, varied) / (n_answers * n_steps) - 1.0

        latent = draw_log_odds(1.0) - 0.4
        survey = draw_score(latent, 50, 1)
        return [survey, *(draw_score(0.8 * latent + 0.2 + draw_log_odds(0.6), 5, 10) for _ in range(2))]


def build_sample(
    design: Design,
    rng: np.random.Generator,
    country: Indices,
    topic: Indices,
    scores: list[Floats],
    truths: Mapping[str, float],
) -> ScoreSample:
    """Complete a sample with the worse model, the uneven model, and samples of the first model."""
    survey, first, second = scores
    n_regions = 2 * max(1, design.n_countries // (2 * REGION_SIZE))
    region = country * n_regions // design.n_countries
    in_group = region < n_regions // 2
    samples = first + NOISE_SD * rng.normal(size=(N_SAMPLES, len(first)))
    return ScoreSample(
        country,
        topic,
        survey,
        first,
        second,
        worse=survey + WORSE_FACTOR * (second - survey),
        uneven=survey + np.where(in_group, 0.5, 1.0) * (first - survey),
        in_group=in_group,
        region=region,
        sampled=samples.mean(axis=0),
        sample_variance=samples.var(axis=0, ddof=1),
        truths=truths,
    )


def measure_truth(world: AdditiveWorld | BoundedWorld, n_cells: int, seed: int = 1) -> dict[str, float]:
    """The true value of each figure, from pairs of cells of one topic, and otherwise with nothing in common.

    Args:
        n_cells: number of cells; an even number.
    """
    rng = np.random.default_rng(seed)
    cells = np.arange(n_cells)
    scores = world.draw_scores(rng, cells, cells // 2, is_clustered=False)
    survey, first, second = scores
    return summarize_population(survey, first, second) | {"within-topic r": _within_pairs_correlation(first, survey)}


def _within_pairs_correlation(x: Floats, y: Floats) -> float:
    """The correlation over countries within topics, from neighbouring cells, which share a topic."""
    deviations = [values[::2] - values[1::2] for values in (x, y)]
    return float((deviations[0] * deviations[1]).mean() / np.prod([(d**2).mean() for d in deviations]) ** 0.5)


def summarize_population(survey: Floats, first: Floats, second: Floats) -> dict[str, float]:
    """Each figure over a population of cells; the uneven model is taken to have half the error in one half of them."""
    error, worse = first - survey, survey + WORSE_FACTOR * (second - survey)

    def correlate(scores: Floats) -> float:
        return float(np.corrcoef(scores, survey)[0, 1])

    def measure_concordance(scores: Floats) -> float:
        covariance = float(np.cov(scores, survey, bias=True)[0, 1])
        return 2 * covariance / float(scores.var() + survey.var() + (scores - survey).mean() ** 2)

    mae, r = float(np.abs(error).mean()), correlate(first)
    return {
        "r": r,
        "concordance": measure_concordance(first),
        "concordance difference": measure_concordance(first) - measure_concordance(worse),
        "corrected r": r,
        "spearman": float(np.corrcoef(rankdata(first), rankdata(survey))[0, 1]),
        "mae": mae,
        "rmse": float((error**2).mean() ** 0.5),
        "bias": float(error.mean()),
        "bias difference": float(error.mean() - (worse - survey).mean()),
        "third quartile": float(
            np.quantile(np.abs(np.concatenate([first - second, first - worse, second - worse])), 0.75)
        ),
        "r difference": r - correlate(worse),
        "r difference of equal models": r - correlate(second),
        "mae difference": mae - float(np.abs(worse - survey).mean()),
        "r gap": correlate(survey + error / 2) - r,
        "bias gap": -float(error.mean()) / 2,
        "mae gap": -mae / 2,
        "largest mae gap": 0.0,
    }


def make_gaussian_truths() -> dict[str, float]:
    """The truths of the additive Gaussian world by formulas."""
    survey_variance, error_variance = (sum(sd**2 for sd in sds) for sds in (SURVEY_SDS, ERROR_SDS))

    def correlate(factor: float) -> float:
        return float((survey_variance / (survey_variance + factor**2 * error_variance)) ** 0.5)

    def measure_concordance(factor: float) -> float:
        return 2 * survey_variance / (2 * survey_variance + factor**2 * (error_variance + MEAN_ERROR**2))

    mae, worse_mae = (_folded_mean(factor * MEAN_ERROR, factor * error_variance**0.5) for factor in (1.0, WORSE_FACTOR))
    within_variances = [sds[0] ** 2 + sds[2] ** 2 for sds in (SURVEY_SDS, ERROR_SDS)]
    r = correlate(1.0)
    return {
        "r": r,
        "concordance": measure_concordance(1.0),
        "concordance difference": measure_concordance(1.0) - measure_concordance(WORSE_FACTOR),
        "corrected r": r,
        "within-topic r": (within_variances[0] / sum(within_variances)) ** 0.5,
        "spearman": float(6 / np.pi * np.arcsin(r / 2)),
        "mae": mae,
        "rmse": (error_variance + MEAN_ERROR**2) ** 0.5,
        "bias": MEAN_ERROR,
        "bias difference": MEAN_ERROR - WORSE_FACTOR * MEAN_ERROR,
        "r difference": r - correlate(WORSE_FACTOR),
        "r difference of equal models": 0.0,
        "mae difference": mae - worse_mae,
        "r gap": correlate(0.5) - r,
        "bias gap": -MEAN_ERROR / 2,
        "mae gap": -mae / 2,
        "largest mae gap": 0.0,
    }


def _folded_mean(mean: float, sd: float) -> float:
    """The mean of the absolute value of a normal variable (Leone, Nelson & Nottingham, Technometrics 3, 1961)."""
    z = mean / sd
    return float(sd * (2 / np.pi) ** 0.5 * np.exp(-(z**2) / 2) + mean * (1 - 2 * norm.cdf(-z)))


GAUSSIAN, T3, SKEWED, ZONES = (AdditiveWorld(kind, kind) for kind in ("gaussian", "t3", "skewed", "zones"))
DIFFICULTY = AdditiveWorld("difficulty", "gaussian", difficulty_sd=0.4)
BOUNDED = BoundedWorld()
SIMULATED_SCORE_WORLDS = (GAUSSIAN, T3, SKEWED, ZONES, DIFFICULTY, BOUNDED)
SCORE_TRUTHS: dict[str, dict[str, float]] = {
    "gaussian": make_gaussian_truths() | {"third quartile": 0.55683},
    "zones": make_gaussian_truths() | {"third quartile": 0.55683},
    "t3": make_gaussian_truths()
    | {"spearman": 0.75218, "mae": 0.29741, "mae difference": -0.08907, "mae gap": -0.14870, "third quartile": 0.46616},
    "skewed": make_gaussian_truths()
    | {"spearman": 0.75082, "mae": 0.31241, "mae difference": -0.09359, "mae gap": -0.15620, "third quartile": 0.50596},
    "difficulty": make_gaussian_truths()
    | {"spearman": 0.79405, "mae": 0.31561, "mae difference": -0.09469, "mae gap": -0.15781, "third quartile": 0.47337},
    "bounded": {
        "r": 0.61400,
        "concordance": 0.60540,
        "concordance difference": 0.17983,
        "corrected r": 0.61400,
        "spearman": 0.61426,
        "mae": 0.41222,
        "rmse": 0.53237,
        "bias": 0.10007,
        "bias difference": -0.03011,
        "third quartile": 0.56000,
        "r difference": 0.17503,
        "r difference of equal models": 0.00000,
        "mae difference": -0.12396,
        "r gap": 0.28306,
        "bias gap": -0.05003,
        "mae gap": -0.20611,
        "largest mae gap": 0.0,
        "within-topic r": 0.41417,
    },
}
"""True values by world. Correlations, RMSE and bias of the additive worlds depend on variances only, which all of them
share. The other figures are the mean of three calls of `measure_truth` with 2,000,000 cells (standard errors up to
0.0004). The true gap of the selected pair is subtracted from the largest gap, so its truth is 0."""
