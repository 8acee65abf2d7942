"""A server that answers each chat request after a while, and takes as little processor time as it can.

Usage: python benchmarks/slow_server.py SECONDS [SPREAD] [reasonings] [--rpm N] [--refuse START:END[:RETRY_AFTER] ...]

Each answer takes so many seconds, or between 1 - SPREAD and 1 + SPREAD times as many, evenly drawn.
With `reasonings`, each answer is a structured score with a reasoning of its own, of 20 to 80 words.
With `--rpm`, more requests than N a minute get status 429 at once; one second's worth of them may come together.
With `--refuse`, all requests between START and END seconds after the first one get status 429.
Serves on a loopback port until its standard input is closed, and prints its address. It speaks just enough of HTTP/1.1
for clients that state the length of what they send and keep their connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field

HEAD_END = b"\r\n\r\n"
LENGTH_HEADER = b"content-length:"


TEXT = "Step 1. People there hold some norms.\nStep 2. So the view follows.\nStep 3.\nSCORE = 0.2"


def build_response(text: str, model: str = "scripted-1") -> bytes:
    """A chat completion as it goes over the wire."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
    content = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(content),
        content,
    )


WORDS = (
    "people",
    "there",
    "hold",
    "that",
    "family",
    "faith",
    "law",
    "freedom",
    "duty",
    "matter",
    "more",
    "less",
    "than",
)


def build_reasoning() -> str:
    """A structured score with a reasoning that no other answer has."""
    words = " ".join(random.choices(WORDS, k=random.randint(20, 80)))
    return json.dumps({"norms": "Some norms.", "reasoning": f"{words} {random.random()}.", "score": 0.2})


def build_refusal(retry_after: str | None) -> bytes:
    """A response with status 429, with a `retry-after` of so many seconds unless it is None."""
    content = b'{"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}'
    header = f"Retry-After: {retry_after}\r\n" if retry_after else ""
    head = f"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n{header}"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


@dataclass
class Admission:
    """Decides which requests are refused with status 429, over all connections.

    Attributes:
        rpm: requests a minute that are permitted; None for no limit.
        refusals: (start, end, `retry-after`) in seconds of each time in which all requests are refused.
    """

    rpm: float | None
    refusals: list[tuple[float, float, str | None]]
    _started_at: float | None = None
    _tokens: float = 0.0
    _refilled_at: float = field(default_factory=time.monotonic)

    def refuse(self) -> bytes | None:
        """The refusal of a request that arrives now; None if it is permitted."""
        now = time.monotonic()
        self._started_at = now if self._started_at is None else self._started_at
        for start, end, retry_after in self.refusals:
            if start <= now - self._started_at < end:
                return build_refusal(retry_after)
        if self.rpm is None:
            return None
        per_s = self.rpm / 60
        self._tokens = min(max(1.0, per_s), self._tokens + per_s * (now - self._refilled_at))
        self._refilled_at = now
        if self._tokens < 1:
            return build_refusal("1")
        self._tokens -= 1
        return None


class Connection(asyncio.Protocol):
    """One client's connection: one request after another."""

    def __init__(self, delay_s: float, spread: float, admission: Admission, *, reasonings: bool = False) -> None:
        self._delay_s = delay_s
        self._spread = spread
        self._admission = admission
        self._reasonings = reasonings
        self._answer = build_response(TEXT)
        self._arrived = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, to write answers to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Schedule an answer for each complete request that has arrived."""
        self._arrived += data
        while (end := self._arrived.find(HEAD_END)) >= 0:
            head = self._arrived[:end].lower()
            start = head.index(LENGTH_HEADER) + len(LENGTH_HEADER)
            length = int(head[start:].split(b"\r\n", 1)[0])
            if len(self._arrived) < end + len(HEAD_END) + length:
                return
            body = self._arrived[end + len(HEAD_END) : end + len(HEAD_END) + length]
            self._arrived = self._arrived[end + len(HEAD_END) + length :]
            if (refusal := self._admission.refuse()) is not None:
                self._transport.write(refusal)
                continue
            delay_s = self._delay_s * random.uniform(1 - self._spread, 1 + self._spread)
            asyncio.get_running_loop().call_later(delay_s, self._transport.write, self.answer(body))

    def answer(self, body: bytes) -> bytes:
        """The response to a request, whose body is given."""
        return build_response(build_reasoning()) if self._reasonings else self._answer


def parse_refusal(text: str) -> tuple[float, float, str | None]:
    """Parse `START:END[:RETRY_AFTER]`, all in seconds."""
    start, end, *retry_after = text.split(":")
    return float(start), float(end), retry_after[0] if retry_after else None


async def main() -> None:
    """Serve until standard input is closed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("delay", type=float)
    parser.add_argument("spread", type=float, nargs="?", default=0.0)
    parser.add_argument("kind", choices=("texts", "reasonings"), nargs="?", default="texts")
    parser.add_argument("--rpm", type=float)
    parser.add_argument("--refuse", type=parse_refusal, action="append", default=[])
    arguments = parser.parse_args()
    admission, reasonings = Admission(arguments.rpm, arguments.refuse), arguments.kind == "reasonings"
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(arguments.delay, arguments.spread, admission, reasonings=reasonings), "127.0.0.1", 0
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
