"""Planted faults: how often a method names the judge with the fault, and how often another one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.coverage.figures import Design
from benchmarks.coverage.rule import clopper_pearson_limits
from benchmarks.coverage.worlds.design import Design as TableDesign
from benchmarks.coverage.worlds.panel_worlds import N_JUDGES

MIN_NAMED = 0.95
MAX_FALSELY_NAMED = 0.05
RUNS = 300
PANEL_DESIGNS = (TableDesign(20, 10), TableDesign(55, 19))

NameJudges = Callable[[Any], Collection[int]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A panel of five judges with a fault of some size.

    Attributes:
        draw: simulates one audit of a design.
        planted: the judges with the fault; empty without one.
    """

    draw: Callable[[Any, np.random.Generator], Any]
    planted: frozenset[int]


@dataclass(frozen=True, slots=True)
class PlantedStudy:
    """One kind of fault, by size, and the method that is to name it.

    Attributes:
        module: the module that defines the method.
        scenarios: by the size of the fault in words, from none to the one that must be found.
        name_judges: from a sample to the judges that a report names.
        designs: of the audits; the largest fault must be found in the largest.
        naive: yesterday's method, which must break the rule somewhere.
        n_runs: of each fault and design.
        min_named: share of runs in which the largest fault must be found.
    """

    name: str
    module: str
    scenarios: Mapping[str, Scenario]
    name_judges: NameJudges
    naive: NameJudges | None = None
    designs: Sequence[Design] = PANEL_DESIGNS
    n_runs: int = RUNS
    min_named: float = MIN_NAMED


@dataclass(frozen=True, slots=True)
class PlantedResult:
    """What the runs of one fault gave.

    Attributes:
        n_named: runs in which all judges with the fault are named; n_solely: runs in which no other is named either.
        n_false: runs in which an honest judge is named.
        has_plant: whether there is a fault.
        is_largest: whether this is the fault that must be found.
        min_named: as in `PlantedStudy`.
    """

    study: str
    plant: str
    design: str
    n_runs: int
    n_named: int
    n_solely: int
    n_false: int
    n_naive_named: int | None
    n_naive_false: int | None
    has_plant: bool
    is_largest: bool
    min_named: float = MIN_NAMED

    @property
    def has_naive_failure(self) -> bool:
        """Whether yesterday's method breaks the rule here."""
        if self.n_naive_named is None or self.n_naive_false is None:
            return False
        misses = self.is_largest and clopper_pearson_limits(self.n_naive_named, self.n_runs)[1] < self.min_named
        return misses or clopper_pearson_limits(self.n_naive_false, self.n_runs)[0] > MAX_FALSELY_NAMED

    @property
    def problem(self) -> str | None:
        """How the result breaks the rule, in words; None if it does not."""
        if clopper_pearson_limits(self.n_false, self.n_runs)[0] > MAX_FALSELY_NAMED:
            return f"names an honest judge in {self.n_false / self.n_runs:.1%} of runs"
        if self.is_largest and clopper_pearson_limits(self.n_named, self.n_runs)[1] < self.min_named:
            return f"names the fault in {self.n_named / self.n_runs:.1%} of runs"
        return None


def measure_plant(study: PlantedStudy, plant_name: str, design: Design, max_runs: int | None = None) -> PlantedResult:
    """Simulate audits with one fault and count which judges are named."""
    n_runs = study.n_runs if max_runs is None else min(max_runs, study.n_runs)
    scenario = study.scenarios[plant_name]
    honest = frozenset(range(N_JUDGES)) - scenario.planted
    counts = np.zeros(5, dtype=np.intp)
    for run in range(n_runs):
        seed = zlib.crc32(f"{study.name}/{plant_name}/{design.label}".encode())
        sample = scenario.draw(design, np.random.default_rng([seed, run]))
        named = frozenset(study.name_judges(sample))
        is_named = scenario.planted <= named
        counts[:3] += is_named, is_named and not named & honest, bool(named & honest)
        if study.naive is not None:
            naively_named = frozenset(study.naive(sample))
            counts[3:] += scenario.planted <= naively_named, bool(naively_named & honest)
    is_largest = plant_name == list(study.scenarios)[-1] and design == study.designs[-1]
    n_named, n_solely, n_false, n_naive_named, n_naive_false = (int(count) for count in counts)
    return PlantedResult(
        study.name,
        plant_name,
        design.label,
        n_runs,
        n_named,
        n_solely,
        n_false,
        None if study.naive is None else n_naive_named,
        None if study.naive is None else n_naive_false,
        bool(scenario.planted),
        is_largest,
        study.min_named,
    )
