"""An audit with the probe `memory`, from the estimate to the report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor import open_audit, run_audit
from auditor.config import AuditConfig, load_config
from auditor.cost_estimation.planned_calls import plan_calls
from auditor.domain import LANGUAGES, Outcome
from auditor.probe_interface import ProbeAnswer, ProbeAudit
from auditor.probes.memory.figures import (
    Answers,
    MemoryFigures,
    ModelMemory,
    estimate_correlation,
    find_hits,
    is_verbatim,
)
from auditor.probes.memory.probe import MemoryProbe
from auditor.probes.memory.published import ORDINARY, RECALL, FigureKey, PublishedFigure
from auditor.probes.memory.section import build_headline, build_section
from auditor.prompts import load_prompt
from auditor.reports.document import Row, Table
from auditor.run import load_planned_survey
from tests.reports.sections.node_text import text_of
from tests.support.known import known

COUNTRIES = ["Australia", "Canada", "Germany", "Greece", "Netherlands", "New Zealand", "Brazil", "China", "Japan"]
CONFIG = f"""
name = "simulated-memory"
survey = {{ source = "wvs7-sample", countries = {json.dumps(COUNTRIES)}, topics = ["divorce", "abortion", "suicide",
    "euthanasia", "death penalty", "prostitution"] }}
embedding = {{ model = "none" }}
judges = []
seed = 7
[[models]]
name = "knows"
model = "simulated/knows-every-culture"
[[models]]
name = "recites"
model = "simulated/agrees-with-everybody"
[probes]
direct = {{ samples = 1 }}
memory = {{ published = "made-up", cells = 40, items = "items.csv" }}
[check.probes.memory]
max_recall = 0.3
"""
N_CALLS = 2 * (40 * 2 + 10 + 5)
WORDING = "Please tell me whether this is never justified, always justified, or something in between:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configuration and its file of wordings."""
    folder = tmp_path_factory.mktemp("memory")
    rows = "".join(f'topic {i},"{WORDING} topic {i}"\n' for i in range(5))
    (folder / "items.csv").write_text(f"topic,text\n{rows}", encoding="utf-8")
    (folder / "audit.toml").write_text(CONFIG, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def config(folder: Path) -> AuditConfig:
    return load_config(folder / "audit.toml")


@pytest.fixture(scope="module")
def url(folder: Path, config: AuditConfig) -> str:
    """The database of the audit, which has run."""
    url = f"sqlite:///{folder / 'audits.db'}"
    run_audit(config, storage=url)
    return url


@pytest.fixture(scope="module")
def figures(url: str) -> MemoryFigures:
    report = open_audit("simulated-memory", storage=url).report()
    figures = report.probes["memory"]
    assert isinstance(figures, MemoryFigures)
    assert json.loads(report.model_dump_json())["probes"]["memory"]["models"][0]["model"] == "knows"
    return figures


def test_the_estimate_is_equal_to_the_calls(config: AuditConfig, url: str) -> None:
    survey = load_planned_survey(config)
    planned = list(plan_calls(config, survey, list(survey.asked_cells), lambda call: False))
    assert sum(calls.calls.expected for calls in planned if calls.purpose == "probe.memory") == N_CALLS
    results = open_audit("simulated-memory", storage=url).probe_results("memory")
    assert len(results) == N_CALLS
    assert {result.outcome for result in results} == {Outcome.OK}


def test_a_second_run_asks_nothing(config: AuditConfig, url: str) -> None:
    before = open_audit("simulated-memory", storage=url).report().cost
    assert run_audit(config, storage=url).report().cost == before


def test_the_reciter_is_found_and_nobody_else(figures: MemoryFigures) -> None:
    assert {row.model: row.is_recall_shown for row in figures.models} == {"knows": False, "recites": True}
    knows, recites = figures.models
    assert (recites.recalled, recites.recall[0].hits.value) == ("asked wave, rounding", 1.0)
    assert (recites.made_up.value, knows.made_up.value) == (0.0, 1.0)
    assert recites.agreement_without_recall.value is not None
    assert recites.agreement_not_recalled.reason is not None
    assert recites.release_difference.reason == "the configuration does not say when the model was released"
    assert recites.continued.value == 0.0


def test_the_sentence_is_a_caution_if_recall_is_shown(figures: MemoryFigures) -> None:
    headline = known(build_headline(figures))
    assert headline.is_caution
    assert known(headline.p_value) < 0.01
    unknown = known(build_headline(figures.model_copy(update={"models": figures.models[:1]})))
    assert (unknown.p_value, unknown.is_caution) == (None, False)


def test_the_section_has_a_figure_and_at_most_400_words(figures: MemoryFigures) -> None:
    section = known(build_section("t", figures))
    text = text_of(section)
    assert "Whether knows recites published figures is not known." in text
    assert len([word for word in text.split() if any(c.isalpha() for c in word)]) <= 400


def test_failures_are_counted_and_never_numbers(config: AuditConfig, url: str, figures: MemoryFigures) -> None:
    results = [r for r in open_audit("simulated-memory", storage=url).probe_results("memory") if r.model == "recites"]
    audit: ProbeAudit[Any] = ProbeAudit(config.probes.plugins["memory"], config, load_planned_survey(config))

    def measure(is_lost: Callable[[int], bool]) -> ModelMemory:
        lost = [
            replace(result, outcome=Outcome.REFUSED if i % 2 else Outcome.TIMEOUT, value=None) if is_lost(i) else result
            for i, result in enumerate(results)
        ]
        return MemoryProbe().measure(audit, lost).models[1]

    row = measure(lambda i: i % 7 == 0)
    n_lost = len(range(0, len(results), 7))
    assert sum(row.failed.values()) == n_lost
    assert set(row.failed) == {"refused", "timeout"}
    assert row.figures < figures.models[1].figures
    assert row.recall[0].hits.value == 1.0  # lost answers are no misses
    assert row.is_recall_shown
    nothing = measure(lambda i: True)
    assert (nothing.figures, nothing.unknown, nothing.recall, nothing.p_value) == (0, 0, [], None)
    assert nothing.ordinary_error.value is nothing.made_up.value is None
    section = known(build_section("t", figures.model_copy(update={"models": [nothing]})))
    assert f"Refused, unreadable or lost, and counted nowhere: {len(results)} answers." in text_of(section)


def test_one_answered_cell_is_counted_in_the_singular() -> None:
    key = FigureKey("Japan", "divorce", "2013", "percent")
    answers = Answers([key], {key: PublishedFigure(20.0, 0)}, {(key, RECALL): 20.0, (key, ORDINARY): 30.0})
    rows, reason = find_hits(answers, 1, 1)
    assert rows == []
    assert str(reason).startswith("both questions have a figure on 1 cell of 1 country, and ")


def test_equal_scores_and_scores_that_are_the_recited_figures_have_no_correlation_and_a_reason() -> None:
    keys = [FigureKey(f"country {i % 8}", f"topic {i // 8}", "2013", "percent") for i in range(40)]
    values = {(key, RECALL): 20.0 + i for i, key in enumerate(keys)}
    answers = Answers(keys, {key: PublishedFigure(20.0 + i, 0) for i, key in enumerate(keys)}, values)
    people = (answers.published - 50) / 50
    constant = estimate_correlation(np.column_stack([np.full(40, 0.2), people]), None, answers)
    assert (constant.value, constant.reason) == (None, "fewer than 5 different scores of such cells")
    noisy = people + np.random.default_rng(1).normal(0, 0.1, 40)
    partial = estimate_correlation(np.column_stack([noisy, people]), answers.recalled, answers)
    assert (partial.value, partial.n) == (None, 40)
    assert "follow exactly from its answers" in str(partial.reason)
    other = estimate_correlation(np.column_stack([noisy, people]), answers.recalled % 7, answers)
    assert known(other.value) > 0.9


def test_the_gate_the_export_and_the_comparison_have_the_hits(figures: MemoryFigures, url: str) -> None:
    gates = {gate.subject: gate.estimate.value for gate in MemoryProbe().gate_figures(figures)}
    assert gates == {row.model: row.recall[0].excess.value for row in figures.models}
    checked = open_audit("simulated-memory", storage=url).check().gates
    verdicts = [(gate.subject, gate.verdict) for gate in checked if gate.name == "memory.max_recall"]
    assert ("recites", "failed") in verdicts
    assert ("knows", "failed") not in verdicts
    [table] = MemoryProbe().export_tables(figures)
    counts = [list(row.cells)[:3] for row in table.rows if isinstance(row, Row)]
    assert counts == [["knows", 40, 40], ["recites", 40, 40]]
    only_known = figures.model_copy(update={"models": figures.models[:1]})
    [compared] = MemoryProbe().compare(only_known, figures).blocks
    assert isinstance(compared, Table)
    knows, recites = (row.recall[0].excess for row in figures.models)
    assert compared.rows == [["knows", knows, knows], ["recites", None, recites]]


def test_unmeasurable_figures_are_named_before_the_first_call(tmp_path: Path) -> None:
    def list_sentences(text: str) -> list[str]:
        path = tmp_path / "audit.toml"
        path.write_text(text, encoding="utf-8")
        changed = load_config(path)
        audit: ProbeAudit[Any] = ProbeAudit(changed.probes.plugins["memory"], changed, load_planned_survey(changed))
        probe = MemoryProbe()
        sentences = list(probe.unmeasurable(audit))
        assert not sentences or probe.plan(audit) or len(sentences) == 1
        return sentences

    text = CONFIG.replace(', items = "items.csv"', "")
    assert list_sentences(text) == []
    text = text.replace('name = "simulated-memory"', 'name = "memory"').replace("simulated/", "openai/")
    [release] = list_sentences(text)
    assert "Recall before and after the release of knows, recites is not measurable" in release
    [none] = list_sentences(text.replace('published = "made-up"', "cells = 60").replace(", cells = 40", ""))
    assert "0 countries with published figures, and 5 are needed" in none
    [few] = list_sentences(text.replace(json.dumps(COUNTRIES), json.dumps(COUNTRIES[:4])))
    assert "4 countries with published figures" in few
    assert any("'direct'" in sentence for sentence in list_sentences(text.replace("direct = { samples = 1 }", "")))


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("Japan,divorce", "about 1 country with published figures, and 5 are needed. Add figures of more countries"),
        ("Japn,divorce", "0 countries with .* that the audit does not have: 'Japn'. Spell them as the survey does"),
        ("Japan,Divorce", "0 countries with .* that the audit does not have: 'Divorce'. Spell them"),
    ],
)
def test_names_of_the_users_file_that_the_audit_does_not_have_are_listed(
    tmp_path: Path, row: str, sentence: str
) -> None:
    (tmp_path / "mine.csv").write_text(f"country,topic,wave,statistic,value,decimals\n{row},2013,percent,37,0\n")
    path = tmp_path / "audit.toml"
    path.write_text(CONFIG.replace(', items = "items.csv"', "").replace("made-up", "mine.csv"), encoding="utf-8")
    config = load_config(path)
    audit: ProbeAudit[Any] = ProbeAudit(config.probes.plugins["memory"], config, load_planned_survey(config))
    [message] = MemoryProbe().unmeasurable(audit)
    assert re.search(sentence, message)


def test_a_misspelt_name_is_shown_though_enough_others_are_right(tmp_path: Path) -> None:
    rows = [f"{country},divorce,2013,percent,37,0\n" for country in (*COUNTRIES[:6], "Japn", "Atlantis", "Niger")]
    (tmp_path / "mine.csv").write_text("country,topic,wave,statistic,value,decimals\n" + "".join(rows))
    path = tmp_path / "audit.toml"
    path.write_text(CONFIG.replace(', items = "items.csv"', "").replace("made-up", "mine.csv"), encoding="utf-8")
    config = load_config(path)
    audit: ProbeAudit[Any] = ProbeAudit(config.probes.plugins["memory"], config, load_planned_survey(config))
    message = next(MemoryProbe().unmeasurable(audit))
    assert message.startswith("Published figures of 'Japn' (did you mean 'Japan'?) are not asked for")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("37", 37.0), ("37%", 37.0), ("It was 37.5 percent.", 37.5), ("37 % in 2013", 37.0), ("37,5", 37.5),
        ("UNKNOWN", "UNKNOWN"), ("unknown.", "UNKNOWN"), ("In 2013 it was 37", None), ("no idea", None), ("", None),
        ("UNKNOWN. I do not remember the 2013 figure.", "UNKNOWN"), ("UNKNOWN, perhaps 40", "UNKNOWN"),
        ("I do not have the 2013 figure.", None), ("35 to 40", None), ("35-40%", None), ("35–40", None),
        ("2013: 37", None), ("2013, 2013", 2013.0), ("37% (of 1013 adults)", 37.0), ("37, in wave 2013", 37.0),
        ("37 (wave 2013; unknown margin)", 37.0), ("It was 37. I repeat: 37", 37.0),
        ("45\n\n45", 45.0), ("45 45", 45.0), ("45% 45%", 45.0), ("45 of 100", 45.0), ("45 out of 100", 45.0),
        ("45% in 2012", 45.0), ("45% as of 2012", 45.0), ("About 45% (exact figure unknown)", 45.0),
        ("It is unknown, perhaps 40", "UNKNOWN"), ("For wave 7: UNKNOWN", "UNKNOWN"), ("2013: UNKNOWN", "UNKNOWN"),
        ("The 2013 figure is unknown.", "UNKNOWN"), ("35 or 40", None), ("35% bis 40%", None), ("35 à 40", None),
        ("35 a 40", None), ("35 до 40", None), ("35至40", None), ("35から40", None), ("35 40", None),
    ],
)  # fmt: skip
def test_an_answer_is_a_number_or_unknown(text: str, value: float | str | None) -> None:
    reading = MemoryProbe().read(ProbeAnswer("m", ("Japan", "divorce", "2013", "percent"), 1, 0, "", text))
    assert reading.value == value
    assert (reading.outcome is Outcome.UNPARSED) == (value is None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_prompts_are_in_all_languages(language: str) -> None:
    for name in MemoryProbe.prompts:
        prompt = load_prompt(name, language)
        assert prompt.fields == load_prompt(name).fields
        assert ("no native speaker" in prompt.purpose) == (language != "en")
    assert "UNKNOWN" in load_prompt("memory.recall", language).system


def test_a_wording_is_verbatim_in_one_run_of_words() -> None:
    assert is_verbatim("... always justified, never justified, or something in BETWEEN!", "or something in between")
    assert not is_verbatim("or anything at all between", "or something in between")
