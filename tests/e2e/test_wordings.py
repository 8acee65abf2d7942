"""`survey.wordings`: samples of a cell take several wordings in turn, and intervals include the wording."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from auditor import open_audit, run_audit
from auditor.config import AuditConfig
from auditor.domain import LANGUAGES
from auditor.errors import ConfigError
from auditor.prompts.survey_translations import load_further_wordings
from auditor.reports.output import render_report
from auditor.run.survey_plan import load_planned_survey
from tests.e2e.test_rephrasing import sent_messages
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer


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
        ('en = ["Is {topic} right?"]', "lacks {country}"),
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
