"""Scores as people of many scripts write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.agents.answer_parsing import parse_score, parse_trace
from auditor.domain import Answer, Cell, Outcome

ZEROS = {"ascii": "0", "arabic": "٠", "persian": "۰", "devanagari": "०", "full width": "０"}
SEPARATORS = (".", ",", "٫", "．", "，")
MINUSES = ("-", "−", "–", "－", "﹣", "‐", "‑")


def in_digits(number: str, zero: str) -> str:
    return "".join(chr(ord(zero) + int(c)) if c.isascii() and c.isdigit() else c for c in number)


@given(
    hundredths=st.integers(-100, 100),
    zero=st.sampled_from(sorted(ZEROS.values())),
    separator=st.sampled_from(SEPARATORS),
    minus=st.sampled_from(MINUSES),
    equals=st.sampled_from(["=", "＝", ":", "："]),
    mark=st.sampled_from(["", "\u200f", "\u200e", "\u061c"]),
)
def test_any_digits_separator_and_minus(
    hundredths: int, zero: str, separator: str, minus: str, equals: str, mark: str
) -> None:
    written = in_digits(f"{hundredths / 100:.2f}".replace(".", separator).replace("-", minus), zero)
    assert parse_score(f"…\nSCORE {equals} {mark}{written}{mark}") == hundredths / 100


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("SCORE = ٠٫٥", 0.5),
        ("SCORE = -۰٫۲۵", -0.25),
        ("SCORE = −०.७", -0.7),
        ("ＳＣＯＲＥ＝－０．４。", -0.4),
        ("SCORE = 0,8", 0.8),
        ("SCORE = ٥", None),
        ("SCORE = ०.५%", None),
        ("SCORE = ٠٫١\nSCORE = ٠٫٢", None),
    ],
)
def test_by_hand(text: str, score: float | None) -> None:
    assert parse_score(text) == score


def test_the_score_line_leaves_the_reasoning_and_nothing_else_changes() -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text="理由，あり。\nSCORE＝０．５"), "m", Cell("Japan", "t"), 0, "text")
    assert (trace.score, trace.text) == (0.5, "理由，あり。")
