"""Detect network file systems, on which a SQLite database would be damaged sooner or later.

SQLite's write-ahead log needs memory that is shared by all processes, which no network file system offers.
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
"""Types of file systems that several machines may write to. 9p and virtiofs are left out, since they may be the disk of
a virtual machine."""
NETWORK_FUSE_PROGRAMS = frozenset((
    "sshfs", "davfs", "davfs2", "glusterfs", "ceph", "ceph-fuse", "s3fs", "gcsfuse", "rclone", "goofys", "mount-s3",
    "blobfuse", "blobfuse2", "curlftpfs", "juicefs", "seaweedfs", "moosefs",
))  # fmt: skip
"""Network file systems that are FUSE programs, whose type reads `fuse.NAME`."""


def refuse_network_filesystem(path: Path, mount_table: str | None = None) -> None:
    """Raise StorageError if a file lies, or would lie, on a network file system.

    Args:
        path: of the file, which need not exist.
        mount_table: the table of mounts; None reads the system's.
    """
    filesystem_type = "smb3" if str(path).startswith("\\\\") else find_filesystem_type(path.resolve(), mount_table)
    if filesystem_type is not None and is_network_filesystem(filesystem_type):
        raise StorageError(
            f"{path} is on a network file system ({filesystem_type}), on which SQLite may lose data.",
            "Move it to a local disk, or use a PostgreSQL server: --storage postgresql+psycopg://USER@HOST/NAME",
        )


def is_network_filesystem(filesystem_type: str) -> bool:
    """Whether several machines may write to a file system of this type."""
    program = filesystem_type.removeprefix("fuse.")
    return filesystem_type in NETWORK_FILESYSTEMS or (program != filesystem_type and program in NETWORK_FUSE_PROGRAMS)


def find_filesystem_type(path: Path, mount_table: str | None = None) -> str | None:
    """Type of the file system that holds an absolute path; None if it is not in the table of mounts."""
    deepest_mount: tuple[int, str] | None = None
    for mount_point, filesystem_type in _parse_mounts(_read_mount_table() if mount_table is None else mount_table):
        contains_path = path.is_relative_to(mount_point)
        # ">=", since the later of two mounts on the same point hides the earlier one.
        if contains_path and (deepest_mount is None or len(mount_point.parts) >= deepest_mount[0]):
            deepest_mount = (len(mount_point.parts), filesystem_type)
    return None if deepest_mount is None else deepest_mount[1]


def _read_mount_table() -> str:
    """Read the system's table of mounts as text; empty if it cannot be read."""
    if sys.platform == "darwin":
        return subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False).stdout
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _parse_mounts(mount_table: str) -> Iterator[tuple[Path, str]]:
    """Parse mount points and types from Linux's mountinfo (proc(5)) or the output of macOS's `mount`."""
    for line in mount_table.splitlines():
        mount_fields, separator, filesystem_fields = line.partition(" - ")
        if separator:  # mountinfo: the fifth field is the mount point, the first one after ` - ` the type
            yield Path(_unescape_mount_point(mount_fields.split()[4])), filesystem_fields.split()[0]
        elif match := re.fullmatch(r".+? on (/.*) \((\w+)[,)].*", line):
            yield Path(match[1]), match[2]


def _unescape_mount_point(mount_point: str) -> str:
    """Replace the octal escapes of a mount point, such as \\040 for a space."""
    octal = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), os.fsencode(mount_point))
    return os.fsdecode(octal)
