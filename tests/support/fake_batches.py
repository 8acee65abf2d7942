"""Batch APIs for the scripted server, in the formats that OpenAI, Anthropic and Gemini document."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email import message_from_bytes
from typing import Any

from aiohttp import web

from tests.support.fake_server import Reply, Request, Script, respond

COMPLETED, EXPIRED, CANCELLED, FAILED, SILENT = "done", "expired", "cancelled", "failed", "silent"
Fate = Callable[[int, int], str]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FakeBatch:
    """A submitted batch: its requests by custom id, and how often it was polled."""

    id: str
    bodies: dict[str, dict[str, Any]]
    metadata: dict[str, str]
    number: int
    headers: dict[str, str]
    of_messages: bool = False
    of_gemini: bool = False
    looks: int = 0
    created_at: float = field(default_factory=time.time)


@dataclass
class FakeBatches:
    """The server's behaviour for batches; every attribute may be changed at any time.

    Attributes:
        looks: how often a batch must be polled before it has ended.
        held: while true, no batch ends.
        fate: outcome of a line, by the batch's number and the line's number.
        extra: additional lines in the results.
        refuse: error with which a whole batch fails, by its number; None accepts it.
        deaf: number of next submissions that are accepted but answered with an error.
        has_no_id: whether the reply to a submission names no batch.
        is_available: whether the server has batch endpoints.
        deliver: builds the reply with a batch's results file; None sends it as usual.
        instead: response that replaces the usual one, by method and path.
        messages: single requests to Anthropic's and Gemini's endpoints, which the server itself does not record.
        names_keys: whether Gemini's responses have the keys of their requests.
        counted: how many answers the server says a batch has, by the batch's number; None for no count.
    """

    looks: int = 1
    held: bool = False
    fate: Fate = lambda batch, line: COMPLETED
    extra: list[bytes] = field(default_factory=list)
    refuse: Callable[[int], dict[str, str] | None] = lambda number: None
    deaf: int = 0
    has_no_id: bool = False
    is_available: bool = True
    deliver: Callable[[FakeBatch, bytes], Reply] | None = None
    instead: Callable[[str, str], web.Response | None] = lambda method, path: None
    batches: list[FakeBatch] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    messages: list[Request] = field(default_factory=list)
    names_keys: bool = True
    counted: Callable[[int], int] | None = None

    @property
    def keys(self) -> list[str]:
        """Custom ids of all batches, in order."""
        return [key for batch in self.batches for key in batch.bodies]

    def add_to(self, app: web.Application, script: Callable[[], Script]) -> None:
        """Add the routes; `script` returns the script that answers lines."""
        self._script = script
        for method, path, handler in self.routes():
            app.router.add_route(method, path, self._recorded(handler))

    def routes(self) -> list[tuple[str, str, Handler]]:
        return [
            ("POST", "/v1/files", self._put_file),
            ("GET", "/v1/files/{id}/content", self._get_file),
            ("POST", "/v1/batches", self._submit),
            ("GET", "/v1/batches", self._list),
            ("GET", "/v1/batches/{id}", self._look),
            ("POST", "/v1/messages", self._message),
            ("POST", "/v1/messages/batches", self._submit_messages),
            ("GET", "/v1/messages/batches", self._list_messages),
            ("GET", "/v1/messages/batches/{id}", self._look_at_messages),
            ("GET", "/v1/messages/batches/{id}/results", self._message_results),
            ("POST", "/v1beta/models/{call}", self._gemini),
            ("GET", "/v1beta/batches", self._list_gemini),
            ("GET", "/v1beta/batches/{id}", self._look_at_gemini),
        ]

    def reply_to(self, request: Request) -> Reply:
        """The script's reply to a request in OpenAI's format."""
        return self._script()(request)

    def _recorded(self, handler: Handler) -> Handler:
        async def record_and_handle(raw: web.Request) -> web.StreamResponse:
            self.asked.append((raw.method, raw.path, dict(raw.headers)))
            if not self.is_available and raw.path != "/v1/messages" and not raw.path.endswith(":generateContent"):
                return json_response({"error": {"message": "no such route"}}, 404)
            if (page := self.instead(raw.method, raw.path)) is not None:
                return page
            return await handler(raw)

        return record_and_handle

    # --- OpenAI ---------------------------------------------------------------------------------------------------

    async def _put_file(self, raw: web.Request) -> web.StreamResponse:
        head = f"Content-Type: {raw.headers['content-type']}\r\n\r\n".encode()
        parts = message_from_bytes(head + await raw.read()).get_payload()
        assert isinstance(parts, list)
        parts_by_name = {p.get_param("name", header="content-disposition"): p for p in parts}  # type: ignore[union-attr]
        assert parts_by_name["purpose"].get_payload(decode=True) == b"batch"  # type: ignore[union-attr]
        id_ = f"file-{len(self.files)}"
        self.files[id_] = parts_by_name["file"].get_payload(decode=True)  # type: ignore[union-attr,assignment]
        return json_response({"id": id_, "object": "file", "purpose": "batch"})

    async def _submit(self, raw: web.Request) -> web.StreamResponse:
        batch_body = await raw.json()
        assert (batch_body["completion_window"], batch_body["endpoint"]) == ("24h", "/v1/chat/completions")
        lines = [json.loads(line) for line in self.files[batch_body["input_file_id"]].splitlines()]
        assert all((line["method"], line["url"]) == ("POST", "/v1/chat/completions") for line in lines)
        batch = self._add([(line["custom_id"], line["body"]) for line in lines], batch_body["metadata"], raw)
        return self._acknowledge(_openai(batch, "validating"))

    async def _list(self, raw: web.Request) -> web.StreamResponse:
        page, more = _page(self.batches, raw.query.get("after"), int(raw.query["limit"]))
        return json_response({"object": "list", "data": [_openai(b, "in_progress") for b in page], "has_more": more})

    async def _look(self, raw: web.Request) -> web.StreamResponse:
        batch = self._batch(raw)
        if error := self.refuse(batch.number):
            return json_response(_openai(batch, "failed") | {"errors": {"object": "list", "data": [error]}})
        if not self._has_ended(batch):
            return json_response(_openai(batch, "in_progress"))
        fates = {self.fate(batch.number, i) for i in range(len(batch.bodies))}
        status = next((s for s in (EXPIRED, CANCELLED, FAILED) if s in fates), "completed")
        files = {"output_file_id": f"out-{batch.number}", "error_file_id": f"errors-{batch.number}"}
        counts = {} if self.counted is None else {"request_counts": {"completed": self.counted(batch.number)}}
        return json_response(_openai(batch, status) | files | counts)

    async def _get_file(self, raw: web.Request) -> web.StreamResponse:
        kind, _, number = raw.match_info["id"].partition("-")
        batch = self.batches[int(number)]
        rows: list[bytes] = list(self.extra) if kind == "out" else []
        for key, fate, reply in self._answered(batch):
            result_line: dict[str, Any] = {
                "id": f"batch_req_{key[:6]}", "custom_id": key, "error": None, "response": None,
            }  # fmt: skip
            if fate == COMPLETED:
                result_line["response"] = {"status_code": reply.status, "request_id": "r", "body": body_of(reply)}
            elif fate != SILENT:
                result_line["error"] = {"code": f"batch_{fate}", "message": "This request was not executed."}
            if fate != SILENT and (kind == "out") == (fate == COMPLETED and reply.status == 200):
                rows.append(json.dumps(result_line).encode())
        return await self._delivered(raw, batch, rows)

    # --- Anthropic --------------------------------------------------------------------------------------------------

    async def _message(self, raw: web.Request) -> web.StreamResponse:
        body = await raw.json()
        request = Request(len(self.messages), raw.path, body, dict(raw.headers), time.monotonic())
        self.messages.append(request)
        reply = self.reply_to(replace(request, path="/v1/chat/completions", body=as_openai(body)))
        return json_response(as_anthropic(body, reply), reply.status)

    async def _submit_messages(self, raw: web.Request) -> web.StreamResponse:
        batch_body = await raw.json()
        assert {"anthropic-version", "x-api-key"} <= {name.lower() for name in raw.headers}
        batch = self._add([(line["custom_id"], line["params"]) for line in batch_body["requests"]], {}, raw)
        return self._acknowledge(_anthropic(batch, "in_progress"))

    async def _list_messages(self, raw: web.Request) -> web.StreamResponse:
        page, more = _page(self.batches, raw.query.get("after_id"), int(raw.query["limit"]))
        return json_response({"data": [_anthropic(b, "in_progress") for b in page], "has_more": more})

    async def _look_at_messages(self, raw: web.Request) -> web.StreamResponse:
        batch = self._batch(raw)
        return json_response(_anthropic(batch, "ended" if self._has_ended(batch) else "in_progress"))

    async def _message_results(self, raw: web.Request) -> web.StreamResponse:
        rows = list(self.extra)
        batch = self._batch(raw)
        for key, fate, reply in self._answered(batch):
            result_fields: dict[str, Any] = {"type": {CANCELLED: "canceled"}.get(fate, fate)}
            if fate == COMPLETED and reply.status == 200:
                result_fields = {"type": "succeeded", "message": body_of(reply)}
            elif fate == COMPLETED:
                result_fields = {"type": "errored", "error": body_of(reply)}
            rows += [json.dumps({"custom_id": key, "result": result_fields}).encode()] if fate != SILENT else []
        return await self._delivered(raw, batch, rows)

    # --- Gemini -----------------------------------------------------------------------------------------------------

    async def _gemini(self, raw: web.Request) -> web.StreamResponse:
        model, _, method = raw.match_info["call"].partition(":")
        assert raw.headers["x-goog-api-key"]
        body = await raw.json()
        if method == "generateContent":
            request = Request(len(self.messages), raw.path, body, dict(raw.headers), time.monotonic())
            self.messages.append(request)
            reply = self.reply_to(replace(request, path="/v1/chat/completions", body=gemini_as_openai(body, model)))
            return json_response(as_gemini(reply), reply.status)
        assert method == "batchGenerateContent"
        elements = body["batch"]["input_config"]["requests"]["requests"]
        lines = [(e["metadata"]["key"], {**e["request"], "model": model}) for e in elements]
        batch = self._add(lines, {"displayName": body["batch"]["display_name"]}, raw)
        return self._acknowledge(_gemini_operation(batch, "PENDING"))

    async def _list_gemini(self, raw: web.Request) -> web.StreamResponse:
        if refusal := unknown_parameter(raw, "pageSize", "pageToken", "fields"):
            return refusal
        limit = int(raw.query.get("pageSize", "50"))
        page, more = _page(self.batches, raw.query.get("pageToken"), limit)
        listed: dict[str, Any] = {"operations": [_gemini_operation(b, "RUNNING") for b in page]} if page else {}
        return json_response(listed | ({"nextPageToken": page[-1].id} if more else {}))

    async def _look_at_gemini(self, raw: web.Request) -> web.StreamResponse:
        batch = self._batch(raw)
        if "fields" in raw.query:  # a poll
            if error := self.refuse(batch.number):
                return json_response({**_gemini_operation(batch, "FAILED"), "done": True, "error": error})
            return json_response(_gemini_operation(batch, "SUCCEEDED" if self._has_ended(batch) else "RUNNING"))
        responses = []
        for key, fate, reply in reversed(list(self._answered(batch))):
            element: dict[str, Any] = {"metadata": {"key": key}} if self.names_keys else {}
            if fate == COMPLETED:
                element |= (
                    {"response": body_of(reply)} if reply.status == 200 else {"error": {"code": 13, "message": "no"}}
                )
            responses += [element] if fate != SILENT else []
        inlined = {"inlinedResponses": {"inlinedResponses": responses}}
        operation = {**_gemini_operation(batch, "SUCCEEDED"), "done": True, "response": inlined}
        if self.deliver is not None:
            return await respond(raw, self.deliver(batch, json.dumps(operation).encode()))
        return json_response(operation)

    # --- both -------------------------------------------------------------------------------------------------------

    async def _delivered(self, raw: web.Request, batch: FakeBatch, rows: list[bytes]) -> web.StreamResponse:
        """Send a batch's results file."""
        data = b"\n".join(rows) + b"\n"
        if self.deliver is not None:
            return await respond(raw, self.deliver(batch, data))
        kind = "application/x-jsonl" if batch.of_messages else "application/octet-stream"
        return web.Response(body=data, content_type=kind)

    def _add(self, lines: list[tuple[str, Any]], metadata: dict[str, str], raw: web.Request) -> FakeBatch:
        assert len({key for key, _ in lines}) == len(lines), "a custom id is there twice"
        number = len(self.batches)
        of_messages = raw.path.startswith("/v1/messages")
        of_gemini = raw.path.startswith(("/v1beta", "/v1/projects"))
        batch = FakeBatch(f"batch_{number}", dict(lines), metadata, number, dict(raw.headers), of_messages, of_gemini)
        self.batches.append(batch)
        return batch

    def _acknowledge(self, reply_body: dict[str, Any]) -> web.StreamResponse:
        if self.deaf:
            self.deaf -= 1
            return json_response({"error": {"message": "overloaded"}}, 503)
        return json_response({} if self.has_no_id else reply_body)

    def _batch(self, raw: web.Request) -> FakeBatch:
        batch = next((b for b in self.batches if b.id == raw.match_info["id"]), None)
        if batch is None:
            raise web.HTTPNotFound(text='{"error": {"message": "no such batch"}}', content_type="application/json")
        return batch

    def _has_ended(self, batch: FakeBatch) -> bool:
        batch.looks += 1
        return not self.held and batch.looks >= self.looks

    def _answered(self, batch: FakeBatch) -> Iterator[tuple[str, str, Reply]]:
        """Yield each line's custom id, fate and reply, in reverse order."""
        for i, (key, body) in reversed(list(enumerate(batch.bodies.items()))):
            asked = as_openai(body) if batch.of_messages else body
            asked = gemini_as_openai(body, body["model"]) if batch.of_gemini else asked
            reply = self.reply_to(Request(i, "/batch", asked, batch.headers, time.monotonic()))
            if batch.of_messages and reply.raw is None:
                reply = Reply(reply.status, as_anthropic(body, reply))
            if batch.of_gemini and reply.raw is None:
                reply = Reply(reply.status, as_gemini(reply))
            yield key, self.fate(batch.number, i), reply


def _page(batches: list[FakeBatch], after: str | None, limit: int) -> tuple[list[FakeBatch], bool]:
    latest = batches[::-1]
    start = next((i + 1 for i, b in enumerate(latest) if b.id == after), 0)
    return latest[start : start + limit], len(latest) > start + limit


def _openai(batch: FakeBatch, status: str) -> dict[str, Any]:
    return {
        "id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions", "status": status,
        "output_file_id": None, "error_file_id": None, "errors": None, "metadata": batch.metadata,
        "created_at": int(batch.created_at),
        "request_counts": {"total": len(batch.bodies), "completed": 0, "failed": 0},
    }  # fmt: skip


def _anthropic(batch: FakeBatch, status: str) -> dict[str, Any]:
    n, ended = len(batch.bodies), status == "ended"
    counts = {
        "processing": 0 if ended else n, "succeeded": n if ended else 0, "errored": 0, "canceled": 0, "expired": 0,
    }  # fmt: skip
    return {
        "id": batch.id, "type": "message_batch", "processing_status": status, "request_counts": counts,
        "created_at": datetime.fromtimestamp(batch.created_at, UTC).isoformat().replace("+00:00", "Z"),
        "results_url": "https://elsewhere.example/results",
    }  # fmt: skip


def _gemini_operation(batch: FakeBatch, state: str) -> dict[str, Any]:
    created = datetime.fromtimestamp(batch.created_at, UTC).isoformat().replace("+00:00", "Z")
    metadata = {**batch.metadata, "state": f"BATCH_STATE_{state}", "createTime": created}
    return {"name": f"batches/{batch.id}", "metadata": metadata}


def gemini_as_openai(body: dict[str, Any], model: str) -> dict[str, Any]:
    """Convert a Gemini request to OpenAI's format, as far as scripts read it."""
    settings = body["generationConfig"]
    system = "\n".join(part["text"] for part in body.get("system_instruction", {"parts": []})["parts"])
    contents = [("user", "\n".join(part["text"] for part in content["parts"])) for content in body["contents"]]
    openai_body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": r, "content": c} for r, c in [("system", system), *contents]],
        "seed": settings.get("seed"),
    }
    if schema := settings.get("response_json_schema"):
        openai_body["response_format"] = {"json_schema": {"name": schema["title"]}}
    return openai_body


def as_gemini(reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        return {"error": {"code": reply.status, "message": reply.body["error"]["message"], "status": "INTERNAL"}}
    text = reply.body["choices"][0]["message"]["content"]
    return {
        "candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
        "modelVersion": reply.body["model"],
    }


def as_openai(body: dict[str, Any]) -> dict[str, Any]:
    """Convert an Anthropic request to OpenAI's format, as far as scripts read it."""
    system = "\n".join(part["text"] for part in body.get("system", []))
    chat_messages = [(m["role"], "\n".join(part["text"] for part in m["content"])) for m in body["messages"]]
    openai_body = {
        "model": body["model"],
        "messages": [{"role": r, "content": c} for r, c in [("system", system), *chat_messages]],
    }
    if tools := body.get("tools"):
        openai_body["response_format"] = {"json_schema": {"name": tools[0]["input_schema"]["title"]}}
    return openai_body


def as_anthropic(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        kind = {400: "invalid_request_error", 429: "rate_limit_error"}.get(reply.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": reply.body["error"]["message"]}}
    text = reply.body["choices"][0]["message"]["content"]
    content = {"type": "text", "text": text}
    if tools := body.get("tools"):
        content = {"type": "tool_use", "id": "t", "name": tools[0]["name"], "input": json.loads(text)}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": reply.body["model"], "content": [content],
        "stop_reason": "tool_use" if tools else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }  # fmt: skip


def body_of(reply: Reply) -> Any:
    """The JSON value of a reply's body; its text if it is not JSON."""
    if reply.raw is None:
        return reply.body
    try:
        return json.loads(reply.raw)
    except ValueError:  # a results line is JSON, so other content becomes a string
        return reply.raw.decode("utf-8", "replace")


def json_response(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")


def google_error(status: int, message: str, name: str) -> web.Response:
    return json_response({"error": {"code": status, "message": message, "status": name}}, status)


def unknown_parameter(raw: web.Request, *known: str) -> web.Response | None:
    """Google's refusal of a query parameter that it does not know; None if it knows all."""
    for name in raw.query:
        if name not in known:
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            return google_error(400, message, "INVALID_ARGUMENT")
    return None
