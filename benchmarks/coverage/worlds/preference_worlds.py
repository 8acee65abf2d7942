"""Worlds of comparisons: judges compare the items of several sets.

An honest judge prefers the item that it perceives as better, with noise and with a slight preference for the item that
is shown first; on some sets it errs more often than on others. In a panel, the first judge may not look at the items:
it always says TIE, always names the item that is shown first, or tosses a coin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from benchmarks.coverage.worlds.design import Floats

N_JUDGES = 5
N_PANEL_ITEMS = 8
N_REPEATED = 10
N_REPEATS = 3
JUDGE_NOISE_SDS = np.array([0.4, 0.4, 0.5, 0.6, 0.7])
POSITION_BIAS = 0.15
NOISE_SD = 0.7
Fault = Literal["none", "always TIE", "constant", "random"]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """One judge's answers on one set.

    Attributes:
        preferences: shape (items, items): 1 where the row's item, shown first, is preferred, 0 where the other is, 0.5
            for a tie; nan on the diagonal. negated: the same for the question which item is worse.
        samples: shape (questions, repeats), repeated answers.
        people: as `preferences`, by the items' true merit.
    """

    preferences: Floats
    negated: Floats
    samples: Floats
    people: Floats


def draw_panel_comparisons(fault: Fault, n_sets: int, rng: np.random.Generator) -> list[list[Comparisons]]:
    """Answers of each judge of a panel on each set; the first judge has the fault."""
    merits = rng.normal(size=(n_sets, N_PANEL_ITEMS))
    return [
        [compare_items(merit, JUDGE_NOISE_SDS[judge], rng, fault if judge == 0 else "none") for merit in merits]
        for judge in range(N_JUDGES)
    ]


def compare_items(merit: Floats, noise_sd: float, rng: np.random.Generator, fault: Fault = "none") -> Comparisons:
    """One judge's answers on one set of items with these merits."""
    differences = merit[:, None] - merit[None, :]

    def answer(advantage: Floats) -> Floats:
        """Whether the item shown first is named, given its advantage."""
        if fault == "always TIE":
            return np.full(advantage.shape, 0.5)
        if fault == "constant":
            return np.ones(advantage.shape)
        if fault == "random":
            return rng.integers(0, 2, advantage.shape).astype(np.float64)
        return (advantage + POSITION_BIAS + noise_sd * rng.normal(size=advantage.shape) > 0).astype(np.float64)

    tables = [answer(differences), answer(-differences), (differences > 0).astype(np.float64)]
    for table in tables:
        np.fill_diagonal(table, np.nan)
    first = rng.integers(0, len(merit), N_REPEATED)
    second = (first + rng.integers(1, len(merit), N_REPEATED)) % len(merit)
    samples = answer(np.repeat(differences[first, second][:, None], N_REPEATS, axis=1))
    return Comparisons(tables[0], tables[1], samples, tables[2])


@dataclass(frozen=True, slots=True)
class SetDesign:
    """Numbers of item sets, and of items in each."""

    n_sets: int
    n_items: int

    @property
    def label(self) -> str:
        """The design in words."""
        return f"{self.n_sets} sets of {self.n_items}"

    @property
    def smaller_side(self) -> int:
        """Number of units that are resampled: sets, or the items of few sets."""
        return self.n_sets if self.n_sets >= 5 else self.n_items


SET_DESIGNS = (SetDesign(2, 10), SetDesign(1, 20), SetDesign(5, 8), SetDesign(10, 8), SetDesign(30, 6))


@dataclass(frozen=True, slots=True, eq=False)
class SetSample:
    """One judge's answers on several sets."""

    sets: tuple[Comparisons, ...]
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SetWorld:
    """A population of item sets.

    Attributes:
        difficulty_sd: standard deviation over sets of the logarithm of the noise. Intervals over the items of few sets
            are about these sets, so they have no truth in a world in which sets differ.
    """

    name: str
    difficulty_sd: float

    def draw(self, design: SetDesign, rng: np.random.Generator) -> SetSample:
        """Simulate one audit."""
        sds = self.draw_noise_sds(rng, design.n_sets)
        sets = tuple(compare_items(rng.normal(size=design.n_items), float(sd), rng) for sd in sds)
        is_about_other_sets = self.has_truth(design)
        return SetSample(sets, SET_TRUTHS[self.name] if is_about_other_sets else {})

    def has_truth(self, design: SetDesign) -> bool:
        """Whether intervals are about the world: over the items of a few sets that differ they are about these sets."""
        return design.n_sets >= 5 or not self.difficulty_sd

    def draw_noise_sds(self, rng: np.random.Generator, n_sets: int) -> Floats:
        """The judge's noise on each set."""
        return np.asarray(NOISE_SD * np.exp(self.difficulty_sd * rng.normal(size=n_sets)))


def measure_set_truth(world: SetWorld, n_triples: int, seed: int = 1) -> dict[str, float]:
    """The true value of each figure, from triples of items that are each a set of their own."""
    rng = np.random.default_rng(seed)
    sd = world.draw_noise_sds(rng, n_triples)
    merits = rng.normal(size=(3, n_triples))
    difference = merits[0] - merits[1]
    # Probability that the item shown first is named: the first of a pair, then the other.
    p, reversed_p = ndtr((difference + POSITION_BIAS) / sd), ndtr((-difference + POSITION_BIAS) / sd)
    same = float((p * (1 - reversed_p) + (1 - p) * reversed_p).mean())
    all_equal = p**3 + (1 - p) ** 3
    wins = []
    for i, j in ((0, 1), (1, 2), (2, 0)):
        position = POSITION_BIAS * rng.choice([-1.0, 1.0], n_triples)  # one of both orders, drawn
        wins.append(merits[i] - merits[j] + position + sd * rng.normal(size=n_triples) > 0)
    is_cycle = (wins[0] == wins[1]) & (wins[1] == wins[2])
    return {
        "commutativity": same,
        "negation invariance": same,
        "human agreement": float(np.where(difference > 0, p, 1 - p).mean()),
        "first position": float((p + reversed_p).mean() / 2),
        "self-agreement": float((all_equal + (1 - all_equal) * 2 / 3).mean()),
        "transitivity": float(1 - is_cycle.mean()),
    }


SET_WORLDS = (SetWorld("alike sets", 0.0), SetWorld("sets that differ", 0.4))
SET_TRUTHS: dict[str, dict[str, float]] = {
    "alike sets": {
        "commutativity": 0.78827,
        "commutativity, mean over sets": 0.78827,
        "negation invariance": 0.78827,
        "negation invariance, mean over sets": 0.78827,
        "human agreement": 0.85083,
        "human agreement, mean over sets": 0.85083,
        "first position": 0.53786,
        "self-agreement": 0.89892,
        "self-agreement, mean over sets": 0.89892,
        "transitivity": 0.94537,
        "transitivity, mean over sets": 0.94537,
    },
    "sets that differ": {
        "commutativity": 0.78175,
        "commutativity, mean over sets": 0.78175,
        "negation invariance": 0.78175,
        "negation invariance, mean over sets": 0.78175,
        "human agreement": 0.84499,
        "human agreement, mean over sets": 0.84499,
        "first position": 0.53708,
        "self-agreement": 0.89604,
        "self-agreement, mean over sets": 0.89604,
        "transitivity": 0.93891,
        "transitivity, mean over sets": 0.93891,
    },
}
"""True values by world: the mean of four calls of `measure_set_truth` with 2,000,000 triples (standard errors up to
0.0002). Sets have equal numbers of items, so the mean over sets and the pooled share have one truth."""
