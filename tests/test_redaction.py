"""Secrets are redacted in every encoding in which they may be echoed, and nothing else is."""

from __future__ import annotations

import json
import logging
import random
import string
import time

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from auditor.redaction import (
    REPLACEMENT,
    RedactingFilter,
    Redactor,
    known_secrets,
    redact,
    redact_bytes,
    register_secrets,
)
from tests.support.secret_encodings import encodings, secret_fragments

SECRET = "sk-canary/0+123456789=A?~"
LETTERS = string.ascii_letters + string.digits
key_rng = random.Random(7)
TYPICAL_SECRETS = [
    *(
        prefix + "".join(key_rng.choices(LETTERS, k=size))
        for prefix, size in (("sk-proj-", 156), ("sk-ant-api03-", 95))
    ),
    *(prefix + "".join(key_rng.choices(LETTERS, k=size)) for prefix, size in (("AIza", 35), ("gsk_", 52), ("hf_", 34))),
    *("".join(key_rng.choices(LETTERS + "+/", k=40)) for _ in range(4)),
]
"""Keys in the formats of common providers, and AWS secrets."""


@pytest.mark.parametrize("name", list(encodings(SECRET)))
def test_a_secret_is_redacted_in_every_encoding(name: str) -> None:
    code = encodings(SECRET)[name]
    for text in (code, f"the key {code} is wrong", json.dumps({"error": code}), json.dumps(json.dumps([code]))):
        redacted = Redactor([*TYPICAL_SECRETS, SECRET]).redact_text(text)
        assert REPLACEMENT in redacted
        assert not [part for part in secret_fragments(SECRET) if part in redacted.encode()]
        assert Redactor([SECRET]).redact_bytes(text.encode()).decode() == redacted


@pytest.mark.parametrize("wide", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_secret_is_redacted_in_a_body_of_wide_characters(wide: str, before: str) -> None:
    body = f'{before}{{"error": "the key {SECRET} is wrong"}}'.encode(wide)
    redacted = Redactor([*TYPICAL_SECRETS, SECRET]).redact_bytes(body)
    assert REPLACEMENT.encode() in redacted
    assert SECRET.encode(wide)[4:] not in redacted
    assert SECRET not in redacted.replace(b"\0", b"").decode("utf-8", "replace")


@pytest.mark.parametrize("name", list(encodings(SECRET)))
def test_the_text_around_a_secret_is_unchanged(name: str) -> None:
    redacted = Redactor([SECRET]).redact_text(f"é before {encodings(SECRET)[name]} after \ud800")
    assert redacted.startswith("é before ")
    assert redacted.endswith(" after \ud800")


@pytest.mark.parametrize("name", list(encodings(SECRET)))
def test_a_cut_text_holds_no_beginning_of_a_secret(name: str) -> None:
    code, redactor = encodings(SECRET)[name].removeprefix("Bearer "), Redactor([*TYPICAL_SECRETS, SECRET])
    full_text = f"key: {code}"
    for end in range(len("key: ") + 1, len(full_text)):
        redacted = redactor.redact_text(full_text[:end], complete=False)
        assert redacted.startswith("key: ")
        assert (
            len(redacted) <= len("key: ") + 3 or REPLACEMENT in redacted
        )  # the first base64 characters encode the preceding text
    assert redactor.redact_text("an end as any other.", complete=False) == "an end as any other."


@example("0000\xa0%00", "", "")  # JSON escapes one character, and the secret looks as if another were escaped
@example("abcd\xe9%41", "", "")
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8, max_size=40), st.text(), st.text())
def test_any_secret_is_removed_and_nothing_else(secret: str, before: str, after: str) -> None:
    if secret in before + after:
        return
    redactor = Redactor([secret])
    assert secret not in redactor.redact_text(before + secret + after)
    assert secret not in json.loads(redactor.redact_text(json.dumps([f"|{secret}|"])))[0]


def test_there_is_no_false_positive_in_ten_megabytes_of_prose() -> None:
    rng, redactor = random.Random(3), Redactor(TYPICAL_SECRETS)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 12))) for _ in range(20_000)]
    odd_words = [
        "50%", "C:\\new", "sk-", "AIza", "\\u00e9", "%20", "key", "2025-01-01", "=", "…", "非常", "\n", 'said "no"',
    ]  # fmt: skip
    text = " ".join(rng.choices([*words, *odd_words], k=1_500_000))
    assert len(text.encode()) > 10_000_000
    assert redactor.redact_text(text) is text
    data = json.dumps({"text": text}).encode()
    assert redactor.redact_bytes(data) is data


@pytest.mark.parametrize(
    "unit",
    [
        "-----BEGIN PRIVATE KEY-----", "\\", "\\u0073", "%73", "sk-proj-", "s", '\\"', "eyJhbGciOi",
        TYPICAL_SECRETS[0][:60],
    ],
)  # fmt: skip
def test_time_is_linear_in_hostile_text(unit: str) -> None:
    redactor = Redactor(TYPICAL_SECRETS)
    data = (unit * (2_000_000 // len(unit))).encode()
    redactor.redact_bytes(data[:1000])
    began = time.thread_time()
    redactor.redact_bytes(data)
    assert time.thread_time() - began < 2.0  # 0.02 to 0.3 s here; quadratic time would take hours


def test_short_secrets_are_not_redacted() -> None:
    register_secrets("x", "1234567", "", None)
    assert known_secrets() == ()
    assert redact("the next 1234567") == "the next 1234567"


def test_a_registered_secret_is_redacted_from_then_on() -> None:
    assert redact(SECRET) == SECRET
    register_secrets("another-one", SECRET + "\n")
    assert redact(f"{SECRET}, another-one") == f"{REPLACEMENT}, {REPLACEMENT}"
    assert redact_bytes(SECRET.encode()) == REPLACEMENT.encode()


def test_a_librarys_log_has_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    register_secrets(SECRET)
    logger = logging.getLogger("some.library")
    logger.addFilter(RedactingFilter())
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger.exception("failed with %s", SECRET)
    assert SECRET not in caplog.text
    assert REPLACEMENT in caplog.text
