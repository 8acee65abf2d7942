"""Consistency across cultures: a model that is worse about one region or in one language is found, another is not."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from unittest import mock

import pytest

from auditor.domain import Outcome
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.records import MoralTranslation
from auditor.probes.semantic.section import build_semantic_section
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.run import run_audit
from auditor.run.rederivation import derive_again
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.e2e.test_semantic import config, report_of
from tests.reports.sections.node_text import text_of
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.fixed_address import WordEncoder, word_encoder
from tests.support.known import known
from tests.support.stored_rows import find_part, load_stored

WORDINGS, QUESTIONS = 4, 6
WESTERN, OTHERS = ("Germany", "France", "Canada"), ("Japan", "Kenya", "Peru")
ALIKE = "keep every promise that you have made"


def answer(number: int) -> str:
    return " ".join(f"{word}{number}" for word in ("say", "tell", "go", "ask", "wait"))


def run(server: FakeServer, storage: str, *, is_multilingual: bool = False, **probe: object) -> Report:
    """Run an audit of two models; the default encoder of these tests is for one language."""
    with word_encoder(), mock.patch.object(WordEncoder, "vocabulary_size", 250_002 * is_multilingual, create=True):
        settings = {"paraphrases": WORDINGS, "encoder": "words", "rot": False, "limit": 1000, **probe}
        run_audit(config(server.url, 2, **settings), storage=storage)
        return report_of(storage)


def semantic_of(report: Report) -> SemanticReport:
    return find_part(report, SemanticReport)


def write(path: Path, rows: list[str]) -> str:
    path.write_text("\n".join(["question_id,question,paraphrase,country,language", *rows]), encoding="utf-8")
    return str(path)


def test_a_model_that_is_worse_about_one_region_is_found_by_country_and_between_regions(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    def script(request: Request) -> Reply:
        is_unlike = str(request.body["model"]).endswith("b") and any(c in request.text for c in OTHERS)
        return completion(json.dumps({"answer": answer(request.body["seed"] % 997) if is_unlike else ALIKE}))

    server.script = script
    wordings = itertools.product((*WESTERN, *OTHERS), range(QUESTIONS), range(WORDINGS))
    rows = [f"q{q},May one do act {q}?,Wording {w} of act {q}?,{country}," for country, q, w in wordings]
    report = run(server, storage, questions=write(tmp_path / "q.csv", rows))
    semantic = semantic_of(report)
    assert {row.metric for row in semantic.countries} == {"sage", "sge", "cosine"}
    assert len({row.region for row in semantic.countries}) == 2
    by_key = {(row.model, row.country): row.consistency for row in semantic.countries if row.metric == "sage"}
    assert len(by_key) == 2 * 6
    assert by_key["model-a", "Japan"].value == pytest.approx(1)
    assert by_key["model-b", "France"].value == pytest.approx(1)
    kenya = by_key["model-b", "Kenya"]
    assert known(kenya.ci_high) < 0.7
    gaps = {row.model: row.difference for row in semantic.region_gaps if row.metric == "sage"}
    assert gaps["model-a"].value == pytest.approx(0)
    assert gaps["model-b"].resampled == ("country", "question")
    assert abs(gaps["model-b"].value or 0) > 0.3
    assert (gaps["model-b"].adjusted_p_value or 1) < 0.05
    section = known(build_semantic_section(report))
    assert "Gaps in consistency between regions" in text_of([section])


def language_rows() -> list[str]:
    wordings = itertools.product(range(QUESTIONS), ("en", "de"), range(WORDINGS // 2))
    return [f"q{q},May one do act {q}?,Wording {w} of act {q} in {code}?,,{code}" for q, code, w in wordings]


def language_script(request: Request) -> Reply:
    """Model b says something else in German; translations keep the text."""
    if "Translate the text" in request.text:
        return completion(json.dumps({"answer": request.text.strip().splitlines()[-2]}))
    is_other = str(request.body["model"]).endswith("b") and "in de?" in request.text
    return completion(json.dumps({"answer": answer(1) if is_other else ALIKE}))


def test_with_a_multilingual_encoder_answers_across_languages_are_compared_with_translations(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    server.script = language_script
    questions = write(tmp_path / "q.csv", language_rows())
    report = run(server, storage, is_multilingual=True, questions=questions, translator="model-a")
    by_languages = {(row.model, row.first, row.second): row for row in semantic_of(report).languages}
    pairs = [("de", "de"), ("de", "en"), ("en", "en")]
    assert set(by_languages) == {(model, *pair) for model in ("model-a", "model-b") for pair in pairs}
    assert by_languages["model-b", "de", "de"].similarity.value == pytest.approx(1)
    assert (by_languages["model-b", "de", "en"].similarity.value or 0) < 0.9
    assert "within de" in render_report(report, "html")
    across = {row.model: row for row in by_languages.values() if row.first != row.second}
    for row in across.values():
        assert row.similarity.n == QUESTIONS
        assert known(row.translations).value == pytest.approx(1)
    consistent, other = (across[model].difference for model in ("model-a", "model-b"))
    assert consistent is not None
    assert other is not None
    assert consistent.value == pytest.approx(0)
    assert (other.value or 0) < -0.3
    assert (other.adjusted_p_value, other.test_family) == (other.p_value, "consistency across languages")
    by_language = semantic_of(report).by_language
    assert {row.language for row in by_language} == {"de", "en"}
    assert all(row.consistency.value is not None for row in by_language)


def test_a_translation_of_a_later_answer_replaces_another(server: FakeServer, storage: str, tmp_path: Path) -> None:
    refused = {"Wording 0 of act 0 in de?"}

    server.script = lambda request: (
        completion("", finish="content_filter")
        if any(text in request.text for text in refused) and "Translate the text" not in request.text
        else language_script(request)
    )
    settings: dict[str, object] = {"questions": write(tmp_path / "q.csv", language_rows()), "translator": "model-a"}
    run(server, storage, is_multilingual=True, **settings)
    assert {x.wording for x in load_stored(storage, load_records, MoralTranslation, name="moral")} == {3, 4}
    refused.clear()
    with word_encoder(), mock.patch.object(WordEncoder, "vocabulary_size", 250_002, create=True):
        audit = config(server.url, 2, paraphrases=WORDINGS, encoder="words", rot=False, limit=1000, **settings)
        run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
        translations = load_stored(storage, load_records, MoralTranslation, name="moral")
        assert len(translations) == 2 * QUESTIONS
        assert {x.wording for x in translations} == {3}
        with open_database(storage, create=False) as db:
            check = derive_again(db, audits.get_audit(db, "moral")).check
        assert not known(check).changed


def test_across_languages_the_english_encoder_gives_a_reason(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = language_script
    report = run(server, storage, questions=write(tmp_path / "q.csv", language_rows()))
    semantic = semantic_of(report)
    for row in semantic.languages:
        is_english = row.first == row.second == "en"
        assert (row.similarity.value is not None) == is_english
        if not is_english:
            assert row.similarity.reason is not None
            assert row.similarity.reason.startswith("not measurable: the encoder words is not known to read several")
    german = [row.consistency.value for row in semantic.by_language if row.language == "de"]
    assert german
    assert set(german) == {None}


def test_without_translations_there_is_no_difference(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = language_script
    report = run(server, storage, is_multilingual=True, questions=write(tmp_path / "q.csv", language_rows()))
    row = next(row for row in semantic_of(report).languages if row.first != row.second)
    assert row.similarity.value is not None
    assert row.difference is not None
    assert (row.difference.value, (row.difference.reason or "")[:14]) == (None, "not measurable")
