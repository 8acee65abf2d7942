"""Worlds of audits that are asked in several designs: choices such as the direction of the scale shift scores.

Sixteen runs of seven factors with two levels (a fraction of resolution IV) and five wordings; every cell is asked in
eight of them. Truths are over all combinations of levels, by formulas: errors are Gaussian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from scipy.stats import norm

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices

FACTORS = ("direction", "form", "reasoning", "structure", "temperature", "language", "role")
BITS = np.array(list(product((0, 1), repeat=4)))
COLUMNS = ((0,), (1,), (2,), (3,), (1, 2, 3), (0, 2, 3), (0, 1, 2))
"""Of which bits each factor's level is the parity: an odd number, so that no product of two is a third."""
LEVELS = np.stack([BITS[:, list(bits)].sum(axis=1) % 2 for bits in COLUMNS], axis=1)
WORDINGS = np.array([0, 1, 2, 3, 4, 0, 1, 2])[((BITS[:, :1] + BITS[:, 1:]) % 2) @ np.array([4, 2, 1])]
"""Wording of each run, by parities of two bits, which are orthogonal to every factor."""
HALVES = np.array([(BITS @ mask) % 2 == side for mask in BITS[1:] for side in (0, 1)])
"""The runs in which a cell may be asked, shape (30, runs): any two runs share as many."""
N_MODELS = 3
MEAN_ERROR = 0.45
REGION_SHIFT = 0.15
"""How much more permissive models are in the second half of the countries."""
ERROR_SDS = (0.08, 0.12, 0.1)
"""Of the effects of country, topic and cell on a model's errors."""
FACTOR_SDS = (0.02, 0.02)
"""Of the effects of a factor in a country, and on a topic."""
NOISE_SD = 0.2
"""Of a cell in a run."""
NAMED_FACTOR = "direction"
N_PAIRS = len(FACTORS) * (len(FACTORS) - 1) // 2 + len(FACTORS)
ALL_LEVELS = np.array(list(product((0, 1), repeat=len(FACTORS))))
ERROR_VARIANCE = sum(sd**2 for sd in ERROR_SDS) + NOISE_SD**2 + len(FACTORS) * sum(sd**2 for sd in FACTOR_SDS) / 4
"""Of a model's errors in one design and one region."""


@dataclass(frozen=True, eq=False)
class RunSample:
    """One simulated audit; `scores` has shape (models, cells, runs), nan where a cell was not asked."""

    country: Indices
    topic: Indices
    is_second_region: Bools
    survey: Floats
    scores: Floats
    runs: tuple[Mapping[str, str], ...]
    truths: Mapping[str, float]
    level_truths: Mapping[str, float]
    """Difference in MAE between the levels of each factor, of models without a shift that others do not have."""


@dataclass(frozen=True, slots=True)
class RunWorld:
    """A population of audits.

    Attributes:
        shifts: of all scores by the second level of a factor, minus the first.
        region_shift: the same for `direction`, in the second half of the countries only.
        pair_sd: standard deviation of the shifts by the levels of two factors together, of every pair.
        model_shift: shift of the first model's scores by the second level of `direction`, minus that of others.
        model_base: shift of the first model's scores at both levels.
        wording_sd: standard deviation of the shifts by wordings.
    """

    name: str
    shifts: Mapping[str, float] = field(default_factory=dict)
    region_shift: float = 0.0
    pair_sd: float = 0.0
    model_shift: float = 0.0
    model_base: float = 0.0
    wording_sd: float = 0.0

    def draw(self, design: Design, rng: np.random.Generator) -> RunSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        n_cells, signs = len(country), LEVELS - 0.5
        survey = rng.normal(0, 0.4, n_cells)
        is_second = country >= design.n_countries // 2
        errors = MEAN_ERROR + np.zeros((N_MODELS, n_cells))
        sizes = (design.n_countries, design.n_topics, n_cells)
        for sd, index, size in zip(ERROR_SDS, (country, topic, np.arange(n_cells)), sizes, strict=True):
            errors += sd * rng.normal(size=(N_MODELS, size))[:, index]
        shifts = np.zeros((N_MODELS, n_cells, len(LEVELS)))
        for sd, index, size in zip(FACTOR_SDS, (country, topic), sizes, strict=False):
            shifts += sd * rng.normal(size=(N_MODELS, size, len(FACTORS)))[:, index] @ signs.T
        wording_shifts = self.wording_sd * rng.normal(size=int(WORDINGS.max()) + 1)
        run_shifts = wording_shifts[WORDINGS] + self._draw_pairs(rng)
        shifts += self._shift_runs(LEVELS)[is_second.astype(np.intp)] + run_shifts
        shifts[0] += self.model_base + self.model_shift * signs[:, FACTORS.index(NAMED_FACTOR)]
        scores = survey[:, None] + errors[:, :, None] + shifts + NOISE_SD * rng.normal(size=shifts.shape)
        halves = HALVES[rng.permutation(n_cells) % len(HALVES)]
        scores[:, ~halves] = np.nan
        runs = tuple(
            {factor: str(level) for factor, level in zip(FACTORS, levels, strict=True)} | {"wording": str(wording)}
            for levels, wording in zip(LEVELS, WORDINGS, strict=True)
        )
        truths = self._make_truths(float(run_shifts[0]))
        return RunSample(country, topic, is_second, survey, scores, runs, truths, self._compare_levels())

    def _draw_pairs(self, rng: np.random.Generator) -> Floats:
        """Shifts of the runs by two factors together, or by a factor and the wording, shape (runs,)."""
        signs = 2 * LEVELS - 1
        of_factors = np.triu(rng.normal(size=(len(FACTORS), len(FACTORS))), 1)
        n_wordings = int(WORDINGS.max()) + 1
        by_wording = rng.normal(size=(n_wordings, len(FACTORS)))
        by_wording = (by_wording - by_wording.mean(axis=0)) * (n_wordings / (n_wordings - 1)) ** 0.5
        of_pairs = np.einsum("ri,ij,rj->r", signs, of_factors, signs)
        return np.asarray(self.pair_sd * (of_pairs + (by_wording[WORDINGS] * signs).sum(axis=1)))

    def _shift_runs(self, levels: Indices) -> Floats:
        """Shift of each combination of levels in both regions, shape (2, combinations)."""
        signs = levels - 0.5
        shift = np.zeros(len(levels))
        for factor, size in self.shifts.items():
            shift += size * signs[:, FACTORS.index(factor)]
        named = signs[:, FACTORS.index(NAMED_FACTOR)]
        return np.stack([shift, shift + REGION_SHIFT + self.region_shift * named])

    def _make_truths(self, first_shift: float) -> dict[str, float]:
        """Of the first model, over all wordings and pairs of levels but for a single design."""
        means = MEAN_ERROR + self._shift_runs(ALL_LEVELS) + self.model_shift * (ALL_LEVELS[:, 0] - 0.5)
        sd = (ERROR_VARIANCE + self.wording_sd**2 + N_PAIRS * self.pair_sd**2) ** 0.5
        truths = {}
        for kind, values in (("bias", means), ("mae", fold(means, sd))):
            differences = _subtract_levels(values, NAMED_FACTOR)
            truths[f"{kind} by level"] = float(differences.mean())
            truths[f"{kind} gap by level"] = float(differences[1] - differences[0])
            truths[f"{kind} over designs"] = float(values.mean())
        first = MEAN_ERROR + self._shift_runs(LEVELS[:1]) + self.model_shift * (LEVELS[0, 0] - 0.5) + first_shift
        truths["bias of a design"] = float(first.mean())
        truths["mae of a design"] = float(fold(first, ERROR_VARIANCE**0.5).mean())
        return truths | {"mae of all levels": 0.0}

    def _compare_levels(self) -> dict[str, float]:
        """Difference in MAE between the levels of each factor."""
        sd = (ERROR_VARIANCE + self.wording_sd**2 + N_PAIRS * self.pair_sd**2) ** 0.5
        values = fold(MEAN_ERROR + self._shift_runs(ALL_LEVELS), sd)
        return {factor: float(_subtract_levels(values, factor).mean()) for factor in FACTORS}


def _subtract_levels(values: Floats, factor: str) -> Floats:
    """Mean over combinations with the second level minus that with the first, shape (regions,)."""
    is_second = ALL_LEVELS[:, FACTORS.index(factor)] == 1
    difference: Floats = values[:, is_second].mean(axis=1) - values[:, ~is_second].mean(axis=1)
    return difference


def fold(mean: Floats, sd: float) -> Floats:
    """The mean of the absolute value of normal variables."""
    z = mean / sd
    folded: Floats = 2 * sd * norm.pdf(z) + mean * (1 - 2 * norm.cdf(-z))
    return folded


NO_EFFECT = RunWorld("no effect of the design")
MAIN_EFFECTS = RunWorld(
    "levels shift scores", {"direction": 0.075, "form": -0.06, "language": 0.1}, region_shift=0.08, wording_sd=0.05
)
FACTOR_PAIRS = RunWorld("pairs of factors shift scores", pair_sd=0.03, wording_sd=0.05)
RUN_WORLDS = (NO_EFFECT, MAIN_EFFECTS, FACTOR_PAIRS)
RUN_DESIGNS = (Design(12, 10), Design(20, 10))
