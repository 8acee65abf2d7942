"""Rows of our own models, forms of an experiment, data files, and trials on finished audits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest

from auditor.config import AuditConfig
from auditor.errors import UsageError
from auditor.experiments.stored_audit import ExperimentContext, ExperimentResult
from auditor.metrics.intervals.estimate import Estimate
from auditor.replications import joining, planning, trials
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures
from auditor.replications.planning import ReplicationOptions, plan_audits
from auditor.replications.presets import Paper
from auditor.replications.trials import run_trials, select_trials
from auditor.reports.data.replication import RecomputedCell
from auditor.reports.data.report_schema import Report

SURVEY = "country,topic,score\nGhana,divorce,0.5\n"


def paper(**experiment: Any) -> Paper:
    """A made-up paper with one table of models, asked with and without reasoning."""
    return Paper.model_validate(
        {
            "id": "made-up", "title": "Made up", "source": "nowhere", "origin": "paper",
            "tables": [
                {
                    "id": "1", "title": "Figures of models", "place": "Table 1", "columns": ["size"], "scale": 0.01,
                    "parts": ["logprob"],
                    "forms": {
                        form: {"size": [{"model_figure": f"size.{form}", "audit": "A"}]} for form in ("direct", "CoT")
                    },
                    "rows": [
                        {"row": "GPT, direct", "model": "GPT", "form": "direct", "label": "GPT", "quote": "GPT 50"},
                        {"row": "GPT, CoT", "model": "GPT", "form": "CoT", "label": "GPT", "quote": "GPT 60"},
                    ],
                },
                {
                    "id": "2", "title": "A trial", "place": "Table 2", "columns": ["change"],
                    "figures": {"change": [{"figure": "change", "trial": "rules"}]},
                    "rows": [{"row": "GPT", "quote": "GPT 0.25"}],
                },
            ],
            "experiment": {
                "needs": "nothing", "cost": "nothing",
                "config": {"judges": "peers", "probes": {"direct": {"samples": 2}, "logprob": {}}},
                "audits": {"A": {"survey": {"source": "pew2013-sample"}}, "B": {}},
                "files": {"A": {"audit": "A", "key": "survey.source"}, "RULES": {}},
                "trials": {"rules": {"experiment": "rules", "audit": "A", "files": {"file": "RULES"}}},
                "small": {"config": {}, "audits": {}}, "settings": [],
            } | experiment,
        }
    )  # fmt: skip


@pytest.fixture
def models(tmp_path: Path) -> Path:
    path = tmp_path / "models.toml"
    tables = "".join(f'[[models]]\nname = "{name}"\nmodel = "openai/{name}"\n' for name in ("a", "b"))
    path.write_text('name = "x"\nsurvey = { source = "pew2013-sample" }\n' + tables, encoding="utf-8")
    return path


def measured(**results: Any) -> MeasuredAudit:
    probes: dict[str, Any] = {"direct": {"samples": 2}, "logprob": {}}
    config: dict[str, Any] = {"name": "rep-a", "survey": {"source": "pew2013-sample"}, "probes": probes}
    config["models"] = [{"name": name, "model": f"openai/{name}"} for name in ("a", "b")]
    report = SimpleNamespace(audit=SimpleNamespace(name="rep-a"))  # the only part that is read here
    return MeasuredAudit("A", AuditConfig.model_validate(config), cast(Report, report), results)


def join(table: str, audit: MeasuredAudit, **own_by_published: str) -> list[RecomputedCell]:
    sizes = {"a": 0.4, "b": 0.7}
    figures = {
        "size.direct": lambda _audit, model: Estimate(sizes[model], 10, reason="none"),
        "size.CoT": lambda _audit, model: Estimate(sizes[model] + 0.1, 10, reason="none"),
    }
    change = {"change": lambda audit: Estimate(audit.trials["rules"], 5, reason="none")}
    with mock.patch.object(joining, "MODEL_FIGURES", figures), mock.patch.object(joining, "FIGURES", change):
        return join_figures(paper(), table, [audit], own_by_published)[0]


def test_a_model_without_a_published_row_has_a_row_in_each_form() -> None:
    published, own_rows = join("1", measured())[:2], join("1", measured())[2:]
    assert [cell.not_run for cell in published] == ["no_counterpart"] * 2
    values = {cell.published.row: cell.recomputed.value for cell in own_rows if cell.recomputed}
    assert values == {"a, direct": 0.4, "b, direct": 0.7, "a, CoT": 0.5, "b, CoT": pytest.approx(0.8)}
    assert all(cell.is_own_row and cell.difference is None and cell.mark == "same_definition" for cell in own_rows)


def test_a_compared_model_appears_in_its_published_rows_only() -> None:
    cells = join("1", measured(), GPT="a")
    differences = {cell.published.row: cell.difference for cell in cells if not cell.is_own_row}
    assert differences == {"GPT, direct": pytest.approx(-0.1), "GPT, CoT": pytest.approx(-0.1)}
    assert {cell.published.row for cell in cells if cell.is_own_row} == {"b, direct", "b, CoT"}


def test_a_trial_is_made_once_its_file_is_named() -> None:
    [missing] = join("2", measured())
    assert (missing.not_run, missing.detail) == ("no_file", "A: RULES")
    calls = []

    def rules(context: ExperimentContext, audit: str, file: Path) -> ExperimentResult:
        calls.append((audit, file))
        return ExperimentResult(0.75, cast(Any, None))

    experiment = paper().experiment
    assert experiment is not None
    with mock.patch.object(trials, "EXPERIMENTS", (rules,)):
        for files in ({}, {"RULES": "mine.csv"}):
            results = run_trials(experiment, paper().tables, files, {"A": "rep-a"}, ExperimentContext())
    assert calls == [("rep-a", Path("mine.csv"))]
    [filled] = join("2", measured(**results["A"]))
    assert filled.recomputed is not None
    assert (filled.recomputed.value, filled.difference) == (0.75, 0.5)


def test_a_trial_that_cannot_use_any_answer_loses_no_other_figure() -> None:
    """The answers are paid by then; a trial that asks models itself still ends with its error."""

    def judgements(context: ExperimentContext, audit: str) -> ExperimentResult:
        raise UsageError("no row is about it.", "Check the columns.")

    def rules(context: ExperimentContext, audit: str) -> ExperimentResult:
        raise UsageError("no question has a rule.")

    for function in (judgements, rules):
        experiment = paper(trials={"rules": {"experiment": function.__name__, "audit": "A"}}).experiment
        assert experiment is not None
        with mock.patch.object(trials, "EXPERIMENTS", (function,)):
            if function is rules:
                with pytest.raises(UsageError):
                    run_trials(experiment, paper().tables, {}, {"A": "rep-a"}, ExperimentContext())
                continue
            results = run_trials(experiment, paper().tables, {}, {"A": "rep-a"}, ExperimentContext())
        [cell] = join("2", measured(**results["A"]))
        assert (cell.not_run, cell.detail) == ("no_value", "A: no row is about it.")


def test_trials_that_no_table_needs_are_not_made() -> None:
    experiment = paper().experiment
    assert experiment is not None
    assert select_trials(experiment, paper().tables[:1], {"RULES": "x.csv"}, "A") == []
    assert select_trials(experiment, paper().tables, {"RULES": "x.csv"}, "B") == []


def test_settings_that_only_some_parts_need_are_left_out(models: Path) -> None:
    optional = {"judges": ["review"], "probes.logprob": ["logprob"]}
    configs = [plan_audits(paper(optional=optional), ReplicationOptions(table, models_file=models)) for table in "12"]
    assert [config["A"].judges for config in configs] == [[], []]
    assert [config["A"].probes.logprob is not None for config in configs] == [True, False]


def test_an_audit_without_its_data_is_not_planned(models: Path, tmp_path: Path) -> None:
    required = paper(files={"A": {"audit": "A", "key": "survey.source", "is_required": True}, "RULES": {}})
    with pytest.raises(UsageError, match=r"not at hand.*--data A=FILE"):
        plan_audits(required, ReplicationOptions("1", models_file=models))
    survey = tmp_path / "mine.csv"
    survey.write_text(SURVEY, encoding="utf-8")
    options = ReplicationOptions("1", models_file=models, files={"A": str(survey)}, limit=3)
    config = plan_audits(required, options)["A"]
    assert config.survey is not None
    assert (config.survey.source, config.limits.max_cells) == (str(survey), 3)


def test_files_of_a_preset_and_the_setting_of_the_limit(models: Path) -> None:
    with_file = paper(audits={"A": {"survey": {"source": "preset:made-up.csv"}}}, limit_key="limits.max_attempts")
    config = plan_audits(with_file, ReplicationOptions("1", models_file=models, limit=7))["A"]
    assert config.survey is not None
    path = Path(config.survey.source)
    assert (path.parent, path.name) == (Path(planning.__file__).parent / "presets" / "data", "made-up.csv")
    assert config.limits.max_attempts == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"files": {"C": {"audit": "C", "key": "survey.source"}, "RULES": {}}},
        {"trials": {"rules": {"experiment": "rules", "audit": "C"}}},
        {"trials": {"rules": {"experiment": "rules", "audit": "A", "files": {"file": "OTHER"}}}},
    ],
)
def test_files_and_trials_of_unknown_audits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"there is no audit or file '(C|OTHER)'"):
        paper(**wrong)
