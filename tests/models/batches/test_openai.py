"""OpenAI's batches: lines of results as several servers write them, and batches that failed."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from aiohttp import web

from auditor.models.batches.openai import OPENAI
from auditor.models.batches.provider import BatchClient
from auditor.models.litellm_client import close_http_clients
from tests.support.fake_batches import FakeBatches
from tests.support.fake_server import FakeServer

ANSWER: dict[str, Any] = {"choices": []}
EXPIRED = {"code": "batch_expired", "message": "Not executed."}
OVERLOADED = {"error": {"message": "Overloaded.", "code": 503}}
LINES: dict[str, tuple[dict[str, Any] | None, Any, int | None]] = {
    "an answer": ({"status_code": 200, "body": ANSWER}, None, 200),
    "an answer without a status": ({"body": ANSWER}, None, 200),
    "an error": ({"status_code": 429, "body": OVERLOADED}, None, 429),
    "an error without a status": ({"body": OVERLOADED}, None, 503),
    "an error as a text": ({"body": json.dumps(OVERLOADED)}, None, 503),
    "an error without a status and a number": ({"body": {"error": {"code": "server_error"}}}, None, None),
    "not sent": (None, EXPIRED, None),
    "not sent, with a body": ({"status_code": 0, "body": {"detail": "not executed"}}, EXPIRED, None),
    "not sent, with an empty error": ({"status_code": 0, "body": ANSWER}, {}, 200),
}


@pytest.mark.parametrize("name", LINES)
def test_only_a_line_without_an_error_is_an_answer(name: str) -> None:
    response, error, expected_status = LINES[name]
    line = {"custom_id": "a", "response": response, "error": error}
    [parsed] = OPENAI.iter_responses(io.BytesIO(json.dumps(line).encode()), ["a"])
    assert parsed is not None
    assert (parsed.key, parsed.http_status) == ("a", expected_status)
    assert bool(parsed.not_sent_reason) == (expected_status is None)


@pytest.mark.parametrize(
    ("status", "has_ended"),
    [("COMPLETED", True), ("canceled", True), ("SUCCESS", True), ("ended", True), ("IN_PROGRESS", False),
     ("cancelling", False), ("finalizing", False)],
)  # fmt: skip
async def test_statuses_in_other_servers_words_end_a_batch(status: str, has_ended: bool) -> None:
    """Their answers were waited for without end."""
    batch = {"status": status, "output_file_id": "f"}
    with FakeServer(batches=FakeBatches(instead=lambda *_: web.json_response(batch))) as server:
        try:
            batch_status = await OPENAI.fetch_status(BatchClient(server.url, {}, f"{server.url}/chat/completions"), "b")
        finally:
            await close_http_clients()
    assert (batch_status.has_ended, batch_status.result_paths) == (has_ended, ("/files/f/content",))


@pytest.mark.parametrize("n_completed", [0, 3])
async def test_a_failed_batch_is_rejected_unless_the_provider_counts_answers(n_completed: int) -> None:
    batch = {
        "status": "failed",
        "output_file_id": None,
        "errors": {"data": [{"message": "No."}]},
        "request_counts": {"total": 5, "completed": n_completed, "failed": 0},
    }
    with FakeServer(batches=FakeBatches(instead=lambda *_: web.json_response(batch))) as server:
        try:
            status = await OPENAI.fetch_status(BatchClient(server.url, {}, f"{server.url}/chat/completions"), "b")
        finally:
            await close_http_clients()
    assert (status.rejection_reason, status.n_succeeded) == ((None, 3) if n_completed else ("No.", 0))
