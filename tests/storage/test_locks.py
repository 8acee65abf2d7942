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


def lock_folder(database: Path) -> Path:
    """The folder of a database's locks, which is created."""
    folder = database.with_name(".auditor.db.locks")
    folder.mkdir(exist_ok=True)
    return folder


def link_softly(link: Path, target: Path) -> None:
    link.symlink_to(target)


def link_by_second_name(link: Path, target: Path) -> None:
    link.hardlink_to(target)


@pytest.mark.parametrize("link", [link_softly, link_by_second_name])
def test_the_holder_replaces_a_link_and_does_not_follow_it(
    precious: Path, database: Path, link: Callable[[Path, Path], None]
) -> None:
    holder = lock_folder(database) / "a.holder"
    link(holder, precious)
    with hold_file_lock(database, "a"):
        assert not holder.is_symlink()
        assert holder.read_text(encoding="utf-8") == f"process {os.getpid()} on {os.uname().nodename[:40]}"
        assert stat.S_IMODE(holder.stat().st_mode) == 0o600
    assert precious.read_text(encoding="utf-8") == PRECIOUS


def test_a_dangling_link_creates_no_file_elsewhere(tmp_path: Path, database: Path) -> None:
    (lock_folder(database) / "a.holder").symlink_to(tmp_path / "elsewhere")
    with hold_file_lock(database, "a"):
        assert stat.S_IMODE((lock_folder(database) / "a.holder").stat().st_mode) == 0o600
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("link", [link_softly, link_by_second_name])
def test_a_lock_that_is_a_link_is_refused(precious: Path, database: Path, link: Callable[[Path, Path], None]) -> None:
    link(lock_folder(database) / "a.lock", precious)
    with pytest.raises(StorageError, match="is a link, which is not followed"), hold_file_lock(database, "a"):
        pass
    assert precious.read_text(encoding="utf-8") == PRECIOUS


def test_a_folder_of_locks_that_is_a_link_is_refused(tmp_path: Path, database: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.holder").write_text(f"process {os.getpid()} on another")
    database.with_name(".auditor.db.locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link, which is not followed"), hold_file_lock(database, "a"):
        pass
    assert find_file_lock_holder(database, "a") is None
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["a.holder"]


def test_a_database_has_one_hidden_folder_of_locks(database: Path) -> None:
    with hold_file_lock(database, "a"), hold_file_lock(database, "b-1.5"):
        assert find_file_lock_holder(database, "b-1.5") is not None
    (folder,) = database.parent.iterdir()
    assert (folder.name, stat.S_IMODE(folder.stat().st_mode)) == (".auditor.db.locks", 0o700)


def test_filelock_does_not_follow_links_either(precious: Path, database: Path) -> None:
    """The lowest version that auditor accepts is tried by `make lowest`."""
    from filelock import FileLock

    installed = f"filelock=={metadata.version('filelock')}"
    assert installed == os.environ.get("AUDITOR_TEST_FILELOCK", installed)
    link_softly(database.with_name("a.lock"), precious)
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.ELOOP))):
        FileLock(str(database.with_name("a.lock")), timeout=0).acquire()
    assert precious.read_text(encoding="utf-8") == PRECIOUS


def test_links_and_pipes_are_not_read_as_the_holders_name(precious: Path, database: Path) -> None:
    holder = lock_folder(database) / "a.holder"
    with hold_file_lock(database, "a"):
        holder.unlink()
        holder.symlink_to(precious)
        with pytest.raises(LockHeldError, match="another process"), hold_file_lock(database, "a"):
            pass
        assert find_file_lock_holder(database, "a") is None
        holder.unlink()
        os.mkfifo(holder)
        assert find_file_lock_holder(database, "a") is None


@pytest.mark.parametrize("is_folders_owner", [True, False])
def test_a_lock_that_another_user_left_is_named_with_what_to_delete(
    database: Path, monkeypatch: pytest.MonkeyPatch, is_folders_owner: bool
) -> None:
    folder = lock_folder(database)
    lock = folder / "a.lock"
    lock.touch()
    real_lstat, user_id = Path.lstat, os.geteuid()

    def lstat(path: Path) -> os.stat_result:
        fields = list(real_lstat(path))
        fields[stat.ST_UID] = user_id if path == folder and is_folders_owner else user_id + 1
        return os.stat_result(fields)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(lock))

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    monkeypatch.setattr(Path, "lstat", lstat)
    with pytest.raises(StorageError) as caught, hold_file_lock(database, "a"):
        pass
    assert f"{lock if is_folders_owner else folder}: belongs to another user" in str(caught.value)
    assert "Delete it" in (caught.value.how_to_fix or "")
