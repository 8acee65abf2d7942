"""The settings that determine an audit's results: what its hash, and the notice of a changed configuration, compare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.config.model_section import DEFAULT_TIMEOUT_S
from auditor.config.probes import DEFAULT_REVIEW_WORDS
from auditor.config.sections import DEFAULT_DEADLINE_S

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig

SETTINGS_WITHOUT_EFFECT = (
    *("storage", "check", "compare", "labels", "run", "telemetry", "batch", "limits.max_retry_wait_s"),
    *(f"{table}[].{key}" for table in ("models", "judges") for key in ("rate_limit_scope", "stream", "attributes")),
)
"""Keys and tables of a configuration that change no result, by dotted path; `[]` stands for each table of a list."""

_MODEL_TABLES = {
    "": "name model api_key api_base system temperature concurrency rpm tpm timeout_s price params answers weights "
    "family review_prompt",
    ".price": "input output cached_input as_of",
    ".reasoning": "effort max_tokens",
    ".capabilities": "form temperature seed token_limit_param dropped_keywords",
}
KEYS_HASHED_AT_DEFAULTS = {
    "": "name survey task language models judges probes conflicts panel embedding limits seed",
    "survey": "source countries topics nonresponse regions rephrase",
    "survey.rephrase": "question scale topics",
    "task": "source answer options range numbers tolerance",
    **{f"{table}[]{name}": keys for table in ("models", "judges") for name, keys in _MODEL_TABLES.items()},
    "probes": "direct logprob review semantic logic",
    "probes.direct": "samples tolerance min_samples target_width temperature max_tokens mode max_words schema_version "
    "repair",
    "probes.logprob": "method",
    "probes.review": "max_words schema_version max_tokens temperature traces guess rewrite rewriter",
    "conflicts": "threshold methods",
    "panel": "vote weights weights_from bench_below adaptive exclude_family judges_per_trace",
    "embedding": "model",
    "limits": "budget_usd max_attempts deadline_s",
}
"""Keys of each table that are hashed whatever their values are, as the hashes of stored audits have them.

Those of the tables of built-in probes are in `ProbeSection.keys_hashed_at_defaults`. This list is closed. A key that is
not in it, such as every new one, is hashed only if its value is not its default: audits that were stored before there
was such a key then keep their hash.
"""


def select_result_settings(config: AuditConfig) -> dict[str, Any]:
    """The settings that determine an audit's results, as JSON in the form that is hashed.

    Left out are `SETTINGS_WITHOUT_EFFECT`, and keys at their defaults that are not in `KEYS_HASHED_AT_DEFAULTS`. Of a
    file only the name counts, not the folder, so that a project can be moved.
    """
    settings = drop_settings_without_effect(config.model_dump(mode="json"))
    _restore_earlier_defaults(settings)
    changed = config.model_dump(mode="json", exclude_defaults=True)
    hashed_keys = dict(KEYS_HASHED_AT_DEFAULTS)
    for name, section in config.probes.stages.items():
        hashed_keys |= {f"probes.{name}{path}": keys for path, keys in section.keys_hashed_at_defaults.items()}
    return dict(_strip_folders(_drop_new_defaults(settings, changed, hashed_keys)))


def drop_settings_without_effect(settings: Any, path: str = "") -> Any:
    """A copy of a configuration as JSON without `SETTINGS_WITHOUT_EFFECT`.

    Args:
        settings: the configuration, or the part of it at `path`.
    """
    if isinstance(settings, list):
        return [drop_settings_without_effect(item, f"{path}[]") for item in settings]
    if not isinstance(settings, dict):
        return settings
    paths = {key: f"{path}.{key}" if path else key for key in settings}
    return {
        key: drop_settings_without_effect(value, paths[key])
        for key, value in settings.items()
        if paths[key] not in SETTINGS_WITHOUT_EFFECT
    }


def _drop_new_defaults(settings: Any, changed: Any, always_hashed: Mapping[str, str], path: str = "") -> Any:
    """A copy of a configuration as JSON without keys at their defaults, unless they are always hashed.

    Args:
        settings: the configuration, or the part of it at `path`.
        changed: the same without any key at its default; None if the part is at its default.
        always_hashed: keys by table, as `KEYS_HASHED_AT_DEFAULTS`.
    """
    if isinstance(settings, list):
        items = changed if isinstance(changed, list) else [None] * len(settings)
        pairs = zip(settings, items, strict=True)
        return [_drop_new_defaults(item, other, always_hashed, f"{path}[]") for item, other in pairs]
    if not isinstance(settings, dict):
        return settings
    if path not in always_hashed:  # a new table, or a table whose keys the user chooses
        return settings if changed is None else changed
    changed = changed or {}
    hashed_keys = {*always_hashed[path].split(), *changed}
    return {
        key: _drop_new_defaults(value, changed.get(key), always_hashed, f"{path}.{key}" if path else key)
        for key, value in settings.items()
        if key in hashed_keys
    }


def _restore_earlier_defaults(settings: dict[str, Any]) -> None:
    """Give keys that are not set, or have no effect, the form that earlier versions hashed; changes `settings`."""
    for model in [*settings["models"], *(settings["judges"] if isinstance(settings["judges"], list) else [])]:
        if model["timeout_s"] is None:
            model["timeout_s"] = DEFAULT_TIMEOUT_S
    if settings["limits"]["deadline_s"] is None:
        settings["limits"]["deadline_s"] = DEFAULT_DEADLINE_S
    if not (settings["probes"]["direct"] and settings["probes"]["logprob"]):
        settings["conflicts"]["methods"] = True  # has no effect on scores by one method; True was the default
    for probe in KEYS_HASHED_AT_DEFAULTS["probes"].split():
        settings["probes"].setdefault(probe, None)
    _restore_first_schemas(settings)


def _restore_first_schemas(settings: dict[str, Any]) -> None:
    """Remove `schema_version` where it is 1, as in audits that were stored before it, or has no effect.

    That of verdicts, which is always 2 now, is hashed where it had an effect.
    """
    direct, review = settings["probes"]["direct"], settings["probes"]["review"]
    if direct and (
        settings["task"] is not None
        or direct["mode"] == "text"
        or direct["form"] == "paper"
        or direct["schema_version"] == 1
    ):
        del direct["schema_version"]
    if review["max_words"] != DEFAULT_REVIEW_WORDS:
        review["schema_version"] = 2


def _strip_folders(value: Any) -> Any:
    """A copy of nested settings in which absolute paths are replaced by their file's name."""
    if isinstance(value, dict):
        return {key: _strip_folders(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_strip_folders(child) for child in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
