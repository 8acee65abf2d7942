"""Write files atomically: completely, or not at all."""

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
"""Characters of a file's name that its temporary file's name starts with; file systems allow 255 bytes in all."""
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def report_write_errors(target: str | Path) -> Iterator[None]:
    """Turn an `OSError` while a file or folder is written into an error with advice.

    All files that are written for the user are written within this context. A `BrokenPipeError` passes unchanged.

    Raises:
        AuditorError: the disk is full, or the quota is used up.
        UsageError: the target cannot be written for another reason, such as a folder that is missing or read-only.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"{target}: cannot be written: {reason}."
        if error.errno in DISK_FULL_ERRNOS:
            how_to_fix = "Free space on the disk, then run the same command again. Existing files are unchanged."
            raise AuditorError(message, how_to_fix) from None
        raise UsageError(message, "Name an existing folder that you may write to.") from None


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist.

    Raises:
        AuditorError: as `report_write_errors`.
    """
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_atomically(content: str | bytes, path: str | Path) -> None:
    """Write a file completely or not at all; text is encoded as UTF-8.

    Raises:
        AuditorError: as `report_write_errors`; an existing file is unchanged then.
        UsageError: the path is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, not a file.", "Name a file in it.")
    with report_write_errors(path):
        _replace_file(content.encode() if isinstance(content, str) else content, path)


def _replace_file(content: bytes, path: Path) -> None:
    """Write to a temporary file in the same folder, sync it to disk, and rename it to `path`."""
    descriptor, temporary_path = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:MAX_TEMPORARY_PREFIX_LENGTH]}.", suffix=".part"
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary_path, 0o666 & ~_umask())
        failpoint("before_rename")
        os.replace(temporary_path, path)
    except BaseException:
        Path(temporary_path).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's file mode creation mask; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
