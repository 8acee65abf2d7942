"""Notices of changed configurations."""

from __future__ import annotations

import json
from typing import Any

from auditor.run.fingerprints import describe_config_change, keep_earlier_defaults
from auditor.storage.audits import Audit
from tests.support.audit_configs import config, with_schema_version


def stored_audit(stored_config: dict[str, Any]) -> Audit:
    return Audit(1, "scripted", json.dumps(stored_config), "hash", "{}", "done", "", "", None, "{}")


def test_a_config_that_this_version_cannot_read_is_compared_key_by_key() -> None:
    audit = config("http://127.0.0.1:1")
    stored_config = audit.model_dump(mode="json") | {"gone": 1, "seed": 8}
    notice = describe_config_change(stored_audit(stored_config), audit, "another")
    assert notice is not None
    assert "changed since its last run: gone, seed. " in notice


def test_a_change_that_no_key_shows_may_be_in_a_file() -> None:
    audit = config("http://127.0.0.1:1")
    notice = describe_config_change(stored_audit(audit.model_dump(mode="json")), audit, "another")
    assert notice is not None
    assert notice.startswith("Audit 'scripted' reads a file that has changed, or was last run by another version ")


BOTH_METHODS: dict[str, Any] = {"probes": {"direct": {"samples": 1}, "logprob": {}}}


def test_an_audit_begun_when_method_conflicts_were_reviewed_by_default_resumes_unchanged() -> None:
    started = config("http://127.0.0.1:1", **BOTH_METHODS, conflicts={"methods": True})
    now = config("http://127.0.0.1:1", **BOTH_METHODS)
    audit = stored_audit(started.model_dump(mode="json"))
    resumed = keep_earlier_defaults(audit, now)
    assert not now.conflicts.methods
    assert resumed.conflicts.methods
    assert resumed.hash == started.hash
    assert describe_config_change(audit, resumed, "hash") is None


def test_an_audit_begun_with_the_first_schema_keeps_it_unless_the_file_names_another() -> None:
    now = config("http://127.0.0.1:1", probes={"direct": {"samples": 3}})
    started = with_schema_version(now, 1)
    stored = started.model_dump(mode="json")
    del stored["probes"]["direct"]["schema_version"]  # as earlier versions stored it
    audit = stored_audit(stored)
    resumed = keep_earlier_defaults(audit, now)
    assert resumed.hash == started.hash != now.hash
    assert describe_config_change(audit, resumed, "hash") is None
    assert keep_earlier_defaults(None, now) == now
    assert keep_earlier_defaults(stored_audit(now.model_dump(mode="json")), now).hash == now.hash
    explicit = config("http://127.0.0.1:1", probes={"direct": {"samples": 3, "schema_version": 2}})
    assert keep_earlier_defaults(audit, explicit) == explicit.model_copy(
        update={"conflicts": keep_earlier_defaults(audit, explicit).conflicts}
    )
    notice = describe_config_change(audit, explicit, "another")
    assert notice is not None
    assert "changed since its last run: probes.direct.schema_version. " in notice


def test_a_new_audit_and_one_that_sets_the_key_get_what_they_say() -> None:
    now = config("http://127.0.0.1:1", **BOTH_METHODS)
    assert not keep_earlier_defaults(None, now).conflicts.methods
    explicit = config("http://127.0.0.1:1", **BOTH_METHODS, conflicts={"methods": False})
    earlier = stored_audit(config("http://127.0.0.1:1", conflicts={"methods": True}).model_dump(mode="json"))
    assert not keep_earlier_defaults(earlier, explicit).conflicts.methods
    assert explicit.hash == now.hash


def test_the_key_counts_only_where_scores_are_by_two_methods() -> None:
    direct_only = {"probes": {"direct": {"samples": 1}}}
    hashes = [
        {config("http://127.0.0.1:1", **probes, conflicts={"methods": value}).hash for value in (True, False)}
        for probes in (direct_only, BOTH_METHODS)
    ]
    assert [len(values) for values in hashes] == [1, 2]
