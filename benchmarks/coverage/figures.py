"""What the study measures: a figure of a report, the function that computes it, and the worlds in which it is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.coverage.rule import CHECKPOINTS, Interval
from benchmarks.coverage.worlds.design import DESIGNS


class Design(Protocol):
    """The size of a simulated audit."""

    @property
    def label(self) -> str: ...
    @property
    def smaller_side(self) -> int: ...


class World(Protocol):
    """A population of audits."""

    @property
    def name(self) -> str: ...

    def draw(self, design: Any, rng: np.random.Generator, /) -> Any:
        """Simulate one audit; its attribute `truths` has the true value of each figure by the figure's key."""
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
        max_error: for an interval that holds for several figures at once: from a sample to the largest absolute error
            among them. The oracle's interval then is as wide as 95% of these errors need.
        has_width_rule: whether the width is compared with the oracle's. Not for worst-case bounds, for intervals that
            end at 0 by construction, and for decisions.
    """

    key: str
    compute: Callable[[Any], Interval]
    naive: Callable[[Any], Interval] | None = None
    naive_label: str = ""
    count_units: Callable[[Any], int] = lambda design: int(design.smaller_side)
    max_error: Callable[[Any], float] | None = None
    has_width_rule: bool = True


@dataclass(frozen=True, slots=True)
class Study:
    """Figures that are computed from the same samples.

    Attributes:
        module: the module that defines the figures.
        worlds, designs: every figure is tried in each world and design, unless a world has no truth for it.
        n_unit_kinds: kinds of units that are resampled, such as two: countries and topics.
        checkpoints: numbers of runs after which figures are judged.
    """

    name: str
    module: str
    figures: Sequence[Figure]
    worlds: Sequence[World]
    designs: Sequence[Design] = DESIGNS
    n_unit_kinds: int = 2
    checkpoints: tuple[int, ...] = CHECKPOINTS
