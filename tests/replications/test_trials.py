"""Rows of our own models, forms of an experiment, data files, and trials: what is asked for a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest

from auditor.config import AuditConfig
from auditor.errors import AuditorError, UsageError
from auditor.experiments.stored_audit import ExperimentContext, ExperimentResult
from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.semantic.experiments.runs import read_judgements
from auditor.probes.semantic.questions import load_built_in_questions
from auditor.replications import joining, planning, trials
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures
from auditor.replications.planning import (
    ReplicationOptions,
    apply_options,
    list_data_files,
    list_ignored_settings,
    plan_audits,
    select_runnable_tables,
)
from auditor.replications.presets import Paper, load_paper
from auditor.replications.trials import AuditPlan, plan_trials, run_trials, select_trials
from auditor.reports.data.replication import RecomputedCell
from auditor.reports.data.report_schema import Report
from tests.e2e.test_semantic import write
from tests.support.cli_runner import auditor, succeed
from tests.support.known import known

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

    experiment = known(paper().experiment)
    with mock.patch.object(trials, "EXPERIMENTS", (rules,)):
        for files in ({}, {"RULES": "mine.csv"}):
            results = run_trials(experiment, paper().tables, files, {"A": "rep-a"}, ExperimentContext())
    assert calls == [("rep-a", Path("mine.csv"))]
    [filled] = join("2", measured(**results["A"]))
    assert (known(filled.recomputed).value, filled.difference) == (0.75, 0.5)


def test_a_trial_that_cannot_use_any_answer_loses_no_other_figure() -> None:
    """The answers are paid by then; a trial that asks models itself still ends with its error."""

    def judgements(context: ExperimentContext, audit: str) -> ExperimentResult:
        raise UsageError("no row is about it.", "Check the columns.")

    def rules(context: ExperimentContext, audit: str) -> ExperimentResult:
        raise UsageError("no question has a rule.")

    for function in (judgements, rules):
        experiment = known(paper(trials={"rules": {"experiment": function.__name__, "audit": "A"}}).experiment)
        with mock.patch.object(trials, "EXPERIMENTS", (function,)):
            if function is rules:
                with pytest.raises(UsageError):
                    run_trials(experiment, paper().tables, {}, {"A": "rep-a"}, ExperimentContext())
                continue
            results = run_trials(experiment, paper().tables, {}, {"A": "rep-a"}, ExperimentContext())
        [cell] = join("2", measured(**results["A"]))
        assert (cell.not_run, cell.detail) == ("no_value", "A: no row is about it.")


def test_trials_that_no_table_needs_are_not_made() -> None:
    experiment = known(paper().experiment)
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
    assert (known(config.survey).source, config.limits.max_cells) == (str(survey), 3)


def test_files_of_a_preset_and_the_setting_of_the_limit(models: Path) -> None:
    with_file = paper(audits={"A": {"survey": {"source": "preset:made-up.csv"}}}, limit_key="limits.max_attempts")
    config = plan_audits(with_file, ReplicationOptions("1", models_file=models, limit=7))["A"]
    path = Path(known(config.survey).source)
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


def first_question() -> str:
    """Id of a built-in question."""
    return load_built_in_questions()[0].id


TASK_COLUMNS = ["question_id", "question", "choices", "correct", "paraphrase"]


@pytest.fixture
def two_models(tmp_path: Path) -> Path:
    path = tmp_path / "models.toml"
    tables = "".join(f'[[models]]\nname = "{name}"\nmodel = "openai/{name}"\n' for name in ("a", "b"))
    path.write_text('name = "x"\njudges = []\nprobes = { semantic = {} }\n' + tables, encoding="utf-8")
    return path


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Twenty questions with known answers, each in five other wordings."""
    rows: list[list[object]] = [
        [i, f"Question {i}?", "no|yes", "yes", f"Wording {j} of {i}?"] for i in range(20) for j in range(5)
    ]
    return write(tmp_path / "task.csv", TASK_COLUMNS, rows)


def plan(two_models: Path, table: str | None = None, limit: int | None = None, **files: Path) -> dict[str, AuditPlan]:
    return plan_files(two_models, {name: str(path) for name, path in files.items()}, table, limit)


def plan_files(
    two_models: Path, files: dict[str, str], table: str | None = None, limit: int | None = None
) -> dict[str, AuditPlan]:
    paper, options = load_paper("sage"), ReplicationOptions(table, models_file=two_models, files=files, limit=limit)
    experiment = apply_options(known(paper.experiment), options)
    tables = select_runnable_tables(paper, table)
    return plan_trials(experiment, tables, list_data_files(experiment, options), plan_audits(paper, options))


def count_calls(plan: AuditPlan) -> dict[str, float]:
    """Planned calls of all models by purpose, at most."""
    counts: dict[str, float] = {}
    for planned in plan.calls:
        counts[planned.purpose.value] = counts.get(planned.purpose.value, 0) + planned.calls.high
    return counts


def test_known_answers_need_no_answer_to_the_audits_own_questions(two_models: Path, task: Path) -> None:
    [(name, planned)] = plan(two_models, "3", TruthfulQA=task, HellaSwag=task).items()
    assert (name, planned.is_asked, planned.asking_trials) == ("selected", False, ["TruthfulQA", "HellaSwag"])
    assert count_calls(planned) == {"moral": 2 * 2 * 20 * 5}, "two models, two tasks, and five wordings"


def test_temperatures_need_no_answer_to_the_audits_own_questions(two_models: Path) -> None:
    [(name, planned)] = plan(two_models, "figure-3", limit=10).items()
    assert (name, planned.is_asked, planned.asking_trials) == ("temperatures", False, ["temperature"])
    assert count_calls(planned) == {"moral": 2 * 10 * 5 * 3 * 2}, "three temperatures, same words and others"


def test_the_limit_is_that_of_experiments_too(two_models: Path, task: Path) -> None:
    [planned] = plan(two_models, "3", limit=1, TruthfulQA=task).values()
    assert count_calls(planned) == {"moral": 2 * 5}


def test_answers_before_a_rule_are_those_of_an_audit_that_is_asked(two_models: Path, tmp_path: Path) -> None:
    questions = write(
        tmp_path / "q.csv",
        ["question_id", "question", "paraphrase"],
        [[i, f"Question {i}?", f"Wording {j} of {i}?"] for i in range(4) for j in range(5)],
    )
    rules = write(tmp_path / "rules.csv", ["question_id", "rule"], [[i, "Be kind."] for i in range(3)])
    people = write(
        tmp_path / "people.csv",
        ["rater", "model", "question_id", "left", "right", "judgement"],
        [["ann", "a", 0, 1, 2, "Y"]],
    )
    [without_people] = plan(two_models, "4", SELECTED=questions, RULES=rules).values()
    assert not without_people.is_asked
    assert count_calls(without_people) == {"moral": 2 * 2 * 3 * 5, "rule": 2 * 2 * 3 * 5}
    with_people = plan(two_models, SELECTED=questions, RULES=rules, PEOPLE=people)
    assert {name: planned.is_asked for name, planned in with_people.items()} == {
        "MCC": True,
        "selected": True,
        "temperatures": False,
    }
    assert count_calls(with_people["selected"]) == {"moral": 2 * 3 * 5, "rule": 2 * 3 * 5}
    assert plan(two_models, "2").popitem()[1] == AuditPlan(False, [], []), "without labels, nothing is asked"


def test_the_small_form_limits_experiments(task: Path) -> None:
    experiment = known(load_paper("sage").experiment)
    small = apply_options(experiment, ReplicationOptions(is_small=True)).trials
    assert {name: trial.options.get("limit") for name, trial in small.items() if trial.limit_option} == {
        "TruthfulQA": 6,
        "HellaSwag": 6,
    }
    limited = apply_options(experiment, ReplicationOptions(is_small=True, limit=2)).trials
    assert limited["TruthfulQA"].options == {"limit": 2}


BROKEN: dict[str, Callable[[Path], Path]] = {
    "PEOPLE": lambda folder: folder / "nofile.csv",
    "RULES": lambda folder: write(folder / "r.csv", ["question_id", "rule"], [["nowhere", "Be kind."]]),
    "TruthfulQA": lambda folder: write(folder / "t.csv", TASK_COLUMNS, [[1, "Q?", "no|yes", "maybe", "P?"]]),
    "HellaSwag": lambda folder: write(folder / "h.csv", TASK_COLUMNS, [[1, "Q?", "no|yes", "yes", ""]]),
}
MESSAGES = {
    "PEOPLE": "nofile.csv",
    "RULES": "line 2.*no question 'nowhere'",
    "TruthfulQA": "line 2.*'maybe' is not one of the choices",
    "HellaSwag": "question '1' has no paraphrase.*paraphraser",
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_files_that_cannot_be_used_are_found_before_anything_is_sent(
    name: str, two_models: Path, tmp_path: Path
) -> None:
    file = BROKEN[name](tmp_path)
    with pytest.raises(AuditorError, match=f"--data {name}: .*{MESSAGES[name]}"):
        plan_files(two_models, {name: str(file)})
    words: list[str | Path] = ["replicate", "sage", "--models", two_models, "--data", f"{name}={file}", "--dry-run"]
    result = auditor(*words, "--storage", f"sqlite:///{tmp_path}/new.db")
    assert result.returncode in (1, 2)
    assert f"--data {name}: " in result.stderr
    assert not (tmp_path / "new.db").exists()


PEOPLE_COLUMNS = ["rater", "model", "question_id", "left", "right", "judgement"]


@pytest.mark.parametrize(
    "row",
    [
        ["ann", "GPT-4", first_question(), 1, 2, "Y"],
        ["ann", "a", "other", 1, 2, "Y"],
        ["ann", "a", first_question(), 1, 6, "Y"],
    ],
    ids=["model", "question", "wording"],
)
def test_labels_of_other_answers_are_found_before_anything_is_sent(
    row: list[object], two_models: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "people.csv", PEOPLE_COLUMNS, [row])
    with pytest.raises(AuditorError, match=r"--data PEOPLE: .*no row is about a model, question and wordings"):
        plan(two_models, "2", PEOPLE=file)
    file = write(tmp_path / "people.csv", PEOPLE_COLUMNS, [row, ["ann", "a", first_question(), 1, 5, "Y"]])
    assert plan(two_models, "2", PEOPLE=file)["selected"].is_asked


def test_wordings_of_labels_count_from_one(tmp_path: Path) -> None:
    for row, column in ((["ann", "a", "q", 0, 1, "Y"], "left"), (["ann", "a", "q", 1, 0, "Y"], "right")):
        with pytest.raises(AuditorError, match=f"column '{column}': 0 is not the number of a wording"):
            read_judgements(write(tmp_path / "people.csv", PEOPLE_COLUMNS, [row]))


def test_a_missing_file_of_questions_is_named_by_its_option(two_models: Path, tmp_path: Path) -> None:
    with pytest.raises(AuditorError, match=r"--data MCC: there is no file 'nofile\.csv'"):
        plan_files(two_models, {"MCC": "nofile.csv"}, "1")
    assert plan_files(two_models, {"MCC": "built-in"}, "1")["MCC"].is_asked


def test_judges_that_are_not_asked_are_listed(tmp_path: Path) -> None:
    tables = [("models", "a"), ("judges", "first"), ("judges", "second")]
    path = tmp_path / "models.toml"
    path.write_text("".join(f'[[{t}]]\nname = "{n}"\nmodel = "openai/{n}"\n' for t, n in tables), encoding="utf-8")
    options = ReplicationOptions(models_file=path)
    assert list_ignored_settings(load_paper("consistency"), options) == ["judge 'second' (the first one is asked)"]
    assert list_ignored_settings(load_paper("sage"), options) == []


def test_the_dry_run_counts_the_calls_of_experiments(two_models: Path, task: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["replicate", "sage", "--table", "3", "--models", two_models, "--dry-run"]
    result = succeed(*words, "--data", f"TruthfulQA={task}", "--storage", f"sqlite:///{tmp_path}/new.db")
    assert "rep-sage-selected-3: About 200 calls" in result.stderr
    assert "All are calls of the experiments on it (TruthfulQA)." in result.stderr
