"""The files of a lock are private, and no link at their names is followed."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from auditor.errors import StorageError
from auditor.storage.locks import LockHeldError, find_file_lock_holder, hold_file_lock

PRECIOUS = "export PRECIOUS=1"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of the user outside of the folder of the database."""
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_text(PRECIOUS, encoding="utf-8")
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of a database in a folder of somebody else."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project" / "auditor.db"


def link_softly(link: Path, target: Path) -> None:
    link.symlink_to(target)


def link_by_second_name(link: Path, target: Path) -> None:
    link.hardlink_to(target)


@pytest.mark.parametrize("link", [link_softly, link_by_second_name])
def test_the_holder_replaces_a_link_and_does_not_follow_it(
    precious: Path, database: Path, link: Callable[[Path, Path], None]
) -> None:
    holder = database.with_name("auditor.db.a.holder")
    link(holder, precious)
    with hold_file_lock(database, "a"):
        assert not holder.is_symlink()
        assert holder.read_text(encoding="utf-8") == f"process {os.getpid()} on {os.uname().nodename[:40]}"
        assert stat.S_IMODE(holder.stat().st_mode) == 0o600
    assert precious.read_text(encoding="utf-8") == PRECIOUS


def test_a_dangling_link_creates_no_file_elsewhere(tmp_path: Path, database: Path) -> None:
    database.with_name("auditor.db.a.holder").symlink_to(tmp_path / "elsewhere")
    with hold_file_lock(database, "a"):
        assert stat.S_IMODE(database.with_name("auditor.db.a.holder").stat().st_mode) == 0o600
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("link", [link_softly, link_by_second_name])
def test_a_lock_that_is_a_link_is_refused(precious: Path, database: Path, link: Callable[[Path, Path], None]) -> None:
    link(database.with_name("auditor.db.a.lock"), precious)
    with pytest.raises(StorageError, match="is a link, which is not followed"), hold_file_lock(database, "a"):
        pass
    assert precious.read_text(encoding="utf-8") == PRECIOUS


def test_filelock_does_not_follow_links_either(precious: Path, database: Path) -> None:
    """The lowest version that auditor accepts is tried by `make lowest`."""
    from filelock import FileLock

    assert f"filelock=={metadata.version('filelock')}" == os.environ.get(
        "AUDITOR_TEST_FILELOCK", f"filelock=={metadata.version('filelock')}"
    )
    link_softly(database.with_name("a.lock"), precious)
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.ELOOP))):
        FileLock(str(database.with_name("a.lock")), timeout=0).acquire()
    assert precious.read_text(encoding="utf-8") == PRECIOUS


def test_links_and_pipes_are_not_read_as_the_holders_name(precious: Path, database: Path) -> None:
    holder = database.with_name("auditor.db.a.holder")
    with hold_file_lock(database, "a"):
        holder.unlink()
        holder.symlink_to(precious)
        with pytest.raises(LockHeldError, match="another process"), hold_file_lock(database, "a"):
            pass
        assert find_file_lock_holder(database, "a") is None
        holder.unlink()
        os.mkfifo(holder)
        assert find_file_lock_holder(database, "a") is None
