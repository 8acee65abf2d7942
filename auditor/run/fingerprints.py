"""What names an audit's questions, what it was run on, and what changed since the last run."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from auditor.config import AuditConfig, load_stored_config
from auditor.config.base import iterate_leaves
from auditor.config.installed_probes import load_built_in, load_probe
from auditor.config.probe_section import BuiltInProbe
from auditor.config.result_settings import drop_settings_without_effect, select_result_settings
from auditor.domain import ENGLISH, LANGUAGES, canonical_hash
from auditor.errors import AuditorError, ConfigError
from auditor.probe_interface import ProbeAudit
from auditor.prompts import Prompt, load_prompt
from auditor.prompts.language_data import load_sentence_pairs
from auditor.run.survey_plan import EMPTY_SURVEY
from auditor.storage.audits import Audit

RECORDED_PACKAGES = (
    "litellm",
    "instructor",
    "langgraph",
    "sentence-transformers",
    "torch",
    "xllamacpp",
    "numpy",
    "scipy",
)
READER_VERSIONS = {"direct": 9, "logprob": 3, "review": 8}
"""Version of what reads the answers of each core stage; to be raised when it reads a recorded answer differently."""
READERS = "readers"
"""Key of an audit's environment with the versions of the readers of its results."""


def list_reader_versions(config: AuditConfig) -> dict[str, int]:
    """Present versions of the readers of an audit's results by stage; results of other packages' probes have theirs."""
    return READER_VERSIONS | {name: load_built_in(name).reader_version for name in config.probes.stages}


def format_reader_versions(config: AuditConfig) -> str:
    """The present reader versions, as stored in an audit's environment."""
    return ", ".join(f"{name} {version}" for name, version in sorted(list_reader_versions(config).items()))


def find_other_readers(audit: Audit, config: AuditConfig) -> dict[str, tuple[int, int]]:
    """Stored and present version of each reader whose version is another one now.

    Audits of versions before 0.3 state none: their answers and verdicts were read by the first readers, and what probes
    measured by earlier ones, with the number 0.
    """
    environment = json.loads(audit.environment)
    stored = dict(part.split(" ") for part in environment.get(READERS, "").split(", ") if part)
    first = dict.fromkeys(READER_VERSIONS, 1)
    versions = {
        name: (int(stored.get(name, first.get(name, int(READERS in environment)))), version)
        for name, version in list_reader_versions(config).items()
    }
    return {name: pair for name, pair in versions.items() if pair[0] != pair[1]}


def fingerprint(config: AuditConfig, *, readers: Mapping[str, int] | None = None) -> str:
    """SHA-256 of all that determines an audit's results: config, prompts, files of questions and answers, and readers.

    Args:
        config: the audit's configuration.
        readers: versions of the readers; the present ones if None. First versions leave the hash as it was before.

    Raises:
        ConfigError: a judge's own prompt cannot be used.
    """
    from auditor.agents.call_builders import (
        describe_aspects,  # loads numpy (0.1 s)
        file_digest,
    )

    prompt_texts = [[prompt.id, prompt.system, *(prompt.opening or ()), prompt.user] for prompt in load_prompts(config)]
    return canonical_hash(
        [
            config.hash,
            prompt_texts,
            describe_aspects(for_task=config.task is not None),
            *_logprob_inputs(config),
            *_probe_inputs(config, _prompt_folders(config)),
            *(file_digest(judge.verdicts) for judge in config.judge_models if judge.verdicts is not None),
            *(
                [name, number]
                for name, number in sorted((readers or list_reader_versions(config)).items())
                if number > 1
            ),
        ]
    )


def _prompt_folders(config: AuditConfig) -> list[str]:
    """The folders of an audit's prompts: one a language."""
    return sorted(LANGUAGES) if config.languages != (ENGLISH,) else [ENGLISH]


def load_prompts(config: AuditConfig) -> list[Prompt]:
    """Load all prompts that an audit may use, but those of probes of other packages.

    Raises:
        ConfigError: a judge's own prompt cannot be used.
    """
    from auditor.agents.call_builders import load_review_prompt  # loads numpy (0.1 s)

    # Prompts are stored in one folder per language.
    folders = _prompt_folders(config)
    if config.task is None:
        answer_templates, review_templates = ["direct"], ["review", "review.shorter", "review.guess", "review.rewrite"]
        if config.probes.review.form != "standard":
            review_templates.append(f"review.{config.probes.review.form}")
    else:
        answer_templates = [f"task.{kind}" for kind in ("choice", "number", "score", "words")]
        review_templates = ["review.task", "review.shorter"]
        review_templates += ["review.guess.task"] if config.probes.review.guess else []
    # Any answer may be requested by it, which depends on the model's server.
    prompts = [load_prompt("structure", folder) for folder in folders]
    repair_template = f"repair.{'task.' if config.task else ''}{config.direct.mode}"
    if config.direct.form == "standard":
        answer_names = [f"{name}.{config.direct.mode}" for name in answer_templates]
    else:
        answer_names = [config.direct.prompt_name]
    prompts += [load_prompt(name, folder) for name in answer_names for folder in folders]
    prompts += [load_prompt(repair_template)] if config.direct.repair else []
    prompts += [load_prompt(name) for name in review_templates]
    prompts += [
        load_review_prompt(judge, for_task=config.task is not None, form=config.probes.review.form)
        for judge in config.judge_models
    ]
    return prompts + [load_prompt(name) for probe in config.probes.stages for name in load_built_in(probe).prompts]


def was_run_with(audit: Audit, config: AuditConfig) -> bool:
    """Whether a stored audit was last run with this configuration, prompts, files and readers.

    False if a prompt of its own, or a probe, can no longer be read.
    """
    try:
        return audit.config_hash is not None and audit.config_hash == fingerprint(config)
    except AuditorError:
        return False


def _logprob_inputs(config: AuditConfig) -> list[object]:
    """Prompts that determine the log-probabilities, besides the config; empty without the probe `logprob`."""
    return (
        [load_sentence_pairs().model_dump(mode="json"), load_prompt("logprob.choice").user]
        if config.probes.logprob
        else []
    )


def _probe_inputs(config: AuditConfig, folders: Sequence[str]) -> Iterator[object]:
    """Yield what determines the answers of probes with a stage of their own, besides the config.

    Of a probe below the public interface, that is its name, reader version, prompts and other inputs.
    """
    for name, settings in config.probes.with_stage.items():
        installed = load_probe(name)
        if isinstance(installed.probe, BuiltInProbe):
            yield from installed.probe.list_fingerprint_inputs(config, folders)
            continue
        prompts = [load_prompt(prompt, package=installed.package) for prompt in installed.probe.prompts]
        texts = [[prompt.system, *(prompt.opening or ()), prompt.user] for prompt in prompts]
        audit = ProbeAudit(settings, config, EMPTY_SURVEY)
        inputs = installed.fingerprint_inputs(audit)
        schemas = [schema.model_json_schema() for schema in installed.probe.schemas]
        yield [name, installed.probe.reader_version, texts, schemas, inputs]


def describe_environment() -> dict[str, str]:
    """Versions of the packages, the interpreter and the platform that affect results; missing packages are left out."""
    versions = {"auditor": metadata.version("auditor")}
    versions |= {"python": platform.python_version(), "platform": platform.platform()}
    for name in RECORDED_PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


MAX_SHOWN_KEYS = 6
UNSEEN_CHANGE = "reads a file that has changed, or was last run by another version of auditor with other prompts"
"""What changed where the configuration is the same: files of questions and answers are part of a run, too."""


def keep_earlier_defaults(stored_audit: Audit | None, config: AuditConfig) -> AuditConfig:
    """The configuration with settings whose default changed as an existing audit has them, unless it sets them.

    These are `conflicts.methods`, whose default was true, and `probes.direct.schema_version`, whose default was 1. An
    audit that was begun then resumes unchanged: its recorded answers are found again.

    Args:
        stored_audit: the stored audit of that name; None if there is none, and then the configuration is unchanged.
        config: the configuration of the run that is about to start.
    """
    if stored_audit is None or stored_audit.config is None:
        return config
    stored = json.loads(stored_audit.config)
    changes: dict[str, Any] = {}
    if "methods" not in config.conflicts.model_fields_set:
        methods = stored.get("conflicts", {}).get("methods", True)
        changes["conflicts"] = config.conflicts.model_copy(update={"methods": methods})
    direct, stored_direct = config.probes.direct, stored.get("probes", {}).get("direct")
    if direct is not None and stored_direct is not None and "schema_version" not in direct.model_fields_set:
        direct = direct.model_copy(update={"schema_version": stored_direct.get("schema_version", 1)})
        changes["probes"] = config.probes.model_copy(update={"direct": direct})
    return config.model_copy(update=changes)


def describe_config_change(
    stored_audit: Audit | None, config: AuditConfig, fingerprint: str, *, is_truth_changed: bool = False
) -> str | None:
    """A notice of changed config keys and what happens to the audit's records; None if nothing has changed.

    Args:
        stored_audit: the stored audit of that name; None if there is none.
        config: the configuration of the run that is about to start.
        fingerprint: fingerprint of that run.
        is_truth_changed: whether the survey's scores, or the task's items, are others than those of the last run.
    """
    if stored_audit is None or stored_audit.config is None:
        return None
    if stored_audit.config_hash == fingerprint and not is_truth_changed:
        return None
    stored_leaves, new_leaves = (
        dict(iterate_leaves(settings)) for settings in _list_result_settings(stored_audit.config, config)
    )
    shown_keys = sorted(
        key for key in stored_leaves.keys() | new_leaves.keys() if stored_leaves.get(key) != new_leaves.get(key)
    )
    omitted_note = f" and {len(shown_keys) - MAX_SHOWN_KEYS} more" if len(shown_keys) > MAX_SHOWN_KEYS else ""
    change_summary = f"changed since its last run: {', '.join(shown_keys[:MAX_SHOWN_KEYS])}{omitted_note}"
    return (
        f"Audit '{config.name}' "
        f"{change_summary if shown_keys else UNSEEN_CHANGE}. Its "
        "scores, verdicts and conflicts are computed again. Recorded answers to the same questions are reused, and "
        "human decisions count where names and scores of both sides are the same. To keep both results, give this "
        "audit another name, or use another database "
        "(--storage)."
    )


def _list_result_settings(stored_config: str, config: AuditConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a stored and of a new configuration that determine the results."""
    try:
        return select_result_settings(load_stored_config(stored_config)), select_result_settings(config)
    except ConfigError:  # stored by a version that accepted other values
        stored_settings, new_settings = json.loads(stored_config), config.model_dump(mode="json")
        return drop_settings_without_effect(stored_settings), drop_settings_without_effect(new_settings)
