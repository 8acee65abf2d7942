"""Audits in languages other than English: requests, stored results, and what is refused before the first call."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from auditor.agents.call_builders import blind_trace
from auditor.agents.localization import check_languages
from auditor.config import AuditConfig
from auditor.domain import Cell, Outcome, Trace
from auditor.errors import ConfigError
from auditor.reports.data.build import build_report
from auditor.reports.output import render_report
from auditor.run import load_planned_survey, run_audit
from auditor.storage import results
from auditor.storage.audits import get_audit
from auditor.storage.database import open_database
from auditor.storage.overview import load_overviews
from auditor.surveys.countries import DATA_FOLDER
from tests.support.audit_configs import config
from tests.support.document_figures import assert_report_shows_figures
from tests.support.fake_server import FakeServer
from tests.support.known import known


def config_in_language(url: str, language: object, **survey: object) -> AuditConfig:
    section = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"], **survey}
    data = config(url).model_dump() | {"language": language, "survey": section, "judges": []}
    return AuditConfig.model_validate(data)


def test_native_and_english_are_both_asked_and_identical_languages_once(server: FakeServer, storage: str) -> None:
    audit_config = config_in_language(server.url, ["en", "native"], countries=["Japan", "Nigeria"])
    run_audit(audit_config, storage=storage)
    with open_database(storage, create=False) as db:
        audit = get_audit(db, audit_config.name)
        traces, scores = results.load_traces(db, audit.id), results.load_scores(db, audit.id)
        (overview,) = load_overviews(db)
        report = build_report(db, audit_config.name)
    k, models = audit_config.direct.samples, len(audit_config.models)
    planned = {s.cell.country: s.n_planned for s in scores}
    assert planned == {s.cell.country: s.n_ok for s in scores} == {"Japan": 2 * k, "Nigeria": k}
    languages = {(t.cell.country, t.sample // k, t.language) for t in traces}
    assert languages == {("Japan", 0, "en"), ("Japan", 1, "ja"), ("Nigeria", 0, "en")}
    asked = [json.dumps(r.body["messages"], ensure_ascii=False) for r in server.requests]
    assert len(asked) == len(traces) == overview.planned_samples == 3 * k * models
    assert [r.planned for r in report.coverage.total] == [r.ok for r in report.coverage.total] == [3 * k * models]
    japanese = [text for text in asked if "国：" in text]
    assert len(japanese) == len(asked) / 3
    assert all("日本の大多数の人々" in text and "：離婚。" in text for text in japanese)
    for score in scores:
        cell_scores = [
            t.score for t in traces if (t.model, t.cell) == (score.model, score.cell) and t.score is not None
        ]
        assert score.score == pytest.approx(sum(cell_scores) / len(cell_scores))


def test_the_report_has_the_differences_between_languages(server: FakeServer, storage: str) -> None:
    places = ["Japan", "Nigeria", "Pakistan"]
    audit_config = config_in_language(server.url, ["en", "native"], countries=places, topics=["divorce", "suicide"])
    run_audit(audit_config, storage=storage)
    with open_database(storage, create=False) as db:
        traces = results.load_traces(db, get_audit(db, audit_config.name).id)
        report = build_report(db, audit_config.name)
    languages_section = known(report.languages)
    assert {use.language: use.countries for use in languages_section.asked} == {"en": places, "ja": ["Japan"]}
    assert (languages_section.fell_back, languages_section.once) == (["Pakistan"], ["Nigeria", "Pakistan"])
    for row in languages_section.differences:
        japanese_traces = [
            t for t in traces if t.model == row.model and t.cell.country == "Japan" and t.score is not None
        ]
        means = [np.mean([t.score for t in japanese_traces if t.language == code]) for code in ("ja", "en")]
        assert row.difference.value == pytest.approx(means[0] - means[1])
        assert (row.first, row.second, row.difference.n) == ("en", "native", 2)
    assert len(languages_section.differences) == len(audit_config.models)
    assert_report_shows_figures(report, "languages", "map", "prefer", "coverage", "cost", "made")
    page = render_report(report, "html").replace("<bdi>", "").replace("</bdi>", "")
    assert re.search(r"^\| model-a \| en \| native \| [+−]?0\.", render_report(report, "markdown"), re.MULTILINE)
    for text in (render_report(report, "markdown"), page):
        assert "Asked in English, since their main languages have no prompts: Pakistan." in text
        assert "the configured languages are the same there: Nigeria, Pakistan." in text


def test_a_country_of_several_languages_is_asked_in_each(server: FakeServer, storage: str) -> None:
    survey = str(write_canadian_survey(Path(storage[10:])))
    audit_config = config_in_language(server.url, ["en", "native"], countries=["Canada", "Germany"], source=survey)
    run_audit(audit_config, storage=storage)
    with open_database(storage, create=False) as db:
        traces = results.load_traces(db, get_audit(db, audit_config.name).id)
        languages_section = build_report(db, audit_config.name).languages
    k = audit_config.direct.samples
    assert {(t.cell.country, t.sample // k, t.language) for t in traces} == {
        ("Canada", 0, "en"), ("Canada", 1, "fr"), ("Germany", 0, "en"), ("Germany", 1, "de"),
    }  # fmt: skip
    assert languages_section is not None
    assert (languages_section.fell_back, languages_section.once) == ([], [])
    for row in languages_section.differences:
        differences = []
        for country, code in (("Canada", "fr"), ("Germany", "de")):
            country_traces = [
                t for t in traces if (t.model, t.cell.country) == (row.model, country) and t.score is not None
            ]
            native, english = ([t.score or 0 for t in country_traces if t.language == c] for c in (code, "en"))
            differences.append(np.mean(native) - np.mean(english))
        assert row.difference.value == pytest.approx(np.mean(differences))


def write_canadian_survey(storage: Path) -> Path:
    """Write a survey of Canada and Germany with the wording of a built-in one, and return its path."""
    path = storage.with_name("own.csv")
    path.write_text("country,topic,score\nCanada,divorce,0.2\nGermany,divorce,0.3\n")
    built_in = (DATA_FOLDER / "wvs7-sample.survey.toml").read_text(encoding="utf-8")
    path.with_name("own.survey.toml").write_text(built_in, encoding="utf-8")
    return path


def test_the_report_of_an_english_audit_has_no_section_on_languages(server: FakeServer, storage: str) -> None:
    audit_config = config_in_language(server.url, "en")
    run_audit(audit_config, storage=storage)
    with open_database(storage, create=False) as db:
        report = build_report(db, audit_config.name)
    assert report.languages is not None
    assert (report.languages.fell_back, report.languages.differences) == ([], [])
    assert "What the language changes" not in render_report(report, "html")


@pytest.mark.parametrize(
    ("language", "message"),
    [("nativ", "Did you mean 'native'"), ("xx", "Known:"), (["en", "en"], "twice"), ([], "empty")],
)
def test_unknown_repeated_or_missing_languages_are_refused(language: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_in_language("http://x", language)


def test_missing_translations_are_refused_before_the_first_call() -> None:
    audit_config = config_in_language("http://x", "ja", countries="all", topics="all")
    survey = load_planned_survey(audit_config)
    check_languages(audit_config, survey)
    untranslated_cell = dataclasses.replace(survey.cells[0], cell=Cell("Japan", "chewing gum"))
    with pytest.raises(ConfigError, match="'chewing gum' has no wording in the language 'ja'"):
        check_languages(audit_config, dataclasses.replace(survey, cells=(*survey.cells, untranslated_cell)))
    with pytest.raises(ConfigError, match="its own wording or scale"):
        check_languages(audit_config, dataclasses.replace(survey, wording="{topic} {country}?"))


@pytest.mark.parametrize(
    ("country", "language", "text", "expected"),
    [
        ("Japan", "ja", "日本では離婚は恥です。", "[country]では[practice]は恥です。"),
        ("Russia", "ru", "В России разводы обычны.", "В [country] [practice] обычны."),
        ("Egypt", "ar", "في مصر الطلاق مكروه.", "في [country] [practice] مكروه."),
        ("Germany", "de", "In Deutschland ist Scheidung normal.", "In [country] ist [practice] normal."),
    ],
)
def test_judges_see_no_country_or_topic_in_any_language(country: str, language: str, text: str, expected: str) -> None:
    audit_config = config_in_language("http://x", "native", countries="all")
    trace = Trace("m", Cell(country, "divorce"), 0, Outcome.OK, 0.1, text, "k", language)
    assert blind_trace(audit_config, load_planned_survey(audit_config), trace) == expected
