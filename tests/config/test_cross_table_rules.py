"""Tests of rules between tables: which settings may stand next to the table `task`."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from auditor.config import AuditConfig
from tests.support.audit_configs import config

EXACT = {"source": "items.csv", "answer": "exact"}


def audit(**changes: Any) -> AuditConfig:
    """A valid config of a task audit without a survey, with tables replaced by `changes`."""
    return config("http://127.0.0.1:9/v1", **({"survey": None, "task": EXACT} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"survey": {"source": "wvs7-sample"}}, "both 'survey' and 'task' are set"),
        ({"probes": {"semantic": {}}, "embedding": {}}, "no probe uses its items"),
        ({"probes": {"direct": {}, "logprob": {}}}, r"probes\.logprob: cannot be used with a task"),
        ({"probes": {"review": {"guess": True}}}, r"review\.guess"),
        ({"probes": {"direct": {"form": "paper"}}}, r"direct\.form: cannot be used with a task"),
        ({"probes": {"direct": {}, "logic": {"items": "traces"}}}, '"traces" cannot be used with a task'),
        ({"probes": {"direct": {"target_width": 0.2}}}, r"direct\.target_width"),
        ({"language": "de"}, "the items of a task are not translated"),
        ({"task": None}, "Or add 'task'"),
    ],
)
def test_keys_that_conflict_with_a_task_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        audit(**changes)


def test_another_tolerance_is_another_audit() -> None:
    assert audit().hash != audit(task={**EXACT, "tolerance": 1}).hash
