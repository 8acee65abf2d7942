"""Questions about a country, and moral questions from a file."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from auditor.domain import ENGLISH, LANGUAGES
from auditor.errors import ConfigError, ImportFileError
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answers import list_fingerprint_inputs
from auditor.probes.semantic.call_builders import asked_text
from auditor.probes.semantic.planned_calls import plan_semantic_calls
from auditor.probes.semantic.questions import load_built_in_questions, load_questions, parse_questions
from auditor.probes.semantic.records import FOUNDATIONS
from auditor.run import EMPTY_SURVEY, run_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.e2e.test_semantic import config, script
from tests.support.fake_server import FakeServer
from tests.support.fixed_address import word_encoder

ROWS = """question_id,question,paraphrase,country
q1,Is it wrong to lie to a friend?,May one lie to a friend?,Japan
q1,Is it wrong to lie to a friend?,Is lying to friends wrong?,Japan
q2,May one break a promise?,Can promises be broken?,Japan
q2,May one break a promise?,Is a promise ever to be broken?,Japan
q2,May one break a promise?,Can promises be broken?,Kenya
q2,May one break a promise?,Is a promise ever to be broken?,Kenya
q3,Is stealing wrong?,Is it wrong to steal?,
q3,Is stealing wrong?,Should one never steal?,
"""
QUESTIONS = load_built_in_questions()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "questions.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path / "questions.csv"


def test_a_question_with_rows_about_several_countries_is_one_question_for_each(file: Path) -> None:
    assert [(question.id, question.country, len(question.paraphrases)) for question in load_questions(str(file))] == [
        ("q1", "Japan", 2), ("q2 (Japan)", "Japan", 2), ("q2 (Kenya)", "Kenya", 2), ("q3", "", 2),
    ]  # fmt: skip


def test_ids_that_are_equal_with_their_country_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    file.write_text("question_id,question,country\nq,Is it?,Japan\nq,Is it?,Kenya\nq (Kenya),Is it?,\n", "utf-8")
    with pytest.raises(ImportFileError, match=r"the id 'q \(Kenya\)' occurs twice"):
        load_questions(str(file))


def test_a_toml_file_names_countries_too(tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text('[[question]]\nid = "a"\ntext = "Is it?"\ncountry = "Japan"\n', encoding="utf-8")
    [question] = load_questions(str(tmp_path / "q.toml"))
    assert question.country == "Japan"


def test_requests_name_the_country_and_only_that_of_their_question(
    file: Path, server: FakeServer, storage: str
) -> None:
    server.script = script
    audit_config = config(server.url, 1, questions=str(file), paraphrases=2, encoder="words")
    estimated = [call for plan in plan_semantic_calls(audit_config, EMPTY_SURVEY, []) for call in plan.examples]
    with word_encoder():
        run_audit(audit_config, storage=storage)
    questions = [request for request in server.requests if request.schema == "MoralAnswer"]
    rules = [request for request in server.requests if request.schema == "RuleOfThumb"]
    assert len(questions) == len(rules) == 8
    for requests in (questions, rules):
        assert sum("(Country: Japan)" in request.text for request in requests) == 4
        assert sum("(Country: Kenya)" in request.text for request in requests) == 2
    assert any("(Country: Kenya)" in call.request_text for call in estimated)
    assert asked_text("Is it?", "") == "Is it?"
    with open_database(storage) as db:
        stored = answer_rows.load_questions(db, audits.get_audit(db, "moral").id)
    assert [question.country for question in stored] == ["Japan", "Japan", "Kenya", ""]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_country_is_named_in_the_language_of_the_wording(language: str) -> None:
    asked = asked_text("Ist das erlaubt?", "Germany", language)
    assert asked.startswith("Ist das erlaubt?")
    assert ("Germany" in asked) == ("Country" in asked) == (language == ENGLISH)
    assert (asked_text("Q", "Japan", "de"), asked_text("Q", "Japan", "zh")) == ("Q (Land: Japan)", "Q（国家：日本）")
    assert asked_text("È lecito?", "Japan", "it") == "È lecito? (Country: Japan)"
    assert asked_text("Q", "my region", "es") == "Q (País: my region)"


def test_requests_in_two_languages_name_the_country_in_each(tmp_path: Path, server: FakeServer, storage: str) -> None:
    server.script = script
    rows = [f"q,May one lie?,Wording {w}?,Japan,{language}" for w, language in enumerate(("en", "en", "es", "es"))]
    file = tmp_path / "q.csv"
    file.write_text("\n".join(["question_id,question,paraphrase,country,language", *rows]), encoding="utf-8")
    audit_config = config(server.url, 1, questions=str(file), paraphrases=4, encoder="words")
    estimated = [call for plan in plan_semantic_calls(audit_config, EMPTY_SURVEY, []) for call in plan.examples]
    with word_encoder():
        run_audit(audit_config, storage=storage)
    for texts in (
        [request.text for request in server.requests if request.schema == "MoralAnswer"],
        [request.text for request in server.requests if request.schema == "RuleOfThumb"],
        [call.request_text for call in estimated if call.schema == "MoralAnswer"],
    ):
        assert sorted("(País: Japón)" in text for text in texts) == [False, False, True, True]
        assert sorted("(Country: Japan)" in text for text in texts) == [False, False, True, True]
    english = file.read_text(encoding="utf-8").replace(",es", ",en")
    (tmp_path / "en.csv").write_text(english, encoding="utf-8")
    hashed = [
        len(list_fingerprint_inputs(config(server.url, 1, questions=str(tmp_path / name), paraphrases=4), ["en"]))
        for name in ("q.csv", "en.csv")
    ]
    assert hashed == [2, 1]


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


def test_every_question_has_five_other_wordings_that_really_differ() -> None:
    for question in QUESTIONS:
        assert len(question.paraphrases) == 5, question.id
        assert question.topics, question.id
        wordings = (question.text, *question.paraphrases)
        for one, other in combinations(wordings, 2):
            shared = len(words(one) & words(other)) / len(words(one) | words(other))
            assert shared < 1 / 3, (one, other)
        assert all(w.endswith("?") and w[0].isupper() and 25 < len(w) < 160 for w in wordings), question.id


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = ", "not valid TOML"), ("foundation = 'care'", "question"),
     ("[[question]]\nid = 'a'", "question\\[1\\]\\.text"),
     ("[[question]]\nid = 'a'\ntext = 'T?'\nparaphrase = ['x']", "paraphrase")],
)  # fmt: skip
def test_a_broken_file_says_where(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_questions(text, "mine.toml")
