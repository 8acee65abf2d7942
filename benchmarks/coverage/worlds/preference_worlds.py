"""Worlds of comparisons: five judges compare the items of several sets, and one of them does not look at the items.

An honest judge prefers the item that it perceives as better, with noise and with a slight preference for the item that
is shown first. The first judge may always say TIE, always name the item that is shown first, or toss a coin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.coverage.worlds.design import Floats

N_JUDGES = 5
N_ITEMS = 8
N_REPEATED = 10
N_REPEATS = 3
NOISE_SDS = np.array([0.4, 0.4, 0.5, 0.6, 0.7])
POSITION_BIAS = 0.1
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


def draw_comparisons(fault: Fault, n_sets: int, rng: np.random.Generator) -> list[list[Comparisons]]:
    """Answers of each judge on each set."""
    merits = rng.normal(size=(n_sets, N_ITEMS))
    return [
        [_compare_items(merit, NOISE_SDS[judge], fault if judge == 0 else "none", rng) for merit in merits]
        for judge in range(N_JUDGES)
    ]


def _compare_items(merit: Floats, noise_sd: float, fault: Fault, rng: np.random.Generator) -> Comparisons:
    differences = merit[:, None] - merit[None, :]

    def answer(advantage: Floats) -> Floats:
        """Whether the first item is named, given its advantage."""
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
    first, second = rng.integers(0, N_ITEMS, (2, N_REPEATED))
    repeated = np.repeat(differences[first, second][:, None], N_REPEATS, axis=1)
    return Comparisons(tables[0], tables[1], answer(repeated), tables[2])
