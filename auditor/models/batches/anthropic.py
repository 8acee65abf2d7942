"""Batches as Anthropic has them: requests in one body, results as lines.

Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from auditor.models.batches.client import TRANSFER_S, NotTaken, Post, path_part
from auditor.models.batches.openai import NONE_THERE, PAGE, id_of
from auditor.models.batches.provider import Result, State, as_body

STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that each kind of error has where a call goes out by itself."""
COUNTED = ("processing", "succeeded", "errored", "canceled", "expired")


class _Anthropic:
    suffix = "/messages"
    most = 100_000
    is_sure = False

    async def is_there(self, post: Post) -> bool:
        """Whether the list of batches is there."""
        try:
            found = await post.ask("GET", "/messages/batches", params={"limit": 1})
        except NotTaken as error:
            if error.status in NONE_THERE or error.status == 200:
                return False
            raise
        return isinstance(found.get("data"), list)

    def line(self, key: str, body: bytes) -> bytes:
        """An element of the list of requests."""
        return b'{"custom_id": "' + key.encode() + b'", "params": ' + body + b"}"

    async def submit(self, post: Post, lines: Sequence[bytes], tag: str) -> str:
        """All in one; there is no place for a tag."""
        body = b'{"requests": [' + b",".join(lines) + b"]}"
        made = await post.ask("POST", "/messages/batches", limit_s=TRANSFER_S, kind="application/json", content=body)
        return id_of(made)

    async def find(self, post: Post, tag: str, calls: int, since: datetime, known: set[str]) -> list[str]:
        """All of its number of calls that are not older, and not known; only their results say whose they are."""
        found: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = await post.ask("GET", "/messages/batches", params={"limit": PAGE, **after})
            batches = [b for b in page.get("data") or [] if isinstance(b, dict)]
            found += [id_of(b) for b in batches if _made(b) >= since and _size(b) == calls and id_of(b) not in known]
            if not page.get("has_more") or not batches or _made(batches[-1]) < since:
                return found
            after = {"after_id": id_of(batches[-1])}

    async def look(self, post: Post, id_: str) -> State:
        """Its status; the results lie beside it, whatever address the answer names for them."""
        path = f"/messages/batches/{path_part(id_)}"
        status = str((await post.ask("GET", path)).get("processing_status"))
        ended = status == "ended"
        return State(status, ended, results=(f"{path}/results",) if ended else ())

    def read(self, line: dict[str, Any]) -> Result | None:
        """A line of the results."""
        key, result = line.get("custom_id"), line.get("result")
        if not isinstance(key, str) or not isinstance(result, dict):
            return None
        kind = result.get("type")
        if kind == "succeeded":
            return Result(key, 200, as_body(result.get("message")))
        error = result.get("error")
        if kind == "errored" and isinstance(error, dict):
            inner = error.get("error")
            what = inner.get("type") if isinstance(inner, dict) else None
            return Result(key, STATUS.get(str(what), 500), as_body(error))
        return Result(key, None, why=f"the batch ended before it was asked ({kind})")


def _size(batch: dict[str, Any]) -> int:
    counts = batch.get("request_counts") or {}
    return sum(int(counts.get(name) or 0) for name in COUNTED)


def _made(batch: dict[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(str(batch.get("created_at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


ANTHROPIC = _Anthropic()
