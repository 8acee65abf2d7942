from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from auditor.storage.database import Database, open_database
from auditor.tui.app import ReviewApp
from auditor.tui.settings import FOLDER_VARIABLE, Settings
from tests.tui.driving import Driver

Run = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path}/audits.db") as database:
        yield database


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "settings"))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key takes a millisecond; the pilot's pauses after it, at 20 ms each, took most of these tests' time."""
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.004)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", 0.0004)


@pytest.fixture
def run(db: Database, tmp_path: Path) -> Run:
    @asynccontextmanager
    async def start(
        audit: str | None = "moral", *, size: tuple[int, int] = (80, 24), settings: Settings | None = None, **more: Any
    ) -> AsyncIterator[Driver]:
        settings = settings or Settings(tmp_path / "settings")
        app = ReviewApp(db, rater=more.pop("rater", "ada"), audit=audit, settings=settings, **more)
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, _typed(pilot))
            await driver.settle()
            yield driver

    return start


def _typed(pilot: Pilot[Any]) -> Pilot[None]:
    return pilot
