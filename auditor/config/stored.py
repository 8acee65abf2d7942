"""Read the configuration that a database holds for an audit, which another version of auditor may have stored."""

from __future__ import annotations

import json
from typing import Any, overload

from pydantic import ValidationError

from auditor.config.audit import AuditConfig
from auditor.config.probes import KEEP_MISSING_PROBES
from auditor.config.sections import DEFAULT_MIN_COVERAGE
from auditor.config.validation_messages import list_wrong_settings
from auditor.errors import ConfigError
from auditor.text_safety import truncate_text

MAX_SHOWN_SETTINGS = 5
REMOVED_KEYS = (("run", "processes"), ("probes", "review", "schema_version"))
"""Keys that configurations stored by auditor 0.2 have, and that have no effect."""


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
        config = AuditConfig.model_validate_json(_drop_removed_keys(text), context={KEEP_MISSING_PROBES: True})
        return _restore_default_coverage(_restore_first_schema(config))
    except ValidationError as error:
        raise ConfigError(
            f"the stored configuration of {_describe_audit(text)} cannot be read by this version of auditor"
            f"{_describe_wrong_settings(error, text)}.",
            "Use the version that ran the audit, or run the audit again from a configuration file.",
        ) from None


def _drop_removed_keys(text: str) -> str:
    """The JSON of a stored configuration without `REMOVED_KEYS`."""
    settings = _parse_json(text)
    for *tables, key in REMOVED_KEYS:
        table = settings
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict):
            table.pop(key, None)
    return text if settings is None else json.dumps(settings)


def _restore_first_schema(config: AuditConfig) -> AuditConfig:
    """The stored configuration with version 1 of the direct schema, if it was stored before there were versions."""
    direct = config.probes.direct
    if direct is None or "schema_version" in direct.model_fields_set:
        return config
    direct = direct.model_copy(update={"schema_version": 1})
    return config.model_copy(update={"probes": config.probes.model_copy(update={"direct": direct})})


def _restore_default_coverage(config: AuditConfig) -> AuditConfig:
    """The stored configuration without the minimum coverage that earlier versions stored where none was set."""
    check = config.check
    if check.min_coverage != DEFAULT_MIN_COVERAGE or "probes" in check.model_fields_set:
        return config
    return config.model_copy(update={"check": check.model_copy(update={"min_coverage": None})})


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
