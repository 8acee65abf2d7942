"""Notices of changed configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.run.config_changes import describe_config_change
from auditor.storage.audits import Audit
from tests.support.audit_configs import config


def stored_audit(stored_config: dict[str, Any]) -> Audit:
    return Audit(1, "scripted", json.dumps(stored_config), "hash", "{}", "done", "", "", None, "{}")


def test_a_config_that_this_version_cannot_read_is_compared_key_by_key() -> None:
    audit = config("http://127.0.0.1:1")
    stored_config = audit.model_dump(mode="json") | {"gone": 1, "seed": 8}
    notice = describe_config_change(stored_audit(stored_config), audit, "another")
    assert notice is not None
    assert "changed since its last run: gone, seed. " in notice


def test_an_old_spelling_of_a_key_is_not_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = config("http://127.0.0.1:1")
    stored_config = audit.model_dump(mode="json") | {"gone": 1}
    stored_config["rng"] = stored_config.pop("seed")
    monkeypatch.setattr(AuditConfig.model_fields["seed"], "validation_alias", "rng")
    notice = describe_config_change(stored_audit(stored_config), audit, "another")
    assert notice is not None
    assert "changed since its last run: gone. " in notice
