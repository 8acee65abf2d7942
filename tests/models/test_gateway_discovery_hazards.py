"""What must not be concluded while a gateway finds out what a server accepts: from failures, filters and races."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from auditor.config import LimitsSection
from auditor.domain import AnswerForm, Call, Capability, Outcome, Purpose
from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS, CapabilityRegistry, MemoryCapabilityStore
from auditor.models.failures import RequestFailure
from auditor.models.gateway import Gateway
from auditor.models.provider_request import ProviderReply, failed_answer
from tests.models.test_gateway_discovery import JUDGEMENT, ask, call, refuses, refuses_form, section, server_that
from tests.support.fake_server import FakeServer, Reply, Request, completion, error


async def test_a_prompt_that_a_filter_refuses_shows_nothing_about_the_server(server: FakeServer) -> None:
    accept_without_temperature = server_that(refuses("temperature"))
    filtered = error(400, "The response was filtered by content management policy.", code="content_filter")
    server.script = lambda r: filtered if r.number == 0 else accept_without_temperature(r)
    store = MemoryCapabilityStore()
    first, *others = await ask(section(server), *(call(server, i) for i in range(4)), store=store, max_attempts=1)
    assert first.outcome is Outcome.REFUSED
    assert [answer.outcome for answer in others] == [Outcome.OK] * 3
    assert [capability.dropped_params for capability in store.load().values()] == [("temperature",)]


async def test_models_of_one_server_find_out_once_what_it_accepts(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"), refuses("seed"))
    personas = [section(server).model_copy(update={"name": f"m{i}"}) for i in range(4)]
    gateway = Gateway(personas, LimitsSection(max_attempts=1))
    try:
        calls = [replace(call(server, sample=i), name=persona.name) for i, persona in enumerate(personas)]
        answers = await asyncio.gather(*map(gateway.complete, calls))
    finally:
        await gateway.close()
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 4
    assert len(server.requests) == 4 + 2


async def test_refusals_of_calls_under_way_are_sent_again_as_another_call_found_out(server: FakeServer) -> None:
    """After failed first calls the others no longer wait, so many are refused at once."""
    accept_objects = server_that(refuses_form("json_schema"))

    def script(request: Request) -> Reply:
        return error(503, "overloaded") if request.number < 4 else replace(accept_objects(request), delay_s=0.05)

    server.script = script
    gateway = Gateway([section(server, concurrency=100)], LimitsSection(max_attempts=1))
    try:
        for sample in range(4):
            assert (await gateway.complete(call(server, sample))).outcome is Outcome.SERVER_ERROR
        answers = await asyncio.gather(*(gateway.complete(call(server, 4 + i)) for i in range(60)))
    finally:
        await gateway.close()
    assert Counter(answer.outcome for answer in answers) == {Outcome.OK: 60}


@pytest.mark.parametrize("status", [429, 503])
async def test_a_form_check_that_a_failure_interrupts_is_repeated(server: FakeServer, status: int) -> None:
    def script(request: Request) -> Reply:
        if request.number == 1:
            return error(status, "later")
        form = (request.body.get("response_format") or {}).get("type")
        return completion("I think -0.5") if form == "json_schema" else completion(JUDGEMENT)

    server.script = script
    store = MemoryCapabilityStore()
    answers = await ask(section(server), *(call(server, i) for i in range(3)), store=store, max_attempts=1)
    assert answers[0].text == "I think -0.5"  # one unreadable answer and a failure show nothing
    assert [answer.text for answer in answers[1:]] == [JUDGEMENT] * 2
    assert [capability.form for capability in store.load().values()] == [AnswerForm.JSON_OBJECT]


def refusals_before_sending(registry: CapabilityRegistry, question: Call) -> Iterator[Capability]:
    """Yield what a call is sent under while a library refuses each name of the limit on output tokens in turn."""
    while True:
        capability = registry.capability(question)
        yield capability
        text = f"x does not support parameters: ['{capability.token_limit_param}'], for model=x"
        failure = RequestFailure(Outcome.CLIENT_ERROR, is_retryable=False, blocks_model=False, error=text)
        if not registry.step(question, capability, ProviderReply(failed_answer(question, failure), failure)):
            return


def test_two_names_that_are_both_refused_end_the_search(server: FakeServer) -> None:
    steps = list(refusals_before_sending(CapabilityRegistry(MemoryCapabilityStore()), call(server)))
    assert len(steps) <= len(set(steps)) + 1 <= 4


async def test_a_call_that_only_discovers_is_one_of_the_requests(server: FakeServer) -> None:
    parameters = ("temperature", "seed", "top_p", "presence_penalty", "frequency_penalty")
    server.script = server_that(*map(refuses, parameters))
    question = call(server, params=dict.fromkeys(parameters[2:], 0.5))
    await ask(section(server), replace(question, purpose=Purpose.PREFLIGHT), max_attempts=1)
    assert len(server.requests) == MAX_DISCOVERY_REQUESTS
