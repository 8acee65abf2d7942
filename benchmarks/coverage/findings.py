"""What a run shows: which results break the rule, and whether they are known limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.coverage.known_limits import KNOWN_LIMITS, KnownLimit, find_known_limit
from benchmarks.coverage.planted import PlantedResult
from benchmarks.coverage.rule import Summary
from benchmarks.coverage.runner import Result

MIN_PRINTED_RUNS = 30
"""Fewest runs with an interval for a verdict: a figure that rarely has an interval rarely misleads."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A result that breaks the rule; `limit` is None unless that is known."""

    result: Result
    problem: str
    limit: KnownLimit | None


def describe_problem(summary: Summary) -> str | None:
    """How a result breaks the rule, in words; None if it does not."""
    if summary.n_runs < MIN_PRINTED_RUNS:
        return None
    if not summary.is_covering:
        return f"covers {summary.coverage:.1%}"
    if summary.is_too_wide:
        return f"mean width {summary.mean_width:.2f} times the oracle's"
    if summary.is_overcovering:
        return f"covers {summary.coverage:.2%}"
    return None


def find_problems(results: Iterable[Result]) -> list[Finding]:
    """All results that break the rule."""
    problems = [(result, describe_problem(result.summary)) for result in results]
    return [
        Finding(result, problem, find_known_limit(result.figure, result.world, result.design))
        for result, problem in problems
        if problem is not None
    ]


def find_passing_controls(results: Sequence[Result]) -> Iterator[str]:
    """The figures whose naive interval does not fail anywhere, so that the study would not notice a fault."""
    controls: dict[str, bool] = {}
    for result in results:
        if result.naive is not None:
            has_failed = not result.naive.is_covering
            controls[result.figure] = controls.get(result.figure, False) or has_failed
    return (figure for figure, has_failed in controls.items() if not has_failed)


def find_passing_methods(planted: Iterable[PlantedResult]) -> Iterator[str]:
    """The planted faults for which yesterday's method breaks the rule nowhere."""
    has_failed: dict[str, bool] = {}
    for result in planted:
        if result.n_naive_false is not None:
            has_failed[result.study] = has_failed.get(result.study, False) or result.has_naive_failure
    return (study for study, failed in has_failed.items() if not failed)


def find_outdated_limits(results: Sequence[Result]) -> Iterator[KnownLimit]:
    """Known limits whose worlds were measured, and in which every result keeps the rule."""
    findings = find_problems(results)
    for limit in KNOWN_LIMITS:
        is_measured = any(limit.applies(result.figure, result.world, result.design) for result in results)
        if is_measured and not any(finding.limit is limit for finding in findings):
            yield limit


def find_violations(results: Sequence[Result], planted: Sequence[PlantedResult] = ()) -> list[str]:
    """What makes a run fail, one line each."""
    lines = [
        f"{finding.result.figure} in world {finding.result.world}, {finding.result.design}: {finding.problem}"
        for finding in find_problems(results)
        if finding.limit is None
    ]
    lines += [
        f"{result.study}, {result.plant}, {result.design}: {result.problem}"
        for result in planted
        if result.problem is not None
    ]
    lines += [f"{study}: the negative control keeps the rule" for study in find_passing_methods(planted)]
    lines += [f"{figure}: the negative control passes everywhere" for figure in find_passing_controls(results)]
    lines += [
        f"the known limit of {', '.join(limit.figures)} in {limit.world}, {limit.design} no longer applies"
        for limit in find_outdated_limits(results)
    ]
    return lines
