"""Requests about batches: through the guarded door of all calls, to the server of the calls, with their headers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import quote

import httpx

from auditor.models.failures import MAX_ERROR_CHARS, retry_after
from auditor.models.litellm_client import client
from auditor.models.responses import sanitize, sanitize_strings
from auditor.models.transport import WIRE, Unacceptable, Unreadable, Wire

ASK_S, TRANSFER_S = 60.0, 1800.0
"""Time limits: of a question about a batch, and of moving a file."""
OF_ONE_BODY = ("host", "content-length", "content-type", "accept", "accept-encoding", "connection", "user-agent")
"""Headers of a call that say nothing of who asks."""


class NotTaken(Exception):
    """A request about a batch did not succeed.

    Attributes:
        status: HTTP status; None when no answer came.
        again: whether the same request may succeed later.
        wait_s: how long the server asks to wait.
    """

    def __init__(self, text: str, status: int | None, *, again: bool, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.again = again
        self.wait_s = wait_s


class Post:
    """The way to one server's batches."""

    def __init__(self, base: str, headers: Mapping[str, str]) -> None:
        """Keep where to, and as whom.

        Args:
            base: what the paths begin with.
            headers: of a call, the key among them.
        """
        self._base = base
        self._headers = {k: v for k, v in headers.items() if k.lower() not in OF_ONE_BODY}

    async def ask(
        self, method: str, path: str, *, limit_s: float = ASK_S, kind: str | None = None, **parts: Any
    ) -> dict[str, Any]:
        """The JSON object that a request brings.

        Args:
            kind: the content's type, where it is bytes.
            parts: as httpx takes them: json, content, data, files, params.

        Raises:
            NotTaken: it brings none.
        """
        wire = Wire()
        WIRE.set(wire)
        headers = self._headers | ({"content-type": kind} if kind else {})
        request = client().build_request(method, self._base + path, headers=headers, **parts)
        try:
            async with asyncio.timeout(limit_s):
                response = await client().send(request)
        except Unreadable as error:
            raise NotTaken(
                f"asked about its batches, the server answered with {error}", wire.status, again=True
            ) from None
        except (httpx.HTTPError, TimeoutError, OSError, Unacceptable) as error:
            raise self._unheard(error) from error
        self._require(response)
        body: dict[str, Any] = sanitize_strings(wire.body or {})  # ids, statuses and messages are stored and shown
        return body

    async def fetch(self, path: str, into: IO[bytes], most: int) -> None:
        """Write a file of the server's to a file.

        Args:
            most: bytes that it may have.

        Raises:
            NotTaken: it does not come, or not whole.
        """
        WIRE.set(Wire(most))
        request = client().build_request("GET", self._base + path, headers=self._headers)
        try:
            async with asyncio.timeout(TRANSFER_S):
                response = await client().send(request, stream=True)
                try:
                    if response.is_error:
                        await response.aread()
                    self._require(response)
                    async for chunk in response.aiter_bytes():
                        into.write(chunk)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, TimeoutError, OSError, Unacceptable, Unreadable) as error:
            raise self._unheard(error) from error

    def _unheard(self, error: Exception) -> NotTaken:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, Unacceptable):
            cause = cause.__cause__
        text = sanitize(str(cause or error) or type(error).__name__)
        return NotTaken(text[:MAX_ERROR_CHARS], None, again=cause is None)

    def _require(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        status, text = response.status_code, sanitize(_said(response))
        again = status in (408, 409, 429) or status >= 500
        raise NotTaken(text[:MAX_ERROR_CHARS], status, again=again, wait_s=retry_after(response.headers))


def _said(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return " ".join(response.text.split()) or f"HTTP status {response.status_code}"


def path_part(id_: str) -> str:
    """A provider's id as one part of a path, whatever it holds."""
    return quote(id_, safe="")
