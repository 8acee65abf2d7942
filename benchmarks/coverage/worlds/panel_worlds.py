"""Worlds of panels with planted faults: five judges, of which some are lenient, copy, prefer length, or do not judge.

Traces have a soundness with effects of country, topic and cell, so some topics are harder. Judges perceive it with
noise of different size and with effects of judge x topic and judge x country, which have mean 0: they look like biases
to a method that takes traces for independent. The labels say whether the soundness is above 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.coverage.worlds.design import Design, Floats, Indices

N_JUDGES = 5
NOISE_SDS = np.array([0.6, 0.7, 0.8, 0.9, 1.0])
"""Of the judges' perception: judges are not equally accurate."""
SOUNDNESS_SDS = (0.4, 0.6, 0.3)
JUDGE_SDS = (0.3, 0.5)
"""Of the effects of judge x country and judge x topic."""
TRACES_PER_CELL = 4
LENIENT_JUDGE = 0
COPIED_JUDGE = 4


@dataclass(frozen=True, slots=True)
class Plant:
    """The faults of a panel. Without any, all judges are honest.

    Attributes:
        leniency: how much more often the first judge says VALID, as a share of traces.
        n_copying: judges, counted from the last, of which all others copy the last one.
        copied_share: share of traces on which a copying judge repeats the verdict of the last one.
        verbosity: how much more often the first judge says VALID on longer than on shorter traces, beyond soundness.
        quality_of_length: difference in soundness between longer and shorter traces.
        constant_share, random_share: share of traces on which the first judge says VALID, or tosses a coin, without
            looking.
        level: mean soundness.
        refusal_slope: how much less likely unsound traces are to be judged by the first judge, on the log-odds scale.
    """

    leniency: float = 0.0
    n_copying: int = 0
    copied_share: float = 0.0
    verbosity: float = 0.0
    quality_of_length: float = 0.0
    constant_share: float = 0.0
    random_share: float = 0.0
    level: float = 0.0
    refusal_slope: float = 0.0

    @property
    def planted(self) -> frozenset[int]:
        """The judges with a fault."""
        is_first = self.leniency or self.verbosity or self.constant_share or self.random_share
        copying = range(N_JUDGES - self.n_copying, N_JUDGES) if self.copied_share else ()
        return frozenset({LENIENT_JUDGE} if is_first else ()) | frozenset(copying)


@dataclass(frozen=True, slots=True, eq=False)
class PanelSample:
    """Verdicts, shape (judges, traces), 1 VALID, 0 INVALID, nan none, and what is known of the traces, shape (traces,).

    Attributes:
        label: 1 where the trace is sound; is_longer: 1 for the longer half, 0 for the other.
    """

    country: Indices
    topic: Indices
    verdicts: Floats
    label: Floats
    is_longer: Floats
    plant: Plant


def draw_panel(plant: Plant, design: Design, rng: np.random.Generator) -> PanelSample:
    """Simulate one audit with a planted fault."""
    cell_country, cell_topic = design.draw_cells(rng)
    cell = np.repeat(np.arange(len(cell_country)), design.draw_case_counts(rng, len(cell_country), TRACES_PER_CELL))
    country, topic = cell_country[cell], cell_topic[cell]
    is_longer = (rng.permutation(len(cell)) % 2).astype(np.float64)
    soundness = (
        plant.level
        + SOUNDNESS_SDS[0] * rng.normal(size=design.n_countries)[country]
        + SOUNDNESS_SDS[1] * rng.normal(size=design.n_topics)[topic]
        + SOUNDNESS_SDS[2] * rng.normal(size=len(cell_country))[cell]
        + plant.quality_of_length * (is_longer - 0.5)
        + rng.normal(size=len(cell))
    )
    sample = PanelSample(country, topic, np.empty(0), (soundness > 0).astype(np.float64), is_longer, plant)
    return replace(sample, verdicts=_draw_verdicts(sample, soundness, design, rng))


def _draw_verdicts(sample: PanelSample, soundness: Floats, design: Design, rng: np.random.Generator) -> Floats:
    """The verdicts of all judges, with the planted faults."""
    plant, n_traces = sample.plant, len(soundness)
    verdicts = np.empty((N_JUDGES, n_traces))
    for judge in range(N_JUDGES):
        perceived = (
            soundness
            + JUDGE_SDS[0] * rng.normal(size=design.n_countries)[sample.country]
            + JUDGE_SDS[1] * rng.normal(size=design.n_topics)[sample.topic]
            + NOISE_SDS[judge] * rng.normal(size=n_traces)
        )
        if judge == LENIENT_JUDGE:
            shift = _probit_shift(plant.leniency, plant.level) * np.ones(n_traces)
            shift += _probit_shift(plant.verbosity, plant.level) * (sample.is_longer - 0.5)
            perceived = perceived + shift
        verdicts[judge] = perceived > 0
    first_judge, is_blind = verdicts[LENIENT_JUDGE], rng.random(n_traces)
    first_judge[is_blind < plant.constant_share] = 1.0
    is_random = is_blind < plant.random_share
    first_judge[is_random] = rng.integers(0, 2, n_traces)[is_random]
    for judge in range(N_JUDGES - plant.n_copying, COPIED_JUDGE):
        is_copied = rng.random(n_traces) < plant.copied_share
        verdicts[judge, is_copied] = verdicts[COPIED_JUDGE, is_copied]
    if plant.refusal_slope:
        first_judge[rng.random(n_traces) < 1 / (1 + np.exp(2 + plant.refusal_slope * soundness))] = np.nan
    return verdicts


def _probit_shift(difference: float, level: float) -> float:
    """By how much the first judge's perception rises so that its share of VALID rises by `difference`."""
    variance = 1 + sum(sd**2 for sd in SOUNDNESS_SDS) + sum(sd**2 for sd in JUDGE_SDS) + float(NOISE_SDS[0]) ** 2
    base = ndtr(level / variance**0.5)
    return float(ndtri(min(base + difference, 0.999)) * variance**0.5 - level)
