from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, strategies as st

from auditor.models.failures import MAX_RETRY_AFTER_S, parse_limit_reset, parse_retry_after, parse_worded_wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"llm_provider-retry-after": "7"}, 7.0),
        ({"retry-after": "6s"}, 6.0),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": "1500ms"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "6 monkeys"}, None),
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
    | st.from_regex(r"[0-9]{0,12}[.]?[0-9]{0,4} ?(ms|s|m|h|days)[0-9]{0,20}s?")
    | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,5} [A-Z][a-z]{2} [0-9]{1,9} [0-9:]{1,12} [+-]?[0-9]{0,20}")
)
def test_any_header_gives_a_bounded_wait_or_none(value: str) -> None:
    headers = dict.fromkeys(("retry-after", "retry-after-ms", "x-ratelimit-reset"), value)
    waits = [parse_retry_after({name: value}) for name in headers]
    waits += [parse_limit_reset(headers), parse_worded_wait(f"try again in {value}")]
    assert all(wait is None or 0 <= wait <= MAX_RETRY_AFTER_S for wait in waits)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 4.2s.", 4.2),
        ("Please try again in 120ms.", 0.12),
        ("Please try again in 7m33.6s. Need more tokens?", 453.6),
        ("try again in 1h2m3s", 3723.0),
        ("Please retry after 20 seconds.", 20.0),
        ("Please retry in 41.09s.", 41.09),
        ("Try again in 1 minute and 30 seconds", 90.0),
        ("Please try again in 2 days", 172_800.0),
        ("Please try again later.", None),
        ("Please try again in 5 months.", None),
        ("Please try again in 4.2", None),
        ("It took 4.2s.", None),
    ],
)
def test_the_words_of_a_refusal(words: str, seconds: float | None) -> None:
    assert parse_worded_wait(words) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"x-ratelimit-reset-requests": "4s"}, 4.0),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "17ms"}, 0.017),
        ({"x-ratelimit-reset-tokens-minute": "11.38"}, 11.38),
        ({"RateLimit-Reset": "50"}, 50.0),
        ({"llm_provider-x-ratelimit-reset-requests": "4s"}, 4.0),
        ({"x-ratelimit-reset-requests": "4s", "x-ratelimit-reset-tokens": "9s"}, 9.0),
        (
            {
                "x-ratelimit-reset-requests": "4s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "9s",
                "x-ratelimit-remaining-tokens": "300",
            },
            4.0,
        ),
        ({"x-ratelimit-reset": "0"}, 0.0),
        ({"x-ratelimit-reset": "1"}, 1.0),
        ({"x-ratelimit-reset": "1700000000"}, 0.0),
        ({"anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z"}, 0.0),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}, None),
        ({"x-password-reset": "60"}, None),
    ],
)
def test_the_time_at_which_a_limit_is_reset(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_limit_reset(headers) == seconds


def test_the_time_of_a_reset_since_1970_or_as_a_date() -> None:
    now_s = time.time()
    dates = {
        "x-ratelimit-reset": f"{now_s + 600:.0f}",
        "x-rate-limit-reset": f"{(now_s + 600) * 1000:.0f}",
        "anthropic-ratelimit-input-tokens-reset": (datetime.now(UTC) + timedelta(seconds=600)).isoformat(),
        "anthropic-ratelimit-requests-reset": f"{datetime.now(UTC) + timedelta(seconds=600):%Y-%m-%dT%H:%M:%SZ}",
        "ratelimit-reset": format_datetime(datetime.now(UTC) + timedelta(seconds=600)),
    }
    for name, text in dates.items():
        assert parse_limit_reset({name: text}) == pytest.approx(600, abs=120), name
