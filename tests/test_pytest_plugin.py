"""The pytest plugin in a separate session: it runs an audit once, opens it by name, and reports unmet thresholds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.audit_configs import FOUR_CELLS, KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer
from tests.support.patience import PATIENCE_S

SESSION = """
def test_it_runs(audit_of):
    result = audit_of("audit.yaml").check(min_pearson=-1)
    assert result, str(result)

def test_it_runs_once_and_opens_by_name(audit_of):
    assert audit_of("audit.yaml") is audit_of("audit.yaml")
    assert audit_of("scripted").name == "scripted"

def test_it_says_what_was_not_met(audit_of):
    result = audit_of("scripted").check(min_pearson=1, max_open_conflicts=0)
    assert result, str(result)
"""


def test_a_session_with_the_plugin(server: FakeServer, tmp_path: Path) -> None:
    """Without the plugins of other packages, which take seconds to load."""
    audit = config(server.url, 2, survey=FOUR_CELLS)
    (tmp_path / "audit.yaml").write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)))
    (tmp_path / "test_model.py").write_text(SESSION)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nauditor_storage = sqlite:///{tmp_path}/ci.db\n")
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "auditor.pytest_plugin", "-p", "no:cacheprovider"], cwd=tmp_path,
        env={**os.environ, KEY_VARIABLE: KEY, "PYTHONPATH": str(Path(__file__).parent.parent),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert "2 passed" in completed.stdout, completed.stdout + completed.stderr
    assert "1 failed" in completed.stdout
    assert "scripted failed" in completed.stdout
    assert "min_pearson" in completed.stdout
    assert (tmp_path / "ci.db").exists()
