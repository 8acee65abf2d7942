"""What a run shows: which results break the rule, and whether they are known limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.coverage.known_limits import Place, ProblemKind, load_known_limits
from benchmarks.coverage.planted import PlantedResult
from benchmarks.coverage.rule import Summary
from benchmarks.coverage.runner import Result

MIN_PRINTED_RUNS = 30
"""Fewest runs with an interval for a verdict: a figure that rarely has an interval rarely misleads."""


class Problem(NamedTuple):
    """How a result breaks the rule."""

    kind: ProblemKind
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A result that breaks the rule; `reason` is None unless that is a known limit."""

    result: Result
    problem: Problem

    @property
    def place(self) -> Place:
        """Where the rule is broken."""
        return Place(self.result.figure, self.result.world, self.result.design, self.problem.kind)

    @property
    def reason(self) -> str | None:
        """Why the rule is broken, if that is a known limit."""
        return load_known_limits().get(self.place)


def list_problems(summary: Summary) -> list[Problem]:
    """How a result breaks the rule, at most once in each way."""
    problems: list[Problem] = []
    if summary.n_runs < MIN_PRINTED_RUNS:
        return problems
    if not summary.is_covering:
        problems.append(Problem("coverage", f"covers {summary.coverage:.1%}"))
    if summary.is_too_wide:
        problems.append(
            Problem("width", f"the interval is on average {summary.mean_width:.2f} times as wide as needed")
        )
    elif summary.is_overcovering:
        problems.append(Problem("width", f"covers {summary.coverage:.2%}"))
    return problems


def find_problems(results: Iterable[Result]) -> list[Finding]:
    """All results that break the rule."""
    return [Finding(result, problem) for result in results for problem in list_problems(result.summary)]


def find_passing_controls(results: Iterable[Result]) -> Iterator[str]:
    """The studies in which no naive interval fails, so that they would not notice a fault."""
    has_failed: dict[str, bool] = {}
    for result in results:
        if result.naive is not None:
            has_failed[result.study] = has_failed.get(result.study, False) or not result.naive.is_covering
    return (study for study, failed in has_failed.items() if not failed)


def find_passing_methods(planted: Iterable[PlantedResult]) -> Iterator[str]:
    """The planted faults for which yesterday's method breaks the rule nowhere."""
    has_failed: dict[str, bool] = {}
    for result in planted:
        if result.n_naive_false is not None:
            has_failed[result.study] = has_failed.get(result.study, False) or result.has_naive_failure
    return (study for study, failed in has_failed.items() if not failed)


def find_outdated_limits(results: Sequence[Result]) -> Iterator[Place]:
    """Known limits that were measured and are none."""
    measured = {(result.figure, result.world, result.design) for result in results}
    problem_places = {finding.place for finding in find_problems(results)}
    return (place for place in load_known_limits() if place[:3] in measured and place not in problem_places)


def find_violations(results: Sequence[Result], planted: Sequence[PlantedResult] = ()) -> list[str]:
    """What makes a run fail, one line each."""
    lines = [
        f"{finding.result.figure} in world {finding.result.world}, {finding.result.design}: {finding.problem.text}"
        for finding in find_problems(results)
        if finding.reason is None
    ]
    lines += [
        f"{result.study}, {result.plant}, {result.design}: {result.problem}"
        for result in planted
        if result.problem is not None
    ]
    lines += [f"{study}: the negative control keeps the rule" for study in find_passing_methods(planted)]
    lines += [f"study of {study}: every negative control passes" for study in find_passing_controls(results)]
    lines += [
        f"the known limit of {place.figure} in {place.world}, {place.design} ({place.kind}) no longer applies"
        for place in find_outdated_limits(results)
    ]
    return lines
