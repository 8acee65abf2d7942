"""Requests that pass by litellm's public function equal its requests, and each kind is built once."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import itertools
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from auditor.domain import Call, Message, Purpose
from auditor.models import direct_completion, litellm_client
from auditor.models.endpoint import resolve_endpoint
from auditor.models.provider_request import send_request
from auditor.models.structured import SCHEMA_BY_NAME, response_format
from tests.models.test_gateway_provider_families import FAMILIES
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.gateway_calls import model_section

PREPARED_MODELS = (
    "openai/x", "mistral/mistral-small", "groq/x", "deepseek/deepseek-chat", "openrouter/a/x", "together_ai/x",
    "hosted_vllm/x",
)  # fmt: skip
"""Models whose requests litellm's common handler sends, so that its arguments can be kept."""
BUILT_MODELS = ("anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash")
MESSAGES = (
    ({"role": "user", "content": "What is right?"},),
    ({"role": "user", "content": 'And "wrong", {seed} \\ \n\u2028?'},),
    ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Good?"}),
    ({"role": "system", "content": " "}, {"role": "user", "content": "Bad?"}),
)


@pytest.fixture(autouse=True)
async def clients() -> AsyncIterator[None]:
    litellm_client.open_http_clients()
    yield
    await litellm_client.close_http_clients()


def chat_requests(server: FakeServer, model: str) -> list[dict[str, Any]]:
    """Arguments of requests of several shapes, each with several messages and seeds."""
    json_schema_format = response_format(SCHEMA_BY_NAME["MoralJudgement"], 80)
    fields = {"api_base": server.url, "api_key": KEY, "timeout": 60.0, "num_retries": 0, "max_retries": 0}
    param_sets: tuple[dict[str, Any], ...] = (
        {"temperature": 0.5, "max_tokens": 50}, {"temperature": 0.0, "response_format": json_schema_format},
        {"top_p": 0.9},
    )  # fmt: skip
    seeds = [{"seed": 0}, {"seed": 2**40}] if "seed" in litellm_client.supported_params(model) else [{}]
    return [
        {**fields, "model": model, "messages": [dict(m) for m in messages], **call_params, **seed}
        for call_params, messages, seed in itertools.product(param_sets, MESSAGES, [*seeds, {}])
    ]


async def complete_all(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [(await litellm_client.complete_chat(**r)).model_dump(exclude={"id", "created"}) for r in requests]


def request_fields(request: Request) -> tuple[Any, ...]:
    return request.path, request.body, {k.lower(): v for k, v in request.headers.items()}


def family_reply(model: str) -> Reply:
    """A completion in the provider's format; litellm reads Groq's only with a service tier."""
    reply = FAMILIES.get(model, completion)("hello")
    return replace(reply, body=reply.body | {"service_tier": "default"}) if model.startswith("groq/") else reply


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models of the requests that litellm builds from now on, in order."""
    build, built_models = direct_completion._build, list[str]()

    def count_and_build(litellm: Any, request: dict[str, Any]) -> Any:
        built_models.append(request["model"])
        return build(litellm, request)

    monkeypatch.setattr(direct_completion, "_build", count_and_build)
    return built_models


@pytest.mark.parametrize("model", [*PREPARED_MODELS, *BUILT_MODELS])
async def test_requests_and_responses_equal_those_of_the_public_function_and_each_kind_is_built_once(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    server.script = lambda _: family_reply(model)
    requests, built_models = chat_requests(server, model), count_builds(monkeypatch)
    direct_responses = await complete_all(requests)
    direct_fields = [request_fields(r) for r in server.requests]
    assert len(direct_fields) == len(requests)
    if model in PREPARED_MODELS:
        n_seed_variants = 2 if "seed" in litellm_client.supported_params(model) else 1
        assert len(built_models) == 3 * 2 * n_seed_variants  # parameter sets, roles, with and without a seed
    server.requests.clear()
    monkeypatch.setenv(direct_completion.PUBLIC_ONLY_VARIABLE, "1")
    assert await complete_all(requests) == direct_responses
    assert direct_fields == [request_fields(r) for r in server.requests]
    assert all(str(direct_completion.SEED_MARKER) not in str(body) for _, body, _ in direct_fields)


async def test_the_public_function_is_called_once_for_each_kind(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    litellm, public_calls = litellm_client.load_litellm(), list[dict[str, Any]]()
    acompletion = litellm.acompletion

    async def count_and_complete(**request: Any) -> Any:
        public_calls.append(request)
        return await acompletion(**request)

    monkeypatch.setattr(litellm, "acompletion", count_and_complete)
    chat_request = chat_requests(server, PREPARED_MODELS[0])[0]
    await asyncio.gather(*(litellm_client.complete_chat(**chat_request | {"seed": seed}) for seed in range(20)))
    assert len(public_calls) == 1
    assert sorted(request.body["seed"] for request in server.requests) == list(range(20))


async def test_all_requests_are_public_once_one_differs(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A litellm that builds a request otherwise gets its way, and the user is told once."""
    build = direct_completion._build

    def build_otherwise(litellm: Any, request: dict[str, Any]) -> Any:
        return build(litellm, request | {"temperature": 0.123})

    monkeypatch.setattr(direct_completion, "_build", build_otherwise)
    # The first requests of both models are checked at the same time.
    pairs = zip(*(chat_requests(server, model) for model in PREPARED_MODELS[:2]), strict=True)
    first, second, *others = itertools.chain.from_iterable(pairs)
    await asyncio.gather(*(litellm_client.complete_chat(**chat_request) for chat_request in (first, second)))
    await complete_all(others)
    assert len(server.requests) == 2 + len(others)
    assert all(r.body.get("temperature") != 0.123 for r in server.requests)
    [notice] = [record.getMessage() for record in caplog.records if record.name == direct_completion.__name__]
    assert notice == (
        f"litellm {importlib.metadata.version('litellm')} builds requests differently than auditor expects; all "
        "requests are sent by litellm's public function, which takes more CPU time."
    )
    monkeypatch.setattr(direct_completion, "_public_only", False)


@pytest.mark.parametrize(
    ("module", "n_notices"),
    [
        ("litellm.llms.custom_httpx.llm_http_handler", 0),  # each request is built by litellm, and none is prepared
        ("litellm.litellm_core_utils.litellm_logging", 1),
    ],
)
async def test_requests_are_sent_by_a_litellm_without_the_private_interfaces(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, module: str, n_notices: int
) -> None:
    for cached in (direct_completion._capturing_handler, direct_completion._silent_logging_class):
        monkeypatch.setattr(direct_completion, cached.__name__, cached.__wrapped__)
    monkeypatch.setitem(sys.modules, module, None)  # its import raises ImportError
    requests = chat_requests(server, PREPARED_MODELS[0])
    await complete_all(requests)
    assert [r.body["messages"] for r in server.requests] == [r["messages"] for r in requests]
    assert sum(record.name == direct_completion.__name__ for record in caplog.records) == n_notices
    monkeypatch.setattr(direct_completion, "_public_only", False)


async def test_the_variable_turns_it_off(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    built_models = count_builds(monkeypatch)
    monkeypatch.setenv(direct_completion.PUBLIC_ONLY_VARIABLE, "1")
    await complete_all(chat_requests(server, PREPARED_MODELS[0])[:1])
    assert (built_models, len(server.requests)) == ([], 1)


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_errors_are_those_of_litellm(server: FakeServer, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    server.script = lambda _: error(status, "no, and here is why", headers={"retry-after": "7"})
    errors = []
    for public_only in ("0", "1"):
        monkeypatch.setenv(direct_completion.PUBLIC_ONLY_VARIABLE, public_only)
        with pytest.raises(Exception, match="here is why") as raised:
            await litellm_client.complete_chat(**chat_requests(server, PREPARED_MODELS[0])[0])
        shown_status = getattr(raised.value, "status_code", None)
        headers = {k.lower(): v for k, v in (getattr(raised.value, "litellm_response_headers", None) or {}).items()}
        errors.append((type(raised.value), str(raised.value), shown_status, headers.get("retry-after")))
    assert errors[0] == errors[1]
    assert len(server.requests) == 2


async def test_an_unsupported_param_is_refused_for_each_request(server: FakeServer) -> None:
    """litellm's own error is raised for each request of a shape that it refuses."""
    refused = {**chat_requests(server, "mistral/mistral-small")[0], "logit_bias": {"1": 2}}
    for _ in range(2):
        with pytest.raises(litellm_client.load_litellm().UnsupportedParamsError, match="logit_bias"):
            await litellm_client.complete_chat(**refused)
    assert not server.requests


@pytest.mark.parametrize("user_template", ["{} times", [1]])
async def test_requests_whose_seed_cannot_be_located_are_built_by_litellm(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, user_template: Any
) -> None:
    """If the seed is in a text or only in a header, each request is built anew with its own seed."""
    build = direct_completion._build

    def build_with_moved_seed(litellm: Any, request: dict[str, Any]) -> Any:
        request = dict(request)
        seed = request.pop("seed")
        user = user_template.format(seed) if isinstance(user_template, str) else "x"
        return build(litellm, request | {"user": user, "extra_headers": {"x-seed": f"{seed}"}})

    async def skip_check(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(direct_completion, "_build", build_with_moved_seed)
    monkeypatch.setattr(direct_completion, "record_request", skip_check)
    for seed in (1, 2):
        await litellm_client.complete_chat(**{**chat_requests(server, PREPARED_MODELS[0])[0], "seed": seed})
    assert [r.headers["x-seed"] for r in server.requests] == ["1", "2"]
    assert [task.result() for task in direct_completion._prepared_requests.values()] == [None]


async def test_failed_requests_leak_no_responses(server: FakeServer) -> None:
    """A reference cycle of an error and its traceback would keep the response's body in memory."""
    server.script = lambda _: error(400, "no")
    endpoint = resolve_endpoint(model_section(server))
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)

    def count_live_responses() -> int:
        return sum(isinstance(o, httpx.Response) for o in gc.get_objects())

    await send_request(endpoint, call, attempt_number=1, timeout_s=60.0)
    gc.collect()
    gc.disable()
    try:
        responses_before = count_live_responses()
        for _ in range(10):
            assert (await send_request(endpoint, call, attempt_number=1, timeout_s=60.0)).failure
        assert count_live_responses() <= responses_before + 2
    finally:
        gc.enable()


async def test_prepared_requests_have_a_maximum_number(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_completion, "MAX_PREPARED_REQUESTS", 3)
    for tokens in range(1, 9):
        await litellm_client.complete_chat(**{**chat_requests(server, PREPARED_MODELS[0])[0], "max_tokens": tokens})
        assert len(direct_completion._prepared_requests) <= 3
    assert [r.body["max_tokens"] for r in server.requests] == list(range(1, 9))
    await litellm_client.close_http_clients()
    assert not direct_completion._prepared_requests
