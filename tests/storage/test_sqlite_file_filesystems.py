from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import StorageError
from auditor.storage import sqlite_file
from auditor.storage.database import open_database
from auditor.storage.sqlite_file import find_filesystem_type, refuse_network_filesystem

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


@pytest.mark.parametrize(
    ("path", "filesystem_type", "table"),
    [
        ("/var/a.db", "ext4", LINUX),
        ("/home/ada/a.db", "nfs4", LINUX),
        ("/home/local/a.db", "xfs", LINUX),
        ("/homework/a.db", "ext4", LINUX),
        ("/mnt/my share/a.db", "cifs", LINUX),
        ("/mnt/remote/a.db", "fuse.sshfs", LINUX),
        ("/mnt/disk/a.db", "fuse.ntfs-3g", LINUX),
        ("/mnt/twice/a.db", "ext4", LINUX),
        ("/Volumes/team (one)/a.db", "smbfs", MAC),
        ("/System/Volumes/Data/a.db", "apfs", MAC),
        ("/var/a.db", None, ""),
    ],
)
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
