"""Rephrased questions, scales and topics, and `survey.wordings`, which samples take in turn: in requests and reports,
hidden from judges, validated before any call."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from auditor.agents.call_builders import blind_trace
from auditor.config import AuditConfig, load_config
from auditor.domain import LANGUAGES, Cell, Outcome, Trace
from auditor.errors import ConfigError
from auditor.prompts.survey_translations import load_further_wordings
from auditor.reports.output import render_report
from auditor.run import load_planned_survey, open_audit, run_audit
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer


def config_with_rephrasing(
    url: str, rephrase: dict[str, Any], language: object = "en", **survey: object
) -> AuditConfig:
    section = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce", "suicide"], **survey}
    data = config(url).model_dump() | {"language": language, "survey": {**section, "rephrase": rephrase}, "judges": []}
    return AuditConfig.model_validate(data)


def sent_messages(server: FakeServer) -> list[str]:
    return [json.dumps(r.body["messages"], ensure_ascii=False) for r in server.requests]


def test_the_new_words_are_asked_and_reported(server: FakeServer, storage: str) -> None:
    rephrasing = {
        "question": "In {country}, how do people judge {topic}?",
        "scale": ["wholly wrong", "wholly right"],
        "topics": {"divorce": "ending a marriage"},
    }
    run_audit(config_with_rephrasing(server.url, rephrasing), storage=storage)
    texts = sent_messages(server)
    assert all("wholly wrong" in t and "never justifiable" not in t for t in texts)
    assert {"In Japan, how do people judge ending a marriage?" in t for t in texts} == {True, False}
    assert sum("In Japan, how do people judge suicide?" in t for t in texts) == len(texts) / 2
    report = open_audit("scripted", storage=storage).report()
    survey = report.audit.survey.survey
    assert (survey.wording, survey.scale) == (rephrasing["question"], tuple(rephrasing["scale"]))
    for page in (render_report(report, "html"), render_report(report, "markdown")):
        assert "The configuration rewords the question in “en”" in page
        assert "“divorce” as “ending a marriage”" in page


def test_parts_that_are_not_reworded_keep_their_words_in_every_language(server: FakeServer, storage: str) -> None:
    topics = {"divorce": {"en": "ending a marriage", "ja": "婚姻の解消"}}
    run_audit(config_with_rephrasing(server.url, {"topics": topics}, ["en", "native"]), storage=storage)
    japanese = [t for t in sent_messages(server) if "国：" in t]
    assert sum("日本の大多数の人々" in t and "婚姻の解消" in t for t in japanese) == len(japanese) / 2
    assert not any("離婚" in t for t in japanese)
    english = [t for t in sent_messages(server) if "国：" not in t]
    assert sum("ending a marriage" in t for t in english) == len(english) / 2
    report = open_audit("scripted", storage=storage).report()
    assert set(report.audit.survey.rephrased) == {"en", "ja"}


def test_rephrasing_translates_an_imported_survey(server: FakeServer, storage: str, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("country,topic,score\nJapan,chewing gum,0.2\n")
    rephrasing: dict[str, Any] = {
        "question": {"ja": "{country}では{topic}をどう思いますか。"},
        "scale": {"ja": ["悪い", "良い"]},
    }
    survey = {"source": str(tmp_path / "own.csv"), "topics": "all"}
    with pytest.raises(ConfigError, match=r"'chewing gum' has no wording in the language 'ja'.*survey\.rephrase"):
        run_audit(config_with_rephrasing(server.url, rephrasing, "ja", **survey), storage=storage)
    rephrasing["topics"] = {"chewing gum": {"ja": "ガムを噛むこと"}}
    audit_config = config_with_rephrasing(server.url, rephrasing, "ja", **survey).model_copy(update={"judges": "peers"})
    run_audit(audit_config, storage=storage)
    assert any("日本ではガムを噛むことをどう思いますか。" in t and "良い" in t for t in sent_messages(server))


@pytest.mark.parametrize(
    ("language", "text"), [("en", "Ending a marriage is a shame."), ("de", "Eine Ehe aufzulösen ist eine Schande.")]
)
def test_rephrased_topics_are_hidden_from_judges(language: str, text: str) -> None:
    topics = {"divorce": {"en": "ending a marriage", "de": "Eine Ehe aufzulösen"}}
    audit_config = config_with_rephrasing("http://x", {"topics": topics}, ["en", "de"])
    trace = Trace("m", Cell("Japan", "divorce"), 0, Outcome.OK, 0.1, text, "k", language)
    blinded_text = blind_trace(audit_config, load_planned_survey(audit_config), trace)
    assert blinded_text.startswith("[practice] is")


@pytest.mark.parametrize(
    ("rephrase", "message"),
    [
        (
            {"question": {"en": "Is {topic} fine in {country}?"}},
            "is reworded in en, but not in ja, which the audit also uses",
        ),
        ({"scale": {"ja": ["悪い", "良い"]}}, "survey.rephrase.scale: is reworded in ja, but not in en"),
        ({"topics": {"divorce": "parting"}}, "survey.rephrase.topics.divorce: is reworded in en, but not in ja"),
        ({"topics": {"divorces": "parting"}}, "the topic 'divorces' is not part of the audit. Did you mean 'divorce'?"),
    ],
)
def test_an_incomplete_rephrasing_is_refused_before_the_first_call(rephrase: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_planned_survey(config_with_rephrasing("http://x", rephrase, ["en", "native"]))
    assert message in str(caught.value)


CONFIG = """
name = "a"
survey = {{ source = "wvs7-sample", rephrase = {{ {} }} }}
judges = []
[[models]]
name = "m"
model = "openai/gpt-4o"
"""


@pytest.mark.parametrize(
    ("rephrase", "message"),
    [
        ('question = "Is {topic} fine?"', "'survey.rephrase.question.en': the placeholder {country} is missing"),
        ('question = "Is {topic} fine?"', "Use {topic} and {country}"),
        ('question = { de = "{topic} {land} {country}" }', "the placeholder {land} is unknown"),
        ('question = "{topic} {country"', "a brace is not closed"),
        ('question = "{topic} {{really}} {country}"', "a brace is not closed or is doubled"),
        ('question = "{topic} {country} {country!r}"', "the placeholder {country!r} is unknown"),
        ('question = { xx = "{topic} {country}" }', "there is no language 'xx'"),
        ('topics = { divorce = "leaving {country}" }', "braces are allowed only in the question"),
        ('scale = ["bad"]', "survey.rephrase.scale.en"),
        ('wording = "{topic} {country}"', "unknown key 'survey.rephrase.wording'"),
    ],
)  # fmt: skip
def test_a_wording_that_cannot_be_used_is_an_error_at_load(tmp_path: Path, rephrase: str, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(CONFIG.format(rephrase), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert message in str(caught.value)


def test_rephrasing_changes_the_config_hash(storage: str) -> None:
    rephrasings: tuple[dict[str, Any], ...] = ({}, {"topics": {"divorce": "parting"}})
    original, rephrased = (config_with_rephrasing("http://x", rephrasing) for rephrasing in rephrasings)
    assert original.hash != rephrased.hash
    assert load_planned_survey(original).phrasings == {}


def config_in(url: str, wordings: int | str, samples: int) -> AuditConfig:
    survey: dict[str, Any] = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce", "suicide"]}
    probes = {"direct": {"samples": samples}}
    data = config(url).model_dump() | {"survey": survey | {"wordings": wordings}, "judges": [], "probes": probes}
    return AuditConfig.model_validate(data)


def test_each_cell_is_asked_equally_often_in_each_wording(server: FakeServer, storage: str) -> None:
    run_audit(config_in(server.url, 2, 4), storage=storage)
    texts = sent_messages(server)
    builtin = sum("Think of what most people in Japan" in text for text in texts)
    further = sum("What would most people in Japan answer if they were asked about this" in text for text in texts)
    assert builtin == further == len(texts) / 2
    report = open_audit("scripted", storage=storage).report()
    assert report.audit.survey.survey.wordings == {"en": (load_further_wordings("en").questions[0],)}
    assert "Samples took 2 wordings in turn" in render_report(report, "markdown")


def test_a_file_may_have_the_wordings(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = tmp_path / "wordings.toml"
    file.write_text('en = ["In {country}, is {topic} {never} or {always}?"]\n', encoding="utf-8")
    run_audit(config_in(server.url, str(file), 2), storage=storage)
    counts = Counter("In Japan, is divorce never justified or always justified?" in t for t in sent_messages(server))
    assert counts[True] == sum(counts.values()) / 4  # one of two wordings, on one of two topics


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('de = ["{topic} {country}"]', "no list of questions for the language 'en'"),
        ('en = ["Is {topic} right?"]', "the placeholder {country} is missing"),
        ('en = ["Is {topic} right in {country}, {people}?"]', "the placeholder {people} is unknown"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "wordings.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_planned_survey(config_in("http://127.0.0.1:9", str(file), 2))


def test_samples_must_be_a_multiple_of_the_wordings() -> None:
    with pytest.raises(ConfigError, match="equally often in all 5 wordings"):
        load_planned_survey(config_in("http://127.0.0.1:9", 5, 4))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_five_wordings_and_says_whether_they_were_read(language: str) -> None:
    further = load_further_wordings(language)
    assert len(set(further.questions)) >= 4
    for question in further.questions:
        assert all(name in question for name in ("{topic}", "{country}", "{never}", "{always}"))
    assert further.is_read == (language == "en")


def test_one_wording_asks_as_before(server: FakeServer, storage: str) -> None:
    run_audit(config_in(server.url, 1, 2), storage=storage)
    assert all("Think of what most people in Japan" in json.loads(t)[-1]["content"] for t in sent_messages(server))
