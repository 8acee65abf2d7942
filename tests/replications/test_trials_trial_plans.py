"""What is asked for a table: the audit's own questions, or only those of experiments on it; files are read first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.errors import AuditorError
from auditor.probes.semantic.experiments.runs import read_judgements
from auditor.probes.semantic.questions import load_built_in_questions
from auditor.replications.planning import (
    ReplicationOptions,
    apply_options,
    list_data_files,
    list_ignored_settings,
    plan_audits,
    select_runnable_tables,
)
from auditor.replications.presets import load_paper
from auditor.replications.trials import AuditPlan, plan_trials
from tests.e2e.test_semantic import write
from tests.support.cli_runner import auditor


def first_question() -> str:
    """Id of a built-in question."""
    return load_built_in_questions()[0].id


TASK_COLUMNS = ["question_id", "question", "choices", "correct", "paraphrase"]


@pytest.fixture
def models(tmp_path: Path) -> Path:
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


def plan(models: Path, table: str | None = None, limit: int | None = None, **files: Path) -> dict[str, AuditPlan]:
    return plan_files(models, {name: str(path) for name, path in files.items()}, table, limit)


def plan_files(
    models: Path, files: dict[str, str], table: str | None = None, limit: int | None = None
) -> dict[str, AuditPlan]:
    paper, options = load_paper("sage"), ReplicationOptions(table, models_file=models, files=files, limit=limit)
    assert paper.experiment is not None
    experiment = apply_options(paper.experiment, options)
    tables = select_runnable_tables(paper, table)
    return plan_trials(experiment, tables, list_data_files(experiment, options), plan_audits(paper, options))


def count_calls(plan: AuditPlan) -> dict[str, float]:
    """Planned calls of all models by purpose, at most."""
    counts: dict[str, float] = {}
    for planned in plan.calls:
        counts[planned.purpose.value] = counts.get(planned.purpose.value, 0) + planned.calls.high
    return counts


def test_known_answers_need_no_answer_to_the_audits_own_questions(models: Path, task: Path) -> None:
    [(name, planned)] = plan(models, "3", TruthfulQA=task, HellaSwag=task).items()
    assert (name, planned.is_asked, planned.asking_trials) == ("selected", False, ["TruthfulQA", "HellaSwag"])
    assert count_calls(planned) == {"moral": 2 * 2 * 20 * 5}, "two models, two tasks, and five wordings"


def test_temperatures_need_no_answer_to_the_audits_own_questions(models: Path) -> None:
    [(name, planned)] = plan(models, "figure-3", limit=10).items()
    assert (name, planned.is_asked, planned.asking_trials) == ("temperatures", False, ["temperature"])
    assert count_calls(planned) == {"moral": 2 * 10 * 5 * 3 * 2}, "three temperatures, same words and others"


def test_the_limit_is_that_of_experiments_too(models: Path, task: Path) -> None:
    [planned] = plan(models, "3", limit=1, TruthfulQA=task).values()
    assert count_calls(planned) == {"moral": 2 * 5}


def test_answers_before_a_rule_are_those_of_an_audit_that_is_asked(models: Path, tmp_path: Path) -> None:
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
    [without_people] = plan(models, "4", SELECTED=questions, RULES=rules).values()
    assert not without_people.is_asked
    assert count_calls(without_people) == {"moral": 2 * 2 * 3 * 5, "rule": 2 * 2 * 3 * 5}
    with_people = plan(models, SELECTED=questions, RULES=rules, PEOPLE=people)
    assert {name: planned.is_asked for name, planned in with_people.items()} == {
        "MCC": True,
        "selected": True,
        "temperatures": False,
    }
    assert count_calls(with_people["selected"]) == {"moral": 2 * 3 * 5, "rule": 2 * 3 * 5}
    assert plan(models, "2").popitem()[1] == AuditPlan(False, [], []), "without labels, nothing is asked"


def test_the_small_form_limits_experiments(task: Path) -> None:
    experiment = load_paper("sage").experiment
    assert experiment is not None
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
def test_files_that_cannot_be_used_are_found_before_anything_is_sent(name: str, models: Path, tmp_path: Path) -> None:
    file = BROKEN[name](tmp_path)
    with pytest.raises(AuditorError, match=f"--data {name}: .*{MESSAGES[name]}"):
        plan_files(models, {name: str(file)})
    words: list[str | Path] = ["replicate", "sage", "--models", models, "--data", f"{name}={file}", "--dry-run"]
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
    row: list[object], models: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "people.csv", PEOPLE_COLUMNS, [row])
    with pytest.raises(AuditorError, match=r"--data PEOPLE: .*no row is about a model, question and wordings"):
        plan(models, "2", PEOPLE=file)
    file = write(tmp_path / "people.csv", PEOPLE_COLUMNS, [row, ["ann", "a", first_question(), 1, 5, "Y"]])
    assert plan(models, "2", PEOPLE=file)["selected"].is_asked


def test_wordings_of_labels_count_from_one(tmp_path: Path) -> None:
    for row, column in ((["ann", "a", "q", 0, 1, "Y"], "left"), (["ann", "a", "q", 1, 0, "Y"], "right")):
        with pytest.raises(AuditorError, match=f"column '{column}': 0 is not the number of a wording"):
            read_judgements(write(tmp_path / "people.csv", PEOPLE_COLUMNS, [row]))


def test_a_missing_file_of_questions_is_named_by_its_option(models: Path, tmp_path: Path) -> None:
    with pytest.raises(AuditorError, match=r"--data MCC: there is no file 'nofile\.csv'"):
        plan_files(models, {"MCC": "nofile.csv"}, "1")
    assert plan_files(models, {"MCC": "built-in"}, "1")["MCC"].is_asked


def test_judges_that_are_not_asked_are_listed(tmp_path: Path) -> None:
    tables = [("models", "a"), ("judges", "first"), ("judges", "second")]
    path = tmp_path / "models.toml"
    path.write_text("".join(f'[[{t}]]\nname = "{n}"\nmodel = "openai/{n}"\n' for t, n in tables), encoding="utf-8")
    options = ReplicationOptions(models_file=path)
    assert list_ignored_settings(load_paper("consistency"), options) == ["judge 'second' (the first one is asked)"]
    assert list_ignored_settings(load_paper("sage"), options) == []


def test_the_dry_run_counts_the_calls_of_experiments(models: Path, task: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["replicate", "sage", "--table", "3", "--models", models, "--dry-run"]
    result = auditor(*words, "--data", f"TruthfulQA={task}", "--storage", f"sqlite:///{tmp_path}/new.db")
    assert result.returncode == 0, result.stderr
    assert "rep-sage-selected-3: About 200 calls" in result.stderr
    assert "All are calls of the experiments on it (TruthfulQA)." in result.stderr
