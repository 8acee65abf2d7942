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
        ({"probes": {"review": {"rewrite": "neutral", "rewriter": "model-a"}}}, r"review\.rewrite"),
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


def sharing(*limits: dict[str, Any], **key: Any) -> AuditConfig:
    """A config with a model for each table of limits, all with one account."""
    common = {"api_key": "os.environ/SCRIPTED_KEY", "api_base": "http://127.0.0.1:9/v1", **key}
    models = [{"name": f"m{i}", "model": f"openai/m{i}", **common, **limit} for i, limit in enumerate(limits)]
    return AuditConfig.model_validate({"name": "limits", "survey": {"source": "wvs7-sample"}, "models": models})


@pytest.mark.parametrize("key", ["rpm", "tpm"])
def test_models_that_share_an_accounts_limits_name_one_value(key: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=f"'m0' and 'm2' share one limit {key} .* is 100 and 50.*How to"):
        sharing({key: 100}, {}, {key: 50}, rate_limit_scope="account")
    sharing({key: 100}, {}, {key: 100}, rate_limit_scope="account")
    sharing({key: 100}, {"rate_limit_scope": "account", key: 50}, {"rate_limit_scope": "model", key: 7})
    sharing({key: 100}, {key: 50, "api_key": "os.environ/OTHER_KEY"}, rate_limit_scope="account")


def test_another_tolerance_is_another_audit() -> None:
    assert audit().hash != audit(task={**EXACT, "tolerance": 1}).hash
