"""The database server goes away during a review: the screen says so, nothing is lost, and the review goes on after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from auditor.domain import RatingAction
from auditor.domain.labels import LabelKind
from auditor.storage import hash_chain, labels, rating_log
from auditor.storage.database import Database, open_database
from auditor.tui import conflict, rating_screen
from auditor.tui.app import ReviewApp
from auditor.tui.label_screen import LabelApp
from auditor.tui.rater_app import RaterApp
from auditor.tui.settings import ReviewSettings
from tests.support.label_sample import open_session, save_labelling_audit
from tests.support.postgres_server import Postgres
from tests.tui.app_driver import Driver

NOT_SAVED = "not saved: the database"
SHORT_INTERVAL_S = 0.1


@dataclass
class Server:
    """One database of a server that can be cut off from its users."""

    postgres: Postgres
    name: str

    def stop(self) -> None:
        """Close all connections, and accept no new ones."""
        with self.postgres.connect() as connection:
            connection.execute(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self.name])

    def start(self) -> None:
        with self.postgres.connect() as connection:
            connection.execute(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS true")


@pytest.fixture
def server(postgres: Postgres) -> Server:
    return Server(postgres, postgres.database())


@pytest.fixture
def db(server: Server) -> Iterator[Database]:
    with open_database(server.postgres.url(server.name)) as database:
        yield database


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 0.0)
    monkeypatch.setattr(conflict, "REFRESH_INTERVAL_S", SHORT_INTERVAL_S)


async def lose_server_and_go_on(app: RaterApp, server: Server, keys_while_lost: list[str]) -> None:
    """Decide once, lose the server, press keys, get it back, and decide again."""
    async with app.run_test(size=(140, 40)) as pilot:
        driver = Driver(app, pilot)
        await driver.settle()
        if isinstance(app, ReviewApp):
            await driver.press("enter")
        await driver.press("1")
        assert await driver.reaches(lambda d: "u undoes" in d.text)
        server.stop()
        await driver.press("2")
        [message] = [message for message in driver.messages if message.startswith(NOT_SAVED)]
        assert message.endswith("its server is running and can be reached, then try again. What was saved is kept.")
        for key in keys_while_lost:
            await driver.press(key)
            assert app.is_running
            assert app._exception is None, key
        n_refreshes = 5  # the screen checks for changes meanwhile
        await asyncio.sleep(n_refreshes * SHORT_INTERVAL_S)
        assert len(driver.messages) <= 2 + 2 * len(keys_while_lost), driver.messages
        server.start()
        await driver.press("2")
        assert await driver.reaches(lambda d: "u undoes: " in d.text and "… saving" not in d.text)


async def test_conflicts(db: Database, server: Server, tmp_path: Path) -> None:
    audit = save_labelling_audit(db)
    app = ReviewApp(db, rater="ada", audit="moral", settings=ReviewSettings(tmp_path))
    keys = ["space", "h", "right_square_bracket", "s", "f", "u", "v"]
    await lose_server_and_go_on(app, server, keys)
    log = rating_log.load_entries(db, audit.id)
    assert [entry.rating.act for entry in log] == [RatingAction.DECIDE] * 2
    assert len({entry.key for entry in log}) == 2
    assert not hash_chain.verify_chain(db).breaks


async def test_labels(db: Database, server: Server, tmp_path: Path) -> None:
    audit = save_labelling_audit(db)
    app = LabelApp(open_session(db, audit), ReviewSettings(tmp_path))
    await lose_server_and_go_on(app, server, ["space", "right_square_bracket", "s", "u", "x", "x", "x"])
    stored = labels.load_labels(db, audit.id, LabelKind.TRACE)
    assert sorted(label.value for label in stored) == ["INVALID", "VALID"]
    assert not hash_chain.verify_chain(db).breaks
