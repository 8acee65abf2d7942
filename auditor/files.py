"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from auditor.errors import UsageError
from auditor.failpoints import failpoint


def write_whole(content: str | bytes, path: str | Path) -> None:
    """Write a file, a text as UTF-8, whole or not at all.

    Raises:
        UsageError: the folder does not exist, or may not be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path}: a folder, not a file.", "Name a file in it.")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}.", "Name a file in a folder of yours.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
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
