"""The title bar: what is shown if an audit's name is long."""

from __future__ import annotations

import pytest

from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit
from tests.tui.conftest import Run


@pytest.mark.parametrize("width", [80, 120])
async def test_a_long_name_hides_neither_position_nor_rater(run: Run, db: Database, width: int) -> None:
    name = "audit-" + "x" * 90
    save_review_audit(db, name=name)
    async with run(name, size=(width, 24)) as driver:
        title = driver.text.splitlines()[0]
        assert title.startswith(" auditor › audit-xxx")
        assert title.endswith("xx… › conflicts blind · ada")
        await driver.press("space")
        title = driver.text.splitlines()[0]
        assert title.endswith("xx… › 1 of 20 › 20 left blind · ada")
