"""Read the configuration that a database holds for an audit, which another version of auditor may have stored."""

from __future__ import annotations

import json
from typing import Any, overload

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from auditor.config.audit import AuditConfig
from auditor.config.probes import KEEP_MISSING_PROBES
from auditor.config.sections import DEFAULT_MIN_COVERAGE
from auditor.config.validation_messages import list_wrong_settings
from auditor.config.value_checks import field_types, find_field, type_at_step
from auditor.errors import ConfigError
from auditor.text_safety import truncate_text

MAX_SHOWN_SETTINGS = 5


@overload
def load_stored_config(text: str) -> AuditConfig: ...
@overload
def load_stored_config(text: str | None) -> AuditConfig | None: ...
def load_stored_config(text: str | None) -> AuditConfig | None:
    """Read the stored configuration of an audit.

    Args:
        text: JSON of the configuration, as in `Audit.config`; None for an audit of imported scores.

    Returns:
        None without a text.

    Raises:
        ConfigError: this version cannot read it; the message names the audit and the keys.
    """
    if text is None:
        return None
    try:
        config = AuditConfig.model_validate_json(text, context={KEEP_MISSING_PROBES: True})
        return _restore_default_coverage(_restore_earlier_schemas(config))
    except ValidationError as error:
        raise ConfigError(
            f"the stored configuration of {_describe_audit(text)} cannot be read by this version of auditor"
            f"{_describe_wrong_settings(error, text)}.",
            "Use the version that ran the audit, or run the audit again from a configuration file.",
        ) from None


def _restore_earlier_schemas(config: AuditConfig) -> AuditConfig:
    """The stored configuration with version 1 of the schemas of probes that were stored before there were versions."""
    first = {
        name: probe.model_copy(update={"schema_version": 1})
        for name, probe in config.probes.with_schema_version.items()
        if "schema_version" not in probe.model_fields_set
    }
    return config.model_copy(update={"probes": config.probes.model_copy(update=first)}) if first else config


def _restore_default_coverage(config: AuditConfig) -> AuditConfig:
    """The stored configuration without the minimum coverage that earlier versions stored where none was set."""
    check = config.check
    if check.min_coverage != DEFAULT_MIN_COVERAGE or "probes" in check.model_fields_set:
        return config
    return config.model_copy(update={"check": check.model_copy(update={"min_coverage": None})})


def rename_old_keys(data: Any, annotation: Any = AuditConfig) -> Any:
    """Copy the tables of a configuration, with each key that has an alias under its present name.

    Args:
        data: a table, a list, or a value of the configuration, as JSON gives it.
        annotation: type of `data`.
    """
    if isinstance(data, list):
        list_type = _select_type(annotation, 0)
        return [rename_old_keys(item, type_at_step(list_type, i, ())[0]) for i, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    table_type = _select_type(annotation, "")
    present_names = {
        alias: name for name in field_types(table_type) for alias in _list_aliases(find_field(table_type, name))
    }
    renamed = {str(present_names.get(key, key)): value for key, value in data.items()}
    return {key: rename_old_keys(value, type_at_step(table_type, key, ())[0]) for key, value in renamed.items()}


def _select_type(annotation: Any, part: str | int) -> Any:
    """The member of a union that is a table (for a key) or a list (for an index); any other type unchanged."""
    inner_type, is_step = type_at_step(annotation, part, (part,))
    return annotation if is_step else inner_type


def _list_aliases(field: FieldInfo | None) -> list[str]:
    """The other names that a key may have in a file."""
    alias = field.validation_alias if field else None
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [choice for choice in choices if isinstance(choice, str)]


def _describe_audit(text: str) -> str:
    """Name the audit of a stored configuration, if it is readable that far."""
    data = _parse_json(text)
    name = data.get("name") if isinstance(data, dict) else None
    return f"audit '{truncate_text(name)}'" if isinstance(name, str) else "an audit"


def _describe_wrong_settings(error: ValidationError, text: str) -> str:
    """List the keys of a configuration that cannot be read; empty if the text is no JSON."""
    keys = list_wrong_settings(error, _parse_json(text), AuditConfig)
    omitted_note = f" and {len(keys) - MAX_SHOWN_SETTINGS} more" if len(keys) > MAX_SHOWN_SETTINGS else ""
    return f": {', '.join(keys[:MAX_SHOWN_SETTINGS])}{omitted_note}" if keys else ""


def _parse_json(text: str) -> Any:
    """Parse a text; None if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
