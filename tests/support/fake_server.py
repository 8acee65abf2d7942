"""A scripted HTTP server in OpenAI's format on a loopback port, for tests and benchmarks.

Run as a program, it prints its address and serves the default script until its standard input is closed; the optional
argument is the delay of each answer in seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from auditor.domain.decisions import SURVEY_REVIEWS, TASK_REVIEWS
from tests.support.patience import PATIENCE_S
from tests.support.review_answers import rate_aspects

if TYPE_CHECKING:
    from tests.support.fake_batches import FakeBatches


@dataclass(frozen=True)
class Request:
    number: int
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    query: str = ""

    @property
    def schema(self) -> str | None:
        response_format: dict[str, Any] = self.body.get("response_format") or {}
        name: str | None = response_format.get("json_schema", {}).get("name")
        return name

    @property
    def is_direct_question(self) -> bool:
        """Whether a score of a survey's question is asked for as JSON, in either version of its schema."""
        return self.schema in DIRECT_SCHEMAS

    @property
    def text(self) -> str:
        return "\n".join(str(m["content"]) for m in self.body.get("messages", []))

    def draw(self, label: str = "") -> float:
        """A pseudo-random number in [0, 1) that depends only on the model, the messages, the seed and a label."""
        seed_text = json.dumps([self.body.get("model"), self.text, self.body.get("seed"), label])
        return int.from_bytes(hashlib.sha256(seed_text.encode()).digest()[:6], "big") / 2**48


@dataclass(frozen=True)
class Reply:
    """A response; `raw` replaces the JSON body, and the server waits for `after` to be set, if given.

    Attributes:
        wire: raw bytes of the response, with pauses in seconds between them; then the connection is closed.
        reset: whether the connection is reset instead of an answer.
    """

    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    raw: bytes | None = None
    drop: bool = False
    after: threading.Event | None = None
    wire: tuple[bytes | float, ...] | None = None
    reset: bool = False


Script = Callable[[Request], Reply]
DIRECT_SCHEMAS = ("MoralJudgement", "ReasonedJudgement")
NEVER = threading.Event()
"""An event that is never set: a reply with `after=NEVER` is not sent."""


def completion(text: str | None, *, finish: str | None = "stop", usage: bool = True, **message: Any) -> Reply:
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted-1",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
    }
    if usage:
        body["usage"] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return Reply(body=body)


def error(status: int, message: str, *, code: str | None = None, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, {"error": {"message": message, "type": "error", "code": code}}, headers or {})


def answer(request: Request) -> Reply:
    """The default script: a plausible answer that depends only on the question and the seed."""
    if request.schema in SURVEY_REVIEWS:
        valid = request.draw() < 0.7
        review = {
            **rate_aspects(valid, cultural_accuracy=request.draw("a") < 0.8),
            "justification": "The steps follow from the norms." if valid else "The score does not fit the norms.",
            "verdict": "VALID" if valid else "INVALID",
            "confidence": int(50 + 50 * request.draw("c")),
        }
        return completion(json.dumps(review))
    if request.schema in TASK_REVIEWS:
        return completion(json.dumps(review_of_answer(request.draw() < 0.7, int(50 + 50 * request.draw("c")))))
    if request.schema == "BlindGuess":
        return completion(json.dumps({"country": 1, "practice": 1, "analyst": 1}))
    if request.schema == "Restated":
        return completion(json.dumps({"text": "People there hold some norms. So the view follows."}))
    if request.schema == "SidePreference":
        better = "FIRST" if request.draw() < 0.5 else "SECOND"
        return completion(json.dumps({"reason": "Its steps follow.", "better": better}))
    score = round(2 * request.draw() - 1, 2)
    norms = f"People there hold norm number {int(1000 * request.draw('n'))}."
    if request.is_direct_question:
        return completion(json.dumps({"norms": norms, "reasoning": f"So the view is {score}.", "score": score}))
    return completion(f"Step 1. {norms}\nStep 2. So the view is {score}.\nStep 3.\nSCORE = {score}")


def review_of_answer(valid: bool, confidence: int = 80) -> dict[str, Any]:
    """A judge's verdict on the reasoning behind an answer."""
    return {
        **rate_aspects(valid, for_task=True),
        "justification": "Each step follows." if valid else "A step does not follow.",
        "verdict": "VALID" if valid else "INVALID",
        "confidence": confidence,
    }


async def respond(raw: web.Request, reply: Reply) -> web.StreamResponse:
    """Send a reply, including delayed, raw, dropped and reset ones."""
    if reply.delay_s:
        await asyncio.sleep(reply.delay_s)
    while reply.after is not None and not reply.after.is_set():  # noqa: ASYNC110 - set by another thread
        await asyncio.sleep(0.005)
    if reply.wire is not None and isinstance(raw.transport, asyncio.Transport):
        await _write(raw.transport, reply.wire)
    if reply.reset and raw.transport is not None:
        linger_option = struct.pack("ii", 1, 0)  # so that closing sends a reset
        raw.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_option)
    if (reply.drop or reply.reset) and raw.transport is not None:
        raw.transport.abort()
    content = reply.raw if reply.raw is not None else json.dumps(reply.body).encode()
    headers = {"content-type": "application/json", **reply.headers}
    return web.Response(status=reply.status, body=content, headers=headers)


async def _write(transport: asyncio.Transport, wire: tuple[bytes | float, ...]) -> None:
    for part in wire:
        if isinstance(part, bytes):
            transport.write(part)
        else:
            await asyncio.sleep(part)
    transport.close()


class FakeServer:
    """The server in its own thread; `requests` records all requests, and `script` may be replaced at any time."""

    def __init__(self, script: Script = answer, batches: FakeBatches | None = None, address: str = "127.0.0.1") -> None:
        self.script = script
        self.address = address
        self.batches = batches
        self.requests: list[Request] = []
        self.url = ""
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the scripted server does not start"
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the scripted server does not end"

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._loop.call_soon(self._ready.set)  # set inside run_forever: a stop before it would be lost
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.run_until_complete(self._give_up())
        self._loop.close()

    async def _give_up(self) -> None:
        """Cancel the replies that still wait."""
        pending_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending_tasks:
            task.cancel()
        await asyncio.gather(*pending_tasks, return_exceptions=True)

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        handle: Callable[[web.Request], Awaitable[web.StreamResponse]] = self._handle
        if self.batches is not None:
            self.batches.add_to(app, lambda: self.script)
        app.router.add_post("/{path:.*}", handle)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1
        )  # replies that still wait are not awaited
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.address, 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"

    async def _handle(self, raw: web.Request) -> web.StreamResponse:
        body = dict(await raw.post()) if "form" in raw.content_type else await raw.json()
        with self._lock:
            number, headers = len(self.requests), dict(raw.headers)
            request = Request(number, raw.path, body, headers, time.monotonic(), raw.query_string)
            self.requests.append(request)
        return await respond(raw, self.script(request))


if __name__ == "__main__":
    delay = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    with FakeServer(lambda request: replace(answer(request), delay_s=delay)) as server:
        print(server.url, flush=True)
        sys.stdin.read()
