"""The settings that are hashed, and that a key which is added keeps the hashes of stored audits."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, create_model

from auditor.config import AuditConfig
from auditor.config.result_settings import SETTINGS_WITHOUT_EFFECT
from auditor.run.fingerprints import describe_config_change
from tests.run.test_fingerprints_config_changes import stored_audit

MODEL: dict[str, Any] = {
    "model": "openai/gpt-4o",
    "price": {"input": 1, "output": 2},
    "reasoning": {"effort": "low"},
    "capabilities": {"seed": False},
}
SETTINGS: dict[str, Any] = {
    "name": "stored",
    "survey": {"source": "/projects/a/people.csv", "rephrase": {"question": "Is {topic} acceptable in {country}?"}},
    "models": [{"name": "m", **MODEL}, {"name": "n", "model": "openai/gpt-4.1"}],
    "judges": [{"name": "j", **MODEL, "model": "openai/o3"}],
    "probes": {
        "direct": {},
        "logprob": {},
        "distribution": {},
        "semantic": {"consistency": {"judge": "m"}},
        "logic": {},
    },
}
TASK: dict[str, Any] = {
    **{key: SETTINGS[key] for key in ("name", "models", "judges")},
    "task": {"source": "questions.csv", "answer": "score", "range": [0, 10]},
}


def _list_tables(annotation: Any, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the classes of tables in an annotation with their paths, those of the inner tables after the outer."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
        for name, field in annotation.model_fields.items():
            yield from _list_tables(field.annotation, f"{path}.{name}" if path else name)
    for argument in get_args(annotation):
        yield from _list_tables(argument, f"{path}[]" if get_origin(annotation) is list else path)


def _add_key(annotation: Any, target: str, path: str = "") -> Any:
    """A copy of an annotation whose table at the path `target` has a key more, `later`, with the default 1."""
    if not target.startswith(path):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields: dict[str, Any] = {"later": (int, 1)} if path == target else {}
        for name, field in annotation.model_fields.items():
            changed = copy(field)
            changed.annotation = _add_key(field.annotation, target, f"{path}.{name}" if path else name)
            if changed.annotation is not field.annotation:
                fields[name] = (changed.annotation, changed)
        return create_model(annotation.__name__, __base__=annotation, **fields) if fields else annotation
    arguments = get_args(annotation)
    changed_arguments = tuple(
        _add_key(argument, target, f"{path}[]" if get_origin(annotation) is list else path) for argument in arguments
    )
    if all(new is old for new, old in zip(changed_arguments, arguments, strict=True)):
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return reduce(or_, changed_arguments)
    return get_origin(annotation)[changed_arguments]


def _set_key(settings: Any, path: str, value: Any) -> Any:
    """A copy of settings with a value at a dotted path, in each table of a list that has the table of the key."""
    name, _, inner_path = path.replace("[]", "").partition(".")
    if isinstance(settings, list):
        return [_set_key(item, path, value) if not inner_path or name in item else item for item in settings]
    return {**settings, name: _set_key(settings.get(name, {}), inner_path, value) if inner_path else value}


TABLES = [
    path
    for path, _ in _list_tables(AuditConfig)
    if not any(path == key or path.startswith(f"{key}.") for key in SETTINGS_WITHOUT_EFFECT)
]


def test_hashes_of_stored_audits_stay() -> None:
    """These are the hashes that audits with these settings were stored with: they never change."""
    stored_hashes = {
        "9c81f9099caa4364d1c03eacfd2ad2e0282b93fcb3c63a56073da4555e014985": SETTINGS,
        "e489e013c4724e570bad3a5235ea3a33e4cbba3faea78b07bf610f614896b364": TASK,
    }
    for stored_hash, settings in stored_hashes.items():
        assert AuditConfig.model_validate(settings).hash == stored_hash


@pytest.mark.parametrize("path", TABLES)
def test_a_key_that_is_added_to_a_table_changes_no_hash_at_its_default(path: str) -> None:
    settings = TASK if path == "task" else SETTINGS
    config_class = _add_key(AuditConfig, path)
    key = f"{path}.later" if path else "later"
    stored_hash = AuditConfig.model_validate(settings).hash
    assert config_class.model_validate(settings).hash == stored_hash
    assert config_class.model_validate(_set_key(settings, key, 1)).hash == stored_hash
    assert config_class.model_validate(_set_key(settings, key, 2)).hash != stored_hash


WITHOUT_EFFECT: dict[str, Any] = {
    "storage": "sqlite:///elsewhere.db",
    "check": {"min_pearson": 0.5},
    "compare": {"non_inferiority": {"baseline": "before", "margin": 0.05}},
    "labels": {"rater_kind": "expert"},
    "run": {"workers": 3},
    "telemetry": {"texts": True},
    "batch": {"least": 3},
    "limits.max_retry_wait_s": 3,
    "models[].rate_limit_scope": "account",
    "models[].stream": True,
    "models[].attributes": {"parameters": "7B"},
    "judges[].rate_limit_scope": "account",
    "judges[].stream": True,
    "judges[].attributes": {"tuning": "instruct"},
}


@pytest.mark.parametrize("key", SETTINGS_WITHOUT_EFFECT)
def test_a_setting_without_effect_changes_no_hash_and_is_not_called_a_change(key: str) -> None:
    stored = AuditConfig.model_validate(SETTINGS)
    changed = AuditConfig.model_validate(_set_key({**SETTINGS, "limits": {}}, key, WITHOUT_EFFECT[key]))
    assert changed != stored
    assert changed.hash == stored.hash
    audit = stored_audit(stored.model_dump(mode="json"))
    notice = describe_config_change(audit, changed.model_copy(update={"seed": 5}), "another")
    assert notice is not None
    assert "changed since its last run: seed. " in notice


def test_a_project_that_was_moved_is_not_called_a_change() -> None:
    stored = AuditConfig.model_validate(SETTINGS)
    moved = AuditConfig.model_validate(_set_key(SETTINGS, "survey.source", "/elsewhere/people.csv"))
    notice = describe_config_change(stored_audit(stored.model_dump(mode="json")), moved, "another")
    assert moved.hash == stored.hash
    assert notice is not None
    assert "reads a file that has changed" in notice
