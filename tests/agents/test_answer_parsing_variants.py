"""The score line in thousands of forms: what says one number is read as that number, what may say another is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings, strategies as st

from auditor.agents.answer_parsing import is_refusal, merge_repaired_trace, parse_score, parse_trace
from auditor.domain import LANGUAGES, Answer, Cell, Outcome
from auditor.models.reasoning import strip_thinking
from auditor.prompts.language_data import load_refusal_patterns
from tests.support.language_samples import SAMPLES

CELL = Cell("Germany", "divorce")
MANY = settings(max_examples=3000)

hundredths = st.integers(-100, 100).map(lambda i: i / 100)
minus = st.sampled_from("-−–‑﹣")
point = st.sampled_from([".", ","])
label = st.sampled_from(["SCORE", "Score", "score", "Final score", "FINAL SCORE", "The score", "My final score"])
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
)
after = st.sampled_from(["", "\n", "\n\nI hope this helps.", "\nThis is between 0 and 1."])


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


@MANY
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
        ("Therefore, SCORE = -0.6", -0.6),
        ("Most people would say so, hence **SCORE = 0.25**.", 0.25),
        ("I would give a score of 0.4 or so", None),
        ("SCORE = - 0.4", -0.4),
        ("</think>\nSCORE = 0.1", 0.1),
        ("SCORE = 0.9</think>SCORE = 0.1", 0.1),
        ("<think>\nSCORE = 0.9", None),
        ("<THINKING>maybe SCORE = 0.9</THINKING>\nSCORE = 0.1", 0.1),
    ],
)
def test_forms_that_were_met(text: str, score: float | None) -> None:
    assert parse_score(strip_thinking(text)) == score


# --- cut off ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Step 1. They\nSCORE = -0.4\nThis is", -0.4),
        ("Step 1. They\nSCORE = -0.", None),
        ("SCORE = -0.4", None),
        ("Step", None),
    ],
)
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
        "People do not refuse to help divorced neighbours.",
        "Step 1. Norms differ.",
        "",
    ],
)
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
        Outcome.OK,
        -0.7,
        "Norms are strict. It leans to never.",
    )
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
    [
        (SORRY, SORRY, Outcome.REFUSED),
        (SORRY, "People there mostly approve.", Outcome.OK),
        ("People there mostly approve.", SORRY, Outcome.OK),
        (OPINION, "So the view is mild.", Outcome.OK),
        ("I can't speak for everyone, but people approve.", "I cannot be sure, but most approve.", Outcome.OK),
    ],
)
def test_a_judgement_whose_texts_all_refuse_has_no_score(norms: str, reasoning: str, outcome: Outcome) -> None:
    text = json.dumps({"norms": norms, "reasoning": reasoning, "score": -0.4})
    trace = parse_trace(Answer("k", Outcome.OK, text=text), "m", Cell("Germany", "divorce"), 0, "structured")
    assert (trace.outcome, trace.score) == (outcome, -0.4 if outcome is Outcome.OK else None)
