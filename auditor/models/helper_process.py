"""Helper process that sends requests: reads them from standard input, and writes the replies to standard output.

A request takes litellm some milliseconds of CPU time, so one process sends a few hundred per second at most. Messages
are JSON of the types below, each after its length in bytes: unlike pickle, JSON cannot execute code.
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
from pydantic.dataclasses import dataclass as pydantic_dataclass

from auditor import bootstrap
from auditor.config import ModelSection
from auditor.domain import Call, Capability
from auditor.models.dispatch import LocalDispatcher
from auditor.models.provider_request import ProviderReply
from auditor.redaction import register_secrets

LOSSLESS_JSON = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
LENGTH_PREFIX_BYTES = 4


@dataclass(frozen=True, slots=True)
class HelperConfig:
    """First message to a helper process, sent over a pipe that only its parent can write to.

    Attributes:
        models: all models that the helper may be asked to call.
        secrets: all secrets that the parent redacts in answers, since a server may echo any of them.
    """

    models: tuple[ModelSection, ...]
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class HelperRequest:
    """One request for the helper to send.

    Attributes:
        id: matches the reply to the request.
        call: the call to send.
        attempt_number: number of this attempt at the call, from 1.
        total_timeout_s: time limit of the whole request, in seconds; None for no limit.
        capability: what the model's server accepts.
    """

    id: int
    call: Call
    attempt_number: int
    total_timeout_s: float | None
    capability: Capability


@pydantic_dataclass(frozen=True, slots=True, config=LOSSLESS_JSON)
class HelperReply:
    """A helper's answer to one request.

    Attributes:
        id: of the request.
        reply: the provider's reply; None if the helper itself failed.
        error: class and place of the helper's own failure; None if there is a reply.
    """

    id: int
    reply: ProviderReply | None
    error: str | None = None


CONFIG_ADAPTER = TypeAdapter(HelperConfig)
REQUEST_ADAPTER = TypeAdapter(HelperRequest)
REPLY_ADAPTER = TypeAdapter(HelperReply)


def frame_message(payload: bytes) -> bytes:
    """Prefix a message with its length in bytes, as 4 bytes in big-endian order."""
    return len(payload).to_bytes(LENGTH_PREFIX_BYTES, "big") + payload


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """Read the next length-prefixed message of a stream; None at its end."""
    try:
        length = await reader.readexactly(LENGTH_PREFIX_BYTES)
        return await reader.readexactly(int.from_bytes(length, "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def serve_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send requests as they arrive and write their replies, in any order, until the reader ends.

    The first message must be a `HelperConfig`; an empty message confirms it. Requests in flight at the end are
    cancelled, since nothing reads their replies.
    """

    config_json = await read_message(reader)
    if config_json is None:
        return
    config = CONFIG_ADAPTER.validate_json(config_json)
    register_secrets(*config.secrets)
    dispatcher = LocalDispatcher(config.models)
    writer.write(frame_message(b""))  # ready

    async def send_and_reply(request: HelperRequest) -> None:
        """Send one request and write its reply, or the class and place of this process's own failure."""
        try:
            reply = await dispatcher.send(
                request.call, request.attempt_number, request.total_timeout_s, request.capability
            )
            reply_json = REPLY_ADAPTER.dump_json(HelperReply(request.id, reply))
        except Exception as error:  # noqa: BLE001 - reported to the parent process, which waits for the reply
            # The last entry: the function that raised.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            error_text = f"{type(error).__name__} at {frame.name}, line {frame.lineno}"
            reply_json = REPLY_ADAPTER.dump_json(HelperReply(request.id, None, error_text))
        writer.write(frame_message(reply_json))

    pending_tasks: set[asyncio.Task[None]] = set()
    while (request_json := await read_message(reader)) is not None:
        task = asyncio.create_task(send_and_reply(REQUEST_ADAPTER.validate_json(request_json)))
        pending_tasks.add(task)
        task.add_done_callback(pending_tasks.discard)
    for task in pending_tasks:
        task.cancel()
    await asyncio.gather(*pending_tasks, return_exceptions=True)
    await dispatcher.close()


async def _serve_pipes(input_fd: int, output_fd: int) -> None:
    """Run `serve_requests` on two pipes, given by their file descriptors, until either is closed."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(input_fd, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(output_fd, "wb", 0))
    with suppress(ConnectionError):
        await serve_requests(reader, asyncio.StreamWriter(transport, protocol, None, loop))


def main() -> None:
    """Send requests until the parent closes standard input; signals are ignored, since the parent handles them."""
    for signal_name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, signal_name):
            signal.signal(getattr(signal, signal_name), signal.SIG_IGN)
    output_fd = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps what a library prints out of the replies
    bootstrap.prepare_environment()
    with bootstrap.infrequent_garbage_collection():
        asyncio.run(_serve_pipes(sys.stdin.fileno(), output_fd))


if __name__ == "__main__":
    main()
