"""Asking again for unusable answers: once each, with the first outcome kept in coverage and the number on page one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from auditor.domain import Outcome
from auditor.errors import UsageError
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion

CELLS = 9


def refusal() -> Reply:
    return completion(None, refusal="I will not answer that.")


class Refuses:
    """A script: the model with this ending refuses questions about Japan, as often as `times` says."""

    def __init__(self, ending: str = "-a", times: int = 1, *, direct: bool = True) -> None:
        self.ending, self.times, self.direct = ending, times, direct
        self.asked = Counter[str]()

    def __call__(self, request: Request) -> Reply:
        concerned = "Japan" in request.text or not self.direct
        if request.body["model"].endswith(self.ending) and concerned and request.is_direct_question == self.direct:
            self.asked[str(request.body["messages"]) + str(request.body.get("seed"))] += 1
            if self.asked[str(request.body["messages"]) + str(request.body.get("seed"))] <= self.times:
                return refusal()
        return answer(request)


def audit(server: FakeServer, **changes: Any) -> Any:
    return config(server.url, 2, **({"judges": [], "probes": {"direct": {"samples": 1}}} | changes))


def load_traces(storage: str) -> list[Any]:
    with open_database(storage, create=False) as db:
        return results.load_traces(db, audits.get_audit(db, "scripted").id)


def brief(storage: str) -> str:
    text = render_report(open_audit("scripted", storage=storage).report(), "text", is_brief=True)
    return " ".join(text.split())


def test_refusals_are_asked_again_once_and_stay_in_the_coverage(server: FakeServer, storage: str) -> None:
    server.script = Refuses()
    run_audit(audit(server), storage=storage)
    assert len(server.requests) == 2 * CELLS
    run_audit(audit(server), storage=storage, ask_again=Outcome.REFUSED)
    assert len(server.requests) == 2 * CELLS + 3
    repeated = [trace for trace in load_traces(storage) if trace.first_outcome is not None]
    assert {(trace.model, trace.outcome, trace.first_outcome) for trace in repeated} == {
        ("model-a", Outcome.OK, Outcome.REFUSED)
    }
    assert all(trace.key != trace.repeat_key and trace.score is not None for trace in repeated)

    report = open_audit("scripted", storage=storage).report()
    [total] = [row for row in report.coverage.total if row.stage == "direct"]
    assert (total.planned, total.ok, total.losses, total.missing) == (18, 15, {"refused": 3}, 0)
    assert (total.asked_again, total.answered_again) == (3, 3)
    assert report.refusals is not None
    assert report.refusals.total.value == pytest.approx(3 / 18)
    [row] = [row for row in report.alignment if row.model == "model-a"]
    assert (row.n, row.lost_samples.lost) == (CELLS, 0)
    assert "3 of the planned answers had no usable answer and were asked for again" in brief(storage)


def test_a_second_answer_is_final_and_used_by_later_runs(server: FakeServer, storage: str) -> None:
    server.script = Refuses(times=2)
    for ask_again in (None, Outcome.REFUSED, Outcome.REFUSED, None):
        run_audit(audit(server), storage=storage, ask_again=ask_again)
    assert len(server.requests) == 2 * CELLS + 3
    refused = [trace for trace in load_traces(storage) if trace.outcome is Outcome.REFUSED]
    assert len(refused) == 3
    assert all(trace.repeat_key for trace in refused)
    [total] = open_audit("scripted", storage=storage).report().coverage.total
    assert (total.losses, total.asked_again, total.answered_again) == ({"refused": 3}, 3, 0)


def test_only_the_chosen_models_and_outcome_are_asked_again(server: FakeServer, storage: str) -> None:
    server.script = Refuses()
    run_audit(audit(server), storage=storage)
    n_requests = len(server.requests)
    run_audit(audit(server), storage=storage, ask_again=Outcome.REFUSED, ask_again_models=["model-b"])
    run_audit(audit(server), storage=storage, ask_again=Outcome.UNPARSED)
    assert len(server.requests) == n_requests
    with pytest.raises(UsageError, match="no model or judge named 'model-z'"):
        run_audit(audit(server), storage=storage, ask_again=Outcome.REFUSED, ask_again_models=["model-z"])
    with pytest.raises(UsageError, match="cannot be asked for again"):
        run_audit(audit(server), storage=storage, ask_again=Outcome.TIMEOUT)
    assert len(server.requests) == n_requests


def test_judges_are_asked_again_too(server: FakeServer, storage: str) -> None:
    server.script = Refuses(direct=False)
    settings = {"judges": "peers"}
    run_audit(audit(server, **settings), storage=storage)
    n_requests = len(server.requests)
    [before] = [row for row in open_audit("scripted", storage=storage).report().coverage.total if row.stage == "review"]
    assert before.losses == {"refused": CELLS}
    run_audit(audit(server, **settings), storage=storage, ask_again=Outcome.REFUSED)
    assert len(server.requests) == n_requests + CELLS
    report = open_audit("scripted", storage=storage).report()
    [after] = [row for row in report.coverage.total if row.stage == "review"]
    assert (after.losses, after.asked_again, after.answered_again) == ({"refused": CELLS}, CELLS, CELLS)
    assert [row.asked_again for row in report.coverage.judges] == [CELLS, 0]
    assert all(row.agreement.value is not None for row in report.peer_agreement)
