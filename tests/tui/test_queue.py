"""The queue screen: its rows, filters, and two terminal sizes; its keys are in test_key_bindings.py."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from auditor.domain import Decision
from auditor.review.conflict_list import parse_filter
from auditor.review.session import ReviewSession
from auditor.storage import audits, results
from auditor.storage.conflict_status import ConflictStatus, QueueFilter
from auditor.storage.database import Database
from auditor.tui.queue import ROWS_PER_FETCH, QueueScreen, compute_column_widths, format_cells, format_header
from auditor.tui.settings import ReviewSettings
from tests.support.known import known
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import COUNTRIES, MODELS, TOPICS, save_review_audit
from tests.tui.app_driver import Driver
from tests.tui.conftest import Run


def visible_rows(driver: Driver) -> list[str]:
    """The visible rows of the table."""
    return [row for row in driver.text.splitlines() if "┼" in row and "open" in row]


@pytest.mark.parametrize(
    ("size", "n", "theme"), [((80, 24), 18, "auditor-dark"), ((200, 50), 20, "auditor-light")], ids=str
)
async def test_conflicts_are_listed_in_aligned_rows(
    run: Run, size: tuple[int, int], n: int, theme: str, tmp_path: object
) -> None:
    async with run(size=size, settings=ReviewSettings(Path(str(tmp_path)), theme=theme, open_next=False)) as driver:
        rows = visible_rows(driver)
        assert len(rows) == n
        assert all("●" in row and "◇" in row for row in rows)
        assert "○ 20 open" in driver.text
        assert "1 of 20 · by information" in driver.text
        assert not any(name in driver.text for name in MODELS)
        assert max(map(len, driver.text.splitlines())) <= size[0]
        assert [topic for topic in TOPICS if topic[:12] in driver.text] == list(TOPICS)
        assert all(country[:9] in driver.text for country in COUNTRIES)


async def test_a_wide_terminal_previews_the_conflict_under_the_cursor(run: Run) -> None:
    async with run(size=(200, 50)) as driver:
        await driver.press("j")
        key = known(driver.queue.queue_table.cursor_key)
        assert await driver.reaches(lambda d: f"How justifiable is {key.topic} in {key.country}?" in d.text)
        assert "Norms:" in driver.text
        assert not any(name in driver.text for name in MODELS)


async def test_filter_and_clear(run: Run) -> None:
    async with run() as driver:
        await driver.press("slash")
        assert "kind: state:open country:" in driver.text
        await driver.type("country:egypt gap:>1.14")
        await driver.press("enter")
        assert driver.queue.queue_filter == QueueFilter(countries=("egypt",), min_gap=1.14)
        assert "/ country:egypt gap:>1.14" in driver.text
        assert len(visible_rows(driver)) == 3
        await driver.press("slash", "end")
        await driver.type(" divorce topic:nothing")
        await driver.press("enter")
        assert "No conflict matches this filter. Press x to clear it." in driver.text
        await driver.press("enter", "x")
        assert "1 of 20" in driver.text


async def test_an_invalid_filter_is_explained_and_the_previous_one_stays(run: Run) -> None:
    async with run() as driver:
        await driver.press("slash")
        await driver.type("knd:binary")
        await driver.press("enter")
        assert "✕ unknown filter 'knd:'. Did you mean 'kind'?" in driver.text
        assert driver.queue.queue_filter == QueueFilter()
        await driver.press("home", "right", "i", "enter")  # the text is kept, so it can be corrected
        assert driver.queue.queue_filter == parse_filter("kind:binary")
        await driver.press("x", "slash")
        await driver.type("kind:binary")
        await driver.press("escape")
        assert driver.queue.queue_filter == QueueFilter()


async def test_saved_filters(run: Run) -> None:
    async with run() as driver:
        driver.queue.action_filter_by("kind:binary")
        await driver.press("F", "s")
        await driver.type("wide [/]")
        await driver.press("enter")
        assert "wide [/]  kind:binary" in driver.text
        assert driver.app.settings.filters == {"wide [/]": "kind:binary"}
        await driver.press("escape", "x", "F", "j", "k", "enter")
        assert driver.queue.queue_filter == QueueFilter(kinds=tuple(driver.queue.queue_filter.kinds))
        assert driver.queue.queue_filter.kinds
        await driver.press("F", "d", "escape")
        assert driver.app.settings.filters == {}


async def test_a_message_is_shown_when_nothing_is_left(run: Run, db: Database) -> None:
    session = ReviewSession(db, audits.get_audit(db, "moral"), "ada")
    all_keys = session.conflict_keys()
    for key in all_keys:
        session.decide(session.load_item(key), Decision.BOTH)
    async with run() as driver:
        await driver.press("space")
        assert driver.messages == ["No conflict of this list is left for you to decide."]
        assert "● 20 decided by people" in driver.text


async def test_decisions_of_others_are_shown_after_a_reload(run: Run, db: Database) -> None:
    async with run() as driver:
        other_session = ReviewSession(db, audits.get_audit(db, "moral"), "grace")
        other_session.decide(other_session.load_item(driver.queue.queue_table.conflict_keys[0]), Decision.BOTH)
        await driver.press("R")
        assert "● 1 decided by people" in driver.text


async def test_an_audit_without_conflicts(run: Run, db: Database) -> None:
    results.replace_conflicts(db, save_review_audit(db, name="calm").id, [])
    async with run("calm") as driver:
        assert "This audit has no conflicts." in driver.text
        await driver.press("j", "G", "enter", "space")
        assert isinstance(driver.page, QueueScreen)


async def test_only_the_lines_in_view_are_fetched(run: Run, db: Database) -> None:
    save_review_audit(
        db, name="large", conflicts=400, samples=1,
        countries=[f"Country {i}" for i in range(20)], topics=[f"topic {i}" for i in range(20)],
    )  # fmt: skip
    async with run("large") as driver:
        table = driver.queue.queue_table
        assert len(table.conflict_keys) == 400
        assert len(table._cached_pages) == 1
        assert sum(map(len, table._cached_pages.values())) == ROWS_PER_FETCH
        await driver.press("G")
        assert "400 of 400" in driver.text
        assert len(table._cached_pages) <= 4


def test_a_row_is_as_wide_as_its_header_and_fits_whatever_its_names_are(db: Database) -> None:
    session = ReviewSession(db, audits.get_audit(db, "moral"), "ada")
    row = session.load_queue_rows(session.conflict_keys())[0]
    for width in (20, 40, 60, 79, 80, 120, 136, 200, 320):
        line = "".join(text for text, _ in format_cells(row, width, is_cursor=True))
        assert cell_len(line) == cell_len(format_header(width))
        assert cell_len(line) == width or width < 62
        assert compute_column_widths(width).axis % 2 == 1
    for country in ("日本国とても長い名前です", "ไทย", "a\nb\tc", "\x1b[31mred", "e\u0301\u0302x" * 9):
        renamed = replace(row, key=row.key._replace(country=country))
        line = "".join(text for text, _ in format_cells(renamed, 80, is_cursor=False))
        assert (cell_len(line), "\n" in line, "\x1b" in line) == (80, False, False)


async def test_no_conflict_counts_as_open_while_conflicts_are_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, count = threading.Event(), ReviewSession.count_by_status

    def wait_and_count(session: ReviewSession) -> dict[ConflictStatus, int]:
        gate.wait(PATIENCE_S)
        return count(session)

    monkeypatch.setattr(ReviewSession, "count_by_status", wait_and_count)
    async with run(None) as driver:
        driver.review_app.open_queue("moral")
        for _ in range(20):
            await driver.pilot.pause()
        assert "Reading the conflicts …" in driver.text
        assert "0 open" not in driver.text
        gate.set()
        await driver.settle()
        assert "○ 20 open" in driver.text
