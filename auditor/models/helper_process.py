"""A process that helps to send requests: it takes them from its standard input, and writes what came of them.

A request costs litellm some milliseconds of processor time, so that one process sends a few hundred a second at most.
What goes to and fro is JSON by these types: data that cannot name code to run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked

from auditor import bootstrap
from auditor.config import ModelSection
from auditor.domain import Call
from auditor.models.provider_request import Reply
from auditor.redaction import remember

EXACT = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class HelperConfig:
    """What a helper is told when it begins, over a pipe that only its parent can write to.

    Attributes:
        secrets: all that the parent removes from answers, for a server may echo any of them.
    """

    models: tuple[ModelSection, ...]
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Parcel:
    """One request to be sent.

    Attributes:
        id: names it between the two processes.
        number: which attempt at the call this is, from 1.
        limit_s: seconds that it may take.
    """

    id: int
    call: Call
    number: int
    limit_s: float | None


@checked(frozen=True, slots=True, config=EXACT)
class Returned:
    """What came of one.

    Attributes:
        fault: what in this process failed, and where, in place of a reply.
    """

    id: int
    reply: Reply | None
    fault: str | None = None


CONFIG = TypeAdapter(HelperConfig)
PARCEL = TypeAdapter(Parcel)
RETURNED = TypeAdapter(Returned)


def framed(data: bytes) -> bytes:
    """Data with its length before it."""
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


async def unframed(reader: asyncio.StreamReader) -> bytes | None:
    """The next data of a stream; None at its end."""
    try:
        length = await reader.readexactly(LENGTH_BYTES)
        return await reader.readexactly(int.from_bytes(length, "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send what comes until no more can come; what is under way then is given up, as nobody waits for it."""
    from auditor.models.dispatch import Sending

    orders = await unframed(reader)
    if orders is None:
        return
    config = CONFIG.validate_json(orders)
    remember(*config.secrets)
    sender = Sending(config.models)
    writer.write(framed(b""))  # ready

    async def send(parcel: Parcel) -> None:
        try:
            reply = await sender.send(parcel.call, parcel.number, parcel.limit_s)
            data = RETURNED.dump_json(Returned(parcel.id, reply))
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, here nobody would
            at = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__} at {at.name}, line {at.lineno}"
            data = RETURNED.dump_json(Returned(parcel.id, None, told))
        writer.write(framed(data))

    under_way: set[asyncio.Task[None]] = set()
    while (data := await unframed(reader)) is not None:
        task = asyncio.create_task(send(PARCEL.validate_json(data)))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    await sender.close()


async def _at(inward: int, outward: int) -> None:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(inward, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(outward, "wb", 0))
    with suppress(ConnectionError):
        await work(reader, asyncio.StreamWriter(transport, protocol, None, loop))


def main() -> None:
    """Help until whoever asked for it is gone; it alone hears signals, and lets what is under way come in."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    outward = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    bootstrap.prepare()
    with bootstrap.seldom_collecting():
        asyncio.run(_at(sys.stdin.fileno(), outward))


if __name__ == "__main__":
    main()
