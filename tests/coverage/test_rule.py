"""The rule: Clopper-Pearson limits, the oracle's width, and what is a known limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, t

from benchmarks.coverage import findings
from benchmarks.coverage.known_limits import Place, load_known_limits
from benchmarks.coverage.planted import PlantedResult
from benchmarks.coverage.rule import Record, Summary, clopper_pearson_limits
from benchmarks.coverage.runner import Result
from benchmarks.coverage.studies import STUDIES, figures_by_key, list_jobs

FINE = Summary(2000, 0, 0.95, 0.93, 0.96, 1.0, 1.0, 10)


@pytest.mark.parametrize(("n_covered", "n_runs"), [(0, 20), (20, 20), (276, 300), (1860, 2000)])
def test_limits_of_coverage_are_clopper_pearsons(n_covered: int, n_runs: int) -> None:
    # Two one-sided limits of 99.9% are one two-sided interval of 99.8%.
    expected = binomtest(n_covered, n_runs).proportion_ci(0.998, method="exact")
    assert clopper_pearson_limits(n_covered, n_runs) == pytest.approx((expected.low, expected.high))


def test_the_oracle_knows_the_standard_error() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000)
    half_width = float(t.ppf(0.975, 9))
    record = Record()
    for value in values:
        record.add((float(value), float(value) - half_width, float(value) + half_width), 0.0)
    summary = record.summarize(10)
    assert summary.mean_width == pytest.approx(1, abs=0.02)
    assert summary.median_width == pytest.approx(1, abs=0.02)
    assert summary.coverage == pytest.approx(1 - 2 * 0.0119, abs=0.005)  # P(|z| < 2.26)
    assert summary.is_decided
    assert summary.is_covering
    assert findings.list_problems(summary) == []


def test_runs_without_an_interval_are_not_part_of_the_coverage() -> None:
    record = Record()
    for i in range(100):
        record.add((0.0 + i % 2, None, None) if i < 40 else (0.1 * (i % 7), -1.0, 1.0), 0.0)
    summary = record.summarize(10)
    assert (summary.n_runs, summary.n_without_interval, summary.coverage) == (60, 40, 1.0)


def test_simultaneous_intervals_are_compared_with_what_all_pairs_need() -> None:
    record = Record()
    rng = np.random.default_rng(1)
    for error in rng.normal(size=(5000, 6)):
        largest = float(np.ptp(error))
        record.add((largest, largest - 4.03, largest + 4.03), 0.0, largest)  # the studentized range of 6, 95%
    assert record.summarize(10).mean_width == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"coverage": 0.9, "coverage_high": 0.919}, "covers 90.0%"),
        ({"coverage": 0.9, "coverage_high": 0.921}, None),
        ({"mean_width": 1.31}, "the interval is on average 1.31 times as wide as needed"),
        ({"coverage": 1.0, "coverage_low": 0.996}, "covers 100.00%"),
        ({"coverage": 1.0, "coverage_low": 0.996, "smaller_side": 6}, None),
        ({"coverage": 0.5, "coverage_high": 0.6, "n_runs": 20}, None),
    ],
)
def test_the_rule(changes: dict[str, float], problem: str | None) -> None:
    problems = findings.list_problems(replace(FINE, **changes))  # type: ignore[arg-type]
    assert [text for _, text in problems] == ([] if problem is None else [problem])


def test_a_new_fault_a_passing_control_and_an_outdated_limit_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = replace(FINE, coverage=0.8, coverage_high=0.85)
    limits = {Place("r", "t3", "5 × 5", "coverage"): "heavy tails"}
    monkeypatch.setattr(findings, "load_known_limits", lambda: limits)
    known = Result("scores", "r", "t3", "5 × 5", bad, bad)
    unknown = Result("scores", "mae", "t3", "5 × 5", bad, bad)
    assert findings.find_violations([known]) == []
    assert findings.find_violations([known, unknown]) == ["mae in world t3, 5 × 5: covers 80.0%"]
    assert findings.find_violations([replace(known, naive=FINE)]) == ["study of scores: every negative control passes"]
    assert findings.find_violations([replace(known, summary=FINE)]) == [
        "the known limit of r in t3, 5 × 5 (coverage) no longer applies"
    ]
    wide_too = replace(known, summary=replace(bad, mean_width=1.5))
    assert findings.find_violations([wide_too]) == [
        "r in world t3, 5 × 5: the interval is on average 1.50 times as wide as needed"
    ]


def test_a_planted_fault_that_is_not_named_and_a_method_without_a_fault_fail_the_run() -> None:
    fine = PlantedResult("copying", "3 of 5", "55 × 19", 200, 198, 196, 2, 200, 150, True, True)
    assert findings.find_violations([], [fine]) == []
    assert findings.find_violations([], [replace(fine, n_named=150)]) == [
        "copying, 3 of 5, 55 × 19: names the fault in 75.0% of runs"
    ]
    assert findings.find_violations([], [replace(fine, n_named=150, is_largest=False)]) == []
    assert findings.find_violations([], [replace(fine, n_false=40)]) == [
        "copying, 3 of 5, 55 × 19: names an honest judge in 20.0% of runs"
    ]
    assert findings.find_violations([], [replace(fine, n_naive_false=3, n_naive_named=20)]) == []
    assert findings.find_violations([], [replace(fine, n_naive_false=3)]) == [
        "copying: the negative control keeps the rule"
    ]


def test_known_limits_name_figures_worlds_and_designs_of_the_study() -> None:
    places = {
        (figure.key, world.name, design.label)
        for study in STUDIES
        for figure in study.figures
        for world in study.worlds
        for design in study.designs
    }
    assert len(figures_by_key()) == len({place[0] for place in places})
    for place, reason in load_known_limits().items():
        assert place[:3] in places, place
        assert place.kind in ("coverage", "width")
        assert len(reason) > 20


def test_each_job_has_a_key_and_figures_have_unique_names() -> None:
    jobs = list_jobs()
    assert len(jobs) > 250
    root = Path(__file__).parents[2]
    assert all((root / f"{job.module.replace('.', '/')}.py").is_file() for job in jobs.values())
