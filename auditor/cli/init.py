"""The command `init`: write a configuration to start from, in TOML or YAML."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pydantic
import typer

from auditor.atomic_files import write_atomically
from auditor.config import AuditConfig, load_config
from auditor.config.providers import ADDRESS_PLACEHOLDER, PROVIDER_BY_NAME, PROVIDER_BY_PREFIX, Provider, provider_of
from auditor.config.trust import list_new_bindings, required_bindings
from auditor.config.validation_messages import explain_validation_error
from auditor.config.value_checks import format_value
from auditor.console.options import OutputPath
from auditor.console.output import print_message
from auditor.errors import UsageError, did_you_mean

YAML_SUFFIXES = (".yaml", ".yml")
MAX_TABLE_LENGTH = 110
_TABLE = re.compile(r"\[(\[)?([\w-]+)\]\]?$")
"""The heading of a table, or of a table in a list."""
_SETTING = re.compile(r"([\w-]+) = (.*)$")


def convert_to_yaml(text: str) -> str:
    """Convert a configuration, as `auditor init` writes it, to YAML; comments stay, also those that hold settings.

    Each setting and each heading of a table begins on a line of its own; tables are not nested by their headings.
    """
    lines = text.splitlines()
    joined: list[str] = []
    is_open = False
    for line in lines:
        joined = [*joined[:-1], f"{joined[-1]} {line.strip()}"] if is_open else [*joined, line]
        is_open = _SETTING.match(joined[-1]) is not None and _parse_setting(joined[-1]) is None
    return "\n".join(_convert_lines(joined)) + "\n"


def _convert_lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines in YAML. Settings of a table are indented; the first of a table in a list begins with a dash."""
    states = {"": _Layout(), "# ": _Layout()}  # of settings, and of settings in comments
    for line in lines:
        mark = "# " if line.startswith("# ") else ""
        layout, content = states[mark], line.removeprefix(mark)
        if table := _TABLE.match(content):
            yield from (f"{mark}{heading}" for heading in layout.begin_table(table[2], in_list=bool(table[1])))
        elif setting := _parse_setting(content):
            yield f"{mark}{layout.indent()}{setting}"
        elif line.startswith("#") and states[""].table:
            yield f"  {line}"
        else:
            yield line


class _Layout:
    """Where the lines of a table begin.

    Attributes:
        table: the current table; empty before the first.
        in_list: whether it is one of a list.
        is_first: whether no setting of the table was written yet.
    """

    def __init__(self) -> None:
        self.table, self.in_list, self.is_first = "", False, True

    def begin_table(self, name: str, *, in_list: bool) -> list[str]:
        """Begin a table; returns its heading, which a list has once."""
        is_continued = in_list and self.in_list and self.table == name
        self.table, self.in_list, self.is_first = name, in_list, True
        return [] if is_continued else [f"{name}:"]

    def indent(self) -> str:
        """What stands before the next setting of the table."""
        dash, self.is_first = ("- " if self.is_first else "  ") if self.in_list else "", False
        return f"  {dash}" if self.table else ""


def _parse_setting(line: str) -> str | None:
    """A setting in YAML, with its comment; None if the line is not a setting in TOML."""
    match = _SETTING.match(line)
    if match is None:
        return None
    # A comment may follow the value, and a text in it may hold "#": the shortest part that is TOML is the value.
    for end in [*(comment.start() for comment in re.finditer(r"\s+#", match[2])), len(match[2])]:
        try:
            value = tomllib.loads(f"value = {match[2][:end]}")["value"]
        except tomllib.TOMLDecodeError:
            continue
        return f"{match[1]}:{_format_setting_value(value)}{match[2][end:]}"
    return None


def _format_setting_value(value: Any) -> str:
    """A value after its key: on the same line, or with one line for each member of a table that is too long."""
    on_one_line = f" {_format_value(value)}"
    if not isinstance(value, dict) or len(on_one_line) <= MAX_TABLE_LENGTH:
        return on_one_line
    return "".join(f"\n  {key}: {_format_value(child)}" for key, child in value.items())


def _format_value(value: Any) -> str:
    """A value in YAML's flow style; numbers, texts and true are as in JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key}: {_format_value(child)}' for key, child in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


_MODELS_HEADING = "# Any model that litellm supports"
_PEERS_LINE = 'judges = "peers"'
_NO_ENCODER_LINE = (
    'embedding = { model = "none" }            # self-consistency needs an encoder: pip install "auditor[embeddings]"'
)
_LOCAL_PRICE_LINE = "price = { input = 0, output = 0 }            # a local server costs nothing"
_UNPRICED_LIMITS_LINE = (
    "limits = { max_attempts = 6, deadline_s = 120 }      # add budget_usd once each model has a price, see below"
)


def read_starter() -> str:
    """The configuration with embedded models, which runs as it is."""
    return (resources.files("auditor.cli") / "starter.toml").read_text(encoding="utf-8")


def find_provider(name: str) -> Provider:
    """Return the provider of that name, or of litellm's prefix; raises UsageError if there is none."""
    provider = PROVIDER_BY_NAME.get(name) or PROVIDER_BY_PREFIX.get(name)
    if provider is None or not provider.name:
        names = ", ".join(PROVIDER_BY_NAME)
        raise UsageError(
            f"'{name}' is not a known provider.", did_you_mean(name, PROVIDER_BY_NAME, f"Choose one of: {names}.")
        )
    return provider


def list_set_keys() -> list[tuple[Provider, str]]:
    """Providers whose key is in the environment, each with the name of its variable; values are not read."""
    return [
        (provider, provider.key_variable)
        for provider in PROVIDER_BY_NAME.values()
        if provider.key_variable is not None and os.environ.get(provider.key_variable)
    ]


def list_unset_variables(providers: Sequence[Provider]) -> list[str]:
    """Names of the environment variables that these providers need and that are not set."""
    names = [name for provider in providers for name in (provider.key_variable, *provider.environment) if name]
    return [name for name in dict.fromkeys(names) if not os.environ.get(name)]


def build_provider_config(
    models: Sequence[str],
    judges: Sequence[str],
    provider: Provider,
    judge_provider: Provider,
    api_base: str | None,
) -> str:
    """Write a configuration with models of one provider, and judges of the same or another one.

    Args:
        models: names of the audited models, with or without litellm's prefix.
        judges: names of the judges; empty for models that judge each other, or for no review of a single model.
        provider: of the models.
        judge_provider: of the judges.
        api_base: address of the models' server; None for the provider's usual one.

    Raises:
        UsageError: no model is named, the provider needs an address, or a value cannot be used.
    """
    if not models:
        raise UsageError("no model is named.", f"Add it, as in --model {provider.example_model}")
    tables = [("models", _model_table(name, provider, api_base)) for name in models]
    # The judges have the same server, unless they are another provider's.
    judge_base = api_base if judge_provider is provider else None
    tables += [("judges", _model_table(name, judge_provider, judge_base)) for name in judges]
    _number_equal_names([table for _, table in tables])
    needs_price = [table for _, table in tables if not _has_price(table)]
    text = _replace_models(read_starter(), "\n".join(_format_tables(tables, needs_price)))
    if judges:
        text = text.replace(_PEERS_LINE, "# The judges are the tables [[judges]] below.")
    elif len(models) < 2:
        text = text.replace(_PEERS_LINE, "judges = []")
    if needs_price:
        text = re.sub(r"^limits = .*$", _UNPRICED_LIMITS_LINE, text, flags=re.MULTILINE)
    if not importlib.util.find_spec("sentence_transformers"):
        text = text.replace("\nconflicts = ", f"\n{_NO_ENCODER_LINE}\nconflicts = ")
    document = tomllib.loads(text)
    try:
        AuditConfig.model_validate(document)
    except pydantic.ValidationError as error:
        raise UsageError(explain_validation_error(error, document, AuditConfig)) from None
    return text


def _model_table(model: str, provider: Provider, api_base: str | None) -> dict[str, Any]:
    """One model's table in the configuration; raises UsageError if the provider needs an address."""
    if provider.needs_address and api_base is None:
        raise UsageError(
            f"{provider.title} needs the address of your own deployment, which its web console shows.",
            f"Add it: --api-base {(provider.api_base or '').replace(ADDRESS_PLACEHOLDER, 'my-resource')}",
        )
    table: dict[str, Any] = {"name": model.rsplit("/", 1)[-1], "model": provider.model_id(model)}
    if provider.key_variable is not None:
        table["api_key"] = f"os.environ/{provider.key_variable}"
    if (address := api_base or provider.api_base) is not None:
        table["api_base"] = address
    if provider.params:
        table["params"] = dict(provider.params)
    if provider.is_local:
        table["price"] = {"input": 0, "output": 0}
    return table


def _number_equal_names(tables: Sequence[dict[str, Any]]) -> None:
    """Append a number to the name of each model whose name an earlier, different model has."""
    model_by_name: dict[str, str] = {}
    for table in tables:
        name, number = table["name"], 2
        while model_by_name.get(table["name"], table["model"]) != table["model"]:
            table["name"], number = f"{name}-{number}", number + 1
        model_by_name[table["name"]] = table["model"]


def _has_price(table: dict[str, Any]) -> bool:
    """Whether a budget can hold for the model: its price is listed, or it is free."""
    from auditor.models.litellm_client import listed_token_price  # loads litellm (1 s)

    return "price" in table or ("api_base" not in table and listed_token_price(table["model"]) is not None)


def _format_tables(
    tables: Sequence[tuple[str, dict[str, Any]]], needs_price: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Yield the lines of the tables, with a comment where a price has to be added."""
    for kind, table in tables:
        yield f"[[{kind}]]"
        for key, entry in table.items():
            yield _LOCAL_PRICE_LINE if key == "price" else f"{key} = {format_value(entry)}"
        if table in needs_price:
            if example := provider_of(table["model"]).base_model_example:
                yield f'# base_model = "{example}"      # the model that this deployment serves, for its price'
            yield "# price = { input = 2.5, output = 10.0 }      # US dollars per million tokens"
        yield ""


def _replace_models(starter: str, tables_text: str) -> str:
    """The starter with other models; what comes before and after them stays."""
    before, after = starter.split(_MODELS_HEADING, 1)[0], starter.split("[probes]", 1)[1]
    remark = "# API keys are read from environment variables. To replace a model or a judge, change these lines."
    return f"{before}{remark}\n{tables_text}\n[probes]{after}"


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
    if file.suffix not in (".toml", *YAML_SUFFIXES):
        raise UsageError(f"'{file}' is neither a TOML nor a YAML file.", "Name it .toml, .yaml or .yml.")
    if file.exists() and not force:
        raise UsageError(f"{file} exists already.", "Name another file, or use --force to replace it.")
    if not file.parent.is_dir():
        raise UsageError(f"the folder {file.parent} does not exist.", "Create it first.")
    if provider is None and (models or judges or judge_provider or api_base):
        raise UsageError("no provider is named.", "Add it, as in --provider openai")
    if provider is None:
        _write_config(read_starter(), file)
        if set_keys := list_set_keys():
            names = ", ".join(f"{variable} ({provider.name})" for provider, variable in set_keys)
            print_message(
                f"Keys that are set: {names}. To use one: auditor init --provider {set_keys[0][0].name} --model …"
            )
        name = shlex.quote(str(file))
        print_message(f"Wrote {file}. Next: auditor doctor {name}, then auditor run {name}")
        return
    setup = find_provider(provider)
    judge_setup = find_provider(judge_provider) if judge_provider else setup
    text = build_provider_config(models or [], judges or [], setup, judge_setup, api_base)
    _write_config(text, file)
    _print_next_steps(file, [setup, judge_setup] if judges else [setup])


def _write_config(text: str, file: Path) -> None:
    """Write a configuration that is given as TOML, in the format of the file's suffix."""
    write_atomically(convert_to_yaml(text) if file.suffix in YAML_SUFFIXES else text, file)


def _print_next_steps(file: Path, setups: Sequence[Provider]) -> None:
    """Print the providers' notes, and the commands that lead to a run; names of variables only, no values."""
    for note in dict.fromkeys(setup.notes for setup in setups if setup.notes):
        print_message(note)
    commands = [f"export {name}=…" for name in list_unset_variables(setups)]
    needs_trust = bool(list_new_bindings(required_bindings(load_config(file), ())))  # keys for servers it names
    name = shlex.quote(str(file))
    commands += [f"auditor trust {name}"] if needs_trust else []
    commands += [f"auditor doctor {name} --ping", f"auditor run {name}"]
    print_message(f"Wrote {file}. Next: {', then '.join(commands)}")
