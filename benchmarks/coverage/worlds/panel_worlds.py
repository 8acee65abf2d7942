"""Worlds of panels with planted faults: five judges, of which some are lenient, copy, prefer length, or do not judge.

Traces have a soundness with effects of country, topic and cell, so some topics are harder. Judges perceive it with
noise of different size and with effects of judge x topic and judge x country, which have mean 0: they look like biases
to a method that takes traces for independent. The labels say whether the soundness is above 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.coverage.worlds.design import Floats, Indices
from benchmarks.coverage.worlds.trace_cells import TraceCells, TraceDesign, draw_trace_cells

N_JUDGES = 5
NOISE_SDS = np.array([0.6, 0.7, 0.8, 0.9, 1.0])
"""Of the judges' perception: judges are not equally accurate."""
SOUNDNESS_SDS = (0.4, 0.6, 0.3)
JUDGE_SDS = (0.3, 0.5)
"""Of the effects of judge x country and judge x topic."""
TRACES_PER_CELL = 4
IDENTITY_SHARE = 0.01
"""Share of the identity in the correlations of errors, by the definition of the effective number of judges."""
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
        own_family: how much more often the first judge says VALID on the traces of the first model.
        level: mean soundness.
        has_equal_judges: all judges perceive with the same noise, so that all pairs are alike.
        refusal_slope: how much less likely unsound traces are to be judged by the first judge, on the log-odds scale.
    """

    leniency: float = 0.0
    n_copying: int = 0
    copied_share: float = 0.0
    verbosity: float = 0.0
    quality_of_length: float = 0.0
    constant_share: float = 0.0
    random_share: float = 0.0
    own_family: float = 0.0
    level: float = 0.0
    has_equal_judges: bool = False
    refusal_slope: float = 0.0

    @property
    def noise_sds(self) -> Floats:
        """Standard deviation of each judge's noise."""
        return np.full(N_JUDGES, float(NOISE_SDS.mean())) if self.has_equal_judges else NOISE_SDS

    @property
    def planted(self) -> frozenset[int]:
        """The judges with a fault."""
        is_first = self.leniency or self.verbosity or self.constant_share or self.random_share or self.own_family
        copying = range(N_JUDGES - self.n_copying, N_JUDGES) if self.copied_share else ()
        return frozenset({LENIENT_JUDGE} if is_first else ()) | frozenset(copying)


@dataclass(frozen=True, slots=True, eq=False)
class PanelSample:
    """Verdicts, shape (judges, traces), 1 VALID, 0 INVALID, nan none, and what is known of the traces, shape (traces,).

    Attributes:
        units: what is resampled: country and topic, or item, of each trace, shape (traces,).
        model: which of four models wrote the trace; judge i is of the family of model i.
        label: 1 where the trace is sound; is_longer: 1 for the longer half, 0 for the other.
    """

    units: Mapping[str, Indices]
    model: Indices
    verdicts: Floats
    label: Floats
    is_longer: Floats
    plant: Plant
    truths: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PanelWorld:
    """A population of audits with the same planted faults."""

    name: str
    plant: Plant

    def draw(self, design: TraceDesign, rng: np.random.Generator) -> PanelSample:
        """Simulate one audit."""
        return replace(draw_panel(self.plant, design, rng), truths=compute_panel_truths(self.plant))


def draw_panel(plant: Plant, design: TraceDesign, rng: np.random.Generator) -> PanelSample:
    """Simulate one audit with a planted fault."""
    return _draw_traces(plant, rng, draw_trace_cells(design, rng, TRACES_PER_CELL))


def _draw_traces(plant: Plant, rng: np.random.Generator, cells: TraceCells) -> PanelSample:
    """Draw the traces of these cells, and their verdicts."""
    n_traces, country, topic = len(cells.cell), cells.country[cells.cell], cells.topic[cells.cell]
    is_longer = (rng.permutation(n_traces) % 2).astype(np.float64)
    soundness = (
        plant.level
        + _draw_by_unit(SOUNDNESS_SDS[0], rng, country)
        + _draw_by_unit(SOUNDNESS_SDS[1], rng, topic)
        + _draw_by_unit(SOUNDNESS_SDS[2], rng, cells.cell)
        + plant.quality_of_length * (is_longer - 0.5)
        + rng.normal(size=n_traces)
    )
    label = (soundness > 0).astype(np.float64)
    model = np.arange(n_traces) % TRACES_PER_CELL
    sample = PanelSample(cells.units, model, np.empty(0), label, is_longer, plant)
    return replace(sample, verdicts=_draw_verdicts(sample, soundness, country, topic, rng))


def _draw_by_unit(sd: float, rng: np.random.Generator, unit: Indices) -> Floats:
    """A Gaussian effect of each trace's unit."""
    return np.asarray(sd * rng.normal(size=int(unit.max()) + 1)[unit])


def _draw_verdicts(
    sample: PanelSample, soundness: Floats, country: Indices, topic: Indices, rng: np.random.Generator
) -> Floats:
    """The verdicts of all judges, with the planted faults."""
    plant, n_traces = sample.plant, len(soundness)
    verdicts = np.empty((N_JUDGES, n_traces))
    for judge in range(N_JUDGES):
        perceived = (
            soundness
            + _draw_by_unit(JUDGE_SDS[0], rng, country)
            + _draw_by_unit(JUDGE_SDS[1], rng, topic)
            + plant.noise_sds[judge] * rng.normal(size=n_traces)
        )
        if judge == LENIENT_JUDGE:
            shift = _probit_shift(plant.leniency, plant.level) * np.ones(n_traces)
            shift += _probit_shift(plant.verbosity, plant.level) * (sample.is_longer - 0.5)
            shift += _probit_shift(plant.own_family, plant.level) * (sample.model == LENIENT_JUDGE)
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


@cache
def compute_panel_truths(plant: Plant) -> dict[str, float]:
    """The true value of each figure on the first judge, for judges that do not copy; all effects are Gaussian."""
    soundness_variance = 1 + sum(sd**2 for sd in SOUNDNESS_SDS)
    judge_variances = soundness_variance + sum(sd**2 for sd in JUDGE_SDS) + plant.noise_sds**2
    quality = plant.quality_of_length * np.array([-0.5, 0.5])  # of shorter, then of longer traces
    length_shift = _probit_shift(plant.verbosity, plant.level) * np.array([-0.5, 0.5])
    family_shift = _probit_shift(plant.own_family, plant.level)

    def share_by_length(judge: int, shift: Floats | float) -> Floats:
        return np.asarray(ndtr((plant.level + quality + shift) / judge_variances[judge] ** 0.5))

    leniency_shift = _probit_shift(plant.leniency, plant.level)
    by_length = share_by_length(LENIENT_JUDGE, leniency_shift + length_shift)
    n_own = 1 / TRACES_PER_CELL  # the share of traces by the model of the first judge's family
    of_first_judge = (1 - n_own) * by_length.mean() + n_own * share_by_length(
        LENIENT_JUDGE, leniency_shift + length_shift + family_shift
    ).mean()
    shares = np.array([of_first_judge, *(share_by_length(judge, 0.0).mean() for judge in range(1, N_JUDGES))])
    labels = ndtr((plant.level + quality) / soundness_variance**0.5)
    for_own_family, for_others = (
        share_by_length(LENIENT_JUDGE, leniency_shift + shift).mean() for shift in (family_shift, 0.0)
    )
    truths = {
        "leniency against the median judge": float(shares[LENIENT_JUDGE] - np.median(shares)),
        "leniency against labels": float(shares[LENIENT_JUDGE] - labels.mean()),
    }
    if not plant.own_family:
        truths["length association"] = float(np.diff(by_length)[0])
        truths["length bias against labels"] = float(np.diff(by_length)[0] - np.diff(labels)[0])
    if not plant.verbosity:
        truths["leniency with the judge's own family"] = float(for_own_family - for_others)
    if plant.has_equal_judges and not plant.planted:
        truths["error correlation beyond other pairs"] = 0.0
    if plant in EFFECTIVE_NUMBERS:
        truths["effective number of judges"] = EFFECTIVE_NUMBERS[plant]
    return truths


def measure_effective_number(plant: Plant, n_traces: int, seed: int = 1) -> float:
    """1' R^-1 1 of the judges' errors, whose correlations R are within labels, from traces with units of their own."""
    trace = np.arange(n_traces)
    cells = TraceCells(trace, trace, trace, is_item=True)
    sample = _draw_traces(plant, np.random.default_rng(seed), cells)
    errors = sample.verdicts != sample.label
    covariances = sum(np.cov(errors[:, sample.label == label]) * (sample.label == label).mean() for label in (0.0, 1.0))
    sds = np.sqrt(np.diag(covariances))
    correlations = covariances / np.outer(sds, sds)
    mixed = (1 - IDENTITY_SHARE) * correlations + IDENTITY_SHARE * np.eye(N_JUDGES)
    return float(np.linalg.solve(mixed, np.ones(N_JUDGES)).sum())


def _probit_shift(difference: float, level: float) -> float:
    """By how much the first judge's perception rises so that its share of VALID rises by `difference`."""
    if not difference:
        return 0.0
    variance = 1 + sum(sd**2 for sd in (*SOUNDNESS_SDS, *JUDGE_SDS)) + float(NOISE_SDS[0]) ** 2
    base = ndtr(level / variance**0.5)
    return float(ndtri(min(base + difference, 0.999)) * variance**0.5 - level)


HONEST, EQUAL = Plant(level=0.3), Plant(has_equal_judges=True)
TWO_COPIES = Plant(n_copying=2, copied_share=1.0)
PANEL_WORLDS = (
    PanelWorld("honest judges", HONEST),
    PanelWorld("equal judges", EQUAL),
    PanelWorld("two copies", TWO_COPIES),
    PanelWorld("lenient judge", Plant(leniency=0.15, level=0.3)),
    PanelWorld("verbose judge", Plant(verbosity=0.15, quality_of_length=0.6)),
    PanelWorld("own family", Plant(own_family=0.15)),
)
EFFECTIVE_NUMBERS = {HONEST: 3.2206, EQUAL: 3.2210, TWO_COPIES: 2.8232}
"""The mean of four calls of `measure_effective_number` with 1,000,000 traces (standard errors up to 0.002)."""
