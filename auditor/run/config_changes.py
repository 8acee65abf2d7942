"""What a changed configuration means for an audit that was run before, said before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from auditor.config import AuditConfig
from auditor.storage.audits import Audit

MAX_SHOWN_KEYS = 6


def describe_config_change(stored_audit: Audit | None, config: AuditConfig, fingerprint: str) -> str | None:
    """What has changed since an audit was last run, and what becomes of its records; None when nothing has.

    Args:
        old: the audit of that name as stored.
        fingerprint: of the run that is about to start.
    """
    if stored_audit is None or stored_audit.config is None or stored_audit.config_hash == fingerprint:
        return None
    before, after = (
        dict(_iter_leaves(json.loads(text))) for text in (_fill_defaults(stored_audit.config), config.model_dump_json())
    )
    changed = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    sections = ("storage", "check", "run", "telemetry")
    keys = [k for k in changed if k.split(".", 1)[0] not in sections and k != "limits.max_retry_wait_s"]
    more = f" and {len(keys) - MAX_SHOWN_KEYS} more" if len(keys) > MAX_SHOWN_KEYS else ""
    what = f"changed since it was run last: {', '.join(keys[:MAX_SHOWN_KEYS])}{more}"
    return (
        f"Audit '{config.name}' {what if keys else 'was run last by another version of auditor or its prompts'}. Its "
        "scores, verdicts and conflicts are made anew; answers that are recorded under the same question are used "
        "again, only the others are asked, and what people decided stays. To keep both results, give this one "
        "another name."
    )


def _fill_defaults(stored_config: str) -> str:
    """A stored configuration with the defaults of keys that came later: such a key has not changed."""
    try:
        return AuditConfig.model_validate_json(stored_config).model_dump_json()
    except ValidationError:  # of a version that took other values
        return stored_config


def _iter_leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested tables and lists by dotted path; a model is told by its name."""
    if isinstance(node, dict):
        for key, item in node.items():
            yield from _iter_leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        yield path, len(node)
        for i, item in enumerate(node):
            name = item.get("name", i) if isinstance(item, dict) else i
            yield from _iter_leaves(item, f"{path}[{name}]")
    else:
        yield path, node
