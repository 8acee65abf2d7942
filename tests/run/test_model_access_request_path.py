"""The links between the graph and the providers: their order, and how they are closed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from auditor.agents.call_runner import CallRecorder
from auditor.config import AuditConfig
from auditor.errors import ConfigError
from auditor.models.dispatch import LocalDispatcher
from auditor.run import load_planned_survey
from auditor.run.batches.batching_client import BatchingClient
from auditor.run.model_access import open_request_path
from auditor.storage.database import Database, open_database
from tests.e2e.test_replay import config_with_replay, write_log
from tests.storage.test_database import save_sample_audit
from tests.support.fake_server import FakeServer

EVERY_LINK: dict[str, Any] = {"batch": {}, "telemetry": {"endpoint": "http://127.0.0.1:1"}}


class SilentSink:
    """A telemetry sink that exports nothing."""

    def __init__(self, closed: list[str]) -> None:
        self._closed = closed

    def emit_span(
        self, name: str, ids: tuple[int, int], timing: tuple[datetime, float], attributes: dict[str, Any], failed: bool
    ) -> None:
        raise AssertionError("no call is made")

    def emit_event(self, ids: tuple[int, int], attributes: dict[str, Any]) -> None:
        raise AssertionError("no score is new")

    def close(self) -> str:
        self._closed.append("telemetry")
        return ""


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the resources that are closed, in order."""
    names: list[str] = []
    monkeypatch.setattr("auditor.run.telemetry._create_sink", lambda section, collector: SilentSink(names))
    for name, owner in (("batches", BatchingClient), ("dispatcher", LocalDispatcher)):

        async def close(self: object, name: str = name, close_original: Any = owner.close) -> None:
            names.append(name)
            await close_original(self)

        monkeypatch.setattr(owner, "close", close)
    return names


@pytest.fixture
def db(storage: str) -> Iterator[Database]:
    with open_database(storage) as database:
        yield database


def link_names(link: object) -> list[str]:
    """Class names of a client and of all clients and dispatchers behind it, the outermost first."""
    inner_links = [value for value in vars(link).values() if hasattr(value, "complete") or hasattr(value, "send")]
    return [type(link).__name__, *(name for inner_link in inner_links for name in link_names(inner_link))]


async def names_of_open_links(audit: AuditConfig, db: Database) -> list[str]:
    """Open the path of an audit's requests, and name its links."""
    recorder = CallRecorder(db, save_sample_audit(db).id, "run")
    survey = load_planned_survey(audit)
    async with open_request_path(audit, survey, recorder, threading.Event(), lambda _: None) as path:
        return link_names(path.client)


async def test_every_configured_link_is_at_its_place(
    server: FakeServer, db: Database, tmp_path: Path, closed: list[str]
) -> None:
    audit = config_with_replay(server, write_log(tmp_path), 1, **EVERY_LINK)
    assert await names_of_open_links(audit, db) == [
        "RecordingClient",
        "ReplayClient",
        "TracedClient",
        "BatchingClient",
        "Gateway",
        "LocalDispatcher",
    ]
    assert closed == ["batches", "dispatcher", "telemetry"]


async def test_a_link_that_is_not_configured_is_not_there(server: FakeServer, db: Database, closed: list[str]) -> None:
    audit = config_with_replay(server, Path(), 1)
    audit = audit.model_copy(update={"models": audit.models[2:]})
    assert await names_of_open_links(audit, db) == ["RecordingClient", "Gateway", "LocalDispatcher"]
    assert closed == ["dispatcher"]


async def test_links_are_closed_if_a_later_one_cannot_be_built(
    server: FakeServer, db: Database, tmp_path: Path, closed: list[str]
) -> None:
    audit = config_with_replay(server, write_log(tmp_path), 1, limits={"budget_usd": 1.0}, **EVERY_LINK)
    with pytest.raises(ConfigError, match="price"):
        await names_of_open_links(audit, db)
    assert closed == ["dispatcher", "telemetry"]
