"""What is used of a configuration file by commands that bring the settings of an experiment themselves."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from auditor.config.base import ConfigSection
from auditor.config.leaves import iterate_leaves
from auditor.config.loader import read_config_file, resolve_model_paths, resolve_path
from auditor.config.model_section import ModelSection
from auditor.config.sections import Limits
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import ConfigError

LIMITS = ("budget_usd", "max_attempts", "deadline_s", "max_retry_wait_s")
"""Keys of `[limits]` that bear on cost and time only."""


class ModelsSection(ConfigSection):
    """The tables of a file that are used."""

    models: Annotated[list[ModelSection], Field(min_length=1)]
    """The audited models, each in a section of its own that begins with the line `[[models]]`."""
    judges: Literal["peers"] | list[ModelSection] = "peers"
    """The models that review the reasoning of the audited models: `peers`, or a list of models."""
    limits: Limits = Limits()
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
    return ModelsFile(
        models=resolve_model_paths(parsed.models, path.parent),
        judges=judges,
        limits=limits,
        helpers=helpers,
        ignored=_list_ignored(data, {"limits": limits, f"probes.{helper_probe}": helpers}),
    )


def _list_ignored(data: dict[str, Any], used: Mapping[str, Collection[str]]) -> list[str]:
    """Dotted keys of a file but those of its name, models and judges, and the used ones, by their table."""
    others = {key: value for key, value in data.items() if key not in ("name", "models", "judges")}
    used_keys = {f"{table}.{key}" for table, keys in used.items() for key in keys}
    return [key for key, _ in iterate_leaves(others) if key not in used_keys]


def _read_helpers(data: dict[str, Any], probe: str, helper_keys: Collection[str]) -> dict[str, str]:
    """The names of models, and names or folders of weights, that help with a probe."""
    table: Any = data
    for name in ("probes", probe):
        table = table.get(name, {}) if isinstance(table, dict) else {}
    return {key: str(table[key]) for key in helper_keys if key in table} if isinstance(table, dict) else {}
