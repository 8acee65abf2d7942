"""The README and docs match the program: graph, configs, commands, key bindings and cited tests."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from auditor import bootstrap
from auditor.cli.app import SUMMARY, build_app
from auditor.config import AuditConfig, load_config
from auditor.run import load_planned_survey
from auditor.tui.key_bindings import render_key_tables
from auditor.tui.settings import load_review_settings
from tests.support.docs_blocks import blocks as page_blocks
from tests.support.docs_workspace import documented_commands

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORKFLOW_COMMANDS = ("make -C auditor-source install", "auditor run", "auditor check")
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


def blocks(language: str, page: str = README) -> list[str]:
    """Contents of a page's code blocks in a language; by default of the README."""
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def workflow_steps() -> list[dict[str, Any]]:
    """The steps of the workflow in the docs."""
    [workflow] = blocks("yaml", read_page("github-actions"))
    steps: list[dict[str, Any]] = yaml.safe_load(workflow)["jobs"]["audit"]["steps"]
    return steps


def read_page(name: str) -> str:
    """The text of a page of the documentation."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_the_graph_in_the_docs_is_current() -> None:
    bootstrap.prepare_environment()
    from auditor.agents.graph import draw_mermaid  # loads langgraph, which needs the prepared environment

    [diagram] = blocks("mermaid", read_page("architecture"))
    assert diagram.strip() == draw_mermaid().strip(), "run `auditor graph` and paste it into docs/architecture.md"


def test_the_config_in_the_docs_loads() -> None:
    [main_config] = blocks("toml", read_page("configuration"))
    AuditConfig.model_validate(tomllib.loads(main_config))


def test_the_targets_in_the_readme_exist() -> None:
    shown_targets = re.findall(r"^\$ make (\S+)", "\n".join(blocks("console")), flags=re.MULTILINE)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {"demo", "test"} <= set(shown_targets) <= set(targets)


@pytest.mark.parametrize(
    "name", ["README.md", "docs/index.md", "mkdocs.yml", "pyproject.toml", "CITATION.cff", "auditor/__init__.py"]
)
def test_the_purpose_has_the_words_of_the_help(name: str) -> None:
    assert SUMMARY in (ROOT / name).read_text(encoding="utf-8").replace("\n", " ")


def test_the_two_commands_are_on_the_first_screen() -> None:
    first = "\n".join(README.split("\n")[:24])
    assert "make demo" in first
    assert "make test" in first


def test_every_picture_and_link_of_the_readme_exists() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(targets) >= 20
    assert [target for target in targets if not (ROOT / target).is_file()] == []
    first_picture = README[: README.index("![")].count("\n")
    assert first_picture < 40, "the first picture is within the first two screens"


def test_the_citation_has_the_current_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert citation["version"] == version
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert f"version = {{{version}}}" in read_page("cite")


def test_the_workflow_in_the_docs_is_valid_and_checks_the_audit_that_it_runs() -> None:
    steps = workflow_steps()
    commands = [step["run"] for step in steps if "run" in step]
    positions = [next(i for i, line in enumerate(commands) if line.startswith(name)) for name in WORKFLOW_COMMANDS]
    assert positions == sorted(positions)
    assert all(("uses" in step) != ("run" in step) for step in steps)
    actions = [step["uses"] for step in steps if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []


def test_the_workflow_in_the_docs_takes_thresholds_from_the_base_branch() -> None:
    """A pull request must not lower the thresholds that it is judged by."""
    steps = workflow_steps()
    [base] = [step["with"] for step in steps if step.get("with", {}).get("path") == "base"]
    assert base["ref"].startswith("${{ github.base_ref")
    [check] = [step["run"] for step in steps if step.get("run", "").startswith("auditor check")]
    assert "--thresholds base/audit.toml" in check


def test_the_workflow_in_the_docs_keeps_the_database_of_every_run_and_shows_what_there_is(tmp_path: Path) -> None:
    """A run that failed, was cancelled or killed is not paid for twice: its database and the log beside it are kept."""
    steps = workflow_steps()
    used = [step.get("uses", "").partition("@")[0] for step in steps]
    names = [step.get("name", "") for step in steps]
    assert "actions/cache" not in used, "it saves only after a job that succeeded"
    restore, save = used.index("actions/cache/restore"), used.index("actions/cache/save")
    assert restore < names.index("Run") < save
    assert {steps[i]["with"]["path"] for i in (restore, save)} == {"auditor.db*"}
    assert steps[restore]["with"]["key"] == steps[save]["with"]["key"]
    assert "run_attempt" in steps[save]["with"]["key"], "a key is saved once"
    after_run = steps[names.index("Run") + 1 :]
    assert [step for step in after_run if not step.get("if", "").startswith("always()")] == []
    assert steps[names.index("Check")]["if"] == f"always() && steps.{steps[names.index('Run')]['id']}.outputs.started"
    show = steps[names.index("Show the result")]["run"]
    for content in (None, "# Check"):
        if content:
            (tmp_path / "check.md").write_text(content)
        environment = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
        subprocess.run(["bash", "-e", "-c", show], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "summary.md").read_text() == "# Check"


@pytest.mark.parametrize(("code", "is_started"), [(0, True), (1, False), (2, False), (4, True), (130, True)])
def test_the_workflow_in_the_docs_checks_no_earlier_run_in_place_of_one_that_did_not_start(
    tmp_path: Path, code: int, *, is_started: bool
) -> None:
    """The database of an earlier run is there, so that its audit would pass."""
    [run] = [step["run"] for step in workflow_steps() if step.get("id") == "run"]
    (tmp_path / "auditor").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "auditor").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_OUTPUT": str(tmp_path / "output")}
    ended = subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=environment, check=False)
    assert (ended.returncode, (tmp_path / "output").exists()) == (code, is_started)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ({}, 0), ({"check": 3}, 3), ({"check": 4}, 4), ({"compare": 3}, 3), ({"check": 4, "compare": 3}, 3),
        ({"run": 4, "check": 4}, 4), ({"run": 130}, 130), ({"run": 2}, 2), ({"doctor": 1}, 1), ({"compare": 1}, 1),
    ],
)  # fmt: skip
def test_the_docs_script_ends_with_the_worst_exit_code(tmp_path: Path, codes: dict[str, int], expected: int) -> None:
    [script] = blocks("bash", read_page("github-actions"))
    cases = " ".join(f"{command}) exit {code};;" for command, code in codes.items())
    program = tmp_path / "auditor"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncase $1 in {cases} *) exit 0;; esac\n')
    program.chmod(0o755)
    (tmp_path / "check.xml").write_text("of an earlier run")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ended = subprocess.run(["bash", "-c", script, "gate.sh", "v2", "v1"], cwd=tmp_path, env=environment, check=False)
    assert (ended.returncode, (tmp_path / "check.xml").exists()) == (expected, False)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [line.split()[0] for line in calls] == ["doctor", "run", "check", "compare"][: len(calls)]
    if expected in (0, 3):
        assert calls[1] == "run audit.toml --set name=gate-v2 --set models.candidate.model=openai/v2"
        assert calls[3] == "compare gate-v1 gate-v2 --fail-if-worse"


@pytest.mark.parametrize("page", ["commands", "configuration"])
def test_a_page_that_the_website_fills_says_where_else_its_contents_are(page: str) -> None:
    before, _, _ = read_page(page).partition(f"<!-- {page} -->")
    last_paragraph = before.rstrip().split("\n\n")[-1]
    assert "The website" in last_paragraph
    assert "`auditor " in last_paragraph


def test_the_tutorial_is_of_readable_length() -> None:
    prose = re.sub(r"```.*?```", "", read_page("tutorial"), flags=re.DOTALL)
    assert 1000 <= len(prose.split()) <= 1500


def test_all_pages_together_are_of_readable_length() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 45_000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_loads(path: Path) -> None:
    config = load_config(path)
    assert load_planned_survey(config).asked_cells or config.survey is None


def test_the_starter_config_loads() -> None:
    load_config(ROOT / "auditor" / "cli" / "starter.toml")
    assert {p.stem for p in EXAMPLES} >= {"quickstart", "providers", "local-server", "judges"}


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_page_of_keys_has_the_current_key_bindings() -> None:
    assert read_page("keys").endswith(f"\n\n{render_key_tables().strip()}\n"), (
        "put what `python -m auditor.tui.key_bindings` prints at the end of docs/keys.md"
    )


def test_the_settings_on_the_review_page_load(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
    [settings_text] = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "review.toml").write_text(settings_text, encoding="utf-8")
    settings = load_review_settings(tmp_path)
    assert settings.keys == {"conflict.left": "h", "conflict.history": "H"}
    assert settings.filters == {"wide": "gap:>1 is:todo"}


def test_every_promise_in_the_docs_cites_a_test() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    cited_tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(cited_tests) > 40
    faults = page.split("## Faults", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in faults.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 25
    assert all("`tests/" in row for row in rows)
    for path, test in cited_tests:
        assert re.search(rf"^(?:async )?def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
            path,
            test,
        )


def test_files_of_tests_that_the_pages_name_exist() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]
    named = {
        path for page in pages for path in re.findall(r"`(tests/[a-z_/]+\.py)\b", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 30
    assert not [path for path in named if not (ROOT / path).is_file()]


def test_commands_that_are_not_run_exist_and_have_the_options_that_are_shown() -> None:
    """All others are run by tests/project/test_docs_examples.py."""
    from typer.main import get_command

    commands = get_command(build_app()).commands  # type: ignore[attr-defined]
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    skipped = [command.line for page in pages for command in documented_commands(page) if command.skip_reason]
    command_lines = [line.split()[1:] for line in skipped if line.startswith("auditor ")]
    assert ["doctor", "--roles"] in [words[:2] for words in command_lines]
    for words in command_lines:
        command = commands[words[0]]
        if hasattr(command, "commands"):
            command = command.commands[words[1]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, words


def test_the_examples_in_docstrings_print_what_they_show() -> None:
    paths = [path for path in (ROOT / "auditor").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")]
    assert paths
    for path in paths:
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        assert doctest.testmod(module).failed == 0


def test_the_examples_of_the_page_on_metrics_print_what_they_show() -> None:
    """The interpreter's examples of the page share their names, as for a reader who types one after the other."""
    text = "\n".join(block.text for block in page_blocks(ROOT / "docs" / "metrics.md", "pycon"))
    examples = doctest.DocTestParser().get_doctest(text, {}, "docs/metrics.md", "docs/metrics.md", 0)
    assert len(examples.examples) >= 10
    report: list[str] = []
    doctest.DocTestRunner().run(examples, out=report.append)
    assert not report, "".join(report)
