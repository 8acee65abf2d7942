"""Batches as OpenAI has them: a file of requests, a batch of the file, files of answers and of errors.

Source: https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from auditor.models.batches.client import TRANSFER_S, NotTaken, Post, path_part
from auditor.models.batches.provider import Result, State, as_body

ENDPOINT = "/v1/chat/completions"
TAG = "auditor"
"""The key of a batch's metadata that holds our name for it."""
ENDED = ("completed", "failed", "expired", "cancelled")
CROWDED = "token_limit_exceeded"
NONE_THERE = (404, 405, 501)
PAGE = 100


class _OpenAI:
    suffix = "/chat/completions"
    most = 50_000
    is_sure = True

    async def is_there(self, post: Post) -> bool:
        """Whether the list of batches is there."""
        try:
            found = await post.ask("GET", "/batches", params={"limit": 1})
        except NotTaken as error:
            if error.status in NONE_THERE or error.status == 200:
                return False
            raise
        return isinstance(found.get("data"), list)

    def line(self, key: str, body: bytes) -> bytes:
        """A line of the file of requests."""
        told = json.dumps({"custom_id": key, "method": "POST", "url": ENDPOINT})
        return told[:-1].encode() + b', "body": ' + body.replace(b"\n", b" ") + b"}"

    async def submit(self, post: Post, lines: Sequence[bytes], tag: str) -> str:
        """The file first, then the batch."""
        file = ("requests.jsonl", b"\n".join(lines) + b"\n", "application/jsonl")
        put = await post.ask("POST", "/files", limit_s=TRANSFER_S, data={"purpose": "batch"}, files={"file": file})
        asked = {"input_file_id": id_of(put), "endpoint": ENDPOINT, "completion_window": "24h"}
        return id_of(await post.ask("POST", "/batches", json={**asked, "metadata": {TAG: tag}}))

    async def find(self, post: Post, tag: str, calls: int, since: datetime, known: set[str]) -> list[str]:
        """By the tag in its metadata; the list begins with the latest."""
        after: dict[str, str] = {}
        while True:
            page = await post.ask("GET", "/batches", params={"limit": PAGE, **after})
            batches = [b for b in page.get("data") or [] if isinstance(b, dict)]
            for batch in batches:
                if (batch.get("metadata") or {}).get(TAG) == tag:
                    return [id_of(batch)]
            if not page.get("has_more") or not batches or _made(batches[-1]) < since.timestamp():
                return []
            after = {"after": id_of(batches[-1])}

    async def look(self, post: Post, id_: str) -> State:
        """Its status, and the files of answers and of errors that are there."""
        batch = await post.ask("GET", f"/batches/{path_part(id_)}")
        status = str(batch.get("status"))
        files = [f for f in (batch.get("output_file_id"), batch.get("error_file_id")) if isinstance(f, str) and f]
        refused, crowded = None, False
        if status == "failed":
            errors = [e for e in (batch.get("errors") or {}).get("data") or [] if isinstance(e, dict)]
            refused = "; ".join(str(e.get("message")) for e in errors[:3]) or "the provider does not say why"
            crowded = any(e.get("code") == CROWDED for e in errors)
        return State(status, status in ENDED, refused, crowded, tuple(f"/files/{path_part(f)}/content" for f in files))

    def read(self, line: dict[str, Any]) -> Result | None:
        """A line of either file."""
        key, response, error = line.get("custom_id"), line.get("response"), line.get("error")
        if not isinstance(key, str):
            return None
        if isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
            return Result(key, status, as_body(response.get("body")))
        why = error.get("message") or error.get("code") if isinstance(error, dict) else None
        return Result(key, None, why=str(why or "the batch holds no answer to it"))


def _made(batch: dict[str, Any]) -> float:
    made = batch.get("created_at")
    return float(made) if isinstance(made, (int, float)) else 0.0


def id_of(found: dict[str, Any]) -> str:
    """The id in a server's answer.

    Raises:
        NotTaken: there is none.
    """
    if not isinstance(id_ := found.get("id"), str) or not id_:
        raise NotTaken("the server's answer about batches names no id", 200, again=False)
    return id_


OPENAI = _OpenAI()
