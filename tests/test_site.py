"""The documentation builds without a warning: every link leads somewhere, and the reference has every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("material")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    commands = (tmp_path / "site" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "auditor compare" in commands
    assert "--min-pearson" in commands
    assert "crossed_interval" in (tmp_path / "site" / "metrics" / "index.html").read_text(encoding="utf-8")
    pages = "".join(page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html"))
    assert "fonts.googleapis" not in pages
