"""Scores and refusals are read from texts and structures; what cannot be read is unparsed, and announced once."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings, strategies as st

from auditor.agents.answer_parsing import (
    MAX_UNREAD_ANSWERS,
    IgnoredKeys,
    UnreadAnswers,
    merge_repaired_trace,
    parse_score,
    parse_trace,
)
from auditor.agents.peer_review import parse_verdict
from auditor.agents.refusals import is_refusal
from auditor.domain import LANGUAGES, Answer, Call, Cell, Message, Outcome, Purpose, Trace
from auditor.models.reasoning import strip_thinking
from auditor.prompts.language_data import load_refusal_patterns
from tests.support.language_samples import SAMPLES
from tests.support.review_answers import rate_aspects

CELL = Cell("Germany", "divorce")
JUDGEMENT = {"norms": "a", "reasoning": "b", "score": 0.25}
REVIEW = {**rate_aspects(logical_consistency=False), "justification": "because", "verdict": "INVALID"}
MANY = settings(max_examples=150)

hundredths = st.integers(-100, 100).map(lambda i: i / 100)
minus = st.sampled_from("-−–‑﹣")
point = st.sampled_from([".", ","])
label = st.sampled_from(
    ["SCORE", "Score", "score", "Final score", "Final Score", "FINAL SCORE", "The score", "My final score"]
)
equals = st.sampled_from([" = ", "=", ": ", " is ", " = x = ", "： ", "＝"])
lead = st.sampled_from(["", "**", "- ", "> ", "### ", "Step 3: ", "STEP 3. ", "Answer: ", "  ", "* ", "`"])
wrap = st.sampled_from(
    [("", ""), ("**", "**"), ("[", "]"), ('"', '"'), ("$", "$"), ("`", "`"), (r"$\boxed{", "}$"), ("(", ")")]
)
tail = st.sampled_from(["", ".", "**", " ", "  (leaning towards never)", ".**", "\n", "\r"])
before = st.sampled_from(
    [
        "",
        "Step 1. They value family.\nStep 2. So 0.7 of them agree.\n",
        "<think>SCORE = 0.99? or -0.3</think>",
        "SCORE = x\n",
    ]
) | st.text(st.characters(blacklist_characters="=:", categories=["L", "Zs"]), max_size=30).map(lambda line: line + "\n")
after = st.sampled_from(["", "\n", "\n\nI hope this helps.", "\nThis is between 0 and 1."])


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("SCORE = -0.4", -0.4), ("Step 3: SCORE = -0.4", -0.4), ("Step 3.\nSCORE = 1", 1.0),
        ("Schritt 3: SCORE = 0,4", 0.4), ("第三步:SCORE = 0.4", 0.4), ("步骤3：SCORE = 0.4", 0.4),
        ("3. SCORE = 0.4", 0.4), ("Final answer: SCORE = 0.4", 0.4), ("The final SCORE = 0.4", 0.4),
        ("SCORE = [0.4]", 0.4), ('SCORE = "0.4"', 0.4), ("SCORE = $-0.4$", -0.4), (r"SCORE = \boxed{-0.4}", -0.4),
        (r"$\boxed{SCORE = 0.4}$", 0.4), (r"The final score is $\boxed{0.4}$.", 0.4), ("SCORE = [0.2, 0.4]", None),
        ("SCORE = [0,1]", None), ("SCORE = (0.2)-(0.4)", None), ("**Score: 0.5**", 0.5), ("Score: -0.4.", -0.4),
        ("SCORE = −0,4", -0.4), ("SCORE = x = -0.5", -0.5), ("- **Final score:** +.5", 0.5),
        ("The score is hard.\nSCORE = 0.1 (divided)", 0.1), ("SCORE = 0.3\nSCORE = 0.3", 0.3),
        ("SCORE = 0.3\nSCORE = 0.4", None), ("SCORE = 0.2 to 0.4", None), ("SCORE = 0.2-0.4", None),
        ("SCORE = 40%", None), ("SCORE = 7/10", None), ("SCORE = 1.5", None), ("SCORE = -2", None), ("SCORE = x", None),
        ("The score would be about 0.5, I think", None), ("", None), ("SCORE = ٠٫٥", 0.5), ("SCORE = -۰٫۲۵", -0.25),
        ("SCORE = −०.७", -0.7), ("ＳＣＯＲＥ＝－０．４。", -0.4), ("SCORE = 0,8", 0.8), ("SCORE = ٥", None),
        ("SCORE = ०.५%", None), ("SCORE = ٠٫١\nSCORE = ٠٫٢", None), ("Therefore, SCORE = -0.6", -0.6),
        ("Most people would say so, hence **SCORE = 0.25**.", 0.25),
        ("I would give a score of 0.4 or so", None), ("SCORE = - 0.4", -0.4), ("</think>\nSCORE = 0.1", 0.1),
        ("SCORE = 0.9</think>SCORE = 0.1", 0.1), ("<think>\nSCORE = 0.9", None),
        ("<THINKING>maybe SCORE = 0.9</THINKING>\nSCORE = 0.1", 0.1), ("SCORE = 0.4;", 0.4), ("SCORE = 0.4; 0.5", None),
        ("SCORE = 0.4 (on the scale from -1 to 1)", 0.4), ("SCORE = 0.4, on a scale of −1 to +1.", 0.4),
        ("SCORE = 0.4 [range -1..1]", 0.4), ("SCORE = 0.4 on a scale from 0 to 1", None), ("SCORE = -1 to 1", None),
        ("SCORE = 4 on a scale from 1 to 10", None), ("SCORE = 0.4 on a scale from -1 to 1, or 0.5", None),
    ],
)  # fmt: skip
def test_the_papers_form(text: str, score: float | None) -> None:
    assert parse_score(strip_thinking(text)) == score


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


ZEROS = {"ascii": "0", "arabic": "٠", "persian": "۰", "devanagari": "०", "full width": "０"}
SEPARATORS = (".", ",", "٫", "．", "，")
MINUSES = ("-", "−", "–", "－", "﹣", "‐", "‑")


def in_digits(number: str, zero: str) -> str:
    return "".join(chr(ord(zero) + int(c)) if c.isascii() and c.isdigit() else c for c in number)


@given(
    hundredths=st.integers(-100, 100), zero=st.sampled_from(sorted(ZEROS.values())),
    separator=st.sampled_from(SEPARATORS), minus=st.sampled_from(MINUSES),
    equals=st.sampled_from(["=", "＝", ":", "："]), mark=st.sampled_from(["", "\u200f", "\u200e", "\u061c"]),
)  # fmt: skip
def test_any_digits_separator_and_minus(
    hundredths: int, zero: str, separator: str, minus: str, equals: str, mark: str
) -> None:
    written = in_digits(f"{hundredths / 100:.2f}".replace(".", separator).replace("-", minus), zero)
    assert parse_score(f"…\nSCORE {equals} {mark}{written}{mark}") == hundredths / 100


def test_the_score_line_leaves_the_reasoning_and_nothing_else_changes() -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text="理由，あり。\nSCORE＝０．５"), "m", Cell("Japan", "t"), 0, "text")
    assert (trace.score, trace.text) == (0.5, "理由，あり。")


@st.composite
def number(draw: st.DrawFn) -> tuple[float, str]:
    """A score, and one way to write it."""
    value = draw(hundredths)
    text = f"{abs(value):.{draw(st.integers(2, 4))}f}" if value % 1 else str(int(abs(value)))
    if text.startswith("0.") and draw(st.booleans()):
        text = text[1:]
    sign = draw(minus) if value < 0 else draw(st.sampled_from(["", "+"])) if value > 0 else ""
    return value, sign + text.replace(".", draw(point))


@MANY
@given(number(), label, equals, lead, wrap, tail, before, after)
@example((-0.4, "−0,4"), "SCORE", " = ", "", ("", ""), "", "", "")
@example((-0.5, "-0.5"), "SCORE", " = x = ", "", ("", ""), "", "", "")
def test_one_number_is_read_however_it_is_written(
    number: tuple[float, str],
    label: str,
    equals: str,
    lead: str,
    wrap: tuple[str, str],
    tail: str,
    before: str,
    after: str,
) -> None:
    value, text = number
    if "," in text and wrap[0] in ("[", "("):
        return  # [0,5] may be a range
    line = f"{lead}{label}{equals}{wrap[0]}{text}{wrap[1]}{tail}"
    assert parse_score(strip_thinking(f"{before}{line}{after}")) == pytest.approx(value), line


@MANY
@given(
    number(), number(), label, equals, st.sampled_from([" to ", "-", " - ", " or ", "/", " ± ", "..", " and ", ", "])
)
def test_two_numbers_are_none(
    first: tuple[float, str], second: tuple[float, str], label: str, equals: str, between: str
) -> None:
    assert parse_score(f"{label}{equals}{first[1]}{between}{second[1]}") is None


@MANY
@given(number(), label, equals, st.sampled_from(["%", " %", " percent", "/10", "x", " points", "e3", " out of ten"]))
def test_a_number_of_something_else_is_none(number: tuple[float, str], label: str, equals: str, unit: str) -> None:
    assert parse_score(f"{label}{equals}{number[1]}{unit}") is None


@given(number(), number(), label, equals)
def test_a_score_may_be_repeated_but_not_changed(
    first: tuple[float, str], second: tuple[float, str], label: str, equals: str
) -> None:
    same = parse_score(f"{label}{equals}{first[1]}\nIn short:\n**SCORE = {first[1]}**")
    assert same == pytest.approx(first[0])
    other = parse_score(f"{label}{equals}{first[1]}\nSCORE = {second[1]}")
    assert other == (pytest.approx(first[0]) if first[0] == second[0] else None)


@given(st.text(max_size=200))
def test_whatever_is_written_a_score_is_in_range_or_none(text: str) -> None:
    for answer_text in (text, f"SCORE = {text}", f"Score: {text}"):
        score = parse_score(answer_text)
        assert score is None or -1 <= score <= 1


@given(st.integers(101, 10**6), st.sampled_from(["", "-"]))
def test_a_number_outside_the_scale_is_none(hundredths: int, sign: str) -> None:
    assert parse_score(f"SCORE = {sign}{hundredths / 100:.2f}") is None


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("They value family.\nSCORE =\n-0.4", -0.4), ("**Score:**\n\n-0,4\n\nI hope this helps.", -0.4),
        ("## Final score\n**-0.4**", -0.4), ("Step 3: Score\r\n−0.4\r\n", -0.4), ("はい\nＳＣＯＲＥ：\n－０．４", -0.4),
        ("SCORE:\n0.3\nSCORE = 0.3", 0.3), ("SCORE:\n0.3\nSCORE = 0.4", None), ("SCORE:\n0.3\n0.4", None),
        ("SCORE:\n1. They value family.", None), ("SCORE:\n1.\nThey value family.", None), ("SCORE:\n40%", None),
        ("SCORE:\n4", None), ("The score\nof these people\n0.4", None), ("Score\n\n", None),
    ],
)  # fmt: skip
def test_a_score_below_its_label_is_read(text: str, score: float | None) -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "text")
    assert (trace.score, trace.outcome) == (score, Outcome.UNPARSED if score is None else Outcome.OK)


def test_judges_do_not_see_a_score_below_its_label() -> None:
    text = "They value family.\n\n**Score:**\n\n-0.4\n\nI hope this helps."
    trace = parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "text")
    assert trace.text == "They value family.\n\n\nI hope this helps."


# --- cut off ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "score"),
    [("Step 1. They\nSCORE = -0.4\nThis is", -0.4), ("Step 1. They\nSCORE = -0.", None), ("SCORE = -0.4", None),
     ("Step", None), ("Step 1. They\nSCORE =\n-0.4", None), ("Step 1. They\nSCORE =\n-0.4\nThis is", -0.4)],
)  # fmt: skip
def test_a_text_that_was_cut_off_is_read_up_to_its_last_whole_line(text: str, score: float | None) -> None:
    trace = parse_trace(Answer("k", Outcome.TRUNCATED, text), "m", CELL, 0, "text")
    assert trace.score == score
    assert trace.outcome is (Outcome.TRUNCATED if score is None else Outcome.OK)


# --- refusals -----------------------------------------------------------------------------------------------------

REFUSALS = {code: samples["refusals"] for code, samples in SAMPLES.items()}


@pytest.mark.parametrize(("language", "text"), [(code, t) for code, texts in REFUSALS.items() for t in texts])
@pytest.mark.parametrize("mode", ["structured", "text"])
def test_a_refusal_is_known_in_every_language_of_the_prompts(language: str, text: str, mode: str) -> None:
    trace = parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, mode, language)
    assert (trace.outcome, trace.score) == (Outcome.REFUSED, None)


def test_every_language_has_its_patterns() -> None:
    assert set(REFUSALS) == set(LANGUAGES)
    assert all(load_refusal_patterns(code).refuses for code in LANGUAGES)


@pytest.mark.parametrize(
    "text",
    [
        "Most Germans accept divorce; many cannot imagine a law against it.",
        "They say: a marriage that cannot help anyone should end. I lean to 0.4.",
        "People do not refuse to help divorced neighbours.", "Step 1. Norms differ.", "",
    ],
)  # fmt: skip
def test_speaking_of_what_people_cannot_do_is_no_refusal(text: str) -> None:
    assert not is_refusal(text, "en")


def test_a_readable_score_is_taken_though_its_words_sound_like_a_refusal() -> None:
    text = "I don't have personal opinions, but people there would say:\nSCORE = -0.4"
    assert parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "text").score == -0.4


# --- the second attempt -------------------------------------------------------------------------------------------


def test_a_repaired_trace_keeps_its_reasoning_and_names_both_calls() -> None:
    first = parse_trace(Answer("k1", Outcome.OK, "Norms are strict. It leans to never."), "m", CELL, 0, "text")
    assert first.outcome is Outcome.UNPARSED
    second = parse_trace(Answer("k2", Outcome.OK, "SCORE = -0.7"), "m", CELL, 0, "text")
    repaired_trace = merge_repaired_trace(first, second, "text")
    assert (repaired_trace.outcome, repaired_trace.score, repaired_trace.text) == (
        Outcome.OK, -0.7, "Norms are strict. It leans to never.",
    )  # fmt: skip
    assert (repaired_trace.key, repaired_trace.repair_key) == ("k1", "k2")


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_a_repair_that_fails_changes_no_outcome(outcome: Outcome) -> None:
    first = parse_trace(Answer("k1", Outcome.OK, "It leans to never."), "m", CELL, 0, "text")
    second = parse_trace(Answer("k2", outcome), "m", CELL, 0, "text")
    repaired_trace = merge_repaired_trace(first, second, "text")
    assert (repaired_trace.outcome, repaired_trace.score, repaired_trace.repair_key) == (Outcome.UNPARSED, None, "k2")


# --- refusals inside an enforced structure ------------------------------------------------------------------------

SORRY = "I'm sorry, but I cannot help with that."
OPINION = "Respondents told us: 'I can't answer that.' Most approve."


@pytest.mark.parametrize(
    ("norms", "reasoning", "outcome"),
    [(SORRY, SORRY, Outcome.REFUSED), (SORRY, "People there mostly approve.", Outcome.OK),
     ("People there mostly approve.", SORRY, Outcome.OK), (OPINION, "So the view is mild.", Outcome.OK),
     ("I can't speak for everyone, but people approve.", "I cannot be sure, but most approve.", Outcome.OK)],
)  # fmt: skip
def test_a_judgement_whose_texts_all_refuse_has_no_score(norms: str, reasoning: str, outcome: Outcome) -> None:
    text = json.dumps({"norms": norms, "reasoning": reasoning, "score": -0.4})
    trace = parse_trace(Answer("k", Outcome.OK, text=text), "m", Cell("Germany", "divorce"), 0, "structured")
    assert (trace.outcome, trace.score) == (outcome, -0.4 if outcome is Outcome.OK else None)


def test_one_notice_after_twenty_answers_in_a_row_without_a_score() -> None:
    notices: list[str] = []
    unread = UnreadAnswers(notices.append)
    for i in range(MAX_UNREAD_ANSWERS - 1):
        unread.record("birch", Outcome.TRUNCATED if i % 2 else Outcome.UNPARSED)
        unread.record("cedar", Outcome.UNPARSED)
    assert notices == []
    unread.record("birch", Outcome.UNPARSED)
    unread.record("birch", Outcome.UNPARSED)
    [notice] = notices
    assert "the last 20 answers of 'birch' has a score (11 unparsed, 9 truncated)" in notice
    assert "max_tokens" in notice


def test_an_answer_with_a_score_ends_the_streak_and_a_failed_request_is_not_counted() -> None:
    notices: list[str] = []
    unread = UnreadAnswers(notices.append)
    for outcome in [Outcome.UNPARSED] * 19 + [Outcome.TIMEOUT] * 5 + [Outcome.OK] + [Outcome.UNPARSED] * 19:
        unread.record("birch", outcome)
    assert notices == []
    unread.record("birch", Outcome.REFUSED)
    assert len(notices) == 1


def test_keys_that_were_not_asked_for_are_counted_by_model() -> None:
    ignored = IgnoredKeys()
    for name, more in (("birch", ', "country": "x"'), ("birch", ', "country": "y", "note": 1'), ("cedar", "")):
        call = Call(name, "openai/x", (Message("user", "?"),), Purpose.DIRECT, schema="MoralJudgement")
        text = f'{{"norms": "a", "reasoning": "b", "score": 0.5{more}}}'
        ignored.record(call, Answer("k", Outcome.OK, text=text))
        ignored.record(call, Answer("k", Outcome.OK, text="no JSON"))
        ignored.record(call, Answer("k", Outcome.REFUSED))
    assert list(ignored.notices()) == [
        "2 answers of 'birch' have keys that were not asked for, which are ignored: 'country' (2), 'note' (1)."
    ]
