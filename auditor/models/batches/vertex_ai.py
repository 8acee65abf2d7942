"""Vertex AI's batches of Gemini models: requests and responses are files of JSON lines in a bucket of the user's.

Sources: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/batch-prediction-from-cloud-storage (files),
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.batchPredictionJobs (jobs) and
https://cloud.google.com/storage/docs/json_api/v1/objects (bucket).

A line of the responses repeats its request and names no key, and the order of lines is not that of the requests. So
the file of requests is read together with the responses, which are matched by their requests' content.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import quote, urlsplit

from auditor.domain import canonical_hash
from auditor.models.batches.gemini import RESOURCE_EXHAUSTED
from auditor.models.batches.openai import PAGE_SIZE
from auditor.models.batches.provider import (
    FILE_TRANSFER_TIMEOUT_S,
    BatchCallResponse,
    BatchClient,
    BatchRequestFailed,
    BatchStatus,
    encode_body,
    iter_json_lines,
    quote_path_segment,
    read_count,
    require_text,
)

CALL_URL_PATTERN = re.compile(
    r"(?P<base>.+/locations/[^/]+)/(?P<model>publishers/google/models/[^/:]+):generateContent"
)
GOOGLE_DOMAIN = "googleapis.com"
STORAGE_ORIGIN = f"https://storage.{GOOGLE_DOMAIN}"
BUCKET_URI_PATTERN = re.compile(r"gs://(?P<bucket>[^/]+)/(?P<name>.+)")
END_STATES = ("succeeded", "failed", "cancelled", "expired", "partially_succeeded")
INTERMEDIATE_FILE = "incremental_predictions"
"""Part of the path of a file with responses that a job may also write into its final files."""
HTTP_STATUS_BY_PHRASE = {status.phrase.lower(): status.value for status in HTTPStatus}


class VertexBatches:
    """`BatchProvider` for batch prediction jobs of Vertex AI.

    The job of a tag reads `BUCKET/TAG/requests.jsonl`, and writes into a folder below `BUCKET/TAG/responses`.
    """

    max_calls = 50_000  # the provider accepts 200,000
    max_bytes = 100_000_000  # the provider accepts 1 GB
    is_match_certain = True

    def __init__(self, bucket: str) -> None:
        """Store the URI of a bucket or of a folder in one, such as "gs://my-bucket/audits"."""
        self._bucket_uri = bucket.rstrip("/")

    def base_url(self, call_url: str) -> str | None:
        """The URL of the project's region."""
        match = CALL_URL_PATTERN.fullmatch(call_url.partition("?")[0])
        return match["base"] if match else None

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether jobs can be listed; the list of none is empty."""
        return await client.has_list(
            "/batchPredictionJobs", "batchPredictionJobs", size_param="pageSize", may_be_absent=True
        )

    def format_call(self, key: str, body: bytes) -> bytes:
        """Format one call as a line of the file of requests, which has no place for its key."""
        return b'{"request": ' + body.replace(b"\n", b" ") + b"}"

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """Write the calls into the bucket, create a job with the tag as its name, and return the job's name."""
        folder = f"{self._bucket_uri}/{tag}"
        await _upload_once(client, f"{folder}/requests.jsonl", b"\n".join(formatted_calls) + b"\n")
        match = CALL_URL_PATTERN.fullmatch(client.call_url.partition("?")[0])
        assert match is not None
        job = {
            "displayName": tag,
            "model": match["model"],
            "inputConfig": {"instancesFormat": "jsonl", "gcsSource": {"uris": [f"{folder}/requests.jsonl"]}},
            "outputConfig": {
                "predictionsFormat": "jsonl",
                "gcsDestination": {"outputUriPrefix": f"{folder}/responses"},
            },
        }
        return require_text(await client.request_json("POST", "/batchPredictionJobs", json=job), "name")

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """Return the name of the job with this tag, as a list of one; empty if there is none."""
        params = {"filter": f'display_name="{tag}"', "pageSize": PAGE_SIZE}
        async for job in _iter_pages(client, "/batchPredictionJobs", "batchPredictionJobs", params):
            if job.get("displayName") == tag:
                return [require_text(job, "name")]
        return []

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Fetch a job's state; once it has ended, the URLs of its file of requests and of all files of responses.

        A job that failed or was cancelled has responses to the calls that were completed until then.
        """
        job_id = quote_path_segment(batch_id.rpartition("/")[2])
        job = await client.request_json("GET", f"/batchPredictionJobs/{job_id}")
        state = str(job.get("state") or "").removeprefix("JOB_STATE_").lower()
        if state not in END_STATES:
            return BatchStatus(state, has_ended=False)
        requests_uri = _find_uri(job, "inputConfig", "gcsSource", "uris")
        responses_uri = _find_uri(job, "outputConfig", "gcsDestination", "outputUriPrefix")
        folder_uri = responses_uri.rstrip("/") + "/"
        bucket, prefix = _split_uri(folder_uri)
        url = f"{_storage_origin(client)}/storage/v1/b/{quote_path_segment(bucket)}/o"
        names = [str(item.get("name")) async for item in _iter_pages(client, url, "items", {"prefix": prefix})]
        response_urls = [_file_url(client, f"gs://{bucket}/{name}") for name in _select_response_files(names)]
        n_succeeded = read_count(job.get("completionStats"), "successfulCount")
        if state == "failed" and not response_urls and not n_succeeded:
            error = job["error"] if isinstance(job.get("error"), dict) else {}
            reason = str(error.get("message") or "the provider gave no reason")
            return BatchStatus(state, True, reason, error.get("code") == RESOURCE_EXHAUSTED)
        urls = (_file_url(client, requests_uri), *response_urls) if response_urls else ()
        return BatchStatus(state, True, result_paths=urls, n_succeeded=n_succeeded)

    def iter_responses(self, file: IO[bytes], call_keys: Sequence[str]) -> Iterator[BatchCallResponse | None]:
        """Yield the response to each call; the file begins with the lines of the requests, in the order of the keys.

        Calls with equal requests get their responses in the order of the lines.
        """
        keys_by_request: defaultdict[str, deque[str]] = defaultdict(deque)
        for number, line in enumerate(iter_json_lines(file)):
            request = _hash_request((line or {}).get("request"))
            if number < len(call_keys):
                keys_by_request[request].append(call_keys[number])
            elif line is not None and (keys := keys_by_request.get(request)):
                yield _parse_line(keys.popleft(), line)
            else:
                yield None


# --- lines --------------------------------------------------------------------------------------------------------


def _hash_request(request: Any) -> str:
    """A hash that is equal for equal requests: Google may change the order of names, their form, and 1 to 1.0."""
    try:
        return canonical_hash(_canonical_value(request))
    except (ValueError, RecursionError):  # NaN, or nested too deeply: not one of ours
        return ""


def _canonical_value(value: Any) -> Any:
    """Copy a JSON value with names in lower case without underscores, and whole numbers as integers."""
    if isinstance(value, dict):
        return {name.replace("_", "").lower(): _canonical_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_canonical_value(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parse_line(key: str, line: dict[str, Any]) -> BatchCallResponse:
    """Parse a line's response, or its status, which is empty if the call succeeded.

    The status of a failed call is a text, such as 'Bad Request: {"error": {"code": 400, …}}'.
    """
    status, response = line.get("status"), line.get("response")
    if not status and isinstance(response, dict) and response:
        return BatchCallResponse(key, HTTPStatus.OK, encode_body(response))
    if not isinstance(status, str) or not status:
        return BatchCallResponse(key, None, not_sent_reason="the batch has no result for this call")
    phrase, _, details = status.partition("{")
    try:
        error = json.loads("{" + details)["error"]
        code, message = error["code"], error["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code, message = None, status
    if type(code) is not int or not 400 <= code < 600:
        phrase = phrase.partition(":")[0].strip().lower()
        code = HTTP_STATUS_BY_PHRASE.get(phrase, HTTPStatus.INTERNAL_SERVER_ERROR.value)
    return BatchCallResponse(key, code, encode_body({"error": {"code": code, "message": message}}))


# --- bucket -------------------------------------------------------------------------------------------------------


async def _upload_once(client: BatchClient, uri: str, content: bytes) -> None:
    """Write a file that does not exist yet; one that exists is of an earlier attempt with the same content."""
    bucket, name = _split_uri(uri)
    query = f"uploadType=media&ifGenerationMatch=0&name={quote(name, safe='')}"
    try:
        await client.request_json(
            "POST",
            f"{_storage_origin(client)}/upload/storage/v1/b/{quote_path_segment(bucket)}/o?{query}",
            total_timeout_s=FILE_TRANSFER_TIMEOUT_S,
            content_type="application/jsonl",
            content=content,
        )
    except BatchRequestFailed as error:
        if error.http_status != HTTPStatus.PRECONDITION_FAILED:
            raise


async def _iter_pages(
    client: BatchClient, path: str, field: str, params: dict[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """Yield the objects in a field of each page of a list."""
    page_token: dict[str, str] = {}
    while True:
        page = await client.request_json("GET", path, params={**params, **page_token})
        for item in page.get(field) or []:
            if isinstance(item, dict):
                yield item
        if not isinstance(next_token := page.get("nextPageToken"), str) or not next_token:
            return
        page_token = {"pageToken": next_token}


def _file_url(client: BatchClient, uri: str) -> str:
    """The URL of a file's content."""
    bucket, name = _split_uri(uri)
    return f"{_storage_origin(client)}/storage/v1/b/{quote_path_segment(bucket)}/o/{quote(name, safe='')}?alt=media"


def _storage_origin(client: BatchClient) -> str:
    """Where buckets are: at Google, or at the server that a config names in Google's place (`api_base`)."""
    url = urlsplit(client.call_url)
    is_google = (url.hostname or "").endswith(f".{GOOGLE_DOMAIN}")
    return STORAGE_ORIGIN if is_google else f"{url.scheme}://{url.netloc}"


def _split_uri(uri: str) -> tuple[str, str]:
    """The bucket and the name of a file or folder in it.

    Raises:
        BatchRequestFailed: it is in no bucket.
    """
    match = BUCKET_URI_PATTERN.fullmatch(uri)
    if match is None:
        raise BatchRequestFailed(f"the batch's files are in no bucket: {uri!r}", 200, is_retryable=False)
    return match["bucket"], match["name"]


def _select_response_files(names: list[str]) -> list[str]:
    """The files of responses: the final ones, else those that a job writes on the way, which repeat the same lines."""
    names = sorted(name for name in names if name.endswith(".jsonl"))
    return [name for name in names if INTERMEDIATE_FILE not in name] or names


def _find_uri(job: dict[str, Any], *path: str) -> str:
    """A bucket's URI in a job, the first of several; an empty text if there is none."""
    value: Any = job
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""
