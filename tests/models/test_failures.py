from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.models.failures import MAX_RETRY_AFTER_S, parse_retry_after


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
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "9" * 400}, MAX_RETRY_AFTER_S),
        ({"retry-after": "9" * 5000}, MAX_RETRY_AFTER_S),
        ({"retry-after-ms": "9" * 400}, MAX_RETRY_AFTER_S),
        ({"retry-after": "-" + "9" * 400}, 0.0),
        ({"retry-after-ms": "1e400"}, None),
        ({"retry-after-ms": "inf", "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": "-inf"}, None),
        ({"retry-after": "\u0663"}, None),
        ({"retry-after": "Wed, 21 Oct 9999999 07:28:00 GMT"}, None),
        ({"retry-after": f"Wed, 21 Oct {'9' * 5000} 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 99 Oct 2099 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2099 99:99:99 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 +99999999999999"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_RETRY_AFTER_S),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"}, 0.0),
        ({"retry-after": ",,,,"}, None),
        ({"retry-after": "\ud800"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=10))
    assert parse_retry_after({"retry-after": later}) == pytest.approx(36_000, abs=300)


@given(
    st.text(st.characters(codec=None))
    | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,5} [A-Z][a-z]{2} [0-9]{1,9} [0-9:]{1,12} [+-]?[0-9]{0,20}")
)
def test_any_header_gives_a_bounded_wait_or_none(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = parse_retry_after({name: value})
        assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_S
