"""Planned and recorded items of a stage, by the smallest unit of coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from auditor.domain import Outcome

OK = Outcome.OK.value


class CoverageUnit(NamedTuple):
    """Smallest unit of coverage: a model's (or judge's) name, a country and a topic; empty where not applicable."""

    name: str
    country: str
    topic: str


class UnitOutcomeCount(NamedTuple):
    """Samples or verdicts of one unit that ended in one outcome."""

    unit: CoverageUnit
    outcome: str
    n: int


class UnitRepeatCount(NamedTuple):
    """Items of one unit that were asked for again since their first answer had one outcome.

    `answered` of the `n` items had a usable second answer.
    """

    unit: CoverageUnit
    first_outcome: str
    n: int
    answered: int


@dataclass(frozen=True)
class StageCoverage:
    """Planned and recorded items of one stage and method, by unit.

    Attributes:
        recorded: by outcome; items that were asked for again count by their first outcome.
        repeats: the items that were asked for again.
    """

    stage: str
    method: str | None
    planned: Mapping[CoverageUnit, int]
    recorded: Sequence[UnitOutcomeCount]
    repeats: Sequence[UnitRepeatCount] = ()

    @classmethod
    def of_first_outcomes(
        cls,
        stage: str,
        method: str | None,
        planned: Mapping[CoverageUnit, int],
        recorded: Iterable[UnitOutcomeCount],
        repeats: Sequence[UnitRepeatCount],
    ) -> StageCoverage:
        """Coverage of a stage whose items, as `recorded` counts them, may have been asked for again."""
        counts = Counter[tuple[CoverageUnit, str]]()
        for unit, outcome, n in recorded:
            counts[unit, outcome] += n
        for repeat in repeats:
            counts[repeat.unit, OK] -= repeat.answered
            counts[repeat.unit, repeat.first_outcome] += repeat.answered
        outcome_counts = [UnitOutcomeCount(unit, outcome, n) for (unit, outcome), n in counts.items() if n]
        return cls(stage, method, planned, outcome_counts, repeats)

    @cached_property
    def usable(self) -> Mapping[CoverageUnit, int]:
        """Items of each unit with a usable answer, be it the second one."""
        usable = Counter[CoverageUnit]({unit: n for unit, outcome, n in self.recorded if outcome == OK})
        for repeat in self.repeats:
            usable[repeat.unit] += repeat.answered
        return usable

    @classmethod
    def by_model(
        cls, stage: str, method: str | None, rows: Iterable[tuple[str, int, int, Mapping[str, int]]]
    ) -> StageCoverage:
        """Coverage of a probe whose answers belong to no cell.

        Args:
            stage: name of the probe.
            method: key of `BuiltInProbe.counted_labels`.
            rows: of each model, its name, and the numbers of planned, usable, and lost answers; the last by outcome.
        """
        planned, recorded = {}, []
        for name, n_planned, n_ok, losses in rows:
            unit = CoverageUnit(name, "", "")
            planned[unit] = n_planned
            recorded += [UnitOutcomeCount(unit, outcome, n) for outcome, n in {OK: n_ok, **losses}.items() if n]
        return cls(stage, method, planned, recorded)

    @cached_property
    def planned_totals(self) -> Mapping[CoverageUnit, int]:
        """Planned items of each unit, at least as many as are recorded."""
        recorded = Counter[CoverageUnit]()
        for unit, _, n in self.recorded:
            recorded[unit] += n
        return {unit: max(self.planned.get(unit, 0), recorded[unit]) for unit in {**self.planned, **recorded}}
