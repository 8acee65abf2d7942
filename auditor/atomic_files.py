"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor.errors import AuditorError, UsageError
from auditor.failpoints import failpoint

MAX_TEMPORARY_PREFIX_LENGTH = 100
"""Characters of a file's name in the name of its temporary file; a whole name takes up to 255 bytes."""
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def report_write_errors(target: str | Path) -> Iterator[None]:
    """Report an operating system's error while a file or folder is written; every file for the user goes through here.

    Raises:
        AuditorError: there is no room for it.
        UsageError: it cannot be written for another reason, such as a folder that is missing or read-only.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"{target}: cannot be written: {reason}."
        if error.errno in DISK_FULL_ERRNOS:
            how_to_fix = "Make room there, then give the same command again; nothing that was there has changed."
            raise AuditorError(message, how_to_fix) from None
        raise UsageError(message, "Name a place that exists and that you may write to.") from None


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises:
        AuditorError: as `writing`.
    """
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_atomically(content: str | bytes, path: str | Path) -> None:
    """Write a file, a text as UTF-8, whole or not at all.

    Raises:
        AuditorError: as `writing`; a file that was there is unchanged.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path}: a folder, not a file.", "Name a file in it.")
    with report_write_errors(path):
        _replace_file(content.encode() if isinstance(content, str) else content, path)


def _replace_file(content: bytes, path: Path) -> None:
    handle, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:MAX_TEMPORARY_PREFIX_LENGTH]}.", suffix=".part"
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        failpoint("before_rename")
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's mask; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
