from __future__ import annotations

import pytest

from auditor.domain import Decision
from auditor.review.session import ReviewSession
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.tui.text_screens import AgreementScreen
from tests.support.review_audit import save_review_audit
from tests.tui.conftest import Run


@pytest.fixture(autouse=True)
def _rated(db: Database) -> None:
    audit = audits.get_audit(db, "moral")
    for rater in ("ada", "grace"):
        session = ReviewSession(db, audit, rater)
        for number, key in enumerate(sorted(session.conflict_keys())[:10]):
            item = session.load_item(key)
            negative_side = Decision.LEFT if (item.left.score or 0.0) < 0 else Decision.RIGHT
            session.decide(item, Decision.BOTH if rater == "grace" and number < 3 else negative_side)


async def test_agreement_is_shown_with_intervals_and_n(run: Run) -> None:
    async with run() as driver:
        await driver.press("a")
        for words in ("Raters", "ada", "10 blind decisions", "ada and grace: agree", "70% of 10, no interval", "kappa"):
            assert words in driver.text
        await driver.press("pagedown", "k")
        assert "Judges and people" in driver.text
        await driver.press("space", "j", "down")
        assert "cedar: agrees" in driver.text
        await driver.press("pageup", "k", "up", "pageup")
        assert "Raters" in driver.text


async def test_the_figures_follow_the_ratings(run: Run, db: Database) -> None:
    save_review_audit(db, name="fresh")
    async with run("fresh") as driver:
        await driver.press("a")
        assert "There is no blind decision yet." in driver.text
        assert "no item has 2 ratings" in driver.text
        session = ReviewSession(db, audits.get_audit(db, "fresh"), "grace")
        session.decide(session.load_item(session.conflict_keys()[0]), Decision.LEFT)
        page = driver.page
        assert isinstance(page, AgreementScreen)
        page._check_for_changes()
        assert await driver.reaches(lambda d: "1 blind decision" in d.text)
