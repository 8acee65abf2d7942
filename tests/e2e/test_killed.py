"""Runs that are killed at every point where data could be lost: a second run gives the results of an unbroken one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import canonical_json
from auditor.reports.data.report_schema import Report
from auditor.reports.data.verification import verify_audit
from auditor.run import open_audit, run_audit
from auditor.storage.database import open_database
from tests.e2e.test_run import question, stored
from tests.support.audit_configs import config, with_models
from tests.support.fake_server import FakeServer, answer
from tests.support.killed_runs import ALL_FAULTS, run_until

CALLS = 54
POINTS = {"file": 3, "server": 2}
"""Number of kill points that `make test` checks on each kind of database; `make faults` checks all."""


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def small(server: FakeServer) -> AuditConfig:
    """Config of 3 models, 3 cells and 2 samples: 54 calls; a model has at most 4 answers and 4 verdicts open."""
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ["divorce"]}
    return with_models(config(server.url, survey=survey, probes={"direct": {"samples": 2}}), concurrency=2)


@pytest.fixture(scope="module")
def unbroken_run(server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """Results of an unbroken run, and the number of its kill points."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('whole') / 'audits.db'}"
    code, places = run_until(small(server), storage, "*:1000000")
    assert (code, len(server.requests)) == (0, CALLS)
    return stored(storage), places


def kill_points(places: int, kind: str) -> list[int]:
    """Numbers of the kill points to check: all, or `POINTS` spread evenly over the run with the first and last."""
    n_points = POINTS[kind]
    if ALL_FAULTS:
        return list(range(1, places + 1))
    return [1 + round(i * (places - 1) / (n_points - 1)) for i in range(n_points)]


@pytest.mark.parametrize("kind", list(POINTS))
def test_a_run_killed_anywhere_resumes_with_the_same_results(
    kind: str,
    server: FakeServer,
    unbroken_run: tuple[dict[str, Any], int],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    expected, places = unbroken_run
    assert places > 3 * CALLS
    for number in kill_points(places, kind):
        is_file = kind == "file"
        storage = f"sqlite:///{tmp_path / f'{number}.db'}" if is_file else request.getfixturevalue("postgres").schema()
        server.requests.clear()
        code, _ = run_until(small(server), storage, f"*:{number}")
        if code == 0:  # commits are grouped by timing, so the number of kill points differs from run to run
            assert number > 3 * CALLS
            continue
        assert code == -9, number
        asked = Counter(question(r) for r in server.requests)
        run_audit(small(server), storage=storage)
        assert stored(storage) == expected, number
        twice = sum(n - 1 for n in Counter(question(r) for r in server.requests).values())
        cost_section = open_audit("scripted", storage=storage).report().cost
        assert twice <= cost_section.lost <= 3 * 8, number
        assert set(asked) <= {question(r) for r in server.requests}
        with open_database(storage) as db:
            assert verify_audit(db, "scripted").is_consistent, number


def without_times(report: Report) -> str:
    """A report as canonical JSON without times, and without figures that depend on the order of answers."""
    report_data = report.model_dump(mode="json")
    for key in ("created_at", "finished_at", "config_hash"):
        del report_data["audit"][key]
    for judge in report_data["panel"]["judges"]:
        del judge["order"]  # drift of a judge over time, the one figure that depends on the order
    for row in report_data["served"]:
        del row["first_at"], row["last_at"]
    for row in report_data["requests"]["capabilities"]:
        del row["created_at"]
    return canonical_json(report_data)


def test_the_same_answers_in_any_order_give_the_same_report(server: FakeServer, tmp_path: Path) -> None:
    timeless_reports = []
    for concurrency, slowest in ((1, 0.0), (8, 0.05)):
        server.script = lambda r, slowest=slowest: replace(answer(r), delay_s=slowest * r.draw("delay"))  # type: ignore[misc]
        audit = with_models(small(server), concurrency=concurrency)
        storage = f"sqlite:///{tmp_path / f'{concurrency}.db'}"
        timeless_reports.append(without_times(run_audit(audit, storage=storage).report()))
    server.script = answer
    assert timeless_reports[0] == timeless_reports[1]
