from __future__ import annotations

import pytest

from auditor.storage.call_records import StoredAttempt
from auditor.storage.database import Database
from auditor.storage.row_classes import insert_new
from tests.tui.conftest import Run

MESSAGE = "The requested model 'nope' does not exist [in this account]."


@pytest.fixture(autouse=True)
def _failed(db: Database) -> None:
    """Failed requests of the audit `moral`: 7 for an unknown model, and one that a retry resolved."""
    rows = [
        {
            "key": f"k{number}",
            "number": 1,
            "model": "openai/nope",
            "purpose": "direct",
            "started_at": f"2026-01-01T10:00:0{number}.000+00:00",
            "latency_s": 0.1,
            "outcome": "client_error" if number < 7 else "timeout",
            "http_status": 404 if number < 7 else None,
            "error": MESSAGE if number < 7 else "no answer in time",
            "audit_id": 1,
            "name": "alder",
        }
        for number in range(8)
    ]
    db.write(lambda connection: insert_new(connection, StoredAttempt, rows))


@pytest.mark.parametrize("audit", ["moral", None], ids=["from the queue", "from the list of audits"])
async def test_failures_are_listed_with_counts_message_and_fix(run: Run, audit: str | None) -> None:
    async with run(audit, size=(200, 50)) as driver:
        assert "E errors" in driver.text
        await driver.press("E")
        words = " ".join(driver.text.split())
        assert "moral › errors" in words
        assert "alder (openai/nope): HTTP 404, 7 requests, 7 calls without a usable answer" in words
        assert MESSAGE in words
        assert "How to fix: Check the model's name" in words
        assert "alder (openai/nope): timeout, 1 request" in words
        assert "direct; 2026-01-01 10:00:00 to 2026-01-01 10:00:06 UTC" in words
        await driver.press("escape")
        assert ("audits" if audit is None else "○ 20 open") in driver.text
