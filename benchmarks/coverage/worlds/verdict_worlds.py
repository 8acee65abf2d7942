"""Worlds of verdicts: five judges rule on the traces of four models, in cells of countries
and topics or of the items of a task.

A trace has a soundness with effects of its country, topic, model and cell. A judge says VALID where the soundness that
it perceives is above 0; it perceives that with effects of its own of the topic and the country, and with noise. Judges
are the same in all audits, so countries and topics are random, and judges are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Floats, Indices
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects
from benchmarks.coverage.worlds.trace_cells import TraceDesign, draw_trace_cells

JUDGE_LENIENCIES = np.array([0.3, 0.15, 0.0, -0.15, -0.3])
MODEL_QUALITIES = np.array([0.3, 0.1, -0.1, -0.3])
SOUNDNESS_SDS = (0.4, 0.6, 0.3)
"""Of the effects of country, topic and cell on the soundness of a trace; traces within a cell differ by 1."""
JUDGE_SDS = (0.3, 0.5)
"""Of the effects of judge x country and judge x topic."""
NOISE_SD = 0.8
DISCRIMINATIONS = np.array([2.0, 1.5, 1.2, 1.0, 0.8])
ABILITIES = np.array([1.6, 1.3, 1.0, 1.0, 0.7])
"""Of the judges of a world of item response, which also differ in leniency."""
MISSING_VERDICTS = 0.05
MEAN_TRACES = 4
"""Traces in a cell, one of each model where cells are equal."""


@dataclass(frozen=True, slots=True)
class VerdictSample:
    """Verdicts of one simulated audit, shape (judges, traces): 1 is VALID, 0 INVALID, nan missing.

    Attributes:
        units: what is resampled: country and topic, or item, of each trace, shape (traces,).
    """

    units: Mapping[str, Indices]
    verdicts: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class VerdictWorld:
    """A population of audits with verdicts.

    Attributes:
        level: mean soundness.
        judge_scale: multiplies the effects of judge x country and judge x topic.
    """

    name: str
    kind: EffectKind = "gaussian"
    level: float = 0.4
    judge_scale: float = 1.0

    def draw(self, design: TraceDesign, rng: np.random.Generator) -> VerdictSample:
        """Simulate one audit."""
        cells = draw_trace_cells(design, rng, MEAN_TRACES)
        n_traces = len(cells.cell)
        model = (np.arange(n_traces) if not design.is_uneven else rng.integers(0, 4, n_traces)) % 4
        verdicts = self.draw_verdicts(rng, cells.country, cells.topic, cells.cell, model)
        verdicts[rng.random(verdicts.shape) < MISSING_VERDICTS] = np.nan
        return VerdictSample(cells.units, verdicts, VERDICT_TRUTHS[self.name])

    def draw_verdicts(
        self,
        rng: np.random.Generator,
        cell_country: Indices,
        cell_topic: Indices,
        cell: Indices,
        model: Indices,
        *,
        is_clustered: bool = True,
    ) -> Floats:
        """All judges' verdicts on traces in cells, shape (judges, traces).

        Args:
            cell_country, cell_topic: shape (cells,); cell, model: of each trace, shape (traces,).
            is_clustered: see `draw_effects`.
        """
        n_countries, n_topics = int(cell_country.max()) + 1, int(cell_topic.max()) + 1

        def draw(n: int) -> Floats:
            return draw_effects(self.kind, rng, n, is_clustered=is_clustered)

        by_cell = (
            SOUNDNESS_SDS[0] * draw(n_countries)[cell_country]
            + SOUNDNESS_SDS[1] * draw(n_topics)[cell_topic]
            + SOUNDNESS_SDS[2] * draw_effects(self.kind, rng, len(cell_country), is_clustered=False)
        )
        soundness = self.level + by_cell[cell] + MODEL_QUALITIES[model] + rng.normal(size=len(cell))
        verdicts = np.empty((len(JUDGE_LENIENCIES), len(cell)))
        for judge, leniency in enumerate(JUDGE_LENIENCIES):
            perceived = JUDGE_SDS[0] * draw(n_countries)[cell_country] + JUDGE_SDS[1] * draw(n_topics)[cell_topic]
            noise = NOISE_SD * rng.normal(size=len(cell))
            verdicts[judge] = soundness + leniency + self.judge_scale * perceived[cell] + noise > 0
        return verdicts


@dataclass(frozen=True, slots=True)
class ItemResponseWorld(VerdictWorld):
    """Judges by item response: the log odds of a right verdict are the discrimination of the judge times its ability
    less the difficulty of the trace (2PL). The difficulty is that of all judges, so that their errors are shared."""

    def draw_verdicts(
        self,
        rng: np.random.Generator,
        cell_country: Indices,
        cell_topic: Indices,
        cell: Indices,
        model: Indices,
        *,
        is_clustered: bool = True,
    ) -> Floats:
        """As those of `VerdictWorld`."""
        n_countries, n_topics = int(cell_country.max()) + 1, int(cell_topic.max()) + 1

        def draw_sum() -> Floats:
            by_country, by_topic, by_cell = (
                sd * draw_effects(self.kind, rng, n, is_clustered=is_clustered)
                for sd, n in zip(SOUNDNESS_SDS, (n_countries, n_topics, len(cell_country)), strict=True)
            )
            return np.asarray((by_country[cell_country] + by_topic[cell_topic] + by_cell)[cell])

        label = self.level + draw_sum() + MODEL_QUALITIES[model] + rng.normal(size=len(cell)) > 0
        difficulty = draw_sum() + rng.normal(size=len(cell))
        log_odds = DISCRIMINATIONS[:, None] * (ABILITIES[:, None] - difficulty) + np.where(
            label, JUDGE_LENIENCIES[:, None], -JUDGE_LENIENCIES[:, None]
        )
        is_right = rng.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))
        verdicts: Floats = np.where(is_right, label, ~label).astype(np.float64)
        return verdicts


def measure_verdict_truth(world: VerdictWorld, n_traces: int, seed: int = 1) -> dict[str, float]:
    """The true value of each figure, from traces with a country and a topic each of their own."""
    rng = np.random.default_rng(seed)
    trace = np.arange(n_traces)
    verdicts = world.draw_verdicts(rng, trace, trace, trace, rng.integers(0, 4, n_traces), is_clustered=False)
    is_recorded = rng.random(verdicts.shape) >= MISSING_VERDICTS
    votes = np.where(is_recorded, 2 * verdicts - 1, 0.0)
    majority_of_others = np.sign(votes[1:].sum(axis=0))
    is_decided = is_recorded[0] & (majority_of_others != 0)
    agrees = votes[0] == majority_of_others
    return {
        **_agreement_coefficients(verdicts),
        "alpha without a judge": _agreement_coefficients(verdicts[1:])["alpha"],
        "alpha change": _agreement_coefficients(verdicts[1:])["alpha"] - _agreement_coefficients(verdicts)["alpha"],
        "prevalence": float(verdicts.mean()),
        "valid share of a judge": float(verdicts[0].mean()),
        "agreement with the others": float(agrees[is_decided].mean()),
        "paired difference of verdicts": float(verdicts[1].mean() - verdicts[0].mean()),
        "agreement of two series of verdicts": _agreement_coefficients(verdicts[:2])["kappa"],
    }


def _agreement_coefficients(verdicts: Floats) -> dict[str, float]:
    """Fleiss' kappa, Krippendorff's alpha and Gwet's AC1 of an infinite number of traces like these.

    All compare the share of pairs of judges that agree with that expected by chance. Krippendorff's correction for
    small samples vanishes for an infinite number of traces, so that alpha is kappa.
    """
    n_judges, n_valid = len(verdicts), verdicts.sum(axis=0)
    observed = float(
        (
            (n_valid * (n_valid - 1) + (n_judges - n_valid) * (n_judges - n_valid - 1)) / (n_judges * (n_judges - 1))
        ).mean()
    )
    p = float(verdicts.mean())
    kappa_chance, ac1_chance = p**2 + (1 - p) ** 2, 2 * p * (1 - p)
    kappa = (observed - kappa_chance) / (1 - kappa_chance)
    return {"kappa": kappa, "alpha": kappa, "ac1": (observed - ac1_chance) / (1 - ac1_chance)}


GAUSSIAN_VERDICTS = VerdictWorld("gaussian")
SKEWED_VERDICTS = VerdictWorld("skewed", "skewed")
T3_VERDICTS = VerdictWorld("t3", "t3")
ZONE_VERDICTS = VerdictWorld("zones", "zones")
RARELY_INVALID = VerdictWorld("rarely INVALID", level=2.4)
SHARED_ERRORS = ItemResponseWorld("item response")
VERDICT_WORLDS = (GAUSSIAN_VERDICTS, SKEWED_VERDICTS, T3_VERDICTS, ZONE_VERDICTS, RARELY_INVALID, SHARED_ERRORS)
VERDICT_TRUTHS: dict[str, dict[str, float]] = {
    "gaussian": {
        "kappa": 0.41751,
        "alpha": 0.41751,
        "ac1": 0.45923,
        "alpha without a judge": 0.42255,
        "alpha change": 0.00504,
        "prevalence": 0.59636,
        "valid share of a judge": 0.66674,
        "agreement with the others": 0.79403,
        "paired difference of verdicts": -0.03432,
        "agreement of two series of verdicts": 0.42178,
    },
    "skewed": {
        "kappa": 0.41463,
        "alpha": 0.41463,
        "ac1": 0.44823,
        "alpha without a judge": 0.42012,
        "alpha change": 0.00549,
        "prevalence": 0.58595,
        "valid share of a judge": 0.65906,
        "agreement with the others": 0.78882,
        "paired difference of verdicts": -0.03570,
        "agreement of two series of verdicts": 0.41855,
    },
    "t3": {
        "kappa": 0.41428,
        "alpha": 0.41428,
        "ac1": 0.45972,
        "alpha without a judge": 0.41957,
        "alpha change": 0.00529,
        "prevalence": 0.60044,
        "valid share of a judge": 0.67343,
        "agreement with the others": 0.79432,
        "paired difference of verdicts": -0.03546,
        "agreement of two series of verdicts": 0.41908,
    },
    "zones": {
        "kappa": 0.41751,
        "alpha": 0.41751,
        "ac1": 0.45923,
        "alpha without a judge": 0.42255,
        "alpha change": 0.00504,
        "prevalence": 0.59636,
        "valid share of a judge": 0.66674,
        "agreement with the others": 0.79403,
        "paired difference of verdicts": -0.03432,
        "agreement of two series of verdicts": 0.42178,
    },
    "rarely INVALID": {
        "kappa": 0.31039,
        "alpha": 0.31039,
        "ac1": 0.89437,
        "alpha without a judge": 0.31981,
        "alpha change": 0.00942,
        "prevalence": 0.92847,
        "valid share of a judge": 0.95170,
        "agreement with the others": 0.95481,
        "paired difference of verdicts": -0.00995,
        "agreement of two series of verdicts": 0.29853,
    },
    "item response": {
        "kappa": 0.37786,
        "alpha": 0.37786,
        "ac1": 0.38816,
        "alpha without a judge": 0.33408,
        "alpha change": -0.04378,
        "prevalence": 0.54568,
        "valid share of a judge": 0.60761,
        "agreement with the others": 0.83508,
        "paired difference of verdicts": -0.02328,
        "agreement of two series of verdicts": 0.59380,
    },
}
"""True values by world: the mean of eight calls of `measure_verdict_truth` with 1,000,000 traces (standard errors up to
0.0006)."""
