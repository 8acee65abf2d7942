from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from auditor.storage.database import Database, open_database
from auditor.tui.app import ReviewApp
from auditor.tui.settings import SETTINGS_FOLDER_VARIABLE, ReviewSettings
from tests.support.review_audit import save_review_audit
from tests.tui.app_driver import Driver

Run = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one audit, made once and copied for each test."""
    path = tmp_path_factory.mktemp("template") / "audits.db"
    with open_database(f"sqlite:///{path}") as database:
        save_review_audit(database)
    return path


@pytest.fixture
def db(tmp_path: Path, template: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """The database of a test: with the audit `moral`, unless the module says `STARTS_EMPTY`."""
    if not getattr(request.module, "STARTS_EMPTY", False):
        shutil.copy(template, tmp_path / "audits.db")
    with open_database(f"sqlite:///{tmp_path}/audits.db") as database:
        yield database


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTINGS_FOLDER_VARIABLE, str(tmp_path / "settings"))


@pytest.fixture(autouse=True)
def _messages_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notifications never expire, so that slow tests can read them."""
    monkeypatch.setattr("textual.notifications.Notification.has_expired", False)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pilot's wait for an idle processor; the driver waits for workers and messages instead."""

    async def pause(min_sleep: float = 0, max_sleep: float = 1) -> None:
        await asyncio.sleep(0.001)

    monkeypatch.setattr("textual.app.wait_for_idle", pause)
    monkeypatch.setattr("textual.pilot.wait_for_idle", pause)


@pytest.fixture
def run(db: Database, tmp_path: Path) -> Run:
    @asynccontextmanager
    async def start(
        audit: str | None = "moral",
        *,
        size: tuple[int, int] = (80, 24),
        settings: ReviewSettings | None = None,
        open_next: bool = False,
        **more: Any,
    ) -> AsyncIterator[Driver]:
        settings = settings or ReviewSettings(tmp_path / "settings", open_next=open_next)
        app = ReviewApp(db, rater=more.pop("rater", "ada"), audit=audit, settings=settings, **more)
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, _typed(pilot))
            await driver.settle()
            yield driver

    return start


@asynccontextmanager
async def open_conflict(run: Run, *audits: str, **options: Any) -> AsyncIterator[Driver]:
    """Run the review with the first conflict open."""
    async with run(*audits, **options) as driver:
        await driver.press("enter")
        assert driver.conflict.item is not None
        yield driver


def _typed(pilot: Pilot[Any]) -> Pilot[None]:
    return pilot
