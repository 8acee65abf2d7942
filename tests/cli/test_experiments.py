"""`auditor experiment NAME`: data on standard output, and the calls and their cost on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.experiments.judges import drift
from auditor.experiments.stored_audit import ExperimentContext
from auditor.run import run_audit
from tests.support.audit_configs import FOUR_CELLS, config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer
from tests.support.families_of_tests import run_checked


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(scope="module")
def storage(server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database with an audit of three models."""
    url = f"sqlite:///{tmp_path_factory.mktemp('audited') / 'audits.db'}"
    run_audit(config(server.url, 3, survey=FOUR_CELLS), storage=url)
    return url


def test_an_experiment_on_judges_prints_its_calls_and_data(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_requests = len(server.requests)
    monkeypatch.setenv("AUDITOR_STORAGE", storage)
    page = tmp_path / "page.md"
    first = succeed("experiment", "bias", "scripted", "--sample", "2", "--json", "-o", page)
    assert set(json.loads(first.stdout)) == {"padding", "positions", "own_traces"}
    assert page.read_text(encoding="utf-8").startswith("# scripted: padding")
    n_asked = len(server.requests) - n_requests
    assert n_asked > 0
    assert any(line.startswith(f"{n_asked} calls, ") for line in first.stderr.splitlines())
    second = auditor("experiment", "bias", "scripted", "--sample", "2", "--json")
    assert second.stdout == first.stdout
    assert second.stderr.splitlines()[-1].startswith("0 calls, ")
    assert len(server.requests) - n_requests == n_asked


def test_the_data_of_an_experiment_is_what_it_prints(storage: str) -> None:
    printed = auditor("experiment", "drift", "scripted", "scripted", "--storage", storage, "--json")
    rows = run_checked(drift, ExperimentContext(storage), "scripted", "scripted").data
    assert rows
    assert json.loads(printed.stdout) == [row.model_dump(mode="json") for row in rows]
