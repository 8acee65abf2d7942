"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.files import write_whole


def test_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    write_whole("neu ✓\n", path)
    assert path.read_bytes() == "neu ✓\n".encode()
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_whole("half \ud800", path)
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_the_file_can_be_read_as_others_are(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    write_whole("x", tmp_path / "report.md")
    assert stat.S_IMODE((tmp_path / "report.md").stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/report.html", ""])
def test_a_path_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be written|a folder"):
        write_whole("x", tmp_path / name)
