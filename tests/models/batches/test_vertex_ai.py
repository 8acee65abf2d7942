"""Vertex AI's batches as they are documented: lines of responses, states of a job, and files in a bucket."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from hypothesis import given, strategies as st

from auditor.models.batches.provider import BatchCallResponse, BatchClient, BatchRequestFailed
from auditor.models.batches.vertex_ai import VertexBatches
from auditor.models.litellm_client import close_http_clients
from auditor.models.transport import SERVER_STUB

VERTEX = VertexBatches("gs://bucket/audits/")
REGION = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1"
CALL_URL = f"{REGION}/publishers/google/models/gemini-2.5-flash:generateContent"
KEYS = ("a", "b", "c")


def body(text: str, seed: int = 1) -> dict[str, Any]:
    return {
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "system_instruction": {"parts": [{"text": "Answer."}]},
        "generationConfig": {"temperature": 1, "seed": seed},
    }


def respelled(text: str, seed: int = 1) -> dict[str, Any]:
    """The same body as Google may repeat it: other order and form of names, and numbers with a point."""
    return {
        "generationConfig": {"seed": float(seed), "temperature": 1.0},
        "systemInstruction": {"parts": [{"text": "Answer."}]},
        "contents": [{"parts": [{"text": text}], "role": "user"}],
    }


def line(request: dict[str, Any], text: str) -> dict[str, Any]:
    response = {"candidates": [{"content": {"parts": [{"text": text}]}}]}
    return {"status": "", "processed_time": "2026-11-28T07:00:00Z", "request": request, "response": response}


def read(bodies: list[dict[str, Any]], lines: list[Any]) -> list[BatchCallResponse | None]:
    """The responses in a file that begins with the lines of these requests."""
    requests = [VERTEX.format_call(key, json.dumps(b).encode()) for key, b in zip(KEYS, bodies, strict=True)]
    content = b"\n".join([*requests, b"", *(json.dumps(x).encode() for x in lines)])
    return list(VERTEX.iter_responses(io.BytesIO(content), KEYS))


def texts_by_key(responses: list[BatchCallResponse | None]) -> dict[str, str]:
    return {
        r.key: json.loads(r.body)["candidates"][0]["content"]["parts"][0]["text"] for r in responses if r is not None
    }


def test_responses_are_matched_by_their_requests_content() -> None:
    bodies = [body("x"), body("y"), body("x", seed=2)]
    lines = [line(respelled("x", seed=2), "third"), line(respelled("y"), "second"), line(body("x"), "first")]
    assert texts_by_key(read(bodies, lines)) == {"a": "first", "b": "second", "c": "third"}


def test_equal_requests_get_one_response_each() -> None:
    bodies = [body("x"), body("y"), body("x")]
    lines = [line(body("x"), "1"), line(body("x"), "2"), line(body("y"), "3"), line(body("x"), "too many")]
    responses = read(bodies, lines)
    assert texts_by_key(responses) == {"a": "1", "c": "2", "b": "3"}
    assert responses[-1] is None


def test_lines_of_other_requests_and_broken_lines_are_no_responses() -> None:
    lines = [line(body("x", seed=1_000), "other"), "text", {"response": {}}, line({"contents": float("nan")}, "nan")]
    assert read([body("x"), body("y"), body("z")], lines) == [None] * 4


@pytest.mark.parametrize(
    ("status", "expected_status", "expected_message"),
    [
        ('Bad Request: {"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}', 400, "No."),
        ('{"error": {"code": 429, "message": "Resource exhausted."}}', 429, "Resource exhausted."),
        ("Too Many Requests", 429, "Too Many Requests"),
        ("Bad Request: {truncated", 400, "Bad Request: {truncated"),
        ("Internal error occurred.", 500, "Internal error occurred."),
        ('Strange: {"error": {"code": 7, "message": "No."}}', 500, "No."),
    ],
)
def test_a_failed_line_has_the_status_of_a_single_call(
    status: str, expected_status: int, expected_message: str
) -> None:
    [response] = read([body("x"), body("y"), body("z")], [{**line(body("y"), "-"), "status": status, "response": {}}])
    assert response is not None
    assert (response.key, response.http_status) == ("b", expected_status)
    assert json.loads(response.body)["error"] == {"code": expected_status, "message": expected_message}


def test_a_line_without_response_and_status_was_not_answered() -> None:
    [response] = read([body("x"), body("y"), body("z")], [{"request": body("z"), "status": ""}])
    assert response is not None
    assert (response.key, response.http_status) == ("c", None)


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_no_file_breaks_the_reading(content: bytes) -> None:
    list(VERTEX.iter_responses(io.BytesIO(content), KEYS))


def test_deeply_nested_lines_are_no_responses() -> None:
    nested = '{"request": ' + '{"a": ' * 900 + "1" + "}" * 900 + "}"
    assert list(VERTEX.iter_responses(io.BytesIO(f"{nested}\n{nested}".encode()), ())) == [None, None]


def test_only_gemini_models_of_a_publisher_have_batches() -> None:
    assert VERTEX.base_url(CALL_URL) == REGION
    for other in (
        f"{REGION}/publishers/anthropic/models/claude-haiku-4-5:rawPredict",
        f"{REGION}/endpoints/123:generateContent",
        f"{REGION}/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
    ):
        assert VERTEX.base_url(other) is None


# --- requests ---------------------------------------------------------------------------------------------------------


@contextmanager
def answered(replies: dict[str, Any]) -> Iterator[list[tuple[str, str, bytes]]]:
    """Answer each request by the reply for its path, without sending it; yields method, URL and body of each."""
    requests: list[tuple[str, str, bytes]] = []

    def reply(request: httpx.Request, content: bytes) -> httpx.Response:
        requests.append((request.method, str(request.url), content))
        response = replies[unquote(urlsplit(str(request.url)).path)]
        return response if isinstance(response, httpx.Response) else httpx.Response(200, json=response)

    token = SERVER_STUB.set(reply)
    try:
        yield requests
    finally:
        SERVER_STUB.reset(token)


@pytest.fixture
async def client() -> Any:
    yield BatchClient(REGION, {"Authorization": "Bearer ya29.token"}, CALL_URL)
    await close_http_clients()


JOBS_PATH = urlsplit(REGION).path + "/batchPredictionJobs"
UPLOAD_PATH, LIST_PATH = "/upload/storage/v1/b/bucket/o", "/storage/v1/b/bucket/o"
JOB = {
    "name": "projects/510528649030/locations/europe-west1/batchPredictionJobs/38148",
    "inputConfig": {"instancesFormat": "jsonl", "gcsSource": {"uris": ["gs://bucket/audits/t/requests.jsonl"]}},
    "outputConfig": {
        "predictionsFormat": "jsonl",
        "gcsDestination": {"outputUriPrefix": "gs://bucket/audits/t/responses"},
    },
}


async def test_a_job_reads_a_file_that_is_written_into_the_bucket_first(client: BatchClient) -> None:
    calls = [VERTEX.format_call(key, b'{"contents":\n[]}') for key in KEYS]
    with answered({UPLOAD_PATH: {"name": "x"}, JOBS_PATH: JOB}) as requests:
        assert await VERTEX.submit(client, calls, "t") == JOB["name"]
    [(upload_method, upload_url, content), (create_method, create_url, job)] = requests
    assert (upload_method, create_method) == ("POST", "POST")
    assert urlsplit(upload_url).netloc == "storage.googleapis.com"
    query = {"uploadType": ["media"], "ifGenerationMatch": ["0"], "name": ["audits/t/requests.jsonl"]}
    assert parse_qs(urlsplit(upload_url).query) == query
    assert [json.loads(text) for text in content.splitlines()] == [{"request": {"contents": []}}] * 3
    assert create_url == f"{REGION}/batchPredictionJobs"
    expected_job = {"displayName": "t", "model": "publishers/google/models/gemini-2.5-flash", **JOB}
    assert json.loads(job) == {name: value for name, value in expected_job.items() if name != "name"}


async def test_a_file_of_an_earlier_attempt_is_not_written_again(client: BatchClient) -> None:
    conflict = httpx.Response(412, json={"error": {"code": 412, "message": "conditionNotMet"}})
    with answered({UPLOAD_PATH: conflict, JOBS_PATH: JOB}):
        assert await VERTEX.submit(client, [b"{}"], "t") == JOB["name"]
    forbidden = httpx.Response(403, json={"error": {"code": 403, "message": "no storage.objects.create access"}})
    with answered({UPLOAD_PATH: forbidden}), pytest.raises(BatchRequestFailed, match=r"storage\.objects\.create"):
        await VERTEX.submit(client, [b"{}"], "t")


async def test_a_submitted_job_is_found_by_its_tag(client: BatchClient) -> None:
    jobs = [{"name": "other", "displayName": "tt"}, {"name": "ours", "displayName": "t"}]
    for page, expected in (
        ({"batchPredictionJobs": jobs}, ["ours"]),
        ({"batchPredictionJobs": jobs[:1]}, []),
        ({}, []),
    ):
        with answered({JOBS_PATH: page}) as requests:
            assert await VERTEX.find_submitted(client, "t", 3, datetime.now(UTC), set()) == expected
        assert parse_qs(urlsplit(requests[0][1]).query)["filter"] == ['display_name="t"']


FILES = {"items": [{"name": f"audits/t/responses/prediction-model-1/predictions{n}.jsonl"} for n in (2, 1)]}
WITH_INTERMEDIATE = {"items": [{"name": f"audits/t/responses/prediction-model-1/incremental_predictions{n}.jsonl"}
                               for n in (1, 2)] + FILES["items"]}  # fmt: skip
NOT_RESPONSES = {"items": [{"name": "audits/t/responses/prediction-model-1/stats.txt"}]}
ERROR = {"error": {"code": 3, "message": "Bad model."}}
STATES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, bool, str | None, bool, int]]] = {
    "queued": ({"state": "JOB_STATE_QUEUED"}, {}, ("queued", False, None, False, 0)),
    "running": ({"state": "JOB_STATE_RUNNING"}, {}, ("running", False, None, False, 0)),
    "paused": ({"state": "JOB_STATE_PAUSED"}, {}, ("paused", False, None, False, 0)),
    "succeeded": ({"state": "JOB_STATE_SUCCEEDED"}, FILES, ("succeeded", True, None, False, 3)),
    "twice": ({"state": "JOB_STATE_SUCCEEDED"}, WITH_INTERMEDIATE, ("succeeded", True, None, False, 3)),
    "partially": ({"state": "JOB_STATE_PARTIALLY_SUCCEEDED"}, FILES, ("partially_succeeded", True, None, False, 3)),
    "expired": ({"state": "JOB_STATE_EXPIRED"}, FILES, ("expired", True, None, False, 3)),
    "cancelled": ({"state": "JOB_STATE_CANCELLED"}, {}, ("cancelled", True, None, False, 0)),
    "failed": ({"state": "JOB_STATE_FAILED", **ERROR}, NOT_RESPONSES, ("failed", True, "Bad model.", False, 0)),
    "failed half-way": ({"state": "JOB_STATE_FAILED", **ERROR}, FILES, ("failed", True, None, False, 3)),
    "full": ({"state": "JOB_STATE_FAILED", "error": {"code": 8, "message": "Quota."}}, {},
             ("failed", True, "Quota.", True, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
async def test_each_state_of_a_job(client: BatchClient, name: str) -> None:
    state, files, expected = STATES[name]
    with answered({f"{JOBS_PATH}/38148": {**JOB, **state}, LIST_PATH: files}):
        status = await VERTEX.fetch_status(client, str(JOB["name"]))
    observed = (status.provider_status, status.has_ended, status.rejection_reason, status.is_queue_full)
    assert (*observed, len(status.result_paths)) == expected
    folder = "https://storage.googleapis.com/storage/v1/b/bucket/o/audits/t"
    names = ["requests", *(f"responses/prediction-model-1/predictions{n}" for n in (1, 2))]
    urls = [f"{folder}/{name}.jsonl?alt=media" for name in names]
    assert [unquote(url) for url in status.result_paths] == urls[: expected[-1]]


async def test_files_outside_of_a_bucket_are_not_read(client: BatchClient) -> None:
    job = {**JOB, "state": "JOB_STATE_SUCCEEDED", "outputConfig": {"bigqueryDestination": {"outputUri": "bq://x"}}}
    with answered({f"{JOBS_PATH}/38148": job}) as requests, pytest.raises(BatchRequestFailed, match="in no bucket"):
        await VERTEX.fetch_status(client, str(JOB["name"]))
    assert len(requests) == 1


async def test_requests_are_repeated_once_with_new_headers_if_the_old_ones_are_refused() -> None:
    tokens = iter(["ya29.second", "ya29.second"])

    async def renew() -> dict[str, str]:
        return {"Authorization": f"Bearer {next(tokens)}", "Content-Length": "5"}

    client = BatchClient(REGION, {"Authorization": "Bearer ya29.first"}, CALL_URL, renew)
    refusal = httpx.Response(401, json={"error": {"code": 401, "message": "Expired."}})
    try:
        with answered({JOBS_PATH: refusal}) as requests:
            with pytest.raises(BatchRequestFailed, match="Expired"):
                await client.request_json("GET", "/batchPredictionJobs")
            assert len(requests) == 2
            with pytest.raises(BatchRequestFailed, match="Expired"):
                await client.request_json("GET", "/batchPredictionJobs")  # the headers are the same as before
            assert len(requests) == 3
    finally:
        await close_http_clients()
