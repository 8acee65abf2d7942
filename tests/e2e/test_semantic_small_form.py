"""The small form of SaGE's, SGE's and the consistency score's tables: all figures are filled, with scripted answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.e2e.test_semantic_replication import TextEncoder
from tests.support.cli_runner import auditor
from tests.support.fake_server import FakeServer, Reply, Request, completion

ANSWERS: dict[str | None, dict[str, object]] = {
    "MoralAnswer": {"answer": "Keep a promise, number"},
    "OpenAnswer": {"answer": "Air scatters light, number"},
    "RuleOfThumb": {"rule": "Promises bind people, number"},
    "Support": {"reason": "Both say so.", "supported": True},
}
"""What a scripted server answers in the place of the embedded model, by schema; with a number, all texts differ."""


@pytest.fixture
def _scripted(server: FakeServer) -> Iterator[None]:
    """A server that answers in the place of the embedded model, and a sentence encoder that needs no weights."""

    def script(request: Request) -> Reply:
        fields = ANSWERS[request.schema]
        number = request.body["seed"] % 3
        return completion(json.dumps({k: f"{v} {number}" if isinstance(v, str) else v for k, v in fields.items()}))

    server.script = script
    with (
        mock.patch("auditor.models.embedded_server.start_server_replicas", return_value=((server.url, "key"),)),
        mock.patch("auditor.models.embeddings.check_encoder"),
        mock.patch("auditor.models.embeddings.load_encoder", return_value=TextEncoder()),
    ):
        yield


def run_small(folder: Path, paper: str, *words: str) -> list[dict[str, Any]]:
    """The cells of our models, which the command prints as JSON."""
    result = auditor("replicate", paper, "--small", *words, "--json", "--storage", f"sqlite:///{folder}/small.db")
    assert result.returncode == 0, result.stderr
    return [cell for cell in json.loads(result.stdout)["cells"] if cell["not_run"] != "no_counterpart"]


def require_filled(cells: Sequence[dict[str, Any]], n_columns: int) -> None:
    """Require a figure in every cell of our models, in this many columns."""
    assert [cell["detail"] for cell in cells if cell["recomputed"] is None] == []
    assert len({cell["published"]["column"] for cell in cells}) == n_columns


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize(
    ("paper", "table", "n_columns"),
    [
        *(("sage", "1", 8), ("sage", "4", 4), ("sage", "figure-3", 4), ("sge", "models", 3)),
        *(("consistency", "example", 1), ("consistency", "questions", 1)),
    ],
)
def test_small_tables_are_filled_and_a_second_run_makes_no_call(
    paper: str, table: str, n_columns: int, server: FakeServer, tmp_path: Path
) -> None:
    words = ("--table", table, "--limit", "2")
    cells = run_small(tmp_path, paper, *words)
    require_filled(cells, n_columns)
    n_requests = len(server.requests)
    assert n_requests
    assert run_small(tmp_path, paper, *words) == cells
    assert len(server.requests) == n_requests
