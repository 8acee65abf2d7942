"""Credentials of a Google Cloud machine, whose access tokens a local server issues."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from auditor.models import litellm_client
from tests.support.fake_server import FakeServer, Reply


@contextmanager
def google_machine(monkeypatch: pytest.MonkeyPatch, folder: Path, issue_token: Callable[[], str]) -> Iterator[None]:
    """Set the environment of a machine with Google credentials, for the project "moral-audit" in europe-west1.

    Args:
        monkeypatch: sets the environment.
        folder: where the file of credentials is written.
        issue_token: returns the access token that is issued.
    """
    expire_tokens()
    with FakeServer(lambda _: Reply(body={"access_token": issue_token(), "expires_in": 3600})) as tokens:
        account = {"type": "service_account", "client_email": "a@b.org", "token_uri": tokens.url}
        (folder / "account.json").write_text(json.dumps({**account, "private_key": _private_key()}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder / "account.json"))
        monkeypatch.setenv("VERTEXAI_PROJECT", "moral-audit")
        monkeypatch.setenv("VERTEXAI_LOCATION", "europe-west1")
        yield


def expire_tokens() -> None:
    """Have litellm ask for a new access token: it keeps one for each project until the token expires."""
    litellm_client.load_litellm().main.vertex_chat_completion._credentials_project_mapping.clear()


@functools.cache
def _private_key() -> str:
    """A private key in PEM; making one takes a tenth of a second."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
