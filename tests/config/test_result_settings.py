"""The settings that hashes of stored audits consist of: a new key must not change them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, result_settings
from auditor.config.result_settings import KEYS_HASHED_AT_DEFAULTS, select_result_settings

HASHED_SETTINGS = Path(__file__).with_name("hashed_settings.json")
"""What is hashed of configurations with each table that a result depends on, as version 0.3.0 stores them. Never write
it again: audits that are stored would count as changed, and their results would be computed again."""
MODEL: dict[str, Any] = {"name": "model-a", "model": "openai/a", "price": {"input": 1, "output": 2}, "capabilities": {}}
MODEL |= {"reasoning": {"effort": "low"}}
SURVEY: dict[str, Any] = {
    "survey": {"source": "wvs7-sample"},
    "models": [MODEL],
    "judges": [MODEL | {"name": "judge", "model": "openai/b"}],
    "probes": {"direct": {}, "logprob": {}, "review": {}, "semantic": {}, "logic": {}, "distribution": {}},
}
TASK: dict[str, Any] = SURVEY | {
    "survey": None,
    "task": {"source": "items.csv", "answer": "exact"},
    "probes": {"direct": {}},
}


def iterate_keys(settings: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted path and value, as JSON, of each key that is no table."""
    if isinstance(settings, dict) and settings:
        for key, value in settings.items():
            yield from iterate_keys(value, f"{path}.{key}" if path else key)
    elif isinstance(settings, list) and settings and isinstance(settings[0], dict):
        for value in settings:
            yield from iterate_keys(value, f"{path}[]")
    else:
        yield path, json.dumps(settings)


@pytest.mark.parametrize(("name", "data"), [("survey", SURVEY), ("task", TASK)])
def test_no_key_changes_the_hash_of_stored_audits(name: str, data: dict[str, Any]) -> None:
    stored = dict(iterate_keys(json.loads(HASHED_SETTINGS.read_text(encoding="utf-8"))[name]))
    audit = AuditConfig.model_validate({"name": "audit", **data})
    present = dict(iterate_keys(select_result_settings(audit)))
    changed = sorted(key for key in stored | present if stored.get(key) != present.get(key))
    assert not changed, (
        f"{changed} would change the hash of stored audits. How to fix: Give a new key a default that keeps results as "
        "they are, and hash it only if it is set (auditor/config/result_settings.py)."
    )


def test_a_key_that_would_change_the_hash_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KEYS_HASHED_AT_DEFAULTS | {"limits": KEYS_HASHED_AT_DEFAULTS["limits"] + " max_cells"}
    monkeypatch.setattr(result_settings, "KEYS_HASHED_AT_DEFAULTS", keys)
    with pytest.raises(AssertionError, match=r"\['limits.max_cells'\] would change the hash"):
        test_no_key_changes_the_hash_of_stored_audits("survey", SURVEY)
