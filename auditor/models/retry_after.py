"""How long a provider asks to wait, in all the forms in which providers say it: headers, a field of the body, words.

Sources: RFC 9110 (`Retry-After`); the pages on rate limits of OpenAI and Groq (`x-ratelimit-reset-requests: 6m0s`,
"Please try again in 4.2s"), Anthropic (`anthropic-ratelimit-requests-reset`, a time in RFC 3339), OpenRouter
(`x-ratelimit-reset` in milliseconds since 1970), GitHub (the same in seconds), Cerebras
(`x-ratelimit-reset-tokens-minute`, a number of seconds), Azure ("Please retry after 20 seconds"); Google's `RetryInfo`.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime

MAX_RETRY_AFTER_S = 1e9
"""About 30 years; longer waits are capped at it, so that they can be added to a date and stored."""
MIN_EPOCH_S, MIN_EPOCH_MS = 1e8, 1e11
"""A larger number is a time since 1970, in seconds or milliseconds: no limit takes three years to be reset."""
LITELLM_PREFIX = "llm_provider-"
"""litellm's prefix of a provider's headers."""
UNIT_LENGTHS_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
"""Length of each unit of a duration in seconds, by the beginning of its name."""
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_UNIT = r"(?:ms|milliseconds?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)"
_DURATION = rf"(?:{_NUMBER}\s?{_UNIT}[\s,]{{0,2}}(?:and\s)?){{1,5}}(?<=[a-z])(?![a-z])"
DURATION_PATTERN = re.compile(_DURATION, re.IGNORECASE)
DURATION_PART_PATTERN = re.compile(rf"({_NUMBER})\s?(ms|milli|[dhms])", re.IGNORECASE)
WORDED_WAIT_PATTERN = re.compile(rf"\b(?:try again|retry)\s(?:in|after)\s({_DURATION})", re.IGNORECASE)
RETRY_INFO_PATTERN = re.compile(r'"retryDelay"\s*:\s*"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"')
"""Field of Google's `RetryInfo`, which comes without a header."""
RESET_HEADER_PATTERN = re.compile(r"rate-?limit.*-reset\b")
"""Names of headers with the time at which a limit is reset; `reset` is replaced by `remaining` for what is left."""


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Parse the wait in seconds from `retry-after-ms` or `retry-after`: seconds, a duration such as `6s`, or a date.

    None if both are absent or unreadable. A date in the past or a negative number is 0; a wait of more than
    `MAX_RETRY_AFTER_S` is capped. Both headers are also read with litellm's prefix.
    """
    texts = _texts_by_header(headers)
    seconds = _parse_number(texts.get("retry-after-ms"))
    if seconds is not None:
        return _bound(seconds / 1000)
    text = texts.get("retry-after")
    for parse in (_parse_number, parse_duration, _seconds_until_http_date):
        if (seconds := parse(text)) is not None:
            return _bound(seconds)
    return None


def parse_limit_reset(headers: Mapping[str, str]) -> float | None:
    """Parse the wait in seconds from headers that say when a rate limit is reset, for a refused request.

    Of several limits, the one of which nothing remains counts, else the one that is reset last. None if there is none
    that can be read.
    """
    texts = _texts_by_header(headers)
    waits = {
        name: _bound(seconds)
        for name, text in texts.items()
        if RESET_HEADER_PATTERN.search(name) and (seconds := _seconds_until_reset(text)) is not None
    }
    is_exhausted = {name: _parse_number(texts.get(name.replace("reset", "remaining"))) == 0 for name in waits}
    return max((wait for name, wait in waits.items() if is_exhausted[name]), default=max(waits.values(), default=None))


def parse_retry_info(body: str) -> float | None:
    """Parse the wait in seconds from Google's `RetryInfo` in the body of an error; None without one."""
    match = RETRY_INFO_PATTERN.search(body)
    return _bound(float(match[1])) if match else None


def parse_worded_wait(body: str) -> float | None:
    """Parse the wait in seconds from the words of a refusal, such as "try again in 7m33.6s"; None if it names none."""
    match = WORDED_WAIT_PATTERN.search(body)
    seconds = parse_duration(match[1]) if match else None
    return None if seconds is None else _bound(seconds)


def parse_duration(text: str | None) -> float | None:
    """Parse a duration such as `6m0s`, `17ms` or `20 seconds` into seconds; None for any other text."""
    if not text or not DURATION_PATTERN.fullmatch(text):
        return None
    parts = DURATION_PART_PATTERN.findall(text)
    return sum(float(number) * UNIT_LENGTHS_S[unit.lower()] for number, unit in parts)


def _texts_by_header(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in lower case; litellm's prefix is removed where there is no header without it."""
    texts = {str(name).lower(): str(text).strip() for name, text in headers.items()}
    return {name.removeprefix(LITELLM_PREFIX): text for name, text in texts.items()} | texts


def _bound(seconds: float) -> float:
    """A wait from 0 to `MAX_RETRY_AFTER_S`."""
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S)


def _parse_number(text: str | None) -> float | None:
    """Parse a decimal number; None for any other text."""
    return float(text) if text and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) else None


def _seconds_until_reset(text: str) -> float | None:
    """Seconds until a limit is reset: a number of seconds, a time since 1970, a duration, or a time in RFC 3339."""
    number = _parse_number(text)
    if number is not None:
        epoch_s = number / 1000 if number > MIN_EPOCH_MS else number
        return epoch_s - time.time() if number > MIN_EPOCH_S else number
    if (duration_s := parse_duration(text)) is not None:
        return duration_s
    try:
        return _seconds_until(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return _seconds_until_http_date(text)


def _seconds_until_http_date(text: str | None) -> float | None:
    """Seconds from now to an HTTP date, negative if it is past; None if it is absent or unreadable."""
    if not text:
        return None
    try:
        return _seconds_until(email.utils.parsedate_to_datetime(text))
    except (ValueError, OverflowError, TypeError, LookupError):  # an impossible year, day or time zone
        return None


def _seconds_until(date: datetime) -> float:
    """Seconds from now to a time, which is in UTC if it names no time zone; negative if it is past."""
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
