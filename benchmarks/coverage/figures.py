"""What the study measures: a figure of a report, the function that computes it, and the worlds in which it is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import DESIGNS, Design


class Sample(Protocol):
    """One simulated audit; `truths` has the true value of each figure by the figure's key."""

    @property
    def truths(self) -> Any: ...


class World(Protocol):
    """A population of audits."""

    name: str

    def draw(self, design: Design, rng: np.random.Generator) -> Any:
        """Simulate one audit."""
        ...


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and its interval.

    Attributes:
        key: the figure's key in a sample's truths, and its name in docs/coverage.md.
        compute: from a sample to the value and interval that reports print, by a function of `auditor.metrics`.
        naive: the interval that was printed before, which treats repeated looks at one unit as independent.
        naive_label: that interval in words.
        count_units: number of units on the smaller side that is resampled; the design's by default.
    """

    key: str
    compute: Callable[[Any], Interval]
    naive: Callable[[Any], Interval] | None = None
    naive_label: str = ""
    count_units: Callable[[Design], int] = lambda design: design.smaller_side


@dataclass(frozen=True, slots=True)
class Study:
    """Figures that are computed from the same samples.

    Attributes:
        worlds, designs: every figure is tried in each world and design, unless a world has no truth for it.
    """

    name: str
    figures: Sequence[Figure]
    worlds: Sequence[World]
    designs: Sequence[Design] = DESIGNS
