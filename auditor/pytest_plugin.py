"""The pytest plugin: `audit_of("audit.toml")` runs an audit, `audit_of("name")` opens one, for tests of a model.

    def test_the_model_agrees_with_people(audit_of):
        result = audit_of("audit.toml").check(min_pearson=0.6, confident=True)
        assert result, str(result)

A run sends only requests without a recorded answer, and each audit is run once per session.
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
    """Add the setting `auditor_storage`: the URL of the database with the audits."""
    parser.addini("auditor_storage", "Database of audits; AUDITOR_STORAGE, or auditor.db, if not set.", default="")


@pytest.fixture(scope="session")
def audit_of(request: pytest.FixtureRequest) -> Callable[[str | Path], AuditHandle]:
    """Runs the audit of a config file, or opens the audit of that name; relative paths start at pytest's root."""
    storage = str(request.config.getini("auditor_storage")) or None
    handles: dict[str, AuditHandle] = {}

    def audit_of(config_or_name: str | Path) -> AuditHandle:
        """The audit of a config file or name; each is run or opened once per session."""
        from auditor.run import open_audit, run_audit  # loads numpy and SQLAlchemy (1 s): not in every pytest session

        if str(config_or_name) not in handles:
            if str(config_or_name).endswith(CONFIG_SUFFIXES):
                handles[str(config_or_name)] = run_audit(request.config.rootpath / config_or_name, storage=storage)
            else:
                handles[str(config_or_name)] = open_audit(str(config_or_name), storage=storage)
        return handles[str(config_or_name)]

    return audit_of
