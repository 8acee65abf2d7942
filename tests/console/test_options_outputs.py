"""No command replaces a database, a configuration or a survey by what it writes, whatever option names the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from auditor.cli.app import build_app
from auditor.console.options import OutputPath
from auditor.file_kinds import identify_file
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor
from tests.support.synthetic_audit import populate

INPUTS = {
    "add_published", "config", "thresholds_path", "file", "items", "models", "people", "permutations", "preset",
    "recorded", "source", "target", "task",
}  # fmt: skip
"""Parameters of commands that are paths of inputs."""


class Output(NamedTuple):
    """An option or argument of a command that names what it writes."""

    command: tuple[str, ...]
    parameter: Any
    parser: OutputPath


def list_commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The words and the command of every command in a group."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, (*words, name))
        else:
            yield (*words, name), command


def get_parser(parameter: Any) -> Any:
    """The parser that a parameter of a command is declared with; None if it has none of its own."""
    return parameter.type_descriptor.parameter_info.parser


ALL_COMMANDS = list(list_commands(get_command(build_app())))
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


def write_targets(folder: Path) -> dict[str, bytes]:
    """Write files that no output replaces, and return their contents by name."""
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
def test_no_command_replaces_a_thing_of_another_kind(tmp_path: Path, output: Output) -> None:
    before = write_targets(tmp_path)
    command = dict(ALL_COMMANDS)[output.command]
    for name in before:
        if is_own_kind(output, tmp_path / name):
            continue
        result = auditor(*build_words(output, command, tmp_path / name), cwd=tmp_path)
        assert result.returncode == 2, name
        assert f"{name}: is a" in result.stderr, name
        assert "Name a" in result.stderr
        assert {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())} == before, name


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
def test_a_default_output_follows_no_link(tmp_path: Path, command: list[str], name: str) -> None:
    storage = f"sqlite:///{tmp_path / 'audits.db'}"
    with open_database(storage) as db:
        populate(db, models=2, countries=3, topics=3, samples=1, name="a")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    result = auditor(*command, cwd=tmp_path, AUDITOR_STORAGE=storage)
    assert result.returncode == 2, result.stderr
    assert f"{name}: is a link" in result.stderr
    assert f"-o {tmp_path / 'elsewhere'}" in result.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []
