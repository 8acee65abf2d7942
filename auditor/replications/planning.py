"""The audits behind a paper's tables as configurations, and which of their models is set beside which published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import pydantic

from auditor.config import SIMULATED, AuditConfig
from auditor.config.loader import ModelsFile, load_models_file
from auditor.config.providers import PROVIDERS, provider_of
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import ConfigError, UsageError
from auditor.replications.experiment import Experiment, Part
from auditor.replications.presets import Paper, PublishedTable

SERVER_KEYS = ("api_base", "api_key", "capabilities", "timeout_s", "rate_limit_scope", "stream")
"""Settings of a model that say which server answers for it, and how that is asked."""


def split_named_models(paper: Paper, pairs: Sequence[tuple[str, str]]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Separate the values of --as that name a model on the spot, such as `repaired=hosted_vllm/org/tuned`.

    Returns:
        The models by published name, under which they are audited; and the other pairs, for `match_models`.

    Raises:
        UsageError: a published model has two of them.
    """
    published = list_published_models(paper)
    named: dict[str, str] = {}
    others = []
    for left, right in pairs:
        if left not in published or right in published or "/" not in right:
            others.append((left, right))
        elif named.setdefault(left, right) != right:
            raise UsageError(f"--as: two models are beside '{left}': '{named[left]}' and '{right}'.", "Leave one out.")
    return named, others


def build_named_models(named: Mapping[str, str], sections: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sections of models that --as names; their server is that of the file's first model of the same provider.

    Args:
        named: the models by published name, under which they are audited.
        sections: of the models in the user's file.

    Raises:
        UsageError: a published name is one of the file's models, or the provider is a server without a known address.
    """
    models = []
    for name, model in named.items():
        if name in {section["name"] for section in sections}:
            raise UsageError(f"--as {name}={model}: the file has another model '{name}'.", "Leave one out.")
        provider = provider_of(model).prefix
        same = [section for section in sections if section["model"].startswith(f"{provider}/")]
        setups = [setup for setup in PROVIDERS if setup.prefix == provider]
        if not same and setups and all(setup.api_base for setup in setups):
            raise UsageError(
                f"--as {name}={model}: the address of the server is not known.",
                f"Add [[models]] with model = '{provider}/…' and its api_base to the file of --models.",
            )
        first = same[0] if same else {}
        server = {key: first[key] for key in SERVER_KEYS if key in first}
        needed = {param for setup in setups for param in setup.params}
        if params := {key: value for key, value in first.get("params", {}).items() if key in needed}:
            server["params"] = params
        models.append({"name": name, "model": model, **server})
    return models


def list_published_models(paper: Paper) -> set[str]:
    """Names of the models that rows of the paper's tables are of."""
    return {row.model for table in paper.tables for row in table.rows if row.model}


def match_models(paper: Paper, own_models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The model of ours that is set beside each published model.

    Args:
        own_models: names of the audited models.
        pairs: a model of ours and a published one, as the user says; one of ours may be beside several. Models of equal
            names are set beside each other, too.

    Raises:
        UsageError: there is no such model of ours or no such published one, or a published model has two of ours.
    """
    published = list_published_models(paper)
    own_by_published: dict[str, str] = {}
    for own_model, published_model in [(name, name) for name in own_models if name in published] + [*pairs]:
        if own_model not in own_models and own_model in published and published_model in own_models:
            raise UsageError(
                f"--as: '{own_model}' is the published model, and '{published_model}' is yours.",
                f"Write it as --as {published_model}={own_model}.",
            )
        _require_known(own_model, set(own_models), "audited")
        _require_known(published_model, published, "published")
        other = own_by_published.setdefault(published_model, own_model)
        if other != own_model:
            raise UsageError(
                f"--as: two models are beside '{published_model}': '{other}' and '{own_model}'.",
                "Leave one out, or rename the model that has the published name.",
            )
    return own_by_published


def _require_known(name: str, known: set[str], whose: str) -> None:
    """Raise UsageError if there is no model of this name."""
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(f"--as: there is no {whose} model '{name}'.", f"The {whose} models are: {listed}.")


AUDIT_PREFIX = "rep"
PRESET_FILE_PREFIX = "preset:"
HELPER_KEYS = ("paraphraser", "rot_model", "encoder", "bertscore_model")
"""Settings of the probe `semantic` that name a model or weights; those of the user's file are used."""
FIRST_JUDGE = "user:judge"
"""Stands for the name of the first judge, where a setting names one."""


@dataclass(frozen=True)
class ReplicationOptions:
    """What a user asks for.

    Attributes:
        table_id: one table; None for all.
        is_small: whether the model that comes with the program is asked, about a few cells.
        limit: largest number of cells of each audit.
        models_file: configuration file whose models and judges are used.
        files: of surveys or data sets, by their name in the paper.
        is_as_published: whether data are treated as the paper did, also where that loses information.
        named_models: models to audit besides those of the file, such as `hosted_vllm/org/tuned`, by published name.
    """

    table_id: str | None = None
    is_small: bool = False
    limit: int | None = None
    models_file: Path | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    is_as_published: bool = False
    named_models: Mapping[str, str] = field(default_factory=dict)


def plan_audits(paper: Paper, options: ReplicationOptions) -> dict[str, AuditConfig]:
    """Build the configurations of the audits that the tables need, by name of the survey or data set.

    Raises:
        UsageError: the tables cannot be run, or options are missing or do not exist.
        ConfigError: the models, or a file, cannot be used.
    """
    tables = select_runnable_tables(paper, options.table_id)
    experiment = paper.experiment
    assert experiment is not None  # a table that can be run
    audit_names = select_audits(experiment, tables)
    if audit_names and not (options.is_small or options.models_file or options.named_models):
        raise UsageError(
            "Which models should be asked?",
            "Add --models FILE (a configuration with [[models]]), or --small for the small model on this machine.",
        )
    if options.is_small and not experiment.small.config:
        raise UsageError(
            f"--small: '{paper.id}' has no small form.", "Use --models FILE, or add [experiment.small.config]."
        )
    if options.is_small and options.named_models:
        raise UsageError(f"--as {min(options.named_models)}=MODEL: no effect with --small.", "Leave it out.")
    if options.is_as_published and not experiment.as_published:
        raise UsageError(f"--as-published: no effect on '{paper.id}'.", "Leave it out.")
    if unknown := set(options.files) - set(experiment.files):
        raise UsageError(f"--data: '{paper.id}' has no data '{min(unknown)}'.", f"Use {_join(experiment.files)}.")
    models = _read_models(options, experiment)
    return {
        name: _build_config(paper.id, experiment, name, tables, options, models)
        for name in _drop_audits_without_data(experiment, tables, options)
    }


def plan_imports(paper: Paper, options: ReplicationOptions) -> dict[str, tuple[str, Path]]:
    """The audits of people's comparisons that the tables need: their names and files, by name of the data set.

    Raises:
        UsageError: the tables cannot be run.
    """
    tables = select_runnable_tables(paper, options.table_id)
    assert paper.experiment is not None  # a table that can be run
    suffix = ("-small" if options.is_small else "") + (f"-{_name_limit(options)}" if options.limit else "")
    data_files, needed = list_data_files(paper.experiment, options), _find_needed_data(paper.experiment, tables)
    return {
        name: (f"{AUDIT_PREFIX}-{paper.id}-{name.lower()}{suffix}", Path(data_files[file]))
        for name, file in paper.experiment.imports.items()
        if name in needed and file in data_files
    }


def _name_limit(options: ReplicationOptions) -> str:
    """End of the name of an audit with a limit: without one, the audits of all cells or sets would be replaced."""
    return "" if options.limit is None else f"limit-{options.limit}"


def list_data_files(experiment: Experiment, options: ReplicationOptions) -> dict[str, str]:
    """Paths of the data files at hand, by name: those of the user, and in the small form those of the program."""
    own_files: dict[str, str] = locate_preset_files(experiment.small.files) if options.is_small else {}
    return {**own_files, **options.files}


def apply_options(experiment: Experiment, options: ReplicationOptions) -> Experiment:
    """The experiment with the options of its trials as the user asks: those of the small form, and the limit."""
    trials = {}
    for name, trial in experiment.trials.items():
        changes = dict(experiment.small.trials.get(name, {})) if options.is_small else {}
        if trial.limit_option and options.limit is not None:
            changes[trial.limit_option] = options.limit
        trials[name] = trial.model_copy(update={"options": {**trial.options, **changes}})
    return experiment.model_copy(update={"trials": trials})


def select_runnable_tables(paper: Paper, table_id: str | None) -> tuple[PublishedTable, ...]:
    """The tables that audits give figures of; UsageError if there is none."""
    tables = tuple(table for table in paper.select_tables(table_id) if table.list_sources())
    if paper.experiment is None or not tables:
        name = f"table {table_id}" if table_id else "the tables"
        raise UsageError(
            f"There is no experiment for {name} of '{paper.id}'.", "To see which can be run: auditor replicate list"
        )
    return tables


def select_audits(experiment: Experiment, tables: Sequence[PublishedTable]) -> list[str]:
    """Names of the audits that the figures of tables are of; all, if a figure is of each."""
    needed = _find_needed_data(experiment, tables)
    return [name for name in experiment.audits if "" in needed or name in needed]


def _find_needed_data(experiment: Experiment, tables: Sequence[PublishedTable]) -> set[str]:
    """Names of the audits and imports that the figures of tables are of; empty text if a figure is of each."""
    sources = [source for table in tables for source in table.list_sources()]
    return {experiment.trials[source.trial].audit if source.trial else source.audit for source in sources}


def _drop_audits_without_data(
    experiment: Experiment, tables: Sequence[PublishedTable], options: ReplicationOptions
) -> list[str]:
    """The audits of tables whose data are at hand; UsageError if there is none, and no import.

    The small form leaves out the audits that it does not name, too, if they require a file.
    """
    audit_names = select_audits(experiment, tables)
    needed = [*audit_names, *(_find_needed_data(experiment, tables) & set(experiment.imports))]
    data_files = list_data_files(experiment, options)
    missing = {
        audit: name
        for name, file in experiment.files.items()
        for audit in file.audits
        if file.is_required and (name not in data_files or _is_left_out(experiment, audit, name, options))
    }
    if all(name in missing for name in needed):
        listed = " ".join(f"--data {name}=FILE" for name in dict.fromkeys(missing[audit] for audit in needed))
        raise UsageError("The data of the experiment are not at hand.", f"Name at least one: {listed}.")
    return [name for name in audit_names if name not in missing]


def _is_left_out(experiment: Experiment, audit_name: str, file_name: str, options: ReplicationOptions) -> bool:
    """Whether the small form does without an audit although it has its file."""
    named = {*experiment.small.audits, *experiment.imports}
    return options.is_small and audit_name not in named and file_name not in options.files


def _read_models(options: ReplicationOptions, experiment: Experiment) -> dict[str, Any]:
    """Models, judges and limits of the user's file, who writes wordings and rules of thumb, and models of --as."""
    if options.models_file is None:
        return {"models": build_named_models(options.named_models, [])} if options.named_models else {}
    file = _load_models(options.models_file, experiment)
    dumped = file.model_dump(exclude_unset=True, include={"models", "judges", "limits"})
    models = {key: value for key, value in dumped.items() if key != "judges" or value != "peers"}
    models["models"] += build_named_models(options.named_models, models["models"])
    return models | {"probes": {"semantic": file.helpers}} if file.helpers else models


def _load_models(path: Path, experiment: Experiment) -> ModelsFile:
    """Load the part of a configuration file that an experiment uses."""
    return (
        load_models_file(path, "semantic", HELPER_KEYS)
        if bool(experiment.config.get("probes", {}).get("semantic", {}).get("paraphrases"))
        else load_models_file(path)
    )


def list_ignored_settings(paper: Paper, options: ReplicationOptions) -> list[str]:
    """Keys and judges of the file of models that have no effect, since the experiment brings these settings itself."""
    if options.models_file is None or paper.experiment is None:
        return []
    file = _load_models(options.models_file, paper.experiment)
    judges = file.judges if _names_first_judge(paper.experiment.config) and file.judges != "peers" else []
    return [*file.ignored, *(f"judge '{judge.name}' (the first one is asked)" for judge in judges[1:])]


def _names_first_judge(settings: Any) -> bool:
    """Whether nested settings name the first judge, so that others are not asked."""
    if isinstance(settings, Mapping):
        return any(map(_names_first_judge, settings.values()))
    return bool(settings == FIRST_JUDGE)


def _build_config(
    paper_id: str,
    experiment: Experiment,
    audit_name: str,
    tables: Sequence[PublishedTable],
    options: ReplicationOptions,
    models: Mapping[str, Any],
) -> AuditConfig:
    """Build the configuration of the audit on one survey or data set."""
    table = options.table_id or ""
    suffixes = [audit_name.lower(), table if table != audit_name.lower() else "", "small" if options.is_small else ""]
    suffixes += ["as-published" if options.is_as_published else ""]
    suffixes += [_name_limit(options)]
    settings = merge_settings(merge_settings(experiment.config, models), experiment.audits[audit_name])
    if options.is_small:
        settings = merge_settings(settings, experiment.small.config)
        settings = merge_settings(settings, experiment.small.audits.get(audit_name, {}))
    judges = settings["judges"] if isinstance(settings.get("judges"), list) else []
    is_simulated = any(provider_of(model["model"]) is SIMULATED for model in [*settings["models"], *judges])
    prefixes = ["simulated"] if is_simulated else []  # the name says so in every list of audits
    settings["name"] = "-".join([*prefixes, AUDIT_PREFIX, paper_id, *filter(None, suffixes)])
    data_files = list_data_files(experiment, options)
    for name, file in experiment.files.items():
        if audit_name in file.audits and name in data_files:
            settings = merge_settings(settings, nest_setting(file.key, data_files[name]))
    if options.is_as_published:
        settings = merge_settings(settings, experiment.as_published)
        settings = merge_settings(settings, {"probes": models.get("probes", {})})  # folders with the published weights
    if options.limit is not None:
        settings = merge_settings(settings, nest_setting(experiment.limit_key, options.limit))
    parts = frozenset[Part]().union(*(table.list_parts() for table in tables))
    for key, needed_by in experiment.optional.items():
        if not needed_by & parts:
            settings = _leave_out(settings, key)
    try:
        return AuditConfig.model_validate(_name_first_judge(locate_preset_files(settings), settings.get("judges")))
    except pydantic.ValidationError as error:
        problem = explain_validation_error(error, settings, AuditConfig)
        raise ConfigError(f"The audit {settings['name']} cannot be planned: {problem}") from None


def nest_setting(key: str, value: Any) -> dict[str, Any]:
    """Nested tables with a value at a dotted key."""
    table, _, key_in_table = key.partition(".")
    return {table: nest_setting(key_in_table, value) if key_in_table else value}


def _leave_out(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A copy of nested settings without the one at a dotted key; a list of judges is left empty, not out."""
    table, _, key_in_table = key.partition(".")
    if table == "judges":
        return {**settings, table: []}
    if key_in_table:
        return {**settings, table: _leave_out(settings[table], key_in_table)}
    return {name: value for name, value in settings.items() if name != table}


def locate_preset_files(settings: Any) -> Any:
    """A copy of nested settings in which the files that come with presets, such as `preset:a.csv`, have their paths."""
    if isinstance(settings, Mapping):
        return {key: locate_preset_files(value) for key, value in settings.items()}
    if isinstance(settings, list):
        return [locate_preset_files(value) for value in settings]
    if isinstance(settings, str) and settings.startswith(PRESET_FILE_PREFIX):
        name = settings.removeprefix(PRESET_FILE_PREFIX)
        return str(package_files("auditor.replications") / "presets" / "data" / name)
    return settings


def _name_first_judge(settings: Any, judges: Any) -> Any:
    """A copy of nested settings with the name of the first judge for `FIRST_JUDGE`; UsageError without a judge."""
    if isinstance(settings, Mapping):
        return {key: _name_first_judge(value, judges) for key, value in settings.items()}
    if settings != FIRST_JUDGE:
        return settings
    if not isinstance(judges, list) or not judges:
        raise UsageError("The experiment needs a judge.", "Add [[judges]] with a name and a model to the file.")
    return judges[0]["name"]


def merge_settings(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested settings with changes; tables are merged, other values replaced."""
    merged = dict(settings)
    for key, value in changes.items():
        is_table = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge_settings(merged[key], value) if is_table else value
    return merged


def _join(names: Sequence[str] | Mapping[str, Any]) -> str:
    return " or ".join(names)
