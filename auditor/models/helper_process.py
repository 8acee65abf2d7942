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
from auditor.models.provider_request import ProviderReply
from auditor.redaction import register_secrets

LOSSLESS_JSON = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
LENGTH_PREFIX_BYTES = 4


@dataclass(frozen=True, slots=True)
class HelperConfig:
    """What a helper is told when it begins, over a pipe that only its parent can write to.

    Attributes:
        secrets: all that the parent removes from answers, for a server may echo any of them.
    """

    models: tuple[ModelSection, ...]
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class HelperRequest:
    """One request to be sent.

    Attributes:
        id: names it between the two processes.
        number: which attempt at the call this is, from 1.
        limit_s: seconds that it may take.
    """

    id: int
    call: Call
    attempt_number: int
    total_timeout_s: float | None


@checked(frozen=True, slots=True, config=LOSSLESS_JSON)
class HelperReply:
    """What came of one.

    Attributes:
        fault: what in this process failed, and where, in place of a reply.
    """

    id: int
    reply: ProviderReply | None
    error: str | None = None


CONFIG_ADAPTER = TypeAdapter(HelperConfig)
REQUEST_ADAPTER = TypeAdapter(HelperRequest)
REPLY_ADAPTER = TypeAdapter(HelperReply)


def frame_message(payload: bytes) -> bytes:
    """Data with its length before it."""
    return len(payload).to_bytes(LENGTH_PREFIX_BYTES, "big") + payload


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """The next data of a stream; None at its end."""
    try:
        length = await reader.readexactly(LENGTH_PREFIX_BYTES)
        return await reader.readexactly(int.from_bytes(length, "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def serve_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send what comes until no more can come; what is under way then is given up, as nobody waits for it."""
    from auditor.models.dispatch import LocalDispatcher

    orders = await read_message(reader)
    if orders is None:
        return
    config = CONFIG_ADAPTER.validate_json(orders)
    register_secrets(*config.secrets)
    sender = LocalDispatcher(config.models)
    writer.write(frame_message(b""))  # ready

    async def send(parcel: HelperRequest) -> None:
        try:
            reply = await sender.send(parcel.call, parcel.attempt_number, parcel.total_timeout_s)
            data = REPLY_ADAPTER.dump_json(HelperReply(parcel.id, reply))
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, here nobody would
            at = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__} at {at.name}, line {at.lineno}"
            data = REPLY_ADAPTER.dump_json(HelperReply(parcel.id, None, told))
        writer.write(frame_message(data))

    under_way: set[asyncio.Task[None]] = set()
    while (data := await read_message(reader)) is not None:
        task = asyncio.create_task(send(REQUEST_ADAPTER.validate_json(data)))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    await sender.close()


async def _serve_pipes(input_fd: int, output_fd: int) -> None:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(input_fd, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(output_fd, "wb", 0))
    with suppress(ConnectionError):
        await serve_requests(reader, asyncio.StreamWriter(transport, protocol, None, loop))


def main() -> None:
    """Help until whoever asked for it is gone; it alone hears signals, and lets what is under way come in."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    outward = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    bootstrap.prepare_environment()
    with bootstrap.infrequent_garbage_collection():
        asyncio.run(_serve_pipes(sys.stdin.fileno(), outward))


if __name__ == "__main__":
    main()
