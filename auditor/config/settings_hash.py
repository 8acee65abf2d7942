"""The hash of an audit's settings, by which stored results are found to be of the same configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from auditor.config.model_section import DEFAULT_TIMEOUT_S
from auditor.config.probes import DEFAULT_MAX_TRACE_CHARS, DEFAULT_REVIEW_WORDS
from auditor.config.sections import DEFAULT_DEADLINE_S
from auditor.config.semantic import DEFAULT_BERTSCORE_MODEL
from auditor.domain import canonical_hash

TABLES_WITHOUT_EFFECT = ("storage", "check", "labels", "run", "telemetry", "batch")
"""Keys of a configuration that change no result."""

EARLIEST_PROBES = ("direct", "logprob", "semantic", "logic")
"""Probes that hashes of earlier versions name even where they are not set."""

LATER_KEYS: dict[str, dict[str, Any]] = {
    "direct": {"form": "standard", "schema_version": 1, "top_p": None},
    "review": {"form": "standard", "max_trace_chars": DEFAULT_MAX_TRACE_CHARS, "schema_version": 1},
    "logic": {"people": None, "sets": None, "form": "standard", "sample_answer": "same"},
    "semantic": {"bertscore_model": DEFAULT_BERTSCORE_MODEL, "subject": "moral"},
    "semantic.consistency": {"form": "standard"},
}
"""Keys of the tables of probes that earlier versions did not have, with the values that mean what these versions did,
by the table's dotted path."""


def hash_settings(settings: dict[str, Any]) -> str:
    """SHA-256 of the settings that determine the results.

    Left out are `TABLES_WITHOUT_EFFECT`, `limits.max_retry_wait_s`, and `rate_limit_scope` and `stream` of models. Of a
    file only the name counts, not the folder, so that a project can be moved. A key that an earlier version did not
    have counts only if it differs from its default, so that audits of that version keep their hash.

    Args:
        settings: the JSON of an `AuditConfig`; it is changed.
    """
    for key in TABLES_WITHOUT_EFFECT:
        del settings[key]
    del settings["limits"]["max_retry_wait_s"]
    for model in _list_models(settings):
        del model["rate_limit_scope"], model["stream"]
    _restore_earlier_defaults(settings)
    for name in [name for name, probe in settings["probes"].items() if probe is None and name not in EARLIEST_PROBES]:
        del settings["probes"][name]
    for path, defaults in LATER_KEYS.items():
        table = _find_table(settings["probes"], path)
        for key in [key for key, default in defaults.items() if key in table and table[key] == default]:
            del table[key]
    return canonical_hash(_strip_folders(settings))


def _list_models(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables of models and of judges."""
    return [*settings["models"], *(settings["judges"] if isinstance(settings["judges"], list) else [])]


def _find_table(tables: dict[str, Any], path: str) -> dict[str, Any]:
    """The table at a dotted path; empty if it, or one on the way to it, is not set."""
    for name in path.split("."):
        tables = tables[name] or {}
        if not tables:
            break
    return tables


def _restore_earlier_defaults(settings: dict[str, Any]) -> None:
    """Give keys that are not set, or have no effect, the form that earlier versions hashed; changes `settings`."""
    for model in _list_models(settings):
        for key in ("reasoning", "capabilities", "base_model", "verdicts"):
            if model[key] is None:
                del model[key]
        if model["timeout_s"] is None:
            model["timeout_s"] = DEFAULT_TIMEOUT_S
    if settings["limits"]["max_cells"] is None:
        del settings["limits"]["max_cells"]
    if settings["limits"]["deadline_s"] is None:
        settings["limits"]["deadline_s"] = DEFAULT_DEADLINE_S
    if not (settings["probes"]["direct"] and settings["probes"]["logprob"]):
        settings["conflicts"]["methods"] = True  # has no effect on scores by one method; True was the default
    direct = settings["probes"]["direct"]
    if direct and (settings["task"] is not None or direct["mode"] == "text" or direct["form"] == "paper"):
        direct["schema_version"] = 1  # has no effect
    review = settings["probes"]["review"]
    if review["max_words"] == DEFAULT_REVIEW_WORDS:
        review["schema_version"] = 1  # has no effect


def _strip_folders(value: Any) -> Any:
    """A copy of nested settings in which absolute paths are replaced by their file's name."""
    if isinstance(value, dict):
        return {key: _strip_folders(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_strip_folders(child) for child in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
