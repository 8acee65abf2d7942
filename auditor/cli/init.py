"""The command `init`: write a configuration to start from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from auditor.console.options import OutputPath
from auditor.console.output import print_message

if TYPE_CHECKING:
    from auditor.config.providers.record import Provider

FileArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="File to write, .toml or .yaml; audit.toml by default.",
        parser=OutputPath("a configuration"),
    ),
]
ForceOption: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
ProviderOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="Provider of the models, such as openai, anthropic or ollama.")
]
ModelOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME", help="A model to audit; may be repeated.")
]
JudgeOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        metavar="NAME",
        help="A model to judge the others; may be repeated. By default, models judge each other.",
    ),
]
JudgeProviderOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="Provider of the judges, if not that of the models.")
]
ServerOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of the models' server, if not the provider's own.")
]


def init(
    file: FileArgument = Path("audit.toml"),
    force: ForceOption = False,
    provider: ProviderOption = None,
    models: ModelOption = None,
    judges: JudgeOption = None,
    judge_provider: JudgeProviderOption = None,
    api_base: ServerOption = None,
) -> None:
    """Write a configuration to start from, as TOML or YAML.

    Without a provider, the configuration uses small local models, which need no key.

    Example: auditor init my-audit.toml --provider anthropic --model claude-sonnet-4-5 --judge claude-haiku-4-5
    """
    from auditor.cli import starter_config
    from auditor.errors import UsageError

    _require_new_file(file, force=force)
    if provider is None and (models or judges or judge_provider or api_base):
        raise UsageError("no provider is named.", "Add it, as in --provider openai")
    if provider is None:
        _write_config(starter_config.read_starter(), file)
        _print_set_keys()
        print_message(f"Wrote {file}. Next: auditor doctor {file}, then auditor run {file}")
        return
    setup = starter_config.find_provider(provider)
    judge_setup = starter_config.find_provider(judge_provider) if judge_provider else setup
    text = starter_config.build_provider_config(models or [], judges or [], setup, judge_setup, api_base)
    _write_config(text, file)
    _print_next_steps(file, [setup, judge_setup] if judges else [setup])


def _require_new_file(file: Path, *, force: bool) -> None:
    """Raise UsageError if the file exists, has no folder, or a suffix of neither TOML nor YAML."""
    from auditor.cli.yaml_config import YAML_SUFFIXES
    from auditor.errors import UsageError

    if file.suffix not in (".toml", *YAML_SUFFIXES):
        raise UsageError(f"'{file}' is neither a TOML nor a YAML file.", "Name it .toml, .yaml or .yml.")
    if file.exists() and not force:
        raise UsageError(f"{file} exists already.", "Name another file, or use --force to replace it.")
    if not file.parent.is_dir():
        raise UsageError(f"the folder {file.parent} does not exist.", "Create it first.")


def _write_config(text: str, file: Path) -> None:
    """Write a configuration that is given as TOML, in the format of the file's suffix."""
    from auditor.atomic_files import write_atomically
    from auditor.cli.yaml_config import YAML_SUFFIXES, convert_to_yaml

    write_atomically(convert_to_yaml(text) if file.suffix in YAML_SUFFIXES else text, file)


def _print_next_steps(file: Path, setups: Sequence[Provider]) -> None:
    """Print the providers' notes, and the commands that lead to a run; names of variables only, no values."""
    from auditor.cli.starter_config import list_unset_variables
    from auditor.config import load_config
    from auditor.config.trust import list_new_bindings, required_bindings

    for note in dict.fromkeys(setup.notes for setup in setups if setup.notes):
        print_message(note)
    commands = [f"export {name}=…" for name in list_unset_variables(setups)]
    needs_trust = bool(list_new_bindings(required_bindings(load_config(file), ())))  # keys for servers it names
    commands += [f"auditor trust {shlex.quote(str(file))}"] if needs_trust else []
    commands += [f"auditor doctor {file} --ping", f"auditor run {file}"]
    print_message(f"Wrote {file}. Next: {', then '.join(commands)}")


def _print_set_keys() -> None:
    """Name the providers whose key is in the environment, and the option that uses one of them."""
    from auditor.cli.starter_config import list_set_keys

    if set_keys := list_set_keys():
        names = ", ".join(f"{variable} ({provider.name})" for provider, variable in set_keys)
        print_message(
            f"Keys that are set: {names}. To use one: auditor init --provider {set_keys[0][0].name} --model …"
        )
