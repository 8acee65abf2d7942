"""Server of hostile replies: finds the case in each request, counts the request and replies as the case says."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping

from tests.hostile.axes import BATCHES
from tests.hostile.bodies import Body, body_of, encoded
from tests.hostile.corpus import Case
from tests.support.fake_batches import FakeBatch, FakeBatches
from tests.support.fake_server import NEVER, FakeServer, Reply, Request

CASE = re.compile(r"\[case ([\w-]+)\]")
"""Pattern of the case id in the text of a question."""
SLOW_S, DRIP_S, DRIP_PARTS = 0.02, 0.005, 6
HEADERS = {
    "wait-0": {"retry-after": "0"}, "wait-day": {"retry-after": "86400"},
    "wait-past-date": {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"},
    "wait-far-date": {"retry-after": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"},
    "wait-negative": {"retry-after": "-5"}, "wait-words": {"retry-after": "in a little while"},
    "wait-ms": {"retry-after-ms": "20"}, "wait-20": {"retry-after": "20"},
}  # fmt: skip
ELSEWHERE = {"location": "http://127.0.0.1:9/elsewhere"}


class HostileServer:
    """Replies to each case's requests as the case says; if its contact is `later`, after one good reply.

    Attributes:
        counts: number of single requests (not in batches) by the id of the case.
    """

    def __init__(self, cases: Mapping[str, Case], *, large: bool = False) -> None:
        self.cases = cases
        self.counts: Counter[str] = Counter()
        self._batches = FakeBatches(deliver=self._deliver)
        self.server = FakeServer(self._reply, self._batches)
        self._large = large
        self._lock = threading.Lock()

    def __enter__(self) -> HostileServer:
        self.server.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.__exit__(*exc)

    def url_of(self, case: Case) -> str:
        if case.protocol == "anthropic-batch":
            return self.server.url.removesuffix("/v1")
        # Each case has its own path, since models with one API key and base URL share rate limits and pauses.
        return self.server.url if case.protocol in BATCHES else f"{self.server.url}/{case.id}"

    def requests_of(self, case: Case) -> int:
        """Number of requests of a case; each line of a batch counts as one."""
        if case.protocol not in BATCHES:
            return self.counts[case.id]
        lines = [json.dumps(body) for batch in self._batches.batches for body in batch.bodies.values()]
        return sum(_case_id_in(line) == case.id for line in lines)

    def _reply(self, request: Request) -> Reply:
        case = self.cases[_case_id_of(request)]
        with self._lock:
            self.counts[case.id] += 1
            first = self.counts[case.id] == 1
        choice = dict(case.choice)
        if case.contact == "later" and first:
            choice |= {axis: "-" for axis in choice if axis != "protocol"} | {
                "status": "200", "body": "normal", "timing": "now",
            }  # fmt: skip
        return reply_of(choice, request, large=self._large)

    def _deliver(self, batch: FakeBatch, data: bytes) -> Reply:
        """Results of a batch, in the encoding and with the timing of its case."""
        choice = self.cases[_case_id_in(json.dumps(batch.bodies))].choice
        lines = [json.loads(line) for line in data.splitlines() if line]
        if choice["encoding"] != "escaped":
            data = b"".join(encoded(line, "utf-8").content + b"\n" for line in lines)
        return _timed(choice["timing"], 200, Body(data, "application/jsonl"), {})


def _case_id_of(request: Request) -> str:
    return _case_id_in(json.dumps(request.body))


def _case_id_in(text: str) -> str:
    match = CASE.search(text)
    assert match, f"a request that names no case: {text[:300]}"
    return match[1]


def reply_of(choice: Mapping[str, str], request: Request, *, large: bool = False) -> Reply:
    """The reply for the values of a case.

    Args:
        large: whether a text of private-key headers has a megabyte.
    """
    timing, headers = choice["timing"], choice["headers"]
    if timing in ("closed", "reset", "hang"):
        return {"closed": Reply(wire=()), "reset": Reply(reset=True), "hang": Reply(after=NEVER)}[timing]
    status = int(choice["status"])
    if status < 400 and status != 200:
        return _timed(timing, status, Body(b"", "text/plain"), ELSEWHERE)
    body = body_of(choice, request.body, *([1_000_000] if large else []))
    if choice["protocol"] in BATCHES:
        return Reply(status, raw=body.content)
    if headers == "wrong-type":
        body = body._replace(content_type="text/html" if "json" in body.content_type else "application/json")
    if headers == "gzip":
        return _timed(timing, status, body._replace(content=gzip.compress(body.content)), {"content-encoding": "gzip"})
    lengths = {"longer": len(body.content) + 50, "shorter": len(body.content) // 2}
    if headers in lengths:
        sent = body.content[: len(body.content) // 2] if timing == "broken" else body.content
        return Reply(wire=(_head(status, body, lengths[headers], {}) + sent,))
    return _timed(timing, status, body, HEADERS.get(headers, {}))


def _timed(timing: str, status: int, body: Body, headers: Mapping[str, str]) -> Reply:
    """A reply that is sent at once, slowly, in parts, or broken off in the middle."""
    if timing == "broken":
        head = _head(status, body, len(body.content), headers)
        return Reply(wire=(head, body.content[: len(body.content) // 2], DRIP_S))
    if timing == "drip":
        size = max(1, len(body.content) // DRIP_PARTS)
        parts = [body.content[i : i + size] for i in range(0, len(body.content), size)]
        pieces = [piece for part in parts for piece in (part, DRIP_S)]
        return Reply(wire=(_head(status, body, len(body.content), headers), *pieces))
    all_headers = {"content-type": body.content_type, **headers}
    return Reply(status, raw=body.content, headers=all_headers, delay_s=SLOW_S if timing == "slow" else 0.0)


def _head(status: int, body: Body, length: int, headers: Mapping[str, str]) -> bytes:
    """Status line and headers of a response with a given content length."""
    lines = {"content-type": body.content_type, "content-length": str(length), "connection": "close", **headers}
    written = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} Status\r\n{written}\r\n".encode()
