"""An audit with planted models, from its estimate to its gates; and audits in which something cannot be measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, load_config
from auditor.config.installed_probes import load_probe
from auditor.cost_estimation.planned_calls import plan_calls
from auditor.domain import Cell, Outcome, Trace
from auditor.errors import ConfigError
from auditor.probe_interface import ProbeAudit, ProbeResult
from auditor.probes.reasoning.figures import ReasoningFigures, ReasoningRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Code, Document, Figure, Paragraph, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.output import render_report
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.run.fingerprints import fingerprint
from auditor.run.survey_plan import check_probe_input, list_unmeasurable
from tests.support.cli_runner import succeed
from tests.support.known import known

NAME = "simulated-reasoning"
MAX_WORDS = 400
KINDS = ["norms", "removed", "mistake", "paraphrase"]
N_CELLS = 40
MODELS = {
    "follows": ("knows-every-culture", None),
    "ignores": ("ignores-its-reasoning", None),
    "half": ("half-follows-its-reasoning", None),
    "notes": ("knows-every-culture-2", False),
}
CONFIG = {
    "name": NAME, "survey": {"source": "wvs7-sample"}, "judges": [], "embedding": {"model": "none"},
    "models": [{"name": name, "model": f"simulated/{persona}",
                **({} if prefill is None else {"capabilities": {"prefill": prefill}})} for name,
               (persona, prefill) in MODELS.items()],
    "probes": {"direct": {"samples": 1}, "reasoning": {"cells": N_CELLS, "samples": 3, "interventions": KINDS}},
    "check": {"probes": {"reasoning": {"min_slope": 0.5, "min_area": 0.05}}},
}  # fmt: skip
N_CALLS = N_CELLS * (len(KINDS) + 1 + 3) * 3


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The database of the audit."""
    url = f"sqlite:///{tmp_path_factory.mktemp('reasoning') / 'audits.db'}"
    run_audit(AuditConfig.model_validate(CONFIG), storage=url)
    return url


@pytest.fixture(scope="module")
def report(storage: str) -> Report:
    return open_audit(NAME, storage=storage).report()


@pytest.fixture(scope="module")
def figures(report: Report) -> ReasoningFigures:
    figures = report.probes["reasoning"]
    assert isinstance(figures, ReasoningFigures)
    return figures


def test_planted_models_differ_as_planted(figures: ReasoningFigures) -> None:
    rows = {row.model: row for row in figures.rows}
    assert {name: row.form for name, row in rows.items()} == {
        "follows": "prefill", "ignores": "prefill", "half": "prefill", "notes": "notes",
    }  # fmt: skip
    for name, slope in (("follows", 1), ("ignores", 0), ("half", 0.5), ("notes", 1)):
        row = rows[name]
        assert (row.slope.ci_low or 0.0) - 0.05 <= slope <= (row.slope.ci_high or 0.0) + 0.05
        assert row.slope.is_significant == (slope > 0)
        assert (known(row.following_share).value is not None) == (slope == 0.5)
        assert (row.area_over_curve is not None and (row.area_over_curve.value or 0) > 0.1) == (slope > 0)
        assert known(row.paraphrase).value == 0  # its own steps in other words
        assert known(row.mistake).value == pytest.approx(slope, abs=0.2)
    share = known(rows["half"].following_share)
    assert (share.ci_low or 0.0) <= 0.5 <= (share.ci_high or 0.0)


def test_the_estimate_is_the_number_of_calls_and_a_second_run_sends_none(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = AuditConfig.model_validate(CONFIG)
    survey = load_planned_survey(config)
    planned = [
        calls.calls.expected
        for calls in plan_calls(config, survey, list(survey.asked_cells), lambda call: False)
        if calls.purpose == "probe.reasoning"
    ]
    results = open_audit(NAME, storage=storage).probe_results("reasoning")
    assert planned == [N_CALLS] * 4
    assert len(results) == sum(planned)
    probe = load_probe("reasoning").probe
    monkeypatch.setattr(type(probe), "simulate", lambda self, call: pytest.fail("a request was sent"))
    run_audit(config, storage=storage)
    assert open_audit(NAME, storage=storage).probe_results("reasoning") == results


def remember_traces(results: Sequence[ProbeResult]) -> list[Trace]:
    """Recorded answers with the scores that results rest on: of their cells, and of donors elsewhere."""
    scores = {Cell(*result.unit[:2]): result.unit[3] for result in results}
    donors = {
        Cell(f"elsewhere {result.unit[4]}", result.unit[1]): result.unit[4]
        for result in results
        if result.unit[2] == "norms"
    }
    return [
        Trace("follows", cell, 0, Outcome.OK, float(score), "Norms.\n\nSteps.")
        for cell, score in (scores | donors).items()
    ]


def test_results_that_rest_on_an_excluded_answer_or_donor_leave_with_it(storage: str) -> None:
    probe, config = load_probe("reasoning").probe, AuditConfig.model_validate(CONFIG)
    stored = open_audit(NAME, storage=storage).probe_results("reasoning")
    results = [result for result in stored if result.model == "follows"]
    traces = remember_traces(results)

    def measure(left: Sequence[Trace]) -> ReasoningRow:
        audit = ProbeAudit(
            config.probes.plugins["reasoning"], config, load_planned_survey(config), lambda model, cells=None: left
        )
        row: ReasoningRow = probe.measure(audit, results).rows[0]
        return row

    all_measured = measure(traces)
    n_norms = len({result.unit[:2] for result in results if result.unit[2] == "norms"})
    assert (all_measured.cells, all_measured.slope.n, all_measured.without_donor) == (
        N_CELLS,
        n_norms,
        N_CELLS - n_norms,
    )
    trace_at_home = next(trace for trace in traces if "elsewhere" not in trace.cell.country)
    assert measure([trace for trace in traces if trace is not trace_at_home]).cells == N_CELLS - 1
    changed = replace(trace_at_home, score=-1.0 if (trace_at_home.score or 0) > 0 else 1.0)
    assert measure([changed if trace is trace_at_home else trace for trace in traces]).cells == N_CELLS - 1
    without_donors = measure([trace for trace in traces if "elsewhere" not in trace.cell.country])
    assert without_donors.cells == N_CELLS
    assert without_donors.slope.n < n_norms


@pytest.mark.parametrize("words", [[], ["--probe", "direct"]], ids=["all", "direct"])
def test_an_audit_is_consistent_after_answers_that_results_rest_on_were_excluded(
    storage: str, tmp_path: Path, words: Sequence[str]
) -> None:
    copy = tmp_path / "copy.db"
    succeed("export", "backup", "-o", copy, "--storage", storage)
    place = ["--storage", f"sqlite:///{copy}"]
    country = open_audit(NAME, storage=storage).probe_results("reasoning")[0].unit[0]
    succeed("exclude", NAME, "--model", "follows", "--country", country, "--reason", "A bug.", *words, *place)
    succeed("verify", NAME, *place)


def test_cells_without_a_donor_are_counted_though_norms_are_called_wrong_everywhere() -> None:
    """A score near 0 has a donor: it was counted, where both interventions were asked."""
    config = AuditConfig.model_validate(CONFIG)
    changes = {"interventions": ["norms", "opposite"], "cells": 10_000}
    settings = config.probes.plugins["reasoning"].model_copy(update=changes)
    units = [
        ("Japan", "divorce", "norms", "+0.1000", "+0.9000"), ("Japan", "divorce", "opposite", "+0.1000", "-0.1000"),
        ("Egypt", "divorce", "opposite", "+0.9000", "-0.9000"),
    ]  # fmt: skip
    results = [ProbeResult("follows", unit, 0, 0, Outcome.OK, None, 0.1, 1) for unit in units]
    survey = load_planned_survey(config)
    audit = ProbeAudit(settings, config, survey, lambda model, cells=None: remember_traces(results))
    row = load_probe("reasoning").probe.measure(audit, results).rows[0]
    assert (row.cells, row.without_donor) == (2, 1)


def test_failures_are_counted_and_never_numbers(figures: ReasoningFigures, storage: str) -> None:
    audit = open_audit(NAME, storage=storage)
    probe = load_probe("reasoning").probe
    results = [result for result in audit.probe_results("reasoning") if result.model == "follows"]
    config = AuditConfig.model_validate(CONFIG)
    lost = [
        replace(result, outcome=Outcome.REFUSED if i % 2 else Outcome.TIMEOUT, value=None) if i % 7 == 0 else result
        for i, result in enumerate(results)
    ]
    settings = config.probes.plugins["reasoning"]
    traces = remember_traces(results)
    planned = ProbeAudit(settings, config, load_planned_survey(config), lambda model, cells=None: traces)
    row = probe.measure(planned, lost).rows[0]
    n_lost = sum(result.value is None for result in lost)
    n_restated = sum(isinstance(result.value, str) for result in lost)
    assert row.refused + row.failed == n_lost
    assert row.answers == len(results) - n_lost - n_restated
    assert row.slope.value == pytest.approx(1, abs=0.15)
    nothing = [replace(result, outcome=Outcome.TIMEOUT, value=None) for result in results]
    row = probe.measure(planned, nothing).rows[0]
    assert (row.slope.value, row.answers) == (None, 0)


def test_the_report_has_both_forms_apart_the_link_and_at_most_400_words(figures: ReasoningFigures) -> None:
    probe = load_probe("reasoning").probe
    section = known(probe.section(figures))
    blocks = list(iterate_blocks(Document("", "", "", [section])))
    tables = {block.id: block for block in blocks if isinstance(block, Table)}
    assert {"reasoning-prefill", "reasoning-notes"} <= set(tables)
    assert len([block for block in blocks if isinstance(block, Figure)]) == 2
    forms = {form: str(tables[f"reasoning-{form}"].rows) for form in ("prefill", "notes")}
    assert ["'notes'" in forms[form] for form in forms] == [False, True]
    assert ["'half'" in forms[form] for form in forms] == [True, False]
    texts = str([block.content for block in blocks if isinstance(block, Paragraph)])
    assert "rejected them" in texts
    assert str(Code("auditor experiment planted")) in texts
    headline = known(probe.headline(figures))
    assert known(headline.p_value) < 0.05
    hidden = [row.model_copy(update={"hidden_reasoning": row.model == "notes"}) for row in figures.rows]
    changed = probe.section(figures.model_copy(update={"rows": hidden}))
    assert "Hidden reasoning comes before the stated steps of notes." in str(changed)


def test_every_part_of_the_program_has_the_figures(storage: str, report: Report, tmp_path: Path) -> None:
    page = render_report(report, "markdown")
    start = page.index("## Does the stated reasoning carry the score?")
    section = page[start : page.index("\n## ", start + 5)]
    words = [word for word in section.split() if any(char.isalpha() for char in word)]
    assert len(words) <= MAX_WORDS
    assert page.index("Scores follow the stated norms") < start
    rows = json.loads(render_report(report, "json"))["probes"]["reasoning"]["rows"]
    assert [row["model"] for row in rows] == list(MODELS)
    succeed("export", "tables", NAME, "--storage", storage, "-o", tmp_path)
    assert (tmp_path / "report_reasoning_cells.csv").exists()
    gates = {gate.name: gate for gate in open_audit(NAME, storage=storage).check().gates}
    assert {"reasoning.min_slope", "reasoning.min_area"} <= set(gates)
    verified = succeed("verify", NAME, "--storage", storage)
    assert f"reasoning: {4 * N_CALLS} answers were read again, and 0 say" in verified.stdout + verified.stderr


def change(**changes: Any) -> AuditConfig:
    return AuditConfig.model_validate({**CONFIG, "check": {}, **changes})


def test_figures_that_are_not_measurable_are_listed_before_the_first_call() -> None:
    four = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Brazil", "Egypt"], "topics": ["divorce"]}
    models = [
        {"name": "gpt", "model": "openai/gpt-4o"},
        {"name": "thinks", "model": "hosted_vllm/x", "api_base": "http://127.0.0.1:1/v1",
         "reasoning": {"effort": "low"}},
        {"name": "continues", "model": "hosted_vllm/y", "api_base": "http://127.0.0.1:1/v1"},
    ]  # fmt: skip
    config = change(survey=four, models=models)
    sentences = " ".join(list_unmeasurable(config, load_planned_survey(config)))
    assert "gives gpt its steps as notes" in sentences
    assert "thinks reasons before it answers" in sentences
    assert "continues" not in sentences.replace("continues an", "").replace("models that do", "")
    assert "at least 5 countries and 5 topics, and there are 4 and 1" in sentences
    only_prefill = {"direct": {}, "reasoning": {"form": "prefill"}}
    config = change(survey=four, models=models, probes=only_prefill)
    assert "does not measure gpt: its provider does not continue" in " ".join(
        list_unmeasurable(config, load_planned_survey(config))
    )
    config = change(survey=four, models=models[:1], probes=only_prefill)
    with pytest.raises(ConfigError, match="no model can be asked"):
        check_probe_input(config, load_planned_survey(config))


def test_cells_without_a_donor_are_named_before_the_first_call() -> None:
    neighbours = ["Germany", "Netherlands", "Australia", "Canada", "New Zealand"]
    config = change(survey={"source": "wvs7-sample", "countries": neighbours})
    assert "people in no other country differ by 0.5" in " ".join(
        list_unmeasurable(config, load_planned_survey(config))
    )
    config = change()
    assert "differ by 0.5" not in " ".join(list_unmeasurable(config, load_planned_survey(config)))
    config = change(
        survey={"source": "wvs7-sample", "countries": neighbours},
        probes={"direct": {}, "reasoning": {"interventions": ["opposite"]}},
    )
    assert "differ by 0.5" not in " ".join(list_unmeasurable(config, load_planned_survey(config)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probes": {"logprob": {}, "reasoning": {}}}, "there is none without the probe direct"),
        ({"probes": {"direct": {}, "reasoning": {"interventions": ["norms", "norms"]}}}, "named twice"),
    ],
)
def test_audits_without_recorded_reasoning_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        change(**changes)


def test_the_form_of_a_model_makes_another_audit() -> None:
    models = [{**model, "capabilities": {"prefill": True}} for model in change().model_dump(mode="json")["models"]]
    assert fingerprint(change()) != fingerprint(change(models=models))


def test_recorded_answers_without_a_text_are_not_asked_about(tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    rows = [f"m,{country},divorce,0,SCORE = 0.{i}" for i, country in enumerate(["Germany", "Japan", "Brazil"], 1)]
    answers.write_text("\n".join(["model,country,topic,sample,text", *rows]))
    text = """name = "replayed"
judges = []
survey = { source = "wvs7-sample", countries = ["Germany", "Japan", "Brazil"], topics = ["divorce"] }
[[models]]
name = "m"
model = "replay/m"
answers = "answers.csv"
[probes]
direct = { mode = "text" }
reasoning = {}
"""
    (tmp_path / "audit.toml").write_text(text)
    config = load_config(tmp_path / "audit.toml")
    with pytest.raises(ConfigError, match="cannot be asked again"):
        check_probe_input(config, load_planned_survey(config))
