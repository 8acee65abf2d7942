"""What models write in answer to an item: read where it says one thing, an outcome where it does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from auditor.agents.answer_parsing import describe_parse_problem, parse_answer_line, parse_task_trace
from auditor.domain import Answer, AnswerKind, Outcome, Task, TaskItem

CITIES = TaskItem("q", "?", options=("Paris", "Rome", "Oslo"))
NUMBER = TaskItem("q", "?")
CHOICE = Task("f", AnswerKind.CHOICE, "", items={"q": CITIES})
NUMBERS = Task("f", AnswerKind.EXACT, "", numbers=True, items={"q": NUMBER})
WORDS = Task("f", AnswerKind.EXACT, "", items={"q": NUMBER})
SCORES = Task("f", AnswerKind.SCORE, "", range=(0, 10), items={"q": NUMBER})
DASHES = st.sampled_from("-−–‑")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Paris is in France.\nANSWER = B", "Rome"),
        ("**Answer:** (b) Rome", "Rome"),
        ("The final answer is B.", "Rome"),
        ("So ANSWER = B", "Rome"),
        ("ANSWER = B\nANSWER = **B**", "Rome"),
        ("The answer is not obvious.\nANSWER = B", "Rome"),
        ("ANSWER = x\nANSWER = B", "Rome"),
        ("ANSWER = A\nANSWER = B", None),
        ("A is wrong. B is right.", None),
        ("ANSWER = D", None),
        ("ANSWER = A or B", None),
        ("Option A) Paris", None),
        ("B", "Rome"),
        (" **(b) Rome.**\n", "Rome"),
        ("rome", "Rome"),
        ("B, or perhaps A", None),
        ("Not Rome", None),
        ("B\nA", None),
    ],
)
def test_a_choice_is_read_or_left(text: str, read: str | None) -> None:
    assert parse_answer_line(CHOICE, CITIES, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("The rose is a flower. ANSWER: red", "red"),
        ("It is a rose, so ANSWER: red.", "red"),
        ("It is a rose. **ANSWER: red**", "red"),
        ("It is (as I know.) **FINAL ANSWER:** Red\nThank you.", "red"),
        ("It is a rose. ANSWER: blue\nANSWER = red", "red"),
        ("It is a rose. ANSWER: blue\nANSWER: red", None),
        ('You asked for "ANSWER: red".', None),
        ("I cannot write ANSWER: red", None),
        ("The form is clear. Write ANSWER: red", None),
        ("Use the form. ANSWER: x", None),
        ("Use one line, e.g. ANSWER: red", None),
        ("Example: what colour is a rose? ANSWER: red\nI do not know this one.", None),
        ("A careless reader writes (wrongly) ANSWER: red", None),
        ("Such a quiz is 'A rose. ANSWER: red'", None),
        ("It has two parts. ANSWER: red, 2) ANSWER: blue", None),
        ("It is obvious! ANSWER: red, which I doubt", None),
        ("They want a colour. ANSWER: red is wrong", None),
        ("They want a colour. ANSWER: not red", None),
        ("They want a colour. ANSWER: red. But it may be blue.", None),
        ("The answer: is not obvious, so the answer: none", "is not obvious, so the answer: none"),
    ],
)
def test_a_word_after_a_colon_within_a_line_is_read_if_a_statement_begins_there(text: str, read: str | None) -> None:
    assert parse_answer_line(WORDS, NUMBER, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Paris is in France.\n**Answer:**\n\nB", "Rome"),
        ("### Final answer\n(b) Rome\n", "Rome"),
        ("ANSWER =\nRome", "Rome"),
        ("Answer: A\nNo.\nAnswer:\nB", None),
        ("Answer:\nB\nA", None),
        ("Answer:\nParis is in France.\nSo it must be Rome.", None),
    ],
)
def test_a_choice_below_its_label_is_read(text: str, read: str | None) -> None:
    trace = parse_task_trace(Answer("k", Outcome.OK, text), CHOICE, "m", CITIES.cell, 0, "text")
    assert (trace.answer, trace.outcome) == (read, Outcome.UNPARSED if read is None else Outcome.OK)


@settings(max_examples=200)
@given(
    st.integers(-(10**6), 10**6),
    DASHES,
    st.sampled_from(["ANSWER = ", "Answer: ", "The answer is ", "**ANSWER = ", "Final answer: ", "So ANSWER = "]),
    st.sampled_from([("", ""), ("**", "**"), ("$", "$"), (r"\boxed{", "}"), ("", " apples"), ("", ".")]),
    st.sampled_from(["", "Step 1. 3 times 4 is 12.\n", "The answer must be even.\n"]),
)
def test_a_number_is_read_in_every_form(number: int, dash: str, lead: str, wrap: tuple[str, str], before: str) -> None:
    written = f"{abs(number)}" if number >= 0 else f"{dash}{abs(number)}"
    after = "**" if lead.startswith("**") else ""
    text = f"{before}{lead}{wrap[0]}{written}{wrap[1]}{after}"
    if before.startswith("The answer") and "ANSWER" not in lead:
        return  # two lines in the loose form: which one is meant is not said
    assert parse_answer_line(NUMBERS, NUMBER, text) == str(number), text


def parse_reply(
    task: Task, text: str | None, outcome: Outcome = Outcome.OK, mode: str = "text"
) -> tuple[Outcome, str | None]:
    trace = parse_task_trace(Answer("k", outcome, text), task, "m", NUMBER.cell, 0, mode)
    assert (trace.answer is None) == (trace.outcome is not Outcome.OK)
    assert trace.score is None or task.kind is AnswerKind.SCORE
    return trace.outcome, trace.answer


def test_what_cannot_be_read_is_an_outcome() -> None:
    assert parse_reply(NUMBERS, "I think many.") == (Outcome.UNPARSED, None)
    assert parse_reply(NUMBERS, "I'm sorry, but I can't answer that.") == (Outcome.REFUSED, None)
    assert parse_reply(WORDS, "ANSWER = I cannot answer that.") == (Outcome.REFUSED, None)
    assert parse_reply(NUMBERS, "42") == (Outcome.OK, "42")
    assert parse_reply(NUMBERS, "42", Outcome.TRUNCATED) == (Outcome.TRUNCATED, None)
    assert parse_reply(SCORES, "7.5") == (Outcome.OK, "7.5")
    assert parse_reply(WORDS, "Not sure.") == (Outcome.UNPARSED, None)
    assert parse_reply(NUMBERS, "ANSWER = 42\nand so", Outcome.TRUNCATED) == (Outcome.OK, "42")
    assert parse_reply(NUMBERS, "first\nANSWER = 4", Outcome.TRUNCATED) == (Outcome.TRUNCATED, None)
    assert parse_reply(NUMBERS, None, Outcome.TIMEOUT) == (Outcome.TIMEOUT, None)
    assert parse_reply(NUMBERS, "<think>ANSWER = 1</think>ANSWER = 2") == (Outcome.OK, "2")


def test_json_is_read_by_kind() -> None:
    def parse_json_reply(task: Task, answer: object) -> tuple[Outcome, str | None]:
        return parse_reply(task, json.dumps({"reasoning": "So.", "answer": answer}), mode="structured")

    assert parse_json_reply(CHOICE, "B") == (Outcome.OK, "Rome")
    assert parse_json_reply(CHOICE, "D") == (Outcome.UNPARSED, None)
    assert parse_json_reply(NUMBERS, 42) == (Outcome.OK, "42")
    assert parse_json_reply(NUMBERS, "42 km") == (Outcome.OK, "42")
    assert parse_json_reply(WORDS, True) == (Outcome.UNPARSED, None)
    assert parse_json_reply(SCORES, 11) == (Outcome.UNPARSED, None)
    assert parse_reply(NUMBERS, '{"answer": 4', mode="structured") == (Outcome.UNPARSED, None)
    assert "'D' is not one of the allowed answers" in describe_parse_problem(
        CHOICE, '{"reasoning": "So.", "answer": "D"}'
    )


def test_a_score_is_stored_in_its_units_and_scaled() -> None:
    trace = parse_task_trace(Answer("k", Outcome.OK, "Fine.\nANSWER = 7.5"), SCORES, "m", NUMBER.cell, 0, "text")
    assert (trace.answer, trace.score, trace.text) == ("7.5", 0.5, "Fine.")


@pytest.mark.parametrize(
    ("task", "answer", "sorry_answer"),
    [(CHOICE, "B", "B"), (NUMBERS, "42", "42"), (SCORES, 4, 4), (WORDS, "Rome", None)],
)
def test_a_refusal_inside_an_enforced_structure_has_no_answer(task: Task, answer: object, sorry_answer: object) -> None:
    sorry = "I'm sorry, but I cannot help with that."
    refusal = json.dumps({"reasoning": sorry, "answer": sorry if sorry_answer is None else sorry_answer})
    assert parse_reply(task, refusal, mode="structured") == (Outcome.REFUSED, None)
    assert parse_reply(task, json.dumps({"reasoning": "So.", "answer": answer}), mode="structured")[0] is Outcome.OK
