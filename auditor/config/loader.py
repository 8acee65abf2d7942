"""Load a configuration file, and resolve the secrets that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pydantic

from auditor.config.audit import AuditConfig
from auditor.config.installed_probes import load_probe
from auditor.config.model_section import ENV_PREFIX, ModelSection
from auditor.config.overrides import apply_overrides, parse_override
from auditor.config.probes import KEEP_MISSING_PROBES
from auditor.config.sections import AUDIT_NAME_PATTERN, EmbeddingSection
from auditor.config.validation_messages import explain_validation_error
from auditor.config.value_examples import Syntax
from auditor.errors import ConfigError, ProbeError, UsageError
from auditor.input_files import MAX_SETTINGS_BYTES, parse_toml, read_text, require_file
from auditor.redaction import register_secrets
from auditor.text_safety import truncate_text

MODEL_PATH_KEYS = ("review_prompt", "weights", "answers", "verdicts")
"""Keys of a model whose values are paths of files."""
MAX_CONFIG_BYTES = MAX_SETTINGS_BYTES


def load_config(path: str | Path, overrides: Sequence[str] = (), *, keeps_missing_probes: bool = False) -> AuditConfig:
    """Read and check an audit's configuration.

    Relative paths are taken from the file's own folder and become absolute: an audit is the same wherever its command
    is given, and its experiments find its files later.

    Args:
        path: a `.toml`, `.yaml` or `.yml` file.
        overrides: settings that replace those of the file, such as `limits.budget_usd=5`; see
            `auditor.config.overrides`.
        keeps_missing_probes: whether tables of probes that cannot be used are accepted, so that an audit that was run
            with them can be opened.

    Raises:
        ConfigError: the file is missing, cannot be read, or holds a key or value that cannot be used; the message
            names the file, the key and, for a misspelt key, the nearest known one.
    """
    path = Path(path)
    parsed_overrides = list(map(parse_override, overrides))
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
    return _resolve_paths(config, path.parent)


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
    """The absolute path of what exists in `folder`; any other value, such as a built-in name, unchanged."""
    candidate = folder / value
    return str(candidate.resolve()) if candidate.exists() else value


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

    It is looked up at each call and never stored.

    Raises:
        ConfigError: the variable is not set or empty.
    """
    name = reference.removeprefix(ENV_PREFIX)
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"{describe_unset_variable(name)}.", f"Set it: export {name}=...")
    register_secrets(value)
    return value
