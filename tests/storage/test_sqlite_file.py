"""The SQLite file: its permissions, log files, backup and file systems, and whether it was moved while open."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from auditor.errors import StorageError
from auditor.storage import audits, sqlite_file
from auditor.storage.database import open_database
from auditor.storage.sqlite_file import (
    WatchedFile,
    copy_database,
    create_database_file,
    create_private,
    find_filesystem_type,
    find_unused_path,
    list_permissions,
    read_unlinked,
    refuse_network_filesystem,
    refuse_unread_log,
    replace_private,
)
from tests.storage.test_database import save_sample_audit
from tests.support.known import known

LINUX = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:20 / /proc rw - proc proc rw
40 22 0:45 / /home rw,relatime shared:2 master:1 - nfs4 server:/home rw,vers=4.2
41 40 8:2 / /home/local rw - xfs /dev/sdb1 rw
42 22 0:46 / /mnt/my\\040share rw - cifs //server/share rw
43 22 0:47 / /mnt/remote rw - fuse.sshfs me@server:/ rw
44 22 0:48 / /mnt/disk rw - fuse.ntfs-3g /dev/sdc1 rw
45 22 0:49 / /mnt/twice rw - nfs server:/x rw
46 22 8:3 / /mnt/twice rw - ext4 /dev/sdd1 rw
"""
MAC = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//ada@server/team on /Volumes/team (one) (smbfs, nodev, nosuid, mounted by ada)
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_a_new_file_is_private_and_an_existing_one_is_unchanged(tmp_path: Path, umask: int) -> None:
    path, old = tmp_path / "a.db", tmp_path / "old.db"
    old.write_text("content")
    old.chmod(0o640)
    before = os.umask(umask)
    try:
        create_private(path)
        create_private(old)
    finally:
        os.umask(before)
    assert (mode(path), mode(old), old.read_text()) == (0o600, 0o640, "content")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a\.db: cannot be created: No such file or directory\. Name another"):
        create_database_file(tmp_path / "none" / "a.db")


def test_the_permissions_are_those_of_all_its_files(tmp_path: Path) -> None:
    for name in ("a.db", "a.db-wal", "b.db"):
        (tmp_path / name).touch(0o600)
    permissions = [(path.name, bits) for path, bits in list_permissions(tmp_path / "a.db")]
    assert permissions == [("a.db", 0o600), ("a.db-wal", 0o600)]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_only_a_log_with_content_is_refused(tmp_path: Path, suffix: str) -> None:
    path, log = tmp_path / "a.db", tmp_path / f"a.db{suffix}"
    refuse_unread_log(path)
    log.touch()
    refuse_unread_log(path)
    log.write_bytes(b"x")
    with pytest.raises(StorageError, match=f"a.db{suffix} has changes that are not yet in the database"):
        refuse_unread_log(path)


def test_writing_to_a_file_is_not_a_move(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_text("one")
    watched = WatchedFile(path)
    path.write_text("two")
    path.chmod(0o400)
    assert watched.moved_error() is None
    watched.require_unmoved()


def test_a_symlinked_file_is_watched(tmp_path: Path) -> None:
    path, link = tmp_path / "a.db", tmp_path / "link.db"
    path.touch()
    link.symlink_to(path)
    watched = WatchedFile(link)
    watched.require_unmoved()
    link.unlink()
    with pytest.raises(StorageError, match=r"link\.db was deleted or moved"):
        watched.require_unmoved()


def test_a_moved_replaced_or_deleted_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, moved = tmp_path / "a.db", tmp_path / "b.db"
    monkeypatch.chdir(tmp_path)
    path.touch()
    with path.open():
        watched = WatchedFile(Path("a.db"))
        path.rename(moved)
        with pytest.raises(StorageError, match=f"its data were at {path} and are now at {moved}"):
            watched.require_unmoved()
        shutil.copy(moved, path)
        with pytest.raises(StorageError, match="was replaced by another file"):
            watched.require_unmoved()
        path.unlink()
        moved.unlink()
        error = watched.moved_error(["m direct 1", "m direct 2"])
    assert error is not None
    assert error.message == (
        f"the database a.db was deleted or moved while it was in use: its data were at {path}. "
        "These answers may not be on disk: m direct 1, m direct 2."
    )
    assert error.how_to_fix.startswith("Restore it or a copy")


@pytest.mark.parametrize("is_dangling", [False, True])
@pytest.mark.parametrize("create", [False, True])
def test_a_linked_database_is_refused_with_the_storage_to_type(
    tmp_path: Path, *, create: bool, is_dangling: bool
) -> None:
    target, link = tmp_path / "real.db", tmp_path / "auditor.db"
    if not is_dangling:
        with open_database(f"sqlite:///{target}"):
            pass
    link.symlink_to(target)
    with pytest.raises(StorageError, match="is a link to") as caught:
        open_database(f"sqlite:///{link}", create=create)
    assert f"--storage sqlite:///{target}" in str(caught.value)
    assert target.exists() is not is_dangling
    with open_database(f"sqlite:///{target}"):
        assert mode(target) == 0o600


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_link_at_the_name_of_a_side_file_is_refused(tmp_path: Path, suffix: str) -> None:
    precious = tmp_path / ".bashrc"
    precious.write_text("export PRECIOUS=1")
    (tmp_path / f"auditor.db{suffix}").symlink_to(precious)
    for create in (True, False):
        with pytest.raises(StorageError, match=r"is a link to|there is no database"):
            open_database(f"sqlite:///{tmp_path / 'auditor.db'}", create=create)
    with pytest.raises(StorageError, match="is a link to"):
        create_database_file(tmp_path / "auditor.db")
    assert precious.read_text() == "export PRECIOUS=1"


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_side_file_with_a_second_name_is_refused(tmp_path: Path, suffix: str) -> None:
    precious, path = tmp_path / "thesis.txt", tmp_path / "auditor.db"
    with open_database(f"sqlite:///{path}"):
        pass
    precious.write_text("precious")
    (tmp_path / f"auditor.db{suffix}").unlink(missing_ok=True)
    (tmp_path / f"auditor.db{suffix}").hardlink_to(precious)
    with pytest.raises(StorageError, match=f"auditor.db{suffix}: has a second name"):
        open_database(f"sqlite:///{path}")
    assert precious.read_text() == "precious"


def test_linked_parents_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with open_database(f"sqlite:///{tmp_path / 'link' / 'auditor.db'}"):
        assert mode(tmp_path / "folder" / "auditor.db") == 0o600


def test_a_private_file_is_not_created_through_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    with pytest.raises(OSError, match="it is a link"):
        create_private(tmp_path / "a")
    replace_private(tmp_path / "a", "text")
    assert (mode(tmp_path / "a"), read_unlinked(tmp_path / "a")) == (0o600, "text")
    assert not (tmp_path / "b").exists()


def test_a_copy_of_a_database_in_use_is_complete(file_storage: str, tmp_path: Path) -> None:
    with open_database(file_storage) as db:
        audit = save_sample_audit(db)
        with db.read():  # an open reader keeps the writes in the WAL file
            copy_database(known(db.path), tmp_path / "copy.db")
        assert {p.name for p in tmp_path.glob("copy*")} == {"copy.db"}
        with open_database(f"sqlite:///{tmp_path / 'copy.db'}", create=False) as copy:
            assert audits.get_audit(copy, "a") == audit


def test_a_copy_never_overwrites_a_file(file_storage: str, tmp_path: Path) -> None:
    with open_database(file_storage) as db:
        assert db.path is not None
        with pytest.raises(StorageError, match="exists already"):
            copy_database(db.path, db.path)
        with pytest.raises(StorageError, match="cannot be copied"):
            copy_database(db.path, tmp_path / "none" / "copy.db")
        with pytest.raises(StorageError, match="cannot be copied"):
            copy_database(tmp_path / "none.db", tmp_path / "copy.db")
    assert list(tmp_path.glob("copy*")) == []


def test_a_damaged_database_gives_no_copy(file_storage: str, tmp_path: Path) -> None:
    with open_database(file_storage) as db:
        save_sample_audit(db)
        copy_database(known(db.path), tmp_path / "copy.db")
    content = bytearray((tmp_path / "copy.db").read_bytes())
    content[-2048:] = b"\xff" * 2048
    (tmp_path / "broken.db").write_bytes(content)
    with pytest.raises(StorageError, match=r"is incomplete|cannot be copied"):
        copy_database(tmp_path / "broken.db", tmp_path / "again.db")
    assert list(tmp_path.glob("again*")) == []


def test_unused_path_appends_the_next_number(tmp_path: Path) -> None:
    assert find_unused_path(tmp_path / "a.bak") == tmp_path / "a.bak"
    (tmp_path / "a.bak").touch()
    (tmp_path / "a.bak-2").touch()
    assert find_unused_path(tmp_path / "a.bak") == tmp_path / "a.bak-3"


@pytest.mark.parametrize(
    ("path", "filesystem_type", "table"),
    [
        ("/var/a.db", "ext4", LINUX), ("/home/ada/a.db", "nfs4", LINUX), ("/home/local/a.db", "xfs", LINUX),
        ("/homework/a.db", "ext4", LINUX), ("/mnt/my share/a.db", "cifs", LINUX),
        ("/mnt/remote/a.db", "fuse.sshfs", LINUX), ("/mnt/disk/a.db", "fuse.ntfs-3g", LINUX),
        ("/mnt/twice/a.db", "ext4", LINUX), ("/Volumes/team (one)/a.db", "smbfs", MAC),
        ("/System/Volumes/Data/a.db", "apfs", MAC), ("/var/a.db", None, ""),
    ],
)  # fmt: skip
def test_the_file_system_of_a_path(path: str, filesystem_type: str | None, table: str) -> None:
    assert find_filesystem_type(Path(path), table) == filesystem_type
    if filesystem_type in ("nfs4", "cifs", "fuse.sshfs", "smbfs"):
        with pytest.raises(StorageError, match=f"network file system .{filesystem_type}") as refused:
            refuse_network_filesystem(Path(path), table)
        assert "local disk" in refused.value.how_to_fix
    else:
        refuse_network_filesystem(Path(path), table)


def test_a_database_on_a_network_file_system_is_not_opened(
    file_storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_database(file_storage).close()
    mounts = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:9 / {tmp_path.resolve()} rw - nfs server:/x rw\n"
    monkeypatch.setattr(sqlite_file, "_read_mount_table", lambda: mounts)
    for create in (True, False):
        with pytest.raises(StorageError, match="on which SQLite may lose data"):
            open_database(file_storage, create=create)
    assert sqlite_file.find_filesystem_type(Path("/"), mounts) == "ext4"


def test_the_file_system_of_this_machine_is_found() -> None:
    assert find_filesystem_type(Path("/")) is not None
