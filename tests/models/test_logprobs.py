"""Log-probabilities in responses: usable ones, and responses that lack them."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from auditor.config import ModelSection
from auditor.domain import Answer, Call, LogprobMeasure, Message, Outcome, Purpose
from auditor.models.logprobs import measure_params, supported_measures
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.gateway_calls import ask as ask_gateway, model_section

MODEL = "hosted_vllm/some-model"
ENDS = (" always justifiable", " never justifiable", " right", " wrong")
BEGINNING = "In Germany, divorce is"


def token_logprob(prompt: str, word: str) -> float:
    """A pseudo log-probability that depends only on the token and its prompt."""
    return -zlib.crc32(f"{prompt[:20]}|{word}".encode()) / 2**30


def tokenize(text: str) -> list[str]:
    """Words with their leading space, as most tokenizers split them."""
    words = text.split(" ")
    return [words[0], *(f" {w}" for w in words[1:])]


def echo(request: Request, mark: str = "") -> Reply:
    """vLLM's response: the prompt's tokens and one more; `mark` is a leading token that the text does not show."""
    assert request.path.endswith("/v1/completions")
    assert (request.body["echo"], request.body["max_tokens"]) == (True, 1)
    choices = []
    for index, prompt in enumerate(request.body["prompt"]):
        tokens = [*([mark] if mark else []), *tokenize(prompt), " and"]
        values = [None, *(token_logprob(prompt, token) for token in tokens[1:])]
        offsets = [sum(map(len, tokens[:i])) for i in range(len(tokens))]
        logprobs = {"tokens": tokens, "token_logprobs": values, "text_offset": offsets, "top_logprobs": None}
        choices.append({"index": index, "text": f"{prompt} and", "finish_reason": "length", "logprobs": logprobs})
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": choices[::-1]}
    return Reply(body=body | {"usage": {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}})


def without_echo(request: Request) -> Reply:
    """llama.cpp's response: it ignores `echo` and returns only the token it generated."""
    top = {"id": 5, "token": " about", "logprob": -2.4, "top_logprobs": []}
    choices = [
        {"index": i, "text": " about", "finish_reason": "length", "logprobs": {"content": [top]}}
        for i in range(len(request.body["prompt"]))
    ]
    return Reply(body={"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": choices})


def without_logprobs(request: Request) -> Reply:
    choices = [{"index": i, "text": p + " x", "finish_reason": "length"} for i, p in enumerate(request.body["prompt"])]
    return Reply(body={"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": choices})


def choice(tokens: dict[str, float]) -> Reply:
    return choice_of(list(tokens.items()))


def choice_of(candidates: list[tuple[str, float]]) -> Reply:
    reply = completion("A", finish="length")
    top = [{"token": t, "logprob": p, "bytes": None} for t, p in candidates]
    token = {"token": "A", "logprob": -0.1, "bytes": None, "top_logprobs": top}
    reply.body["choices"][0]["logprobs"] = {"content": [token]}
    return reply


async def ask(server: FakeServer, script: Callable[[Request], Reply], measure: LogprobMeasure) -> Answer:
    server.script, section = script, model_section(server, MODEL, api_key=None)
    [answer] = await ask_gateway(section, measuring_call(MODEL, measure), max_attempts=2)
    return answer


def measuring_call(model: str, measure: LogprobMeasure, purpose: Purpose = Purpose.LOGPROB) -> Call:
    """A call that measures the ends of the beginning, or the next token."""
    ends = ENDS if measure.needs_completions_endpoint else ()
    return Call("m", model, (Message("user", BEGINNING),), purpose, params=measure_params(measure), measure=measure,
                continuations=ends)  # fmt: skip


def with_merged_token(request: Request) -> Reply:
    reply = echo(request)
    for completion_choice in reply.body["choices"]:
        tokens = completion_choice["logprobs"]["tokens"]
        completion_choice["logprobs"]["tokens"] = [*tokens[:3], tokens[3] + tokens[4], *tokens[5:]]
        del completion_choice["logprobs"]["token_logprobs"][4]
    return reply


def with_missing_choice(request: Request) -> Reply:
    reply = echo(request)
    reply.body["choices"].pop()
    return reply


def with_missing_logprob(request: Request) -> Reply:
    reply = echo(request)
    reply.body["choices"][0]["logprobs"]["token_logprobs"][4] = None
    return reply


async def test_a_server_error_is_not_reported_as_not_measurable(server: FakeServer) -> None:
    answer = await ask(server, lambda r: error(503, "busy"), LogprobMeasure.ECHO)
    assert (answer.outcome, len(server.requests)) == (Outcome.SERVER_ERROR, 2)


async def test_a_choice_keeps_the_likeliest_tokens_as_they_came(server: FakeServer) -> None:
    answer = await ask(server, lambda r: choice({"A": -0.5, " B": -1.5, "The": -3.0}), LogprobMeasure.CHOICE)
    assert answer.outcome is Outcome.OK
    assert json.loads(answer.text or "") == [["A", -0.5], [" B", -1.5], ["The", -3.0]]
    expected = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1, "temperature": 1.0}
    assert server.requests[0].body.items() >= expected.items()


@pytest.mark.parametrize(
    ("script", "outcome"),
    [(lambda r: completion("A"), Outcome.NOT_MEASURABLE), (lambda r: choice({}), Outcome.NOT_MEASURABLE),
     (lambda r: error(400, "logprobs are not supported"), Outcome.NOT_MEASURABLE),
     (lambda r: completion(None, finish="content_filter"), Outcome.REFUSED)],
)  # fmt: skip
async def test_a_chat_without_log_probabilities(
    server: FakeServer, script: Callable[[Request], Reply], outcome: Outcome
) -> None:
    answer = await ask(server, script, LogprobMeasure.CHOICE)
    assert (answer.outcome, answer.text) == (outcome, None)


@pytest.mark.parametrize(
    ("changes", "expected_measures"),
    [
        ({"model": "embedded/smollm2-135m"}, [LogprobMeasure.CONTINUATION]),
        ({"model": "anthropic/claude-sonnet-4-5", "weights": "w"}, [LogprobMeasure.CONTINUATION]),
        ({"model": "hosted_vllm/x", "api_base": "http://x"},
         [LogprobMeasure.ECHO, LogprobMeasure.PROMPT, LogprobMeasure.CHOICE]),
        ({"model": "openai/gpt-4o"}, [LogprobMeasure.CHOICE]), ({"model": "anthropic/claude-sonnet-4-5"}, []),
    ],
)  # fmt: skip
def test_supported_measures_depend_on_the_provider(
    changes: dict[str, Any], expected_measures: list[LogprobMeasure]
) -> None:
    assert list(supported_measures(ModelSection(name="m", **changes), "auto")) == expected_measures
    assert supported_measures(ModelSection(name="m", **changes), "choice") == (LogprobMeasure.CHOICE,)
    assert supported_measures(ModelSection(name="m", **changes), "echo") == (LogprobMeasure.ECHO, LogprobMeasure.PROMPT)


def thinking(token: str, **message: object) -> Reply:
    """A next token that belongs to the model's thinking."""
    reply = choice({token: -0.1, "A": -4.0, "B": -5.0})
    reply.body["choices"][0]["message"] = {"role": "assistant", "content": "", **message}
    reply.body["choices"][0]["logprobs"]["content"][0]["token"] = token
    return reply


@pytest.mark.parametrize(
    "reply",
    [thinking("<|channel|>"), thinking("<think>"), thinking("The", reasoning_content="The")],
    ids=["gpt-oss at Together", "think tag", "reasoning in its field"],
)
async def test_log_probabilities_of_thinking_are_no_measurement(server: FakeServer, reply: Reply) -> None:
    answer = await ask(server, lambda _: reply, LogprobMeasure.CHOICE)
    assert (answer.outcome, answer.text) == (Outcome.NOT_MEASURABLE, None)
    assert "thinking" in (answer.error or "")


def listed(request: Request, mark: str = "", more: bool = False) -> Reply:
    """vLLM's response to `prompt_logprobs`; with `more`, each position also lists a likelier token."""
    assert request.path.endswith("/v1/completions")
    assert (request.body["prompt_logprobs"], request.body["max_tokens"]) == (0, 1)
    assert "echo" not in request.body
    choices = []
    for index, prompt in enumerate(request.body["prompt"]):
        tokens = [*([mark] if mark else []), *tokenize(prompt)]
        field: list[Any] = [None]
        for i, token in enumerate(tokens[1:], 1):
            field.append({str(900 - i): {"logprob": token_logprob(prompt, token), "rank": 7, "decoded_token": token}})
            if more:
                field[-1]["3"] = {"logprob": -0.01, "rank": 1, "decoded_token": " likelier"}
        choice = {"index": index, "text": " x", "finish_reason": "length", "logprobs": None, "stop_reason": None}
        choices.append({**choice, "prompt_logprobs": field})
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": choices[::-1]}
    return Reply(body=body | {"usage": {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}})


BEGIN = "<|begin_of_text|>"


@pytest.mark.parametrize(
    ("script", "measure"),
    [*((script, LogprobMeasure.ECHO) for script in (echo, partial(echo, mark=BEGIN))),
     *((s, LogprobMeasure.PROMPT) for s in (listed, partial(listed, mark=BEGIN), partial(listed, more=True)))],
)  # fmt: skip
async def test_echo_and_prompt_logprobs_sum_over_the_tokens_of_the_end_and_no_others(
    server: FakeServer, script: Callable[[Request], Reply], measure: LogprobMeasure
) -> None:
    answer = await ask(server, script, measure)
    assert answer.outcome is Outcome.OK
    assert server.requests[0].body["prompt"] == [BEGINNING + end for end in ENDS]
    expected_logprobs = [sum(token_logprob(BEGINNING, t) for t in tokenize(f"x{end}")[1:]) for end in ENDS]
    assert json.loads(answer.text or "") == pytest.approx(expected_logprobs)
    assert (answer.prompt_tokens, len(server.requests)) == (30, 1)


def with_changed_field(change: Callable[[list[Any]], Any]) -> Callable[[Request], Reply]:
    """Like `listed`, with `change` applied to the first prompt's `prompt_logprobs`."""

    def script(request: Request) -> Reply:
        reply = listed(request)
        reply.body["choices"][0]["prompt_logprobs"] = change(reply.body["choices"][0]["prompt_logprobs"])
        return reply

    return script


def _change_last_token(field: list[Any]) -> list[Any]:
    next(iter(field[-1].values()))["decoded_token"] = " other"
    return field


UNUSABLE: dict[LogprobMeasure, list[Callable[[Request], Reply]]] = {
    LogprobMeasure.ECHO: [
        without_echo, without_logprobs, with_merged_token, with_missing_choice, with_missing_logprob,
        *(lambda _, s=s: error(s, "echo is not supported") for s in (400, 404, 405, 422, 501)),
    ],
    LogprobMeasure.PROMPT: [
        without_logprobs, with_changed_field(lambda f: None), with_changed_field(lambda f: f[:-1]),
        with_changed_field(lambda f: [*f[:3], None, *f[4:]]), with_changed_field(lambda f: f[:1]),
        with_changed_field(_change_last_token), lambda _: error(400, "unknown field prompt_logprobs"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("measure", "script"), [(m, script) for m, scripts in UNUSABLE.items() for script in scripts])
async def test_a_response_without_usable_log_probabilities_is_not_measurable(
    server: FakeServer, measure: LogprobMeasure, script: Callable[[Request], Reply]
) -> None:
    answer = await ask(server, script, measure)
    assert (answer.outcome, answer.text) == (Outcome.NOT_MEASURABLE, None)
    assert len(server.requests) == 1


def altered(alter: Callable[[list[Any]], list[Any]]) -> Callable[[Request], Reply]:
    """An `echo` response whose log-probabilities of each prompt are altered."""

    def script(request: Request) -> Reply:
        reply = echo(request)
        for completion_choice in reply.body["choices"]:
            logprobs = completion_choice["logprobs"]
            logprobs["token_logprobs"] = [None, *alter(logprobs["token_logprobs"][1:])]
        return reply

    return script


IMPOSSIBLE: list[tuple[Callable[[list[Any]], list[Any]], str]] = [
    (lambda values: [math.exp(value) for value in values], "probabilities in place of log-probabilities"),
    (lambda values: [-10 * value for value in values], "above 0"),
    (lambda values: [*values[:-2], 0.002, values[-1]], "probabilities in place|above 0"),
    (lambda values: [*values[:-2], -9999.0, values[-1]], "placeholder, -9999"),
    (lambda values: [*values[:-2], -1000.0, values[-1]], "placeholder, -1000"),
    (lambda values: [0.0] * len(values), "the same log-probability, 0"),
    (lambda values: [-2.5] * len(values), "the same log-probability, -2.5"),
]


@pytest.mark.parametrize(("alter", "reason"), IMPOSSIBLE)
async def test_values_that_no_log_probability_has_are_not_measurable(
    server: FakeServer, alter: Callable[[list[Any]], list[Any]], reason: str
) -> None:
    answer = await ask(server, altered(alter), LogprobMeasure.ECHO)
    assert (answer.outcome, answer.text) == (Outcome.NOT_MEASURABLE, None)
    assert re.search(reason, answer.error or "")

    def alter_listed(request: Request) -> Reply:
        reply = listed(request)
        for completion_choice in reply.body["choices"]:
            tokens = [next(iter(entry.values())) for entry in completion_choice["prompt_logprobs"][1:]]
            for token, value in zip(tokens, alter([token["logprob"] for token in tokens] + [-1.0]), strict=False):
                token["logprob"] = value
        return reply

    if "[-2]" not in reason and alter is not IMPOSSIBLE[2][0]:
        in_list = await ask(server, alter_listed, LogprobMeasure.PROMPT)
        assert in_list.outcome is Outcome.NOT_MEASURABLE


@pytest.mark.parametrize("values", [[-999.0, -0.5], [0.0009, -8.0], [0.0, -4.7], [-0.69, -0.69]])
async def test_possible_values_are_measured(server: FakeServer, values: list[float]) -> None:
    answer = await ask(server, lambda _: choice(dict(zip(("A", "B"), values, strict=True))), LogprobMeasure.CHOICE)
    assert answer.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("candidates", "reason"),
    [([("A", 0.6), ("B", 0.3), ("C", 0.1)], "probabilities in place"),
     ([("A", 0.5), ("B", -0.5), ("C", -0.6)], "above 0"),
     ([("A", -0.1), ("B", -9999.0), ("C", -9999.0)], "placeholder"),
     ([("A", -1.1), ("B", -1.1), ("C", -1.1)], "the same log-probability"),
     ([("A", -0.2), ("A", -0.2), ("B", -1.8)], "the token 'A' twice"),
     ([("A", -3.0), ("A", -3.0), ("B", -0.2)], "the token 'A' twice"), ([("A", 0.0), ("B", 0.0)], "add up to 2,"),
     ([("A", -0.1), ("B", -0.2), ("C", -0.3)], "add up to 2.46"),
     ([("A", -0.3), ("A", -0.2), ("B", -1.8)], "add up to 1.72")],
)  # fmt: skip
async def test_candidates_that_no_model_has_or_that_are_no_distribution_are_not_measurable(
    server: FakeServer, candidates: list[tuple[str, float]], reason: str
) -> None:
    answer = await ask(server, lambda _: choice_of(candidates), LogprobMeasure.CHOICE)
    assert (answer.outcome, answer.text) == (Outcome.NOT_MEASURABLE, None)
    assert reason in (answer.error or "")


@pytest.mark.parametrize(
    "candidates",
    [
        [("A", -0.7), (" A", -0.7), ("B", -5.0)],
        [("A", -0.7), ("A", -1.2), ("B", -3.0)],  # tokens with and without a space before them, shown alike
        [("A", -0.2), ("B", -2.0), ("\ufffd", -9.0), ("\ufffd", -9.0)],
    ],
)
async def test_different_tokens_with_one_text_are_measured(
    server: FakeServer, candidates: list[tuple[str, float]]
) -> None:
    answer = await ask(server, lambda _: choice_of(candidates), LogprobMeasure.CHOICE)
    assert (answer.outcome, json.loads(answer.text or "")) == (Outcome.OK, list(map(list, candidates)))
