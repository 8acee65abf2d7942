"""What a changed configuration means for an audit that was run before, said before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from auditor.config import AuditConfig
from auditor.storage.audits import Audit

MOST_SHOWN = 6


def change_note(old: Audit | None, config: AuditConfig, fingerprint: str) -> str | None:
    """What has changed since an audit was last run, and what becomes of its records; None when nothing has.

    Args:
        old: the audit of that name as stored.
        fingerprint: of the run that is about to start.
    """
    if old is None or old.config is None or old.config_hash == fingerprint:
        return None
    before, after = (dict(_flat(json.loads(text))) for text in (_with_defaults(old.config), config.model_dump_json()))
    changed = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    sections = ("storage", "check", "run", "telemetry")
    keys = [k for k in changed if k.split(".", 1)[0] not in sections and k != "limits.max_retry_wait_s"]
    more = f" and {len(keys) - MOST_SHOWN} more" if len(keys) > MOST_SHOWN else ""
    what = f"changed since it was run last: {', '.join(keys[:MOST_SHOWN])}{more}"
    return (
        f"Audit '{config.name}' {what if keys else 'was run last by another version of auditor or its prompts'}. Its "
        "scores, verdicts and conflicts are made anew; answers that are recorded under the same question are used "
        "again, only the others are asked, and what people decided stays. To keep both results, give this one "
        "another name."
    )


def _with_defaults(stored: str) -> str:
    """A stored configuration with the defaults of keys that came later: such a key has not changed."""
    try:
        return AuditConfig.model_validate_json(stored).model_dump_json()
    except ValidationError:  # of a version that took other values
        return stored


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested tables and lists by dotted path; a model is told by its name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield path, len(value)
        for i, item in enumerate(value):
            name = item.get("name", i) if isinstance(item, dict) else i
            yield from _flat(item, f"{path}[{name}]")
    else:
        yield path, value
