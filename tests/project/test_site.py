"""The documentation builds without warnings such as broken links, and the reference has commands and config keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from auditor.config import AuditConfig
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_every_key_of_the_configuration_is_documented() -> None:
    schema = AuditConfig.model_json_schema()
    tables = {"the file": schema, **schema["$defs"]}
    assert not [(t, k) for t, table in tables.items() for k, v in table["properties"].items() if "description" not in v]


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="needs the extra 'docs': pip install 'auditor[docs]'")
    process = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
    commands = (tmp_path / "site" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "auditor compare" in commands
    assert "--min-pearson" in commands
    configuration = (tmp_path / "site" / "configuration" / "index.html").read_text(encoding="utf-8")
    assert "probes.semantic.consistency" in configuration
    assert "Minimum Pearson correlation (r) of every model's scores with people's." in configuration
    assert "AuditHandle.frame" in (tmp_path / "site" / "python" / "index.html").read_text(encoding="utf-8")
    assert "crossed_jackknife" in (tmp_path / "site" / "metrics" / "index.html").read_text(encoding="utf-8")
    pages = "".join(page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html"))
    assert "fonts.googleapis" not in pages
