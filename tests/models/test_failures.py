from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from auditor.models.failures import retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"llm_provider-retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1))}, 0.0),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=10))
    assert retry_after({"retry-after": later}) == pytest.approx(36_000, abs=300)
