"""What differs between providers' batch interfaces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from auditor.models.batches.client import Post


@dataclass(frozen=True, slots=True)
class State:
    """How far a batch is.

    Attributes:
        words: the provider's own for it.
        ended: whether all that will come of it is there.
        refused: why it was not taken at all, so that nothing of it was done or paid for.
        crowded: whether that is for others that are under way, and it may be taken later.
        results: paths of what came of it.
    """

    words: str
    ended: bool
    refused: str | None = None
    crowded: bool = False
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What a batch says of one call.

    Attributes:
        status: HTTP status of its answer; None where the call was never made.
        body: of its answer.
        why: it was never made.
    """

    key: str
    status: int | None
    body: bytes = b""
    why: str = ""


class Dialect(Protocol):
    """A provider's batch interface.

    Attributes:
        suffix: how the address of a single call ends; what stands before is the base of the batches' addresses.
        most: calls of one batch.
        is_sure: whether what `find` finds is the batch; else its results must be seen first.
    """

    suffix: str
    most: int
    is_sure: bool

    async def is_there(self, post: Post) -> bool:
        """Whether the server has batches at all."""
        ...

    def line(self, key: str, body: bytes) -> bytes:
        """One call as a part of a batch."""
        ...

    async def submit(self, post: Post, lines: Sequence[bytes], tag: str) -> str:
        """Submit calls; the batch's id."""
        ...

    async def find(self, post: Post, tag: str, calls: int, since: datetime, known: set[str]) -> list[str]:
        """Ids of what may be the batch that was submitted under this tag, though nobody heard its id.

        Args:
            tag: as given to `submit`.
            calls: how many it has.
            since: it is not older.
            known: ids of batches that it is not.
        """
        ...

    async def look(self, post: Post, id_: str) -> State:
        """How far a batch is."""
        ...

    def read(self, line: dict[str, Any]) -> Result | None:
        """One line of the results; None where it makes no sense."""
        ...


def as_body(value: Any) -> bytes:
    """A part of a line as the body it would have been by itself."""
    return json.dumps(value).encode()
