"""Where a SQLite database cannot live: SQLite's write-ahead log needs memory that all its processes share, which no
file system over a network gives, and such a file is damaged sooner or later.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from auditor.errors import StorageError

NETWORK_FILESYSTEMS = frozenset((
    "nfs", "nfs3", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afpfs", "afs", "webdav", "davfs", "ncpfs", "ceph",
    "lustre", "gpfs", "beegfs", "glusterfs", "orangefs",
))  # fmt: skip
"""Types of file systems that several machines may write to. 9p and virtiofs are not among them: a virtual machine's own
disk may be one."""
NETWORK_FUSE_PROGRAMS = frozenset((
    "sshfs", "davfs", "davfs2", "glusterfs", "ceph", "ceph-fuse", "s3fs", "gcsfuse", "rclone", "goofys", "mount-s3",
    "blobfuse", "blobfuse2", "curlftpfs", "juicefs", "seaweedfs", "moosefs",
))  # fmt: skip
"""The same as programs, whose type reads `fuse.NAME`."""


def refuse_network_filesystem(path: Path, mount_table: str | None = None) -> None:
    """Raise StorageError where a file would lie on a network file system.

    Args:
        path: the file, there or not.
        table: the system's table of mounts; read from the system when not given.
    """
    kind = "smb3" if str(path).startswith("\\\\") else find_filesystem_type(path.resolve(), mount_table)
    if kind is not None and is_network_filesystem(kind):
        raise StorageError(
            f"{path} is on a network file system ({kind}), on which SQLite loses data.",
            "Keep it on a local disk, or give a team a PostgreSQL server: --storage postgresql+psycopg://USER@HOST/NAME",
        )


def is_network_filesystem(filesystem_type: str) -> bool:
    """Whether a type of file system is one that several machines may write to."""
    program = filesystem_type.removeprefix("fuse.")
    return filesystem_type in NETWORK_FILESYSTEMS or (program != filesystem_type and program in NETWORK_FUSE_PROGRAMS)


def find_filesystem_type(path: Path, mount_table: str | None = None) -> str | None:
    """The type of the file system that holds an absolute path; None where the system does not tell."""
    found: tuple[int, str] | None = None
    for point, kind in _parse_mounts(_read_mount_table() if mount_table is None else mount_table):
        above = path.is_relative_to(point)
        if above and (found is None or len(point.parts) >= found[0]):  # of two mounts on one point the later is seen
            found = (len(point.parts), kind)
    return None if found is None else found[1]


def _read_mount_table() -> str:
    if sys.platform == "darwin":
        return subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False).stdout
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _parse_mounts(mount_table: str) -> Iterator[tuple[Path, str]]:
    """Mount points and types, off Linux's mountinfo (proc(5)) or what macOS's `mount` prints."""
    for line in mount_table.splitlines():
        before, is_linux, after = line.partition(" - ")
        if is_linux:
            yield Path(_unescape_mount_point(before.split()[4])), after.split()[0]
        elif found := re.fullmatch(r".+? on (/.*) \((\w+)[,)].*", line):
            yield Path(found[1]), found[2]


def _unescape_mount_point(mount_point: str) -> str:
    """A blank in a mount point is written as \\040."""
    octal = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), os.fsencode(mount_point))
    return os.fsdecode(octal)
