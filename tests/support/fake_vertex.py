"""Vertex AI's jobs and Google Cloud Storage for the scripted server, in the formats that Google documents."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.fake_batches import (
    COMPLETED,
    FakeBatch,
    FakeBatches,
    Handler,
    as_gemini,
    body_of,
    gemini_as_openai,
    google_error,
    json_response,
    unknown_parameter,
)
from tests.support.fake_server import Request, respond

BUCKET = "moral-bucket"
LOCATION = "/v1/projects/{project}/locations/{location}"
STORAGE = "/storage/v1/b/{bucket}/o"


@dataclass
class FakeVertex(FakeBatches):
    """The server's behaviour for Vertex AI's batches, besides the other APIs.

    Attributes:
        objects: contents of the bucket's files, by name.
        jobs: what each job was created from, by its id.
        is_valid_token: whether an access token is accepted.
        page_size: of lists.
        files_per_job: number of files of responses.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_valid_token: Callable[[str], bool] = lambda token: True
    page_size: int = 2
    files_per_job: int = 2

    def routes(self) -> list[tuple[str, str, Handler]]:
        own_routes = [
            ("POST", f"{LOCATION}/publishers/google/models/{{call}}", self._vertex_call),
            ("POST", f"{LOCATION}/batchPredictionJobs", self._create_job),
            ("GET", f"{LOCATION}/batchPredictionJobs", self._list_jobs),
            ("GET", f"{LOCATION}/batchPredictionJobs/{{id}}", self._get_job),
            ("POST", f"/upload{STORAGE}", self._put_object),
            ("GET", STORAGE, self._list_objects),
            ("GET", f"{STORAGE}/{{name}}", self._get_object),
        ]
        return super().routes() + [(method, path, self._authenticated(handler)) for method, path, handler in own_routes]

    def _authenticated(self, handler: Handler) -> Handler:
        async def check_and_handle(raw: web.Request) -> web.StreamResponse:
            kind, _, token = raw.headers.get("Authorization", "").partition(" ")
            if kind != "Bearer" or not self.is_valid_token(token):
                return google_error(401, "Request had invalid authentication credentials.", "UNAUTHENTICATED")
            if "bucket" in raw.match_info and raw.match_info["bucket"] != BUCKET:
                return google_error(404, "The specified bucket does not exist.", "notFound")
            return await handler(raw)

        return check_and_handle

    # --- Vertex AI ----------------------------------------------------------------------------------------------------

    async def _vertex_call(self, raw: web.Request) -> web.StreamResponse:
        model, _, method = raw.match_info["call"].partition(":")
        assert method == "generateContent"
        body = await raw.json()
        self.messages.append(Request(len(self.messages), raw.path, body, dict(raw.headers), time.monotonic()))
        converted = gemini_as_openai(body, model)
        reply = self.reply_to(Request(0, "/v1/chat/completions", converted, dict(raw.headers), time.monotonic()))
        return json_response(as_gemini(reply), reply.status)

    async def _create_job(self, raw: web.Request) -> web.StreamResponse:
        job = await raw.json()
        assert (job["inputConfig"]["instancesFormat"], job["outputConfig"]["predictionsFormat"]) == ("jsonl", "jsonl")
        [uri] = job["inputConfig"]["gcsSource"]["uris"]
        publisher, model = job["model"].rsplit("/", 1)
        assert publisher == "publishers/google/models"
        lines: dict[str, Any] = {}
        for line in self.objects[_object_name(uri)].splitlines():
            [(field_name, request)] = json.loads(line).items()
            assert field_name == "request"
            key = f"{model} {json.dumps(request, sort_keys=True)}"
            lines[f"{key} {sum(other.startswith(key) for other in lines)}"] = {**request, "model": model}
        batch = self._add(list(lines.items()), {"displayName": job["displayName"]}, raw)
        self.jobs[batch.id] = job
        return self._acknowledge(self._describe_job(batch, "QUEUED"))

    async def _list_jobs(self, raw: web.Request) -> web.StreamResponse:
        if refusal := unknown_parameter(raw, "filter", "pageSize", "pageToken"):
            return refusal
        field_name, _, display_name = raw.query.get("filter", "").partition("=")
        assert field_name in ("", "display_name")
        listed = [b for b in self.batches if not display_name or b.metadata["displayName"] == display_name.strip('"')]
        jobs = [self._describe_job(batch, "RUNNING") for batch in listed]
        return json_response(self._page(raw, "batchPredictionJobs", jobs))

    async def _get_job(self, raw: web.Request) -> web.StreamResponse:
        batch = self._batch(raw)
        if error := self.refuse(batch.number):
            return json_response({**self._describe_job(batch, "FAILED"), "error": error})
        if not self._has_ended(batch):
            return json_response(self._describe_job(batch, "RUNNING"))
        self._write_responses(batch)
        fates = {self.fate(batch.number, i) for i in range(len(batch.bodies))} - {COMPLETED, "silent"}
        state = next(iter(sorted(fates)), "succeeded").upper()
        folder = f"{self._output_uri(batch)}/prediction-model-2026-11-28T07:00:00.000000Z"
        output = {"outputInfo": {"gcsOutputDirectory": folder}}
        return json_response(self._describe_job(batch, state) | output)

    def _describe_job(self, batch: FakeBatch, state: str) -> dict[str, Any]:
        name = f"projects/510528649030/locations/europe-west1/batchPredictionJobs/{batch.id}"
        return {"name": name, **self.jobs[batch.id], "state": f"JOB_STATE_{state}", "modelVersionId": "1"}

    def _output_uri(self, batch: FakeBatch) -> str:
        uri: str = self.jobs[batch.id]["outputConfig"]["gcsDestination"]["outputUriPrefix"]
        return uri

    def _write_responses(self, batch: FakeBatch) -> None:
        """Write the responses into several files, in another order than the requests, with names in another order."""
        folder = f"{_object_name(self._output_uri(batch))}/prediction-model-2026-11-28T07:00:00.000000Z"
        files: list[list[bytes]] = [list(self.extra), *([] for _ in range(self.files_per_job - 1))]
        for number, (key, fate, reply) in enumerate(self._answered(batch)):
            request = {name: value for name, value in sorted(batch.bodies[key].items()) if name != "model"}
            line = {"status": "", "processed_time": "2026-11-28T07:00:00.000000+00:00", "request": request}
            response, is_answer = body_of(reply), reply.status == 200
            if fate == COMPLETED:
                line |= {"response": response} if is_answer else {"status": _status(response), "response": {}}
                files[number % self.files_per_job].append(json.dumps(line).encode())
        for number, lines in enumerate(files):
            self.objects[f"{folder}/predictions_{number:05}.jsonl"] = b"\n".join(lines)

    # --- Google Cloud Storage -----------------------------------------------------------------------------------------

    async def _put_object(self, raw: web.Request) -> web.StreamResponse:
        if refusal := unknown_parameter(raw, "uploadType", "name", "ifGenerationMatch"):
            return refusal
        name = raw.query["name"]
        assert raw.query["uploadType"] == "media"
        if raw.query.get("ifGenerationMatch") == "0" and name in self.objects:
            return google_error(
                412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet"
            )
        self.objects[name] = await raw.read()
        return json_response({"kind": "storage#object", "name": name, "bucket": BUCKET})

    async def _list_objects(self, raw: web.Request) -> web.StreamResponse:
        if refusal := unknown_parameter(raw, "prefix", "pageToken", "maxResults"):
            return refusal
        names = [name for name in self.objects if name.startswith(raw.query["prefix"])]
        items = [{"kind": "storage#object", "name": name, "bucket": BUCKET} for name in names]
        return json_response({"kind": "storage#objects"} | self._page(raw, "items", items))

    async def _get_object(self, raw: web.Request) -> web.StreamResponse:
        assert dict(raw.query) == {"alt": "media"}
        content = self.objects.get(raw.match_info["name"])
        if content is None:
            return google_error(404, f"No such object: {BUCKET}/{raw.match_info['name']}", "notFound")
        if self.deliver is not None and not raw.match_info["name"].endswith("requests.jsonl"):
            return await respond(raw, self.deliver(self.batches[-1], content))
        return web.Response(body=content, content_type="application/octet-stream")

    def _page(self, raw: web.Request, field_name: str, items: list[Any]) -> dict[str, Any]:
        """One page of a list: the field is missing if the list is empty."""
        start = int(raw.query.get("pageToken", "0"))
        page: dict[str, Any] = {field_name: items[start : start + self.page_size]} if items[start:] else {}
        more = len(items) > start + self.page_size
        return page | ({"nextPageToken": str(start + self.page_size)} if more else {})


def _object_name(uri: str) -> str:
    prefix = f"gs://{BUCKET}/"
    assert uri.startswith(prefix)
    return uri.removeprefix(prefix)


def _status(error: Any) -> str:
    """The status of a line whose call failed."""
    return f"Bad Request: {json.dumps(error)}"
