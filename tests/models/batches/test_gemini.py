"""Gemini's batches as they are documented: the responses of a finished batch, its states, and what is not one."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, strategies as st

from auditor.models.batches.gemini import GEMINI
from auditor.models.batches.provider import BatchCallResponse, BatchClient
from auditor.models.litellm_client import close_http_clients
from tests.support.fake_batches import FakeBatches
from tests.support.fake_server import FakeServer

KEYS = ("a", "b", "c")
ANSWERS = [{"candidates": [{"content": {"parts": [{"text": key}]}}]} for key in KEYS]


def read(operation: Any) -> list[BatchCallResponse | None]:
    return list(GEMINI.iter_responses(io.BytesIO(json.dumps(operation).encode()), KEYS))


def finished(responses: list[Any]) -> dict[str, Any]:
    return {"name": "batches/1", "done": True, "response": {"inlinedResponses": {"inlinedResponses": responses}}}


def test_responses_are_matched_by_their_keys() -> None:
    responses = [{"metadata": {"key": key}, "response": a} for key, a in zip(KEYS, ANSWERS, strict=True)]
    for operation in (
        finished(responses[::-1]),
        {"metadata": {"output": {"inlinedResponses": {"inlinedResponses": responses[::-1]}}}},
    ):
        parsed = read(operation)
        assert [response and response.key for response in parsed] == ["c", "b", "a"]
        assert [json.loads(response.body) for response in parsed if response] == ANSWERS[::-1]


def test_responses_without_keys_are_not_matched_by_their_order() -> None:
    """The service returns them in another order than that of the requests, which its reference promises."""
    assert read(finished([{"response": a} for a in ANSWERS[::-1]])) == [None] * 3


def test_the_only_response_to_the_only_call_needs_no_key() -> None:
    file = io.BytesIO(json.dumps(finished([{"response": ANSWERS[0]}])).encode())
    [response] = GEMINI.iter_responses(file, ["a"])
    assert response is not None
    assert (response.key, json.loads(response.body)) == ("a", ANSWERS[0])
    foreign = io.BytesIO(json.dumps(finished([{"metadata": {"key": "b"}, "response": ANSWERS[0]}])).encode())
    [response] = GEMINI.iter_responses(foreign, ["a"])
    assert response is not None
    assert response.key == "b"


def test_only_a_batch_that_did_not_succeed_may_have_no_responses() -> None:
    """The others' are elsewhere, such as in a file: they were charged, and must not be requested again."""
    in_file = {"done": True, "metadata": {"state": "BATCH_STATE_SUCCEEDED"}, "response": {"responsesFile": "files/1"}}
    assert read(in_file) == read({"error": {"code": 503}}) == read([]) == [None]
    assert read({"done": True, "metadata": {"state": "BATCH_STATE_CANCELLED"}}) == []
    assert read({"done": True, "metadata": {"state": "BATCH_STATE_FAILED"}}) == []
    assert read({"done": True, "error": {"code": 13}}) == []


def test_errors_have_the_status_of_a_single_call() -> None:
    codes = {3: 400, 8: 429, 13: 500, 14: 503, 99: 500}
    for code, status in codes.items():
        [response] = read(finished([{"metadata": {"key": "a"}, "error": {"code": code, "message": "No."}}]))
        assert response is not None
        assert response.http_status == status
        assert json.loads(response.body)["error"]["message"] == "No."
    [unanswered] = read(finished([{"metadata": {"key": "a"}}]))
    assert unanswered is not None
    assert unanswered.http_status is None


@given(st.binary(max_size=100) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_no_file_breaks_the_reading(content: bytes) -> None:
    list(GEMINI.iter_responses(io.BytesIO(content), KEYS))


def test_the_base_url_is_that_before_the_model() -> None:
    base = "https://generativelanguage.googleapis.com/v1beta"
    assert GEMINI.base_url(f"{base}/models/gemini-2.5-flash:generateContent") == base
    for other in (f"{base}/openai/chat/completions", f"{base}/models/a/b:generateContent", f"{base}/models/x:predict"):
        assert GEMINI.base_url(other) is None


STATES: dict[str, tuple[dict[str, Any], tuple[str, bool, str | None, bool, bool]]] = {
    "pending": ({"metadata": {"state": "BATCH_STATE_PENDING"}}, ("pending", False, None, False, False)),
    "running": ({"metadata": {"state": "JOB_STATE_RUNNING"}}, ("running", False, None, False, False)),
    "succeeded": ({"metadata": {"state": "BATCH_STATE_SUCCEEDED"}}, ("succeeded", True, None, False, True)),
    "done": ({"metadata": {}, "done": True}, ("done", True, None, False, True)),
    "expired": ({"metadata": {"state": "JOB_STATE_EXPIRED"}}, ("expired", True, None, False, False)),
    "cancelled": ({"metadata": {"state": "BATCH_STATE_CANCELLED"}}, ("cancelled", True, None, False, True)),
    "failed": ({"metadata": {"state": "BATCH_STATE_FAILED"}, "error": {"code": 3, "message": "Bad model."}},
               ("failed", True, "Bad model.", False, False)),
    "full": ({"done": True, "error": {"code": 8, "message": "Too many enqueued tokens."}},
             ("done", True, "Too many enqueued tokens.", True, False)),
    "failed half-way": ({"metadata": {"state": "BATCH_STATE_FAILED", "batchStats": {"successfulRequestCount": "3"}},
                         "error": {"code": 13, "message": "No."}}, ("failed", True, None, False, True)),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
async def test_each_state_of_a_batch(name: str) -> None:
    operation, expected = STATES[name]

    def reply(*_: str) -> web.Response:
        return web.json_response({"name": "batches/1", **operation})

    with FakeServer(batches=FakeBatches(instead=reply)) as server:
        base = server.url.removesuffix("/v1") + "/v1beta"
        try:
            status = await GEMINI.fetch_status(BatchClient(base, {}, f"{base}/models/m:generateContent"), "batches/1")
        finally:
            await close_http_clients()
    observed = (status.provider_status, status.has_ended, status.rejection_reason, status.is_queue_full)
    assert (*observed, bool(status.result_paths)) == expected
    assert status.n_succeeded == (3 if name == "failed half-way" else 0)
