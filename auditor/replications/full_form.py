"""What a document says about its audits: settings that differ from the full form, and their data."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from auditor.config import AuditConfig
from auditor.config.base import iterate_leaves
from auditor.config.result_settings import SETTINGS_WITHOUT_EFFECT
from auditor.imports.published_registry import DATASET_FORMATS
from auditor.replications.experiment import Experiment, is_within
from auditor.replications.planning import (
    ReplicationOptions,
    list_data_files,
    locate_preset_files,
    merge_settings,
    nest_setting,
)
from auditor.text_safety import truncate_text

MODEL_TABLES = ("models", "judges")
IDENTITY = ("name", "model")
MODEL_KEYS_WITHOUT_EFFECT = (
    # Which model answers, under which name and address: a figure of ours may be of another model than the published.
    *IDENTITY, "api_base", "base_model", "family", "weights",
    # Keys, prices, rates and time limits: they may lose an answer, which the report counts, but change none.
    "api_key", "price", "concurrency", "rpm", "tpm", "timeout_s",
)  # fmt: skip
KEYS_WITHOUT_EFFECT = (
    "name",
    *(path.replace("[]", "") for path in SETTINGS_WITHOUT_EFFECT),
    # Budget and time limits: they may lose an answer, which the report counts, but change none.
    "limits.budget_usd", "limits.max_attempts", "limits.deadline_s",
    # Another seed is another draw of the same kind.
    "seed",
    # Which models help is the user's choice, as of the audited models. Presets compare those that papers name.
    "probes.semantic.paraphraser", "probes.semantic.rot_model", "probes.semantic.contradiction",
    "probes.semantic.consistency.judge",
    *(f"{table}.{key}" for table in MODEL_TABLES for key in MODEL_KEYS_WITHOUT_EFFECT),
)  # fmt: skip
"""Settings, or tables of them, that change no answer and no figure."""


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting in which an audit differs from the full form.

    Attributes:
        key: dotted; `models.KEY` and `judges.KEY` of a model or judge.
        model: the model or judge whose setting it is; empty for others.
        value, full_value: as the audit has it, and as the full form does; None if it is not set.
    """

    key: str
    model: str
    value: Any
    full_value: Any

    def describe(self) -> str:
        """The value, and that of the full form."""
        return f"{_format_value(self.value)} instead of {_format_value(self.full_value)}"


def list_differences(experiment: Experiment, audit_name: str, config: AuditConfig) -> list[SettingDifference]:
    """Compare a stored configuration, setting by setting, with that of the full form for the same models.

    Left out are `KEYS_WITHOUT_EFFECT`, and files of data that the user names.
    """
    stored = config.model_dump(mode="json")
    data_keys = {file.key for file in experiment.files.values() if file.key}
    return compare_settings(stored, build_full_form(experiment, audit_name, stored), data_keys)


def compare_settings(
    stored: Mapping[str, Any], full: Mapping[str, Any], left_out: Collection[str] = ()
) -> list[SettingDifference]:
    """Compare two configurations as JSON, with the same models and judges."""
    values, full_values = dict(_iterate_settings(stored)), dict(_iterate_settings(full))
    tables = (*KEYS_WITHOUT_EFFECT, *left_out)
    return [
        SettingDifference(key, model, values.get((key, model)), full_values.get((key, model)))
        for key, model in {**values, **full_values}
        if values.get((key, model)) != full_values.get((key, model))
        and not any(is_within(key, table) for table in tables)
    ]


def _iterate_settings(settings: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the settings that are set, by key and model."""
    tables = {key: value for key, value in settings.items() if key not in MODEL_TABLES}
    leaves = [(key, "", value) for key, value in iterate_leaves(tables)]
    for table in MODEL_TABLES:
        sections = settings.get(table)
        if not isinstance(sections, list):
            leaves.append((table, "", sections))
            continue
        leaves += [
            (f"{table}.{key}", section["name"], value)
            for section in sections
            for key, value in iterate_leaves({key: value for key, value in section.items() if key != "name"})
        ]
    yield from (((key, model), value) for key, model, value in leaves if value is not None)


def build_full_form(experiment: Experiment, audit_name: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the full form as JSON, with the models, judges and files of data of a stored one.

    Rules between tables are not checked: the full form may need what a small one does not.
    """
    settings = locate_preset_files(merge_settings(experiment.config, experiment.audits[audit_name]))
    stored_values = dict(iterate_leaves(stored))
    for file in experiment.files.values():
        if audit_name in file.audits and file.key and stored_values.get(file.key) is not None:
            settings = merge_settings(settings, nest_setting(file.key, stored_values[file.key]))
    settings.setdefault("models", _identify(stored["models"]))
    if isinstance(stored["judges"], list) and stored["judges"]:
        settings["judges"] = _identify(stored["judges"])
    tables = {name: _make_adapter(name).validate_python(value) for name, value in settings.items()}
    return AuditConfig.model_construct(name=audit_name, **tables).model_dump(mode="json")


@cache
def _make_adapter(name: str) -> TypeAdapter[Any]:
    """Make the validator of a table of a config, which takes longer than it is used."""
    return TypeAdapter(get_type_hints(AuditConfig)[name])


def _identify(sections: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sections of models, of which only the names and the models are set."""
    return [{key: section[key] for key in IDENTITY} for section in sections]


def _format_value(value: Any) -> str:
    """A setting's value as a short text: words in quotation marks, and of a path only the file's name."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return truncate_text(", ".join(map(_format_value, value)))
    if isinstance(value, str) and Path(value).is_absolute():
        return truncate_text(Path(value).name)
    text = truncate_text(str(value))
    return f"“{text}”" if " " in text else text


def describe_data(experiment: Experiment, options: ReplicationOptions, audits: Collection[str]) -> list[str]:
    """Describe the data behind audits.

    Args:
        audits: names of the audits and imports, as the experiment has them.

    Returns:
        A note on the data of the program; and on each file of the user what is not checked about it, or that `auditor
        logic convert` knows its layout from a description only.
    """
    used = _list_used_data(experiment, audits)
    made_up = [
        name for name in used if options.is_small and name in experiment.small.files and name not in options.files
    ]
    notes = [
        f"Made-up data of the program instead of the paper's: {', '.join(made_up)}. The figures show no more than the "
        "steps."
    ] * bool(made_up)
    for name in used:
        if name in options.files and experiment.files[name].note:
            notes.append(f"{name}: {experiment.files[name].note}.")
        converter = experiment.files[name].converter
        if name in options.files and converter and (source := DATASET_FORMATS[converter].layout_source):
            notes.append(
                f"{name}: layout not verified on a real file; `auditor logic convert {converter}` follows {source}."
            )
    return notes


def _list_used_data(experiment: Experiment, audits: Collection[str]) -> list[str]:
    """Names of the data that audits, or the trials on them, read."""
    of_trials = {name for trial in experiment.trials.values() if trial.audit in audits for name in trial.files.values()}
    return [
        name for name, file in experiment.files.items() if name in of_trials or not set(file.audits).isdisjoint(audits)
    ]


def describe_files(experiment: Experiment, options: ReplicationOptions, audits: Collection[str]) -> list[str]:
    """Identify the data files behind audits, those of the user with their terms."""
    files = list_data_files(experiment, options)
    used = [name for name in _list_used_data(experiment, audits) if name in files and Path(files[name]).is_file()]
    terms = {name: experiment.files[name].terms for name in used if name in options.files}
    return [
        " ".join(filter(None, (identify_file(Path(files[name]), name), terms.get(name) and f"Terms: {terms[name]}.")))
        for name in used
    ]


def identify_file(path: Path, name: str = "") -> str:
    """Name a file with the SHA-256 of its content, and the data that it holds."""
    prefix = f"{name}: file" if name else "File"
    return f"{prefix} {path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}."
