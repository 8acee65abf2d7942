"""A server that answers each chat request after a while, and takes as little processor time as it can.

Usage: python benchmarks/slow_server.py SECONDS [SPREAD] [reasonings]

Each answer takes so many seconds, or between 1 - SPREAD and 1 + SPREAD times as many, evenly drawn.
With `reasonings`, each answer is a structured score with a reasoning of its own, of 20 to 80 words.
Serves on a loopback port until its standard input is closed, and prints its address. It speaks just enough of HTTP/1.1
for clients that state the length of what they send and keep their connections.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys

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


class Connection(asyncio.Protocol):
    """One client's connection: one request after another."""

    def __init__(self, delay_s: float, spread: float, *, reasonings: bool = False) -> None:
        self._delay_s = delay_s
        self._spread = spread
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
            self._arrived = self._arrived[end + len(HEAD_END) + length :]
            delay_s = self._delay_s * random.uniform(1 - self._spread, 1 + self._spread)
            answer = build_response(build_reasoning()) if self._reasonings else self._answer
            asyncio.get_running_loop().call_later(delay_s, self._transport.write, answer)


async def main(delay_s: float, spread: float, *, reasonings: bool) -> None:
    """Serve until standard input is closed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(delay_s, spread, reasonings=reasonings), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    delay, spread, kind, *_ = (*sys.argv[1:], *("0", "texts")[len(sys.argv) - 2 :])
    asyncio.run(main(float(delay), float(spread), reasonings=kind == "reasonings"))
