"""The pytest plugin: `audit_of("audit.toml")` runs an audit, `audit_of("name")` opens one, for tests of a model.

    def test_the_model_agrees_with_people(audit_of):
        result = audit_of("audit.toml").check(min_pearson=0.6, confident=True)
        assert result, str(result)

A run asks only what is not yet recorded, and an audit is run once in a session.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from auditor.run import AuditHandle

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """One setting: where audits are."""
    parser.addini("auditor_storage", "Database of audits; AUDITOR_STORAGE, or auditor.db, if not set.", default="")


@pytest.fixture(scope="session")
def audit_of(request: pytest.FixtureRequest) -> Callable[[str | Path], AuditHandle]:
    """Runs the audit of a config file, or opens the audit of that name; relative paths start at pytest's root."""
    storage = str(request.config.getini("auditor_storage")) or None
    done: dict[str, AuditHandle] = {}

    def audit_of(what: str | Path) -> AuditHandle:
        from auditor.run import open_audit, run_audit

        if str(what) not in done:
            if str(what).endswith(CONFIG_SUFFIXES):
                done[str(what)] = run_audit(request.config.rootpath / what, storage=storage)
            else:
                done[str(what)] = open_audit(str(what), storage=storage)
        return done[str(what)]

    return audit_of
