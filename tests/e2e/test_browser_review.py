"""`auditor review --serve` in a real browser: the command as people start it, with keys, with a mouse, and stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from auditor.storage import audits, rating_log
from auditor.storage.database import open_database
from tests.support.browser_review import (
    Review,
    click_cell,
    record_terminal,
    serve_review,
    shows,
    wait_for_text,
    wait_until,
)
from tests.support.chromium import Chromium, require_browser
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import save_review_audit

pytest.importorskip("textual_serve")
MISSING = require_browser(needs_axe=False)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=str(MISSING))

KEY_WAIT_S = 3.0
"""Time after which a decision is made again: one that comes too soon after the next conflict has opened is ignored."""
TABLET_WIDTH = 768


@pytest.fixture
def storage(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        save_review_audit(db)
    return url


@pytest.fixture
def review(tmp_path: Path, storage: str) -> Iterator[Review]:
    arguments = ["review", "moral", "--rater", "ada", "--storage", storage]
    with serve_review(arguments, tmp_path / "settings") as served:
        yield served


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chromium]:
    with Chromium(tmp_path / "chromium") as chromium:
        record_terminal(chromium)
        chromium.record_requests()
        yield chromium


def count_decided(storage: str) -> int:
    with open_database(storage, create=False) as db:
        entries = rating_log.load_entries(db, audits.get_audit(db, "moral").id)
    return len({entry.key for entry in entries})


def decide(storage: str, n_decisions: int, choose: Callable[[int], None]) -> None:
    """Make decisions, each once the one before is in the database."""
    target = count_decided(storage) + n_decisions
    number = 0
    deadline = time.monotonic() + PATIENCE_S
    while (before := count_decided(storage)) < target:
        assert time.monotonic() < deadline, f"{before} decisions are in the database"
        choose(number)
        number += wait_until(lambda: count_decided(storage) > before, KEY_WAIT_S)


def open_conflict(browser: Chromium) -> None:
    """Open the conflict of a row by two clicks, again where they arrive too far apart."""
    deadline = time.monotonic() + PATIENCE_S
    while not shows(browser, "not decided by you"):
        assert time.monotonic() < deadline, "no conflict opens"
        click_cell(browser, 20, 6, n_clicks=2)
        wait_until(lambda: shows(browser, "not decided by you"), KEY_WAIT_S)


def sessions_end(review: Review) -> bool:
    return wait_until(lambda: not review.session_ids())


def test_conflicts_are_decided_by_keys_and_mouse_until_the_end(review: Review, storage: str, browser: Chromium) -> None:
    browser.open(review.address, 1280)
    wait_for_text(browser, "1 of 20")
    assert urlsplit(browser.evaluate("location.href")).query == "", "the token is in no address that is shown"
    assert browser.evaluate("document.cookie") == ""
    browser.type("\r")
    wait_for_text(browser, "not decided by you")
    decide(storage, 2, lambda number: browser.type("14"[number]))
    columns = {"1 left": 2, "2 right": 10, "3 both": 19}
    decide(storage, 3, lambda number: click_cell(browser, list(columns.values())[number], -1))
    decided = f"{count_decided(storage)} decided by people"  # 5, or more where a key counted twice

    browser.call("Page.reload")
    browser.wait_for("document.body.classList.contains('-first-byte')")
    wait_for_text(browser, decided)
    hosts = {urlsplit(url).netloc for url in browser.requested_urls if not url.startswith("data:")}
    assert hosts == {urlsplit(review.address).netloc}, "nothing foreign is requested"

    assert review.session_ids()
    browser.open("about:blank", 1280)
    assert sessions_end(review)
    assert review.process.poll() is None
    browser.open(review.address, 1280)
    wait_for_text(browser, decided)
    assert_ends_with_server(review, browser, signal.SIGINT)


def test_a_tablet_has_80_columns_and_a_conflict_opens_by_mouse(review: Review, storage: str, browser: Chromium) -> None:
    browser.open(review.address, TABLET_WIDTH, height=1024)
    wait_for_text(browser, "1 of 20")
    assert browser.evaluate("window.terminalSize[0]") >= 80
    assert browser.evaluate("document.documentElement.scrollWidth") <= TABLET_WIDTH
    open_conflict(browser)
    decide(storage, 1, lambda _: click_cell(browser, 2, -1))
    assert_ends_with_server(review, browser, signal.SIGKILL)


def assert_ends_with_server(review: Review, browser: Chromium, number: signal.Signals) -> None:
    """Check that the session in a page ends with the server, to which a signal is sent, and that the page says so."""
    assert len(review.session_ids()) == 1
    review.process.send_signal(number)
    assert review.process.wait(PATIENCE_S) == (0 if number == signal.SIGINT else -number)
    assert sessions_end(review)
    browser.wait_for("getComputedStyle(document.getElementById('notice')).display === 'flex'")
    assert "The review has ended" in browser.evaluate("document.getElementById('message').textContent")
