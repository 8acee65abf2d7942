"""A constant address for the scripted server, since the address is part of every call's key."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import aiohttp
import numpy as np
from numpy.typing import NDArray

from tests.support.audit_configs import KEY_VARIABLE

HOST = "models.test"
URL = f"http://{HOST}/v1"
TRUST = f"{KEY_VARIABLE}@http://{HOST}"
"""Value of AUDITOR_TRUST that allows the key to be sent to this server."""


@contextmanager
def at_fixed_address(server_url: str) -> Iterator[None]:
    """Connect this process to a server on this machine when it asks for `URL`."""
    port = urlsplit(server_url).port
    assert port is not None

    async def resolve(*arguments: Any, **_: Any) -> list[dict[str, Any]]:
        host = arguments[1]
        assert host == HOST, f"a request would go to {host}"
        address = {"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET}
        return [{**address, "proto": 0, "flags": socket.AI_NUMERICHOST}]

    with mock.patch.object(aiohttp.DefaultResolver, "resolve", resolve):
        yield


class WordEncoder:
    """A sentence encoder without weights: a text's vector is the sum of its words' hashed directions."""

    name = "words"
    revision = "words-1"
    dimensions = 48

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (texts, dimensions)."""
        vectors = np.array(
            [sum(map(self._direction, text.lower().split()), np.zeros(self.dimensions)) for text in texts]
        )
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def _direction(self, word: str) -> NDArray[np.float64]:
        digest = hashlib.sha512(word.encode()).digest()[: self.dimensions]
        return np.frombuffer(digest, dtype=np.uint8).astype(float) - 127.5


@contextmanager
def use_encoder(encoder: object) -> Iterator[None]:
    with (
        mock.patch("auditor.models.embeddings.check_encoder"),
        mock.patch("auditor.models.embeddings.load_encoder", return_value=encoder),
    ):
        yield


def word_encoder() -> AbstractContextManager[None]:
    """Use `WordEncoder` in place of every sentence encoder."""
    return use_encoder(WordEncoder())
