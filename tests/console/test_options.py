"""AUDIT may be left out; and no command replaces a database, a configuration or a survey by what it writes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from auditor import cli
from auditor.cli.app import build_app
from auditor.console.options import OutputPath
from auditor.file_kinds import identify_file
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor, succeed
from tests.support.synthetic_audit import populate

INPUTS = {
    "add_published", "config", "thresholds_path", "file", "items", "models", "people", "permutations", "preset",
    "recorded", "source", "target", "task",
}  # fmt: skip
"""Parameters of commands that are paths of inputs."""
SCORES = "model,country,topic,method,score\nm,Germany,divorce,direct,0.5\nm,Japan,divorce,direct,0.1\n"
REQUIRED = {
    ("rename",), ("delete",), ("exclude",), ("reread",), ("experiment", "drift"), ("experiment", "accuracy"),
    ("experiment", "judgements"),
}  # fmt: skip
"""Commands that need the name: it would be dangerous to guess it, or a second argument follows."""


class Output(NamedTuple):
    """An option or argument of a command that names what it writes."""

    command: tuple[str, ...]
    parameter: Any
    parser: OutputPath


def commands_with_outputs(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The words and the command of every command in a group."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands_with_outputs(command, (*words, name))
        else:
            yield (*words, name), command


def get_parser(parameter: Any) -> Any:
    """The parser that a parameter of a command is declared with; None if it has none of its own."""
    return parameter.type_descriptor.parameter_info.parser


ALL_COMMANDS = list(commands_with_outputs(get_command(build_app())))
OUTPUTS = [
    Output(words, parameter, parser)
    for words, command in ALL_COMMANDS
    for parameter in command.params
    if isinstance(parser := get_parser(parameter), OutputPath)
]


def test_all_outputs_have_the_declared_type() -> None:
    """A path that is not one of them is a file to read, whose name says so."""
    assert len(OUTPUTS) >= 20
    undeclared = {
        (" ".join(words), parameter.name)
        for words, command in ALL_COMMANDS
        for parameter in command.params
        if parameter.type_descriptor.annotation is Path or {"-o", "--output"} & set(parameter.opts)
        if not isinstance(get_parser(parameter), OutputPath)
    }
    assert {name for _, name in undeclared} <= INPUTS, undeclared


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that no output replaces."""
    folder = tmp_path_factory.mktemp("targets")
    config = folder / "audit.toml"
    config.write_text('name = "a"\nsurvey = { source = "survey.csv" }\n[[models]]\nname = "m"\nmodel = "openai/x"\n')
    (folder / "audit.yaml").write_text("name: a\nmodels:\n  - name: m\n")
    (folder / "survey.csv").write_text("country,topic,score\nJapan,divorce,0.1\n")
    (folder / "survey.survey.toml").write_text('title = "Survey"\n')
    (folder / "survey.html").write_text("country,topic,score\nJapan,divorce,0.1\n")
    with open_database(f"sqlite:///{folder / 'auditor.db'}"):
        pass
    (folder / "auditor.graph.db").write_bytes((folder / "auditor.db").read_bytes())
    (folder / "page.html").write_bytes((folder / "auditor.db").read_bytes())
    (folder / "auditor.db-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * 28)
    (folder / "log.html").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * 28)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    """The contents of the files in a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def is_own_kind(output: Output, path: Path) -> bool:
    """Whether a command replaces files of this kind, with `--force`: `init`, `surveys import` and `surveys preview`."""
    kind = identify_file(path)
    return kind is not None and kind.name in output.parser.replaces


def build_words(output: Output, command: Any, target: Path) -> list[str]:
    """The words of a command that writes to a target; required values are made up."""
    required = [p for p in command.params if p.required and p is not output.parameter]
    arguments = ["x" for p in required if p.param_type_name == "argument"]
    options = list(itertools.chain.from_iterable((p.opts[0], "x") for p in required if p.param_type_name == "option"))
    written = (
        [str(target)] if output.parameter.param_type_name == "argument" else [output.parameter.opts[0], str(target)]
    )
    return [*output.command, *arguments, *options, *written]


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: f"{' '.join(output.command)} {output.parameter.opts[0]}")
def test_no_command_replaces_a_thing_of_another_kind(targets: Path, output: Output) -> None:
    """Each refuses one thing of each kind, and the first all of them: outputs differ in the kind that they replace."""
    before = read_files(targets)
    command = dict(ALL_COMMANDS)[output.command]
    for name in before if output is OUTPUTS[0] else ("auditor.db", "audit.toml", "survey.csv"):
        if is_own_kind(output, targets / name):
            continue
        result = auditor(*build_words(output, command, targets / name), cwd=targets)
        assert result.returncode == 2, name
        assert f"{name}: is a" in result.stderr, name
        assert "Name a" in result.stderr
        assert read_files(targets) == before, name


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database with the audit `a`."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('stored') / 'audits.db'}"
    with open_database(storage) as db:
        populate(db, models=2, countries=3, topics=3, samples=1, name="a")
    return storage


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["report", "a"], "a.html"),
        (["report", "a", "--brief"], "a-brief.html"),
        (["export", "tables", "a"], "a-tables"),
        (["export", "paper", "a"], "a-paper"),
        (["export", "plots", "a"], "a-plots"),
        (["export", "inspect", "a"], "a-inspect"),
        (["surveys", "import", "wvs.csv"], "wvs.survey.csv"),
        (["demo"], "simulated-demo.html"),
    ],
)
def test_a_default_output_follows_no_link(tmp_path: Path, stored: str, command: list[str], name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    result = auditor(*command, cwd=tmp_path, AUDITOR_STORAGE=stored)
    assert result.returncode == 2, result.stderr
    assert f"{name}: is a link" in result.stderr
    assert f"-o {tmp_path / 'elsewhere'}" in result.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def import_audits(folder: Path, *names: str) -> None:
    """Make audits of imported scores, in this order."""
    (folder / "scores.csv").write_text(SCORES)
    for name in names:
        command = ("import", "scores", "scores.csv", "--survey", "wvs7-sample", "--audit", name)
        succeed(*command, cwd=folder)


def test_audit_may_be_left_out_of_every_command_but_a_few() -> None:
    parameters = [(words, parameter) for words, command in ALL_COMMANDS for parameter in command.params]
    is_required = {
        words: parameter.required
        for words, parameter in parameters
        if (parameter.name, parameter.param_type_name) == ("audit", "argument")
    }
    assert {words for words, required in is_required.items() if required} == REQUIRED
    assert len(is_required) > 20


def test_the_only_audit_is_taken_without_a_word(tmp_path: Path) -> None:
    import_audits(tmp_path, "mine")
    report = auditor("report", "--format", "json", cwd=tmp_path)
    assert json.loads(report.stdout)["audit"]["name"] == "mine"
    assert report.stderr == ""


def test_of_several_audits_the_most_recent_is_taken_and_named(tmp_path: Path) -> None:
    import_audits(tmp_path, "first", "second", "first")
    verify = succeed("verify", cwd=tmp_path)
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
    succeed(*words, "../project/audit.toml", *options, cwd=tmp_path / "here")
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
