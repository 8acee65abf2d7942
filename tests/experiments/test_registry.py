"""The registry of experiments: it is complete, and each command has an example that parses."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import auditor.experiments
from auditor.cli.app import build_app
from auditor.experiments.registry import EXPERIMENTS
from auditor.experiments.sampling import nonresponse, savings
from auditor.experiments.stored_audit import Experiment, ExperimentContext
from auditor.storage.database import open_database
from tests.support.families_of_tests import run_checked
from tests.support.synthetic_audit import populate


def test_every_module_with_an_experiment_is_registered() -> None:
    root = Path(auditor.experiments.__path__[0]).parent
    folders = [root / "experiments", *root.glob("probes/*/experiments")]
    declared = {
        node.name
        for folder in folders
        for path in folder.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and node.returns
        and ast.unparse(node.returns).startswith("ExperimentResult")
    }
    assert len(declared) >= 12
    assert sorted(declared) == sorted(experiment.__name__ for experiment in EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.__name__)
def test_the_example_of_an_experiment_parses(experiment: Experiment) -> None:
    name = experiment.__name__.replace("_", "-")
    command = get_command(build_app()).commands["experiment"].commands[name]  # type: ignore[attr-defined]
    [example] = re.findall(rf"^Example: auditor experiment {name} (.+)$", command.help, flags=re.MULTILINE)
    arguments = command.make_context(name, example.split()).params
    assert arguments["audit"]
    assert {"output", "storage", "as_json"} < set(arguments)
    assert "context" not in arguments


def test_the_families_of_tests_of_every_experiment_are_checked() -> None:
    calls = re.compile(r"\brun_checked\(\s*(\w+),")
    files = (Path(__file__).parents[1]).rglob("*.py")
    checked = {name for file in files for name in calls.findall(file.read_text(encoding="utf-8"))}
    assert {experiment.__name__ for experiment in EXPERIMENTS} <= checked


def test_experiments_without_calls_adjust_all_p_values_that_they_publish(tmp_path: Path) -> None:
    context = ExperimentContext(f"sqlite:///{tmp_path}/audit.db")
    with open_database(context.url) as db:
        audit = populate(db, models=6, countries=6, topics=5, samples=2)
    run_checked(nonresponse, context, audit.name)
    run_checked(savings, context, audit.name)
