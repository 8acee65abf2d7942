"""Load a configuration file with its secrets, whole or for its models only, with changes from the command line."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import pydantic
from pydantic import Field

from auditor.config.audit import AuditConfig
from auditor.config.base import ConfigSection, iterate_leaves
from auditor.config.installed_probes import load_probe
from auditor.config.model_section import ENV_PREFIX, ModelSection
from auditor.config.probes import KEEP_MISSING_PROBES
from auditor.config.sections import AUDIT_NAME_PATTERN, EmbeddingSection, LimitsSection, check_question_template
from auditor.config.validation_messages import explain_validation_error
from auditor.config.value_checks import RELEASED, Syntax, check_scale_ends, is_header_text, require_date
from auditor.errors import ConfigError, ProbeError, UsageError, did_you_mean
from auditor.input_files import MAX_SETTINGS_BYTES, parse_toml, read_text, require_file
from auditor.redaction import register_secrets
from auditor.text_safety import clean_name, truncate_text

_BARE_TEXT = re.compile(r"[\w./:@+~-][\w ./:@+~-]*")
"""A text that may be written without quotes, such as `wvs7-sample` or `openai/gpt-4o`."""
_EXAMPLES = 'Write it as --set limits.budget_usd=5 or --set \'survey.countries=["Germany", "Japan"]\'.'


class Override(NamedTuple):
    """A changed setting: the keys that lead to it, its value, and the keys as they were written."""

    keys: tuple[str, ...]
    value: Any
    key_text: str


def parse_override(text: str) -> Override:
    """Parse `key=value`: keys as in TOML, with dots between them, and a value as in TOML; a text needs no quotes.

    Raises:
        ConfigError: it has no key or no value, or one that TOML does not allow. Values are not shown: they may be keys.
    """
    key_text, equals, value_text = text.partition("=")
    key_text, value_text = key_text.strip(), value_text.strip()
    if not equals:
        raise ConfigError(f"--set: '{truncate_text(text)}' has no value.", _EXAMPLES)
    keys = _parse_keys(key_text)
    if keys is None:
        raise ConfigError(f"--set: '{truncate_text(key_text)}' is not a key.", _EXAMPLES)
    try:
        document = tomllib.loads(f"value = {value_text}")
    except tomllib.TOMLDecodeError:
        document = {"value": value_text} if _BARE_TEXT.fullmatch(value_text) else {}
    if list(document) != ["value"]:
        raise ConfigError(f"--set {key_text}: the value is not valid TOML.", f"Put strings in quotes. {_EXAMPLES}")
    return Override(keys, document["value"], key_text)


def apply_overrides(settings: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """A copy of the settings of a configuration file with some of them changed.

    Tables of a list are addressed by their name, such as `models.gpt.temperature`; missing tables are added.

    Raises:
        ConfigError: a key leads through a value that is not a table, or to a name that is not in its list.
    """
    changed_settings = copy.deepcopy(settings)
    for override in overrides:
        _set_value(changed_settings, override)
    return changed_settings


def _parse_keys(key_text: str) -> tuple[str, ...] | None:
    """The keys of a dotted TOML key; None if it is not one."""
    try:
        node: Any = tomllib.loads(f"{key_text} = 0")
    except tomllib.TOMLDecodeError:
        return None
    keys = []
    while isinstance(node, dict):
        if len(node) != 1:
            return None
        [(key, node)] = node.items()
        keys.append(key)
    return tuple(keys) if node == 0 else None


def _set_value(settings: dict[str, Any], override: Override) -> None:
    """Change one setting; the tables and lists that lead to it are changed in place."""
    node: Any = settings
    depth = 0
    while depth < len(override.keys):
        key: Any = override.keys[depth]
        n_keys = 1
        if isinstance(node, list):
            key, n_keys = _find_item(node, override, depth)
        elif not isinstance(node, dict):
            _raise_no_table(node, override, depth)
        depth += n_keys
        if depth == len(override.keys):
            node[key] = override.value
        else:
            node = node.setdefault(key, {}) if isinstance(node, dict) else node[key]


def _find_item(tables: Sequence[Any], override: Override, depth: int) -> tuple[int, int]:
    """Index of the table in a list that the keys from `depth` on name, and how many of them: a name may have dots."""
    names = [str(table.get("name")) if isinstance(table, dict) else "" for table in tables]
    for n_keys in range(len(override.keys) - depth, 0, -1):
        if (name := ".".join(override.keys[depth : depth + n_keys])) in names:
            return names.index(name), n_keys
    name, path = override.keys[depth], ".".join(override.keys[:depth])
    hint = did_you_mean(name, names, f"Names in it: {', '.join(filter(None, names)) or 'none'}.")
    raise ConfigError(f"--set {override.key_text}: the list '{path}' has no entry with the name '{name}'.", hint)


def _raise_no_table(value: Any, override: Override, depth: int) -> NoReturn:
    """Raise ConfigError: a value that is not a table has no keys."""
    path = ".".join(override.keys[:depth])
    hint = f"Set the whole value: --set {path}=…"
    if path == "judges" and value == "peers":
        hint = 'With judges = "peers", set a key of a model: --set models.NAME.temperature=0'
    raise ConfigError(f"--set {override.key_text}: '{path}' is a single value, so nothing can be set inside it.", hint)


MODEL_PATH_KEYS = ("review_prompt", "weights", "answers", "verdicts")
"""Keys of a model whose values are paths of files."""
PATH_KEYS = ("source", "regions", "wordings", *MODEL_PATH_KEYS)
"""Last keys of settings whose values may be paths of files."""
MAX_CONFIG_BYTES = MAX_SETTINGS_BYTES


def load_config(path: str | Path, overrides: Sequence[str] = (), *, keeps_missing_probes: bool = False) -> AuditConfig:
    """Read and check an audit's configuration.

    Relative paths are taken from the file's own folder and become absolute: an audit is the same wherever its command
    is given, and its experiments find its files later.

    Args:
        path: a `.toml`, `.yaml` or `.yml` file.
        overrides: settings that replace those of the file, such as `limits.budget_usd=5`.
        keeps_missing_probes: whether tables of probes that cannot be used are accepted, so that an audit that was run
            with them can be opened.

    Raises:
        ConfigError: the file is missing, cannot be read, or holds a key or value that cannot be used; the message
            names the file, the key and, for a misspelt key, the nearest known one.
    """
    path = Path(path)
    parsed_overrides = [_resolve_typed_path(parse_override(text), path.parent) for text in overrides]
    data = apply_overrides(read_config_file(path), parsed_overrides)
    try:
        config = AuditConfig.model_validate(data, context={KEEP_MISSING_PROBES: keeps_missing_probes})
    except ProbeError as error:
        raise ProbeError(f"{path}: {error.message}", error.how_to_fix) from None
    except pydantic.ValidationError as error:
        keys = ", ".join(override.key_text for override in parsed_overrides)
        source = f"{path} with --set {keys}" if keys else path
        syntax: Syntax = "toml" if path.suffix == ".toml" else "yaml"
        raise ConfigError(f"{source}: {explain_validation_error(error, data, AuditConfig, syntax)}") from None
    try:
        _check_file_only(config)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}.") from None
    return _resolve_paths(config, path.parent)


def _check_file_only(config: AuditConfig) -> None:
    """Raise ValueError for what audits may be stored with, and no file may say any more."""
    first_names: dict[str, str] = {}
    for name in config.models_by_name:
        if name != name.strip() or not name.isprintable():
            raise ValueError(
                f"the name {name!r} of a model has a space at its beginning or end, a line break or another invisible "
                "character. How to fix: Remove it"
            )
        if (first := first_names.setdefault(clean_name(name), name)) != name:
            raise ValueError(
                f"the names {first!r} and {name!r} look the same. How to fix: Use a different name for each"
            )
    for language, text in config.survey.rephrase.question.items() if config.survey else ():
        with _naming_setting(f"'survey.rephrase.question.{language}'"):
            check_question_template(text)
    for language, scale in config.survey.rephrase.scale.items() if config.survey else ():
        with _naming_setting(f"'survey.rephrase.scale.{language}'"):
            check_scale_ends(scale)
    for model in config.models:
        if released := model.attributes.get(RELEASED):
            with _naming_setting(f"'attributes.released' of the model {model.name!r}"):
                require_date(str(released))


@contextmanager
def _naming_setting(setting: str) -> Iterator[None]:
    """Put the name of a setting before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{setting}: {error}") from None


def read_config_file(path: Path) -> dict[str, Any]:
    """Read a TOML or YAML file, told apart by its suffix; raises ConfigError."""
    require_file(path, ConfigError, "Check the path, or create a file with `auditor init`.")
    text = read_text(path, ConfigError, max_bytes=MAX_CONFIG_BYTES)
    if path.suffix in (".yaml", ".yml"):
        from auditor.config.strict_yaml import parse_yaml  # loads yaml, which a TOML file does not need

        return parse_yaml(text, str(path))
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: the file name must end in .toml, .yaml or .yml.", "Rename the file.")
    return parse_toml(text, str(path), ConfigError)


def resolve_path(value: str, folder: Path) -> str:
    """The absolute path of what is in `folder`; any other value, such as a built-in name, unchanged.

    What is only in the working folder gets the path that it would have in `folder`, so that it is not taken instead.
    """
    candidate, is_path = folder / value, os.sep in value
    is_elsewhere = Path(value).exists() if is_path else Path(value).is_file()
    return str(candidate.resolve()) if candidate.exists() or is_elsewhere else value


def _resolve_typed_path(override: Override, folder: Path) -> Override:
    """An override whose value is a path of the working folder, where it was typed, unless `folder` has it too."""
    value = override.value
    is_typed = override.keys[-1] in PATH_KEYS and isinstance(value, str) and Path(value).is_file()
    return override._replace(value=os.path.abspath(value)) if is_typed and not (folder / value).exists() else override


def resolve_model_paths(sections: Sequence[ModelSection], folder: Path) -> list[ModelSection]:
    """Copies of models' sections whose relative paths are absolute, taken from `folder`."""
    paths_by_section = [
        {name: resolve_path(path, folder) for name in MODEL_PATH_KEYS if (path := getattr(section, name))}
        for section in sections
    ]
    return [section.model_copy(update=paths) for section, paths in zip(sections, paths_by_section, strict=True)]


def _resolve_paths(config: AuditConfig, folder: Path) -> AuditConfig:
    """A copy of a configuration whose relative paths are absolute, taken from `folder`."""
    resolved = partial(resolve_path, folder=folder)
    paths = {key: resolved(getattr(config.survey, key)) for key in ("source", "regions") if config.survey}
    if config.survey and isinstance(config.survey.wordings, str):
        paths["wordings"] = resolved(config.survey.wordings)
    survey = config.survey and config.survey.model_copy(update=paths)
    is_path = os.sep in config.embedding.model
    encoder = resolved(config.embedding.model) if is_path else config.embedding.model
    update: dict[str, Any] = {"survey": survey, "embedding": EmbeddingSection(model=encoder)}
    if config.task:
        update["task"] = config.task.model_copy(update={"source": resolved(config.task.source)})
    for key in ("models", "judges"):
        if isinstance(sections := getattr(config, key), list):
            update[key] = resolve_model_paths(sections, folder)
    probes = config.probes.with_stage
    probe_paths = {name: load_probe(name).resolve_paths(probe, resolved) for name, probe in probes.items()}
    update["probes"] = config.probes.model_copy(update=probe_paths)
    return config.model_copy(update=update).with_folder(folder)


def require_audit_name(name: str) -> None:
    """Raise UsageError if an audit may not have this name."""
    if not re.fullmatch(
        AUDIT_NAME_PATTERN.rstrip("$"), name
    ):  # in Python, unlike in pydantic, `$` matches before a line feed too
        raise UsageError(
            f"{truncate_text(name)!r} is not a valid audit name.",
            "Use at most 100 letters, digits, dots, dashes and underscores; begin with a letter or a digit.",
        )


def describe_unset_variable(name: str) -> str:
    """Say that an environment variable has no value, without a full stop."""
    return f"the environment variable {name} is not set"


def resolve_secret(reference: str) -> str:
    """Return the secret that `os.environ/NAME` refers to, and redact it from all texts from now on.

    It is looked up at each call and never stored. Spaces and line breaks around it, as from a file, are no part of it.

    Raises:
        ConfigError: the variable is not set or empty, or no HTTP header can hold its value.
    """
    name = reference.removeprefix(ENV_PREFIX)
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"{describe_unset_variable(name)}.", f"Set it: export {name}=...")
    register_secrets(value)
    if not is_header_text(value):
        raise ConfigError(
            f"the value of the environment variable {name} has a character that no HTTP header can hold, such as a "
            "line break or a letter outside ASCII.",
            f"Copy the key again: export {name}=...",
        )
    return value


LIMITS = ("budget_usd", "max_attempts", "deadline_s", "max_retry_wait_s")
"""Keys of `[limits]` that bear on cost and time only."""


class ModelsSection(ConfigSection):
    """The tables of a file that are used."""

    models: Annotated[list[ModelSection], Field(min_length=1)]
    """The audited models, each in a section of its own that begins with the line `[[models]]`."""
    judges: Literal["peers"] | list[ModelSection] = "peers"
    """The models that review the reasoning of the audited models: `peers`, or a list of models."""
    limits: LimitsSection = LimitsSection()
    """Limits on cost, retries and time."""


class ModelsFile(ConfigSection):
    """What is used of a file: who is asked, at which cost, and in which time.

    Attributes:
        limits: `LIMITS`, as far as the file has them.
        helpers: models and weights that help with the probe `helper_probe`, by the key that names them.
        ignored: dotted keys of the file that are not used, without those of the audit's name.
    """

    models: list[ModelSection]
    judges: Literal["peers"] | list[ModelSection]
    limits: dict[str, Any]
    helpers: dict[str, str]
    ignored: list[str]


def load_models_file(path: Path, helper_probe: str = "", helper_keys: Collection[str] = ()) -> ModelsFile:
    """Read the models, judges and limits of a configuration, which need not be complete otherwise.

    Args:
        helper_probe: the probe of whose table some keys are used, too; empty for none.
        helper_keys: these keys.

    Raises:
        ConfigError: the file cannot be read, or a model or judge cannot be used.
    """
    data = read_config_file(path)
    if "models" not in data:
        raise ConfigError(f"{path}: there is no model in it.", "Add [[models]] with a name and a model.")
    sections = {key: data[key] for key in ModelsSection.model_fields if key in data}
    try:
        parsed = ModelsSection.model_validate(sections)
    except pydantic.ValidationError as error:
        syntax: Literal["toml", "yaml"] = "toml" if path.suffix == ".toml" else "yaml"
        raise ConfigError(f"{path}: {explain_validation_error(error, sections, ModelsSection, syntax)}") from None
    helpers = {
        key: resolve_path(name, path.parent) if os.sep in name else name
        for key, name in _read_helpers(data, helper_probe, helper_keys).items()
    }
    limits = parsed.limits.model_dump(exclude_unset=True, include=set(LIMITS))
    judges = parsed.judges if parsed.judges == "peers" else resolve_model_paths(parsed.judges, path.parent)
    used = {"limits": limits, f"probes.{helper_probe}": helpers}
    others = {key: value for key, value in data.items() if key not in ("name", "models", "judges")}
    used_keys = {f"{table}.{key}" for table, keys in used.items() for key in keys}
    return ModelsFile(
        models=resolve_model_paths(parsed.models, path.parent),
        judges=judges,
        limits=limits,
        helpers=helpers,
        ignored=[key for key, _ in iterate_leaves(others) if key not in used_keys],
    )


def _read_helpers(data: dict[str, Any], probe: str, helper_keys: Collection[str]) -> dict[str, str]:
    """The names of models, and names or folders of weights, that help with a probe."""
    table: Any = data
    for name in ("probes", probe):
        table = table.get(name, {}) if isinstance(table, dict) else {}
    return {key: str(table[key]) for key in helper_keys if key in table} if isinstance(table, dict) else {}
