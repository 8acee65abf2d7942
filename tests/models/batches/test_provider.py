"""Downloads of files of results."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from aiohttp import web

from auditor.errors import ModelSetupError
from auditor.models.batches.provider import BatchClient, iter_json_lines
from auditor.models.litellm_client import close_http_clients
from tests.support.fake_batches import FakeBatches
from tests.support.fake_server import FakeServer


@pytest.fixture
def full_file() -> Iterator[IO[bytes]]:
    """A file on a disk without space."""
    with Path("/dev/full").open("wb", buffering=0) as file:
        yield file


async def test_a_full_disk_is_named_and_not_taken_for_the_provider(full_file: IO[bytes]) -> None:
    with FakeServer(batches=FakeBatches(instead=lambda *_: web.Response(body=b"{}\n"))) as server:
        client = BatchClient(server.url, {}, f"{server.url}/chat/completions")
        try:
            with pytest.raises(ModelSetupError, match="No space left") as caught:
                await client.download_file("/files/out-0/content", full_file, 1_000)
        finally:
            await close_http_clients()
    assert "Free space there" in str(caught.value)


def test_a_byte_that_is_not_utf8_loses_no_line() -> None:
    lines = io.BytesIO(b'{"text": "caf\xe9"}\n{"cut": \n')
    assert list(iter_json_lines(lines)) == [{"text": "caf\ufffd"}, None]


def test_a_byte_order_mark_loses_no_line() -> None:
    lines = io.BytesIO(b'\xef\xbb\xbf{"file": 1}\r\n\r\n\xef\xbb\xbf{"file": 2}\n\xef\xbb\xbf\n')
    assert list(iter_json_lines(lines)) == [{"file": 1}, {"file": 2}]
