from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest

from auditor.errors import ConfigError
from auditor.probes.semantic.questions import load_built_in_questions, parse_questions
from auditor.probes.semantic.records import FOUNDATIONS

QUESTIONS = load_built_in_questions()


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def test_there_are_a_hundred_over_six_foundations() -> None:
    counts = Counter(q.foundation for q in QUESTIONS)
    assert len(QUESTIONS) >= 100
    assert set(counts) == set(FOUNDATIONS)
    assert min(counts.values()) >= 16


def test_the_first_six_are_about_all_foundations() -> None:
    assert [q.foundation for q in QUESTIONS[:6]] == list(FOUNDATIONS)


def test_ids_and_wordings_are_there_once() -> None:
    assert len({q.id for q in QUESTIONS}) == len(QUESTIONS)
    wordings = [" ".join(w.lower().split()) for q in QUESTIONS for w in (q.text, *q.paraphrases)]
    assert len(set(wordings)) == len(wordings)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_every_question_has_five_other_wordings_that_really_differ(question: object) -> None:
    q = next(x for x in QUESTIONS if x is question)
    assert len(q.paraphrases) == 5
    assert q.topics
    for one, other in combinations((q.text, *q.paraphrases), 2):
        shared = len(words(one) & words(other)) / len(words(one) | words(other))
        assert shared < 1 / 3, (one, other)
    assert all(w.endswith("?") and w[0].isupper() and 25 < len(w) < 160 for w in (q.text, *q.paraphrases))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "not valid TOML"),
        ("foundation = 'care'", "question"),
        ("[[question]]\nid = 'a'", "question\\[1\\]\\.text"),
        ("[[question]]\nid = 'a'\ntext = 'T?'\nparaphrase = ['x']", "paraphrase"),
    ],
)
def test_a_broken_file_says_where(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_questions(text, "mine.toml")
