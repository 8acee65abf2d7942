"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from auditor.atomic_files import make_folder, report_write_errors, write_atomically
from auditor.errors import AuditorError, UsageError


def test_a_file_is_written_completely(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    write_atomically("neu ✓\n", path)
    assert path.read_bytes() == "neu ✓\n".encode()
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_atomically("half \ud800", path)
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_the_file_has_the_default_permissions(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    write_atomically("x", tmp_path / "report.md")
    assert stat.S_IMODE((tmp_path / "report.md").stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/report.html", ""])
def test_an_unwritable_path_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be written|a folder"):
        write_atomically("x", tmp_path / name)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_an_error_with_the_fix(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(AuditorError, match="Free space on the disk") as caught,
        report_write_errors(tmp_path / "a.parquet"),
    ):
        raise OSError(number, "a library's own words")
    assert caught.value.message == f"{tmp_path / 'a.parquet'}: cannot be written: {os.strerror(number)}."
    assert caught.value.exit_code == 1


def test_a_broken_pipe_is_not_reported_as_a_write_error() -> None:
    with pytest.raises(BrokenPipeError), report_write_errors("standard output"):
        raise BrokenPipeError


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 252 + ".md")
    write_atomically("x", path)
    assert path.read_text(encoding="utf-8") == "x"


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        make_folder(tmp_path / "file" / "folder")
