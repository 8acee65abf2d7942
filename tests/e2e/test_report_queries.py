"""The queries of a report grow as the work: measured in steps of SQLite's virtual machine, not in seconds.

`golden/report_plans.json` holds SQLite's plans of the slowest queries. To store them again after a deliberate change:

    AUDITOR_GOLDEN=write pytest tests/e2e/test_report_queries.py
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from auditor.reports.data.build import build_report
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate

N_SLOWEST = 10
PLANS_FILE = Path(__file__).with_name("golden") / "report_plans.json"
SHOWN_CHARS = 110
"""Characters at the beginning of a query that the file of plans shows."""
STEPS_PER_COUNT = 50
SMALL = {"models": 4, "countries": 8, "topics": 8, "samples": 2, "judges": 3}
LARGE = {**SMALL, "countries": 32}
MAX_PASSES = {"trace": 9, "verdict": 9, "attempt": 3, "answer": 0}
"""Passes through all rows of an audit in a table, by all of a report's queries; one of `attempt` ends early.

Traces and verdicts name up to two calls each, and a query of calls passes through them once for either.
The texts of traces are read once.
"""
LISTED_PARAMETERS = re.compile(r"(\(\?(, \?)*\)|\?)(, (\(\?(, \?)*\)|\?))+")
"""Lists of parameters, whose number depends on the size of the audit."""
MAX_GROWTH_RATIO = 1.3
"""Largest ratio of a query's growth to that of the number of calls; sorting adds a logarithm."""


class QueryLog:
    """Steps and plan of each query.

    Attributes:
        steps: in units of `STEPS_PER_COUNT`, by the query's text without its `LISTED_PARAMETERS`.
        plans: lines of SQLite's plan, each after as many spaces as it has parents, by the same text.
    """

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.plans: dict[str, list[str]] = {}

    def start_query(self, connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        """Record the plan of a query, and count its steps from now on."""
        raw: sqlite3.Connection = connection.connection.dbapi_connection
        if not statement.lstrip().upper().startswith(("SELECT", "WITH")):
            return
        raw.set_progress_handler(None, 1)
        query = LISTED_PARAMETERS.sub("...", statement)
        if query not in self.plans:
            depth = {0: -1}
            self.plans[query] = []
            for node, parent, _, text in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters):
                depth[node] = depth[parent] + 1
                self.plans[query].append(" " * depth[node] + text)
        raw.set_progress_handler(lambda: self._count(query), STEPS_PER_COUNT)

    def _count(self, query: str) -> int:
        self.steps[query] += 1
        return 0  # the query goes on


@contextmanager
def logged_queries() -> Iterator[QueryLog]:
    log = QueryLog()
    event.listen(Engine, "before_cursor_execute", log.start_query)
    try:
        yield log
    finally:
        event.remove(Engine, "before_cursor_execute", log.start_query)


def log_report(folder: Path, size: dict[str, Any]) -> tuple[QueryLog, int]:
    """The queries of the report of an audit of a size, and the number of its calls."""
    with open_database(f"sqlite:///{folder}/{size['countries']}.db") as db:
        populate(db, **size)
        with logged_queries() as log:
            report = build_report(db, "population")
    return log, report.cost.total.sums.calls


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[QueryLog, int]]:
    """Queries and calls of a small and of a large report."""
    folder = tmp_path_factory.mktemp("reports")
    return [log_report(folder, size) for size in (SMALL, LARGE)]


def slowest(log: QueryLog) -> list[str]:
    """The queries with the most steps."""
    return [statement for statement, _ in log.steps.most_common(N_SLOWEST)]


def test_the_slowest_queries_grow_as_the_number_of_calls(logs: list[tuple[QueryLog, int]]) -> None:
    (small, n_small), (large, n_large) = logs
    growth = n_large / n_small
    assert growth > 3.5
    for statement in slowest(large):
        assert large.steps[statement] <= MAX_GROWTH_RATIO * growth * small.steps[statement], statement


def test_plans_of_the_slowest_queries_are_those_of_the_record(logs: list[tuple[QueryLog, int]]) -> None:
    """A plan that reads more than before is seen here; other versions of SQLite word and choose plans differently."""
    log, _ = logs[1]
    version = ".".join(map(str, sqlite3.sqlite_version_info[:2]))
    plans = {" ".join(query.split())[:SHOWN_CHARS]: log.plans[query] for query in slowest(log)}
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        PLANS_FILE.write_text(json.dumps({"sqlite": version, "plans": plans}, indent=1) + "\n", encoding="utf-8")
    stored = json.loads(PLANS_FILE.read_text(encoding="utf-8"))
    assert len(stored["plans"]) == N_SLOWEST
    if stored["sqlite"] != version:
        pytest.skip(f"the plans are of SQLite {stored['sqlite']}, and this is {version}")
    assert plans == stored["plans"]


def test_no_query_scans_a_table_for_each_row_of_another(logs: list[tuple[QueryLog, int]]) -> None:
    log, _ = logs[1]
    assert len(log.plans) > N_SLOWEST
    for statement, plan in log.plans.items():
        for i, line in enumerate(plan):
            if "CORRELATED" in line:
                depth = len(line) - len(line.lstrip())
                children = [child for child in plan[i + 1 :] if len(child) - len(child.lstrip()) > depth]
                assert not any(child.lstrip().startswith("SCAN") for child in children[:1]), (statement, plan)


def test_a_report_passes_through_each_large_table_a_known_number_of_times(logs: list[tuple[QueryLog, int]]) -> None:
    """A further pass over all verdicts is a decision, not an accident: raise the number here if it is needed."""
    log, _ = logs[1]
    passes = Counter(
        table
        for plan in log.plans.values()
        for line in plan
        for table in MAX_PASSES
        if line.split()[:2] in (["SCAN", table], ["SEARCH", table]) and line.endswith("(audit_id=?)")
    )
    assert passes <= Counter(MAX_PASSES), passes
