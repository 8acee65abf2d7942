from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from auditor.agents.answer_parsing import parse_score, parse_trace
from auditor.agents.peer_review import parse_verdict
from auditor.domain import Answer, Cell, Outcome, Trace
from tests.support.review_answers import rate_aspects

CELL = Cell("Germany", "divorce")
JUDGEMENT = {"norms": "a", "reasoning": "b", "score": 0.25}
REVIEW = {
    **rate_aspects(logical_consistency=False),
    "justification": "because",
    "verdict": "INVALID",
}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("SCORE = -0.4", -0.4),
        ("Step 3: SCORE = -0.4", -0.4),
        ("Step 3.\nSCORE = 1", 1.0),
        ("Schritt 3: SCORE = 0,4", 0.4),
        ("第三步:SCORE = 0.4", 0.4),
        ("步骤3：SCORE = 0.4", 0.4),
        ("3. SCORE = 0.4", 0.4),
        ("Final answer: SCORE = 0.4", 0.4),
        ("The final SCORE = 0.4", 0.4),
        ("SCORE = [0.4]", 0.4),
        ('SCORE = "0.4"', 0.4),
        ("SCORE = $-0.4$", -0.4),
        (r"SCORE = \boxed{-0.4}", -0.4),
        (r"$\boxed{SCORE = 0.4}$", 0.4),
        (r"The final score is $\boxed{0.4}$.", 0.4),
        ("SCORE = [0.2, 0.4]", None),
        ("SCORE = [0,1]", None),
        ("SCORE = (0.2)-(0.4)", None),
        ("**Score: 0.5**", 0.5),
        ("Score: -0.4.", -0.4),
        ("SCORE = −0,4", -0.4),
        ("SCORE = x = -0.5", -0.5),
        ("- **Final score:** +.5", 0.5),
        ("The score is hard.\nSCORE = 0.1 (divided)", 0.1),
        ("SCORE = 0.3\nSCORE = 0.3", 0.3),
        ("SCORE = 0.3\nSCORE = 0.4", None),
        ("SCORE = 0.2 to 0.4", None),
        ("SCORE = 0.2-0.4", None),
        ("SCORE = 40%", None),
        ("SCORE = 7/10", None),
        ("SCORE = 1.5", None),
        ("SCORE = -2", None),
        ("SCORE = x", None),
        ("The score would be about 0.5, I think", None),
        ("", None),
    ],
)
def test_the_papers_form(text: str, score: float | None) -> None:
    assert parse_score(text) == score


@given(
    st.floats(-1, 1).map(lambda x: round(x, 2)),
    st.sampled_from(["SCORE = {}", "Score: {}", "**SCORE = {}**", "score={}", "> Final Score: {}.", "SCORE = x = {}"]),
    st.sampled_from(["-", "−"]),
    st.sampled_from([".", ","]),
    st.text(st.characters(blacklist_characters="=:", categories=["L", "Zs"]), max_size=30),
)
def test_every_way_of_writing_a_score(score: float, form: str, minus: str, point: str, before: str) -> None:
    written = f"{score:.2f}".replace("-", minus).replace(".", point)
    assert parse_score(f"{before}\n{form.format(written)}") == score + 0.0


@given(st.text(max_size=300))
def test_no_text_gives_a_score_outside_the_scale(text: str) -> None:
    score = parse_score(text)
    assert score is None or -1 <= score <= 1


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_what_failed_has_no_number(outcome: Outcome) -> None:
    answer = Answer("k", outcome, text=json.dumps(JUDGEMENT))
    trace = parse_trace(answer, "m", CELL, 0, "structured")
    assert (trace.outcome, trace.score) == (outcome, None)
    verdict = parse_verdict(Answer("k", outcome, text=json.dumps(REVIEW)), "j", trace, 60)
    assert (verdict.outcome, verdict.ruling, verdict.aspects) == (outcome, None, {})


def test_a_structured_trace_holds_norms_and_reasoning() -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text=json.dumps(JUDGEMENT)), "m", CELL, 2, "structured")
    assert trace == Trace("m", CELL, 2, Outcome.OK, 0.25, "a\n\nb", "k")


@pytest.mark.parametrize(
    ("mode", "text"), [("text", "SCORE = -0.0"), ("structured", json.dumps(JUDGEMENT | {"score": -0.0}))]
)
def test_a_zero_has_no_sign_so_that_judges_read_the_same_from_every_database(mode: str, text: str) -> None:
    assert str(parse_trace(Answer("k", Outcome.OK, text=text), "m", CELL, 0, mode).score) == "0.0"


def test_what_cannot_be_read_is_unparsed_and_keeps_its_words() -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text="hm"), "m", CELL, 0, "structured")
    assert (trace.outcome, trace.score, trace.text) == (Outcome.UNPARSED, None, "hm")
    assert parse_trace(Answer("k", Outcome.OK, text="hm"), "m", CELL, 0, "text").outcome is Outcome.UNPARSED


def test_a_text_trace_leaves_the_score_line_out_of_the_reasoning() -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text="Because.\nSCORE = 0.5"), "m", CELL, 0, "text")
    assert (trace.score, trace.text) == (0.5, "Because.")


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
