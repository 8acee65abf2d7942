"""Rephrased questions, scales and topics: in requests and reports, hidden from judges, validated before any call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.agents.call_builders import blind_trace
from auditor.config import AuditConfig, load_config
from auditor.domain import Cell, Outcome, Trace
from auditor.errors import ConfigError
from auditor.reports.output import render_report
from auditor.run import load_planned_survey, open_audit, run_audit
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer


def config_with_rephrasing(
    url: str, rephrase: dict[str, Any], language: object = "en", **survey: object
) -> AuditConfig:
    """Config of an audit with rephrased questions, without judges."""
    section = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce", "suicide"], **survey}
    data = config(url).model_dump() | {"language": language, "survey": {**section, "rephrase": rephrase}, "judges": []}
    return AuditConfig.model_validate(data)


def sent_messages(server: FakeServer) -> list[str]:
    """Messages of each request that reached the server, as JSON."""
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
    assert (report.audit.survey.survey.wording, report.audit.survey.survey.scale) == (
        rephrasing["question"],
        tuple(rephrasing["scale"]),
    )
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
    original, rephrased = (
        config_with_rephrasing("http://x", {}),
        config_with_rephrasing("http://x", {"topics": {"divorce": "parting"}}),
    )
    assert original.hash != rephrased.hash
    assert load_planned_survey(original).phrasings == {}
