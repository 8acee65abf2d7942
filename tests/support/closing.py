"""Things that are closed at the end of a block, whatever happens in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar


class Closable(Protocol):
    """A gateway, a dispatcher or a client."""

    async def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


@asynccontextmanager
async def closing(closable: T) -> AsyncIterator[T]:
    try:
        yield closable
    finally:
        await closable.close()
