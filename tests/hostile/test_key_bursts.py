"""Pairs of keys that reach the review app in one write: it neither fails nor shows an internal error.

`make test` runs one seeded pair of each screen and the known ones; `make hostile` all pairs of the keys of each screen.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from textual import events
from textual.keys import key_to_character

from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.tui.app import ReviewApp
from auditor.tui.key_bindings import ACTIONS
from auditor.tui.label_screen import LabelApp
from auditor.tui.rater_app import RaterApp
from auditor.tui.settings import ReviewSettings
from tests.support.known import known
from tests.support.label_sample import open_session, save_labelling_audit
from tests.tui.app_driver import Driver

RUNS_ALL = bool(os.environ.get("AUDITOR_ALL_HOSTILE"))
SEED = 7
PAIRS_PER_START = 40
"""Pairs after which the app starts again on a fresh database, since decided conflicts leave fewer to decide."""
DIALOG_KEYS = ("1", "d", "escape", "enter", "down", "up", "backspace", "ctrl+q")


def keys_of(*screens: str) -> tuple[str, ...]:
    """Every key of the actions of some screens and of those that all screens have, each once."""
    screens = (*screens, "everywhere")
    keys = (key.strip() for action in ACTIONS if action.screen in screens for key in action.keys.split(","))
    return tuple(dict.fromkeys(keys))


class Scene(NamedTuple):
    """A screen or dialog, and how it is reached."""

    name: str
    way: tuple[str, ...]
    """Keys pressed one after the other from the first screen."""
    keys: tuple[str, ...]
    is_labelling: bool = False


SCENES = (
    Scene("home", ("q",), keys_of("home")), Scene("queue", (), keys_of("queue")),
    Scene("conflict", ("enter",), keys_of("conflict")), Scene("agreement", ("a",), keys_of("people")),
    Scene("errors", ("E",), keys_of("errors")), Scene("filter", ("slash",), DIALOG_KEYS),
    Scene("saved filters", ("F",), (*DIALOG_KEYS, "s", "q", "delete")),
    Scene("name of a filter", ("F", "s"), DIALOG_KEYS), Scene("note", ("enter", "n"), DIALOG_KEYS),
    Scene("custom score", ("enter", "5"), (*DIALOG_KEYS, "minus")),
    Scene("whole cell", ("enter", "5", *"0.5", "enter"), (*DIALOG_KEYS, "y", "n")),
    Scene("history", ("enter", "h"), (*DIALOG_KEYS, "q")),
    Scene("keys", ("enter", "question_mark"), (*DIALOG_KEYS, "q")),
    Scene("palette", ("ctrl+p",), DIALOG_KEYS), Scene("label", (), keys_of("label"), is_labelling=True),
    Scene("note of a label", ("n",), DIALOG_KEYS, is_labelling=True),
)  # fmt: skip
KNOWN_PAIRS: dict[str, list[tuple[str, ...]]] = {
    "conflict": [("1", "q"), ("s", "q"), ("u", "q"), ("f", "escape"), ("1", "ctrl+q")],
    "label": [("1", "q"), ("u", "q")],
    "queue": [("ctrl+q", "ctrl+p")],
}
"""Pairs that leave a screen before it has shown what was saved, or open one while the app ends: once they failed."""


def sample_pairs() -> dict[str, list[tuple[str, ...]]]:
    """The pairs of each scene that this run tries."""
    rng, pairs = random.Random(SEED), {}
    for scene in SCENES:
        every_pair = list(itertools.product(scene.keys, repeat=2))
        pairs[scene.name] = [*KNOWN_PAIRS.get(scene.name, []), *(every_pair if RUNS_ALL else [rng.choice(every_pair)])]
    return pairs


PAIRS = sample_pairs()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one audit whose first cell has two conflicts, and a sample to label."""
    path = tmp_path_factory.mktemp("bursts") / "audits.db"
    with open_database(f"sqlite:///{path}") as db:
        audit = save_labelling_audit(db)
        conflicts = list(results.load_conflicts(db, audit.id))
        more = [replace(conflict, right="cedar", score_right=0.05) for conflict in conflicts]
        results.replace_conflicts(db, audit.id, [*conflicts, *more])
    return path


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pilot's waits, since the driver waits for messages and workers; accept a decision at once."""

    async def pause(min_sleep: float = 0, max_sleep: float = 1) -> None:
        await asyncio.sleep(0.001)

    monkeypatch.setattr("textual.app.wait_for_idle", pause)
    monkeypatch.setattr("textual.pilot.wait_for_idle", pause)
    monkeypatch.setattr("auditor.tui.rating_screen.DECISION_DELAY_S", 0.0)


def send_burst(app: RaterApp, keys: tuple[str, ...]) -> None:
    """Give keys to the app as its driver does when one read of the terminal holds them all."""
    driver = known(app._driver)
    for key in keys:
        driver.process_message(events.Key(key, key_to_character(key)))


def start(scene: Scene, db: Database, folder: Path) -> RaterApp:
    settings = ReviewSettings(folder / "settings")
    if scene.is_labelling:
        return LabelApp(open_session(db, audits.get_audit(db, "moral")), settings)
    return ReviewApp(db, rater="ada", audit="moral", settings=settings)


async def run_pairs(app: RaterApp, scene: Scene, pairs: Iterable[tuple[str, ...]]) -> None:
    """Try pairs one after the other until they or the app end, each from a new screen; raises what ended the app."""
    tried: tuple[str, ...] | None = None
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            driver = Driver(app, pilot)
            for tried in pairs:
                while len(app.screen_stack) > 1:
                    await app.pop_screen()
                app.open_first_screen()
                await driver.settle()
                await driver.press(*scene.way)
                send_burst(app, tried)
                await driver.settle()
                if not app.is_running:
                    break
                assert not [text for text in driver.messages if "cannot be read" in text]
    except Exception as error:
        raise AssertionError(f"{scene.name}: {tried} in one write: {error!r}") from error


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_pairs_of_keys_in_one_write(scene: Scene, template: Path, memory: Path) -> None:
    pairs = iter(PAIRS[scene.name])
    for number, pair in enumerate(pairs):
        folder = memory / f"{scene.name} {number}"
        folder.mkdir()
        shutil.copy(template, folder / "audits.db")
        with open_database(f"sqlite:///{folder}/audits.db") as db:
            app = start(scene, db, folder)
            await run_pairs(app, scene, itertools.islice(itertools.chain([pair], pairs), PAIRS_PER_START))
        shutil.rmtree(folder)
