"""`auditor status`: an audit that cannot be read does not hide the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.storage import audits
from auditor.storage.database import open_database
from tests.storage.test_database import SURVEY
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """A database with an audit between two whose configurations this version cannot read."""
    url = f"sqlite:///{tmp_path}/audits.db"
    readable = config("http://127.0.0.1:1").model_dump(mode="json")
    with open_database(url) as db:
        for name, limits in (("newer", {"ceiling": 3}), ("readable", readable["limits"]), ("newest", {"ceiling": 4})):
            text = json.dumps(readable | {"name": name, "limits": limits})
            audits.save_audit(db, name=name, config=text, config_hash="h", survey=SURVEY, environment={})
    return url


def test_one_unreadable_audit_hides_no_other(storage: str) -> None:
    shown = auditor("status", "--storage", storage)
    assert (shown.returncode, "readable" in shown.stdout, "newer" in shown.stdout) == (2, True, False)
    for name in ("newer", "newest"):
        assert f"the stored configuration of audit '{name}' cannot be read by this version" in shown.stderr
    as_json = auditor("status", "--json", "--storage", storage)
    assert as_json.returncode == 2
    assert [status["audit"] for status in json.loads(as_json.stdout)] == ["readable"]
    assert auditor("status", "readable", "--storage", storage).returncode == 0
    assert auditor("status", "newer", "--storage", storage).returncode == 2
