"""The file of a SQLite database: permissions, write-ahead log, copies, and network file systems."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from auditor.atomic_files import open_replacement
from auditor.errors import StorageError, UsageError

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
            mount_point = mount_fields.split()[4]
            octal = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), os.fsencode(mount_point))
            yield Path(os.fsdecode(octal)), filesystem_fields.split()[0]
        elif match := re.fullmatch(r".+? on (/.*) \((\w+)[,)].*", line):
            yield Path(match[1]), match[2]


PRIVATE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
LOG_SUFFIXES = ("-wal", "-journal", "-shm")
"""Suffixes of SQLite's own files: the two kinds of log, with writes that are not in the database file, and an index."""
OPEN_FILES_FOLDER = Path("/proc/self/fd")
"""Linux's folder of this process's open files, which shows the new path of a file that was moved."""
MAX_LISTED_ANSWERS = 5
MAX_HOLDER_CHARS = 1_000


def create_database_file(path: Path) -> None:
    """Create a private file for SQLite, which gives its log files the same permissions.

    Raises:
        StorageError: the folder cannot be written to, or as `refuse_links`.
    """
    refuse_links(path)
    try:
        create_private(path)
    except OSError as error:
        how_to_fix = "Name another place with --storage, or make this folder writable."
        raise StorageError(f"{path}: cannot be created: {error.strerror}.", how_to_fix) from None


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read and write; an existing file is left as it is.

    Raises:
        OSError: the folder cannot be written to, or the name is that of a link, which is not followed.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_MODE)
    except FileExistsError:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(path)) from None
        return
    os.fchmod(descriptor, PRIVATE_MODE)  # the umask may have removed the owner's permissions
    os.close(descriptor)


def create_private_folder(folder: Path) -> None:
    """Create a folder that only its owner may use, if it is missing.

    Raises:
        OSError: its parent cannot be written to, or its name is that of a link, which is not followed.
    """
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(PRIVATE_FOLDER_MODE)  # whatever the umask is
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(folder))


def replace_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read and write; what is at the path, such as a link, is removed first.

    Raises:
        OSError: the folder cannot be written to.
    """
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, PRIVATE_MODE)
        file.write(text)


def read_unlinked(path: Path) -> str:
    """The text of a small file of ours, at most 1,000 characters; a link or a pipe at its name is not opened.

    Raises:
        OSError: there is no such file, or it is a link.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a file", str(path))
        return file.read(MAX_HOLDER_CHARS)


def refuse_links(path: Path) -> None:
    """Check that neither a database nor a file that SQLite keeps beside it is a link, which SQLite would follow.

    In a folder of somebody else, a link could lead to any file of this user. Links among the parents are followed. The
    files beside the database must have no second name (a hard link) either: SQLite would overwrite that file.

    Raises:
        StorageError: one of them is a link; the advice has the `--storage` to type for a database.
    """
    if path.is_symlink():
        target = path.resolve()
        raise StorageError(
            f"{path}: is a link to {target}, and databases are not opened through links.",
            f"If it is yours, name the file itself: --storage sqlite:///{target}",
        )
    for suffix in LOG_SUFFIXES:
        log = path.with_name(f"{path.name}{suffix}")
        if log.is_symlink():
            raise StorageError(
                f"{log}: is a link to {log.resolve()}, which SQLite would overwrite.", "Delete the link, if it is safe."
            )
        with suppress(OSError):
            if log.lstat().st_nlink > 1:
                raise StorageError(
                    f"{log}: has a second name (a hard link), under which SQLite would overwrite it.",
                    "Replace it by a copy while no command uses the database: cp FILE COPY, then mv COPY FILE.",
                )


def list_permissions(path: Path) -> Iterator[tuple[Path, int]]:
    """Yield path and permission bits of those of a database's files that exist."""
    for suffix in ("", *LOG_SUFFIXES):
        with suppress(OSError):
            file = path.with_name(f"{path.name}{suffix}")
            yield file, stat.S_IMODE(file.stat().st_mode)


# --- a file that may only be read ---------------------------------------------------------------------------------


def is_read_only(path: Path) -> bool:
    """Whether an existing database, or its folder, is not writable; SQLite creates its log files in the folder."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def connect_immutable(path: Path) -> sqlite3.Connection:
    """Open a database for reading in a folder where SQLite cannot create its log files.

    Raises:
        StorageError: an existing log holds writes that would be missing.
    """
    refuse_unread_log(path)
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def holds_audits(path: Path) -> bool:
    """Whether a file is a database of audits, which no other program writes to."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchone() is not None
    except sqlite3.Error:
        return False


def holds_audit(path: Path, name: str) -> bool:
    """Whether a file, but not a link, is a database with an audit of this name, of whatever version."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM audit WHERE name = ?", [name]).fetchone() is not None
    except sqlite3.Error:
        return False


def refuse_unread_log(path: Path) -> None:
    """Raise StorageError if a database that is opened without its logs has one that is not empty."""
    for suffix in LOG_SUFFIXES[:2]:
        log = path.with_name(f"{path.name}{suffix}")
        if log.exists() and log.stat().st_size > 0:
            message = f"{path} cannot be read: {log.name} has changes that are not yet in the database, and the folder"
            how_to_fix = f"Copy all files {path.name}* to a writable folder, and use the copy."
            raise StorageError(f"{message} {path.parent} is read-only.", how_to_fix)


# --- a file that was moved or deleted -----------------------------------------------------------------------------


class WatchedFile:
    """The file of an open database. Detects that it was deleted, moved or replaced, which SQLite does not report."""

    def __init__(self, path: Path) -> None:
        """Remember device and inode of the file that is at the path now."""
        self.path = path.absolute()
        self._identity = _file_identity(self.path.stat())

    def require_unmoved(self) -> None:
        """Raise StorageError unless the same file is still at its path. Costs one call of `stat`."""
        if (error := self.moved_error()) is not None:
            raise error

    def moved_error(self, unsaved: Sequence[str] = ()) -> StorageError | None:
        """Build the error to report if the file is no longer at its path, else None.

        Args:
            unsaved: labels of the answers that may be lost with it.
        """
        try:
            if _file_identity(self.path.stat()) == self._identity:
                return None
            event = "was replaced by another file"
        except OSError:
            event = "was deleted or moved"
        new_path = self._find_new_path()
        location = (
            f"its data were at {self.path} and are now at {new_path}" if new_path else f"its data were at {self.path}"
        )
        message = f"the database {self.path.name} {event} while it was in use: {location}."
        if new_path:
            how_to_fix = f"Move it back to {self.path}, then run the same command again."
        else:
            how_to_fix = "Restore it or a copy, then run the same command again. Missing answers are requested again."
        return StorageError(message + _unsaved_warning(unsaved), how_to_fix)

    def _find_new_path(self) -> str | None:
        """Current path of a file that was moved; None if it was deleted, or the system does not show it."""
        try:
            descriptors = list(OPEN_FILES_FOLDER.iterdir())
        except OSError:
            return None
        for descriptor in descriptors:
            try:
                if _file_identity(descriptor.stat()) == self._identity:
                    target = os.readlink(descriptor)
                    return target if os.path.exists(target) else None
            except OSError:  # closed meanwhile
                continue
        return None


def _file_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _unsaved_warning(unsaved: Sequence[str]) -> str:
    """Sentence that lists the first answers that may be lost, with a space before it; empty if there are none."""
    if not unsaved:
        return ""
    listed = ", ".join(unsaved[:MAX_LISTED_ANSWERS])
    remainder = f" and {len(unsaved) - MAX_LISTED_ANSWERS} more" if len(unsaved) > MAX_LISTED_ANSWERS else ""
    return f" These answers may not be on disk: {listed}{remainder}."


def copy_database(source: Path, target: Path) -> None:
    """Copy a database with SQLite's backup API. The target appears only once the copy has passed an integrity check.

    Raises:
        StorageError: the target exists, the copy could not be written, or the integrity check failed.
    """
    if target.exists():
        raise StorageError(f"{target} exists already.", "Name another file.")
    try:
        with open_replacement(target, PRIVATE_MODE) as temporary_file:
            create_private(temporary_file)
            with (
                closing(_connect_read_only(source)) as source_connection,
                closing(sqlite3.connect(temporary_file)) as copy_connection,
            ):
                source_connection.backup(copy_connection)
                copy_connection.execute("PRAGMA journal_mode=DELETE")  # no write-ahead log: the copy is a single file
                check_messages = [row[0] for row in copy_connection.execute("PRAGMA integrity_check")]
            if check_messages != ["ok"]:
                raise StorageError(
                    f"the copy of {source} is incomplete: {check_messages[0]}.",
                    "The database is damaged. Recover what is left with: sqlite3 FILE .recover",
                )
    except UsageError as error:
        raise StorageError(f"{source} cannot be copied: {error.message}", error.how_to_fix) from None
    except sqlite3.Error as error:
        raise StorageError(
            f"{source} cannot be copied to {target}: {error}.", "Free space on the disk, or name another file."
        ) from None


def insert_from_file(source: Path, target: Path, statement: str) -> bool:
    """Insert rows of one database file in another within SQLite.

    Args:
        source: the file that is read; the statement names it `source`.
        target: the file that is written; the statement names it `main`.
        statement: an INSERT without values of a user.

    Returns:
        False if SQLite cannot read the source, such as a database in WAL mode in a folder that cannot be written to.
    """
    with closing(sqlite3.connect(target, isolation_level=None, uri=True)) as connection:
        try:
            connection.execute("ATTACH DATABASE ? AS source", [f"{source.absolute().as_uri()}?mode=ro"])
            connection.execute(statement)
        except sqlite3.Error:
            return False
    return True


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a database for reading, also in a folder where SQLite cannot create its log files."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        connection.close()
        if not is_read_only(path):
            raise
        return connect_immutable(path)
    return connection


def find_unused_path(path: Path) -> Path:
    """Return the path if no file exists there, else the first free one of `NAME-2`, `NAME-3`, …"""
    candidates = (path.with_name(f"{path.name}-{number}") for number in range(2, 10_000))
    return path if not path.exists() else next(candidate for candidate in candidates if not candidate.exists())
