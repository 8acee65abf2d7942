"""The graph keeps no file: a new process resumes it from the audit's stored stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import pytest

from auditor.agents.graph import build_graph
from auditor.domain import ConflictState, Decision
from auditor.run import resume_after_review, run_audit
from auditor.storage import audits
from tests.e2e.test_run import rate, stored
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer
from tests.support.forked_commands import CONTEXT
from tests.support.patience import PATIENCE_S

ONE_CELL = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce"]}


def test_the_state_holds_ids_and_counts() -> None:
    graph = build_graph()
    subgraphs: list[Any] = [subgraph for _, subgraph in graph.get_subgraphs()]
    states = {state for part in (graph, *subgraphs) for state in part.builder.schemas}
    assert {state.__name__ for state in states} > {"AuditState", "StageState"}
    for state in states:
        assert all(kind in (str, int, dict[str, str | None]) for kind in get_type_hints(state).values()), state


def test_a_run_leaves_the_database_as_its_only_file(server: FakeServer, storage: str, tmp_path: Path) -> None:
    run_audit(config(server.url, models=2, survey=ONE_CELL, conflicts={"threshold": 0.01}), storage=storage)
    assert {path.name.split(".db")[0] for path in tmp_path.glob("*.db*") if path.suffix != ".locks"} == {"audits"}


@pytest.fixture(params=["file", "server"])
def url(request: pytest.FixtureRequest, storage: str) -> str:
    """URL of an empty database, of either kind."""
    return storage if request.param == "file" else str(request.getfixturevalue("postgres").schema())


def test_a_new_process_resumes_an_audit_that_waits_for_a_person(server: FakeServer, url: str) -> None:
    survey = {**ONE_CELL, "countries": ["Germany", "Japan"]}
    audit_config = config(server.url, models=2, survey=survey, conflicts={"threshold": 0.01}, judges=[])
    run_audit(audit_config, storage=url)
    requests_before = len(server.requests)
    conflicts = [c for c in stored(url)["conflicts"] if c.state is ConflictState.OPEN]
    assert len(conflicts) > 1
    assert stored(url)["stage"] == audits.AWAITING_HUMAN
    for decided, stage in ((conflicts[:1], audits.AWAITING_HUMAN), (conflicts[1:], audits.FINISHED)):
        for conflict in decided:
            rate(url, conflict, Decision.LEFT)
        resumed = CONTEXT.Process(target=resume_after_review, args=("scripted",), kwargs={"storage": url})
        resumed.start()
        resumed.join(PATIENCE_S)
        assert resumed.exitcode == 0
        assert stored(url)["stage"] == stage
    run_audit(audit_config, storage=url)
    assert len(server.requests) == requests_before
