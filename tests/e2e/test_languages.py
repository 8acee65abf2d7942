"""Audits in other languages than English: what is asked, what is kept, and what is refused before the first call."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from auditor.agents.calls import blinded
from auditor.agents.languages import check_languages
from auditor.config import AuditConfig
from auditor.domain import Cell, Outcome, Trace
from auditor.errors import ConfigError
from auditor.reports.build import build_report
from auditor.reports.markdown import render_markdown
from auditor.run import planned_survey, run_audit
from auditor.storage import results
from auditor.storage.audits import get
from auditor.storage.database import open_database
from tests.audits import KEY, KEY_VARIABLE, config
from tests.fake_server import FakeServer


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def asking(url: str, language: object, **survey: object) -> AuditConfig:
    section = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"], **survey}
    data = config(url).model_dump() | {"language": language, "survey": section, "judges": []}
    return AuditConfig.model_validate(data)


def test_native_and_english_are_both_asked(server: FakeServer, storage: str) -> None:
    chosen = asking(server.url, ["en", "native"], countries=["Japan", "Nigeria"])
    run_audit(chosen, storage=storage)
    with open_database(storage, create=False) as db:
        audit = get(db, chosen.name)
        traces, scores = results.traces(db, audit.id), results.scores(db, audit.id)
    k = chosen.direct.samples
    assert {s.n_planned for s in scores} == {s.n_ok for s in scores} == {2 * k}
    languages = {(t.cell.country, t.sample // k, t.language) for t in traces}
    assert languages == {("Japan", 0, "en"), ("Japan", 1, "ja"), ("Nigeria", 0, "en"), ("Nigeria", 1, "en")}
    asked = [json.dumps(r.body["messages"], ensure_ascii=False) for r in server.requests]
    japanese = [text for text in asked if "国：" in text]
    assert len(japanese) == len(asked) / 4
    assert all("日本の大多数の人々" in text and "：離婚。" in text for text in japanese)
    for score in scores:
        mine = [t.score for t in traces if (t.model, t.cell) == (score.model, score.cell) and t.score is not None]
        assert score.score == pytest.approx(sum(mine) / len(mine))


def test_the_report_says_what_the_language_changes(server: FakeServer, storage: str) -> None:
    chosen = asking(server.url, ["en", "native"], countries=["Japan", "Nigeria"], topics=["divorce", "suicide"])
    run_audit(chosen, storage=storage)
    with open_database(storage, create=False) as db:
        traces = results.traces(db, get(db, chosen.name).id)
        report = build_report(db, chosen.name)
    for row in report.languages:
        mine = [t for t in traces if t.model == row.model and t.cell.country == "Japan" and t.score is not None]
        means = [np.mean([t.score for t in mine if t.language == code]) for code in ("ja", "en")]
        assert row.difference.value == pytest.approx(means[0] - means[1])
        assert (row.first, row.second, row.difference.n) == ("en", "native", 2)
    assert len(report.languages) == len(chosen.models)
    assert "native less en" in render_markdown(report)


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("nativ", "Did you mean 'native'"),
        ("xx", "Known:"),
        (["en", "en"], "twice"),
        ([], "empty"),
    ],
)
def test_what_is_no_language_is_refused(language: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asking("http://x", language)


def test_what_a_language_lacks_is_refused_before_the_first_call() -> None:
    chosen = asking("http://x", "ja", countries="all", topics="all")
    survey = planned_survey(chosen)
    check_languages(chosen, survey)
    strange = dataclasses.replace(survey.cells[0], cell=Cell("Japan", "chewing gum"))
    with pytest.raises(ConfigError, match="'chewing gum' has no wording in the language 'ja'"):
        check_languages(chosen, dataclasses.replace(survey, cells=(*survey.cells, strange)))
    with pytest.raises(ConfigError, match="wording or scale of its own"):
        check_languages(chosen, dataclasses.replace(survey, wording="{topic} {country}?"))


@pytest.mark.parametrize(
    ("country", "language", "text", "expected"),
    [
        ("Japan", "ja", "日本では離婚は恥です。", "[country]では[practice]は恥です。"),
        ("Russia", "ru", "В России разводы обычны.", "В [country] [practice] обычны."),
        ("Egypt", "ar", "في مصر الطلاق مكروه.", "في [country] [practice] مكروه."),
        ("Germany", "de", "In Deutschland ist Scheidung normal.", "In [country] ist [practice] normal."),
    ],
)
def test_judges_see_neither_country_nor_topic_in_any_language(
    country: str, language: str, text: str, expected: str
) -> None:
    chosen = asking("http://x", "native", countries="all")
    trace = Trace("m", Cell(country, "divorce"), 0, Outcome.OK, 0.1, text, "k", language)
    assert blinded(chosen, planned_survey(chosen), trace) == expected
