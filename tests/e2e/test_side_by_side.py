"""Nothing waits for what it does not need: the scripted server holds answers back until it has seen what may go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from auditor.agents import derived_results, nodes
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig
from auditor.domain import Conflict
from auditor.domain.decisions import SURVEY_REVIEWS
from auditor.run import run_audit
from auditor.storage import audits, results
from tests.e2e.test_run import stored
from tests.support.audit_configs import config, with_models
from tests.support.comparison_judge import scripted
from tests.support.fake_server import FakeServer, Reply, Request

N_CELLS = 9
ANSWER = scripted(len)


def is_review(request: Request) -> bool:
    return request.schema in SURVEY_REVIEWS


def model_of(request: Request) -> str:
    """The last letter of the model's name."""
    return str(request.body["model"])[-1]


def patient_config(server: FakeServer, models: int, concurrency: int, **probes: Any) -> AuditConfig:
    """An audit in which no held request times out, however busy the machine is, and each model has slots of its own."""
    changes = {"limits": {"deadline_s": 3600}, "probes": {"direct": {"samples": 1}, **probes}}
    return with_models(config(server.url, models, **changes), timeout_s=3600.0, concurrency=concurrency)


def with_judge(audit: AuditConfig) -> AuditConfig:
    """The audit of its first model, with the second one as the only judge."""
    author, judge = audit.models
    return audit.model_copy(update={"models": [author], "judges": [judge]})


class Gate:
    """Holds replies back until the server has seen enough other requests."""

    def __init__(self, server: FakeServer, holds_back: Callable[[Request], bool], opens: Callable[[], bool]) -> None:
        self.held = 0
        self.is_open = threading.Event()
        self._holds_back, self._opens = holds_back, opens
        server.script = self.reply

    def reply(self, request: Request) -> Reply:
        """Answer at once, or when the gate opens."""
        if self._opens():
            self.is_open.set()
        if not self._holds_back(request):
            return ANSWER(request)
        self.held += not self.is_open.is_set()
        return replace(ANSWER(request), after=self.is_open)


def test_the_first_review_comes_before_the_last_answer(server: FakeServer, storage: str) -> None:
    """All answers but the first four wait until a verdict was asked for, after that on the preflight's trace."""
    audit = with_judge(patient_config(server, 2, concurrency=1))

    def is_late_answer(request: Request) -> bool:
        return request.is_direct_question and sum(r.is_direct_question for r in server.requests) > 4

    gate = Gate(server, is_late_answer, lambda: sum(map(is_review, server.requests)) > 1)
    run_audit(audit, storage=storage)
    assert gate.is_open.is_set()
    assert sum(map(is_review, server.requests)) == 1 + N_CELLS


def test_a_slow_model_holds_up_neither_the_others_nor_their_judges(server: FakeServer, storage: str) -> None:
    """A model that answers nothing after its first answer, until the others have answered and judged each other."""
    audit = patient_config(server, 4, concurrency=2)

    def is_slow(request: Request) -> bool:
        return model_of(request) == "d" and sum(model_of(r) == "d" for r in server.requests) > 1

    def count(kind: Callable[[Request], bool]) -> int:
        return sum(kind(request) and model_of(request) != "d" for request in list(server.requests))

    gate = Gate(
        server, is_slow, lambda: (count(lambda r: r.is_direct_question), count(is_review)) >= (3 * N_CELLS, 6 * N_CELLS)
    )
    run_audit(audit, storage=storage)
    assert gate.held > 1
    verdicts = stored(storage)["verdicts"]
    assert len(verdicts) == 12 * N_CELLS


def test_a_probe_holds_up_no_reviews(server: FakeServer, storage: str) -> None:
    """No comparison is answered until all verdicts were asked for, nor some cells until a comparison was."""
    logic = {"countries": ["Germany"], "max_items": 3, "samples": 0}
    audit = patient_config(server, 2, concurrency=20, logic=logic)
    is_compared = threading.Event()

    def is_comparison(request: Request) -> bool:
        return not is_review(request) and not request.is_direct_question

    gate = Gate(server, is_comparison, lambda: sum(map(is_review, list(server.requests))) == 2 * N_CELLS)

    def reply(request: Request) -> Reply:
        if is_comparison(request):
            is_compared.set()
        waits = request.is_direct_question and "Nigeria" in request.text
        return replace(gate.reply(request), after=is_compared) if waits else gate.reply(request)

    server.script = reply
    run_audit(audit, storage=storage)
    assert gate.held
    assert stored(storage)["stage"] in (audits.FINISHED, audits.AWAITING_HUMAN)


def test_a_probe_that_needs_all_answers_waits_for_no_review(server: FakeServer, storage: str) -> None:
    """Traces are compared as soon as they are there: no verdict is given until a comparison was asked for."""
    logic = {"items": "traces", "samples": 0, "sets": 2}
    audit = with_judge(patient_config(server, 2, concurrency=2, direct={"samples": 2}, logic=logic))

    def is_comparison(request: Request) -> bool:
        return not is_review(request) and not request.is_direct_question

    def is_verdict_on_trace(request: Request) -> bool:
        return is_review(request) and sum(map(is_review, server.requests)) > 1  # the first one is the preflight's

    gate = Gate(server, is_verdict_on_trace, lambda: any(map(is_comparison, list(server.requests))))
    run_audit(audit, storage=storage)
    assert gate.held
    requests = list(server.requests)
    last_answer = max(r.number for r in requests if r.is_direct_question)
    assert min(r.number for r in requests if is_comparison(r)) > last_answer


@pytest.mark.parametrize(("threshold", "is_early"), [(0.38, True), ("auto", False)])
def test_conflicts_are_settled_when_their_cell_is_complete(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch, threshold: float | str, is_early: bool
) -> None:
    """Before the stages that wait for all cells, which store the same again, in a second run too."""
    early: list[list[Conflict]] = []
    detect_conflicts = derived_results.detect_conflicts

    def keep_stored(context: RunContext) -> list[Conflict]:
        early.append(results.load_conflicts(context.db, context.audit_id))
        return detect_conflicts(context)

    monkeypatch.setattr(nodes, "detect_conflicts", keep_stored)
    audit = config(server.url, 4, conflicts={"threshold": threshold})
    run_audit(audit, storage=storage)
    conflicts = stored(storage)["conflicts"]
    assert len({conflict.state for conflict in conflicts}) == 2
    assert sorted(early[0], key=str) == (sorted(conflicts, key=str) if is_early else [])
    run_audit(audit, storage=storage)
    assert stored(storage)["conflicts"] == early[1] == conflicts
