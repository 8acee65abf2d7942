"""An answer that a person reads without doubt is read; one that a person would doubt is not."""

from __future__ import annotations

import json
import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from auditor.agents.answer_parsing import parse_score
from auditor.models.answer_schemas import MoralJudgement, ScoredAnswer, TaskAnswer, TraceReview
from auditor.models.structured_reading import is_complete_structure, parse_structured_answer, read_structured_answer
from auditor.probes.distribution.opinion_questions import OpinionAnswer, counts_schema
from auditor.probes.logic.questions import Preference
from auditor.probes.semantic.call_builders import Choice, Paraphrases, Support
from tests.models.answer_corpus import CHOICES, JUDGEMENTS, TASK_ANSWERS, VERDICTS, J, R, T
from tests.support.hang_limit import hang_limit

CORPUS: tuple[tuple[type[BaseModel], str, str, object], ...] = (
    *((MoralJudgement, "score", *entry) for entry in JUDGEMENTS),
    *((TraceReview, "verdict", *entry) for entry in VERDICTS),
    *((Preference, "answer", *entry) for entry in CHOICES),
    *((TaskAnswer, "answer", *entry) for entry in TASK_ANSWERS),
)
TOKEN = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[^\W\d_]+")


@pytest.mark.parametrize(("structure", "field", "text", "expected"), CORPUS)
def test_an_answer_is_read_as_a_person_reads_it(
    structure: type[BaseModel], field: str, text: str, expected: object
) -> None:
    answer = parse_structured_answer(structure, text)
    if expected is None:
        assert isinstance(answer, str), answer
        assert answer
        assert "\n" not in answer
    else:
        assert not isinstance(answer, str), answer
        assert type(answer) is structure
        assert getattr(answer, field) == expected
        assert_stands_in(text, answer)


def assert_stands_in(text: str, answer: BaseModel) -> None:
    """What is read is a whole token of the text."""
    for name, value in answer.model_dump().items():
        if isinstance(value, bool):
            assert str(value).upper() in tokens(text)
        elif isinstance(value, (int, float)):
            assert {float(value), value / 100} & tokens(text), (name, value)
        elif name in ("verdict", "answer") and len(value) < 8:
            assert {value.strip().upper(), *([float(value)] if value[0].isdigit() else [])} & tokens(text)


def test_half_of_the_corpus_is_not_to_be_read() -> None:
    unreadable = [text for _, _, text, expected in CORPUS if expected is None]
    assert len(CORPUS) >= 150
    assert 0.4 <= len(unreadable) / len(CORPUS) <= 0.6
    assert len({text for _, _, text, _ in CORPUS}) == len(CORPUS)


def tokens(text: str) -> set[object]:
    """The numbers of a text by their values, and its words in upper case."""
    words = TOKEN.findall(text.replace("\u2212", "-").replace("\uff0d", "-").replace(",24", ".24"))
    return {float(word) if any(map(str.isdigit, word)) else word.upper() for word in words}


SPELLINGS = (
    "{}", '"{}"', " {} ", '"\u2212{}"', "-{}", "+{}", '"+{}"', "\u2212{}", "{}e-1", '"{}%"', '"{} to 1"', "{},5",
    "--{}",
)  # fmt: skip


@given(
    value=st.decimals(0, 1, places=2),
    spelling=st.sampled_from(SPELLINGS),
    before=st.sampled_from(["", "[1] ", "Score 0.9? ", '{"score":', "{", "<think>0.9</think>", '{"norms":"x"} ']),
    after=st.sampled_from(["", ",", "}", " [2]", ' {"a":1}', ', "extra": 0.9', ', "score": 0.9', "0", ".5"]),
    end=st.sampled_from(["}", ",}", "", "}} {}", "}<|im_end|>", '} {"score": -0.9}']),
)
def test_no_score_is_read_that_does_not_stand_in_the_text(
    value: object, spelling: str, before: str, after: str, end: str
) -> None:
    """Random spellings and surroundings: whatever is read is one of the text's numbers, with its sign."""
    text = f'{before}{{{J},"score":{spelling.format(value)}{after}{end}'
    answer = parse_structured_answer(MoralJudgement, text)
    if not isinstance(answer, str):
        assert answer.score in tokens(text), text


def test_a_value_that_stands_in_the_request_does_not_count() -> None:
    example, answer = f'{{{J},"score":0.9}}', '{"norms":"n","reasoning":"r","score":0.24}'
    request = f"Answer like {example}."
    read = parse_structured_answer(MoralJudgement, f"{example}\n{answer}", request)
    assert isinstance(read, MoralJudgement)
    assert read.score == 0.24
    assert parse_structured_answer(MoralJudgement, f"{example}\n{answer}") == "two answers"
    assert "repeats the request" in str(parse_structured_answer(MoralJudgement, example, request))
    quoted = f'{{{R},"verdict":"VALID","confidence":99}}'
    review = f'The trace says {quoted}\n{{{R},"verdict":"INVALID","confidence":70}}'
    verdict = parse_structured_answer(TraceReview, review, f"Judge this:\n{quoted}")
    assert isinstance(verdict, TraceReview)
    assert verdict.verdict == "INVALID"


def test_keys_that_the_schema_lacks_are_counted() -> None:
    for more, ignored_keys in ((',"country":"x","a":1', ("country", "a")), ("", ())):
        assert read_structured_answer(MoralJudgement, f'{{{J},"score":0.24{more}}}').ignored_keys == ignored_keys


@pytest.mark.parametrize(
    ("structure", "text", "expected"),
    [
        (ScoredAnswer, f'{{{T},"answer":"1.5"}}', 1.5), (ScoredAnswer, f'{{{T},"answer":"1,500"}}', None),
        (ScoredAnswer, f'{{{T},"answer":"1,500,000"}}', None), (OpinionAnswer, '{"answer":"7"}', 7),
        (OpinionAnswer, '{"answer":7.5}', None), (OpinionAnswer, '{"answer":7.0}', 7),
        (OpinionAnswer, '{"answer":"7."}', 7), (OpinionAnswer, '{"answer":7}\nActually 4.', None),
        (OpinionAnswer, '{"answer":7}\nActually, the survey of 2020 asked this, too.', 7),
        (OpinionAnswer, '{"answer":"5-6"}', None), (Choice, '{"reason":"r","choice":"2"}', 2),
        (Choice, '{"reason":"r","choice":2} {"reason":"r","choice":3}', None),
        (Support, '{"reason":"r","supported":"true"}', True), (Support, '{"reason":"r","supported":"yes"}', None),
        (Support, '{"reason":"r","supported":true}\nIt is not supported.', None),
        (Support, '{"reason":"r","supported":false}\nIt is not supported.', False),
        (Support, '{"reason":"r","supported":true}\nSo supported: false', None),
        (counts_schema(3), '{"counts":[20,"30",50]}', [20, 30, 50]),
        (counts_schema(3), '{"counts":[20,30,50]} {"counts":[20,50,30]}', None),
        (Paraphrases, '{"paraphrases":["a","b"]}', ["a", "b"]),
    ],
)  # fmt: skip
def test_other_structures(structure: type[BaseModel], text: str, expected: object) -> None:
    answer = parse_structured_answer(structure, text)
    value = None if isinstance(answer, str) else next(reversed(answer.model_dump().values()))
    assert value == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Invalid JSON"),
        (f'{{{J},"score":1.01}}', "score: Input should be less than or equal to 1"),
        (f'{{{J},"score":"hunter2"}}', "score: Input should be a valid number"),
        (f'{{{J},"score":"hunter2","country":"x"}}', "score: Input should be a valid number"),
        (f"{{{J}}}", "score: Field required"),
        ('{"Norms":"a","Reasoning":"b","Score":7}', "score: Input should be less than or equal to 1"),
        (f'{{{J},"score":0.7,"score":-0.7}}', "a key has two different values"),
        (f'{{{J},"score":0.7}} {{{J},"score":-0.7}}', "two answers"),
        ("[" * 100_000, "too deeply nested"),
    ],
)
def test_an_unreadable_answer_gives_the_true_reason(text: str, reason: str) -> None:
    problem = parse_structured_answer(MoralJudgement, text)
    assert isinstance(problem, str)
    assert reason in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (MoralJudgement, json.dumps(dict.fromkeys(map(str, range(600_000)), 1))),
        (MoralJudgement, json.dumps(dict.fromkeys(map(str, range(90_000)), 1))),
        (MoralJudgement, json.dumps([{"score": 1}] * 80_000)),
        (MoralJudgement, '{"norms": "a", "score": 1 ' * 40_000),
        (Paraphrases, json.dumps({"paraphrases": [1] * 300_000})),
        (MoralJudgement, "<" * 7_500_000),
        (MoralJudgement, f'{{{J},"score":0.5}} ' + "score " * 150_000),
    ],
    ids=["many fields", "a megabyte of fields", "many objects", "broken", "faulty texts", "marks", "mentions"],
)
def test_megabytes_are_read_in_linear_time(structure: type[BaseModel], text: str) -> None:
    with hang_limit():
        parse_structured_answer(structure, text)


def test_an_ordinary_answer_costs_few_function_calls() -> None:
    """However long it is: Python's decoder and pydantic do the work, in 0.025 ms."""
    words = "Most people weigh family, law and custom before they judge. "
    n_calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        """Count the calls of functions, also of built-in ones."""
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    for n_sentences in (1, 4, 400):
        text = json.dumps({"norms": words, "reasoning": words * n_sentences, "score": 0.24})
        n_calls = 0
        sys.setprofile(count)
        try:
            answer = read_structured_answer(MoralJudgement, text, words * 60).answer
        finally:
            sys.setprofile(None)
        assert answer is not None
        if n_sentences > 1:  # the first reading fills the caches
            assert n_calls < 150


def test_an_answer_is_complete_if_nothing_else_is_visible() -> None:
    assert is_complete_structure("MoralJudgement", f'<think>x</think>{{{J},"score":0.5}}')
    assert not is_complete_structure("MoralJudgement", f'{{{J},"score":0.5}} and')
    assert not is_complete_structure("MoralJudgement", f'{{{J},"score":0.5')


@pytest.mark.parametrize(
    ("escape", "stored"), [("\\u0000", "\\x00"), ("\\ud83d", "\\ud83d"), ("\\ud83d\\ude00", "\U0001f600")]
)
def test_characters_that_no_database_accepts_are_visible_escapes(escape: str, stored: str) -> None:
    text = f'{{"norms":"a {escape}","reasoning":["b {escape}"],"score":0.24}}'
    read: Any = parse_structured_answer(MoralJudgement, text)
    assert (read.norms, read.reasoning, read.score) == (f"a {stored}", f"b {stored}", 0.24)
    assert (
        getattr(parse_structured_answer(TaskAnswer, f'{{"reasoning":"a","answer":"{escape}"}}'), "answer", "") == stored
    )


def test_a_list_of_texts_is_one_reasoning() -> None:
    read: Any = parse_structured_answer(MoralJudgement, '{"norms":"a","reasoning":["one","two"],"score":0.24}')
    assert read.reasoning == "one\ntwo"


@pytest.mark.parametrize(
    "number", ["\uff10\uff0e\uff15", "\u0660\u066b\u0665", "\uff10,\uff15", "\u0966.\u096b", "\u200e0.5\u200e"]
)
@pytest.mark.parametrize(("sign", "factor"), [("", 1), ("-", -1), ("\uff0d", -1), ("\u2212", -1)])
def test_digits_and_signs_of_every_script_are_read_as_in_texts(number: str, sign: str, factor: int) -> None:
    answer = parse_structured_answer(MoralJudgement, f'{{{J},"score":"{sign}{number}"}}')
    assert isinstance(answer, MoralJudgement), answer
    assert answer.score == factor * 0.5
    assert parse_score(f"SCORE = {sign}{number}") == factor * 0.5
