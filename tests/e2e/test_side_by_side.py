"""Nothing waits for what it does not need: the scripted server holds answers back until it has seen what may go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from auditor.domain.review_aspects import SURVEY_REVIEWS
from auditor.run import run_audit
from tests.e2e.test_run import stored
from tests.support.audit_configs import config
from tests.support.comparison_judge import scripted
from tests.support.fake_server import FakeServer, Reply, Request

COUNTRIES = ["Germany", "United States", "Brazil", "Japan", "Nigeria"]
TOPICS = ["homosexuality", "divorce", "abortion", "euthanasia", "death penalty"]
N_CELLS = len(COUNTRIES) * len(TOPICS)
SURVEY = {"source": "wvs7-sample", "countries": COUNTRIES, "topics": TOPICS}
ANSWER = scripted(len)


def is_review(request: Request) -> bool:
    """Whether a verdict is asked for."""
    return request.schema in SURVEY_REVIEWS


def model_of(request: Request) -> str:
    """The last letter of the model's name."""
    return str(request.body["model"])[-1]


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
    """All answers but the first few wait until a verdict was asked for."""
    audit = config(server.url, 2, survey=SURVEY, probes={"direct": {"samples": 1}})
    models = [model.model_copy(update={"concurrency": 1}) for model in audit.models]

    def is_late_answer(request: Request) -> bool:
        n_answers = sum(r.is_direct_question and model_of(r) == model_of(request) for r in server.requests)
        return request.is_direct_question and n_answers > 4

    gate = Gate(server, is_late_answer, lambda: any(map(is_review, server.requests)))
    run_audit(audit.model_copy(update={"models": models}), storage=storage)
    assert gate.is_open.is_set()
    assert sum(map(is_review, server.requests)) == 2 * N_CELLS


def test_a_slow_model_holds_up_neither_the_others_nor_their_judges(server: FakeServer, storage: str) -> None:
    """A model that answers nothing after its first answer, until the others have answered and judged each other."""
    audit = config(server.url, 4, survey=SURVEY, probes={"direct": {"samples": 1}})

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
    """No comparison is answered until all verdicts were asked for."""
    logic = {"countries": ["Germany"], "max_items": 5, "samples": 0}
    audit = config(server.url, 2, survey=SURVEY, probes={"direct": {"samples": 1}, "logic": logic})
    gate = Gate(
        server,
        lambda request: not is_review(request) and not request.is_direct_question,
        lambda: sum(map(is_review, list(server.requests))) == 2 * N_CELLS,
    )
    run_audit(audit, storage=storage)
    assert gate.held
    assert stored(storage)["stage"] in ("finished", "awaiting_human")


def test_a_probe_that_needs_all_answers_waits_for_no_review(server: FakeServer, storage: str) -> None:
    """Traces are compared as soon as they are there: no verdict is given until a comparison was asked for."""
    logic = {"items": "traces", "samples": 0, "sets": 2}
    audit = config(server.url, 2, survey=SURVEY, probes={"direct": {"samples": 1}, "logic": logic})

    def is_comparison(request: Request) -> bool:
        return not is_review(request) and not request.is_direct_question

    gate = Gate(server, is_review, lambda: any(map(is_comparison, list(server.requests))))
    run_audit(audit, storage=storage)
    assert gate.held
    requests = list(server.requests)
    last_answer = max(r.number for r in requests if r.is_direct_question)
    assert min(r.number for r in requests if is_comparison(r)) > last_answer
