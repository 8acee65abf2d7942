"""Both ways of sending a request, a file server that can drop connections, and the weights that tests need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from auditor.models import direct_completion, embeddings, weights
from tests.support.local_servers import QuietHandler, serve


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that ask a server past litellm's public function; those that name `litellm_way` by it, too.

    `make litellm` runs all of them in both ways.
    """
    if "server" in metafunc.fixturenames and metafunc.module.__name__ != BOTH_WAYS_MODULE:
        marks = metafunc.definition.iter_markers("usefixtures")
        is_run_twice = "AUDITOR_TEST_LITELLM" in os.environ or any("litellm_way" in mark.args for mark in marks)
        metafunc.parametrize("litellm_way", ("direct", "public") if is_run_twice else ("direct",), indirect=True)


BOTH_WAYS_MODULE = "tests.models.test_direct_completion"
"""Its tests compare the two ways themselves."""


@pytest.fixture(autouse=True)
def litellm_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The way in which a test's requests are sent; fails the test if the direct way steps aside unnoticed."""
    way: str = getattr(request, "param", "direct")
    monkeypatch.setenv(direct_completion.PUBLIC_ONLY_VARIABLE, "1" if way == "public" else "0")
    monkeypatch.setattr(direct_completion, "_public_only", False)
    yield way
    assert not direct_completion._public_only


@dataclass
class FileServer:
    """Serve bytes by path, with HTTP ranges; `drops` lists after how many bytes it hangs up on successive requests."""

    files: dict[str, bytes] = field(default_factory=dict)
    drops: list[int] = field(default_factory=list)
    ranges: bool = True
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    def asked_for(self, path: str) -> list[str | None]:
        return [header for asked, header in self.requests if asked == path]

    def handler(self) -> type[QuietHandler]:
        outer = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                header = self.headers["Range"]
                outer.requests.append((self.path, header))
                data = outer.files.get(self.path)
                if data is None:
                    self.send_error(404)
                    return
                start = int(header.removeprefix("bytes=").split("-")[0]) if header and outer.ranges else 0
                if start and start >= len(data):
                    self.send_error(416)
                    return
                self.send_response(206 if header and outer.ranges else 200)
                self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                is_large = len(data) > 100_000
                stop = start + outer.drops.pop(0) if outer.drops and is_large else len(data)
                self.wfile.write(data[start:stop])

        return Handler


@pytest.fixture
def file_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = FileServer()
    with serve(server.handler()) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The weights of the embedded model, fetched if missing."""
    return weights.pull_weights("smollm2-135m")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The weights of the sentence encoder, fetched if missing."""
    return weights.pull_weights("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def encoder(minilm: Path) -> embeddings.SentenceEncoder:
    del minilm
    return embeddings.load_encoder("all-MiniLM-L6-v2")
