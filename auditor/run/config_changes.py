"""Describe how a configuration has changed since an audit's last run, before any request is sent."""

from __future__ import annotations

import json
from typing import Any

from auditor.config import AuditConfig, load_stored_config, rename_old_keys
from auditor.config.leaves import iterate_leaves
from auditor.config.result_settings import drop_settings_without_effect, select_result_settings
from auditor.errors import ConfigError
from auditor.storage.audits import Audit

MAX_SHOWN_KEYS = 6
UNSEEN_CHANGE = "reads a file that has changed, or was last run by another version of auditor with other prompts"
"""What changed where the configuration is the same: files of questions and answers are part of a run, too."""


def keep_earlier_defaults(stored_audit: Audit | None, config: AuditConfig) -> AuditConfig:
    """The configuration with settings whose default changed as an existing audit has them, unless it sets them.

    These are `conflicts.methods`, whose default was true, and `schema_version` of `probes.direct` and `probes.review`,
    whose default was 1. An audit that was begun then resumes unchanged: its recorded answers are found again.

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
    stored_probes = stored.get("probes", {})
    changed_probes = {
        name: probe.model_copy(update={"schema_version": stored_probe.get("schema_version", 1)})
        for name, probe in config.probes.with_schema_version.items()
        if (stored_probe := stored_probes.get(name)) is not None and "schema_version" not in probe.model_fields_set
    }
    if changed_probes:
        changes["probes"] = config.probes.model_copy(update=changed_probes)
    return config.model_copy(update=changes)


def describe_config_change(stored_audit: Audit | None, config: AuditConfig, fingerprint: str) -> str | None:
    """A notice of changed config keys and what happens to the audit's records; None if nothing has changed.

    Args:
        stored_audit: the stored audit of that name; None if there is none.
        config: the configuration of the run that is about to start.
        fingerprint: fingerprint of that run; see `auditor.run.fingerprints`.
    """
    if stored_audit is None or stored_audit.config is None or stored_audit.config_hash == fingerprint:
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
        "human decisions are kept. To keep both results, give this audit another name, or use another database "
        "(--storage)."
    )


def _list_result_settings(stored_config: str, config: AuditConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a stored and of a new configuration that determine the results, under present names of keys."""
    try:
        return select_result_settings(load_stored_config(stored_config)), select_result_settings(config)
    except ConfigError:  # stored by a version that accepted other values
        stored_settings = rename_old_keys(json.loads(stored_config))
        return drop_settings_without_effect(stored_settings), drop_settings_without_effect(
            config.model_dump(mode="json")
        )
