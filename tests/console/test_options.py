"""The argument AUDIT may be left out: then a command takes the only or the most recent audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from auditor import cli
from auditor.cli.app import build_app
from tests.cli.test_app import list_commands
from tests.support.cli_runner import auditor

SCORES = "model,country,topic,method,score\nm,Germany,divorce,direct,0.5\nm,Japan,divorce,direct,0.1\n"
REQUIRED = {
    ("rename",), ("delete",), ("exclude",), ("reread",), ("experiment", "drift"), ("experiment", "accuracy"),
    ("experiment", "judgements"),
}  # fmt: skip
"""Commands that need the name: it would be dangerous to guess it, or a second argument follows."""


def arguments_of(words: list[str]) -> list[Any]:
    """The positional arguments of a command."""
    command: Any = get_command(build_app())
    for word in words:
        command = command.commands[word]
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def import_audits(folder: Path, *names: str) -> None:
    """Make audits of imported scores, in this order."""
    (folder / "scores.csv").write_text(SCORES)
    for name in names:
        command = ("import", "scores", "scores.csv", "--survey", "wvs7-sample", "--audit", name)
        assert auditor(*command, cwd=folder).returncode == 0


@pytest.mark.parametrize("words", list_commands(), ids=" ".join)
def test_audit_may_be_left_out_of_every_command_but_a_few(words: list[str]) -> None:
    for argument in arguments_of(words):
        if argument.name == "audit":
            assert argument.required is (tuple(words) in REQUIRED), words


def test_the_only_audit_is_taken_without_a_word(tmp_path: Path) -> None:
    import_audits(tmp_path, "mine")
    report = auditor("report", "--format", "json", cwd=tmp_path)
    assert json.loads(report.stdout)["audit"]["name"] == "mine"
    assert report.stderr == ""


def test_of_several_audits_the_most_recent_is_taken_and_named(tmp_path: Path) -> None:
    import_audits(tmp_path, "first", "second", "first")
    verify = auditor("verify", cwd=tmp_path)
    assert verify.returncode == 0
    assert "Audit: first (the most recent of 2; name another to choose it)" in verify.stderr
    storage = f"sqlite:///{tmp_path / 'auditor.db'}"
    report = auditor("report", "--format", "json", "--storage", storage, cwd=Path("/"))
    assert json.loads(report.stdout)["audit"]["name"] == "first"
    assert json.loads(auditor("report", "second", "-f", "json", cwd=tmp_path).stdout)["audit"]["name"] == "second"


def test_without_any_audit_the_message_says_what_to_do(tmp_path: Path) -> None:
    missing = auditor("report", cwd=tmp_path)
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert "there is no database at auditor.db" in missing.stderr


def test_md_is_another_name_of_markdown(tmp_path: Path) -> None:
    import_audits(tmp_path, "mine")
    assert (
        auditor("report", "-f", "md", cwd=tmp_path).stdout == auditor("report", "-f", "markdown", cwd=tmp_path).stdout
    )
    refused = auditor("report", "-f", "pdf", cwd=tmp_path)
    assert "'pdf' is not a report format. Use html, json, md or text" in refused.stderr


def test_status_hides_columns_that_no_audit_uses(tmp_path: Path) -> None:
    import_audits(tmp_path, "mine")
    status = auditor("status", cwd=tmp_path, COLUMNS="200").stdout
    assert "conflicts" in status
    assert all(column not in status for column in ("samples ok", "verdicts ok", "comparisons ok", "moral answers ok"))


def test_commands_open_databases_in_one_way() -> None:
    modules = Path(cli.__file__).parent.glob("*.py")
    assert not [module.name for module in modules if "open_database" in module.read_text(encoding="utf-8")]


CONFIG = """
name = "mine"
survey = { source = "wvs7-sample" }
embedding = { model = "none" }
judges = []
[[models]]
name = "m"
model = "embedded/smollm2-135m"
"""


def make_project(folder: Path, name: str = "mine") -> Path:
    """An audit beside its config, in a folder that is created; the config's path."""
    folder.mkdir()
    import_audits(folder, name)
    (folder / "audit.toml").write_text(CONFIG.replace("mine", name), encoding="utf-8")
    return folder / "audit.toml"


@pytest.mark.parametrize(
    ("command", "n_words"),
    [(("status", "--json"), 1), (("verify",), 1), (("export", "tables", "-o", "tables"), 2), (("traces", "--json"), 1)],
    ids=lambda value: str(value),
)
def test_a_config_names_its_audit_and_database_from_every_folder(
    tmp_path: Path, command: tuple[str, ...], n_words: int
) -> None:
    path = make_project(tmp_path / "project")
    (tmp_path / "here").mkdir()
    words, options = command[:n_words], command[n_words:]
    completed = auditor(*words, "../project/audit.toml", *options, cwd=tmp_path / "here")
    assert completed.returncode == 0, completed.stderr
    overridden = auditor(*words, str(path), *options, "--storage", "sqlite:///none.db", cwd=tmp_path / "here")
    assert "there is no database at none.db" in overridden.stderr


def test_pages_and_messages_name_the_storage_that_their_commands_need(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    elsewhere = auditor("report", "project/audit.toml", "-f", "text", cwd=tmp_path).stdout
    assert "auditor export tables mine --storage sqlite:///project/auditor.db" in " ".join(elsewhere.split())
    page = auditor("report", "project/audit.toml", cwd=tmp_path)
    assert f"Report: {tmp_path}/mine.html" in page.stderr
    html = (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert html.count("--storage sqlite:///project/auditor.db</code>") >= 2
    assert "--storage" not in auditor("report", "-f", "text", cwd=tmp_path / "project").stdout
    variable = {"AUDITOR_STORAGE": "sqlite:///project/auditor.db"}
    assert "--storage" not in auditor("report", "project/audit.toml", "-f", "text", cwd=tmp_path, **variable).stdout


def test_configs_of_one_command_have_one_database(tmp_path: Path) -> None:
    make_project(tmp_path / "a", "first")
    make_project(tmp_path / "b", "second")
    same = auditor("compare", "a/audit.toml", "a/audit.toml:m", "--json", cwd=tmp_path)
    assert "another database" not in same.stderr
    two = auditor("compare", "a/audit.toml", "b/audit.toml", cwd=tmp_path)
    assert two.returncode != 0
    assert "b/audit.toml are in another database (sqlite:///b/auditor.db)" in two.stderr
    assert "--storage" in two.stderr
