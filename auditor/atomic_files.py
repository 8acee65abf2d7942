"""The only writer of files for users: a file is written completely or not at all, and never replaces another kind.

An output replaces a file only if both are of one kind (`auditor.file_kinds`): an export does not replace a database, a
configuration, a survey, or a file that the command has read. A link at the end of a path is replaced and not followed.
Pipes and devices are written in place.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from auditor.errors import AuditorError, UsageError
from auditor.failpoints import failpoint
from auditor.file_kinds import CONFIGURATION, HEAD_BYTES, SETTINGS, SURVEY, FileKind, identify_content, identify_file
from auditor.input_files import is_remembered_input

MAX_TEMPORARY_PREFIX_LENGTH = 100
"""Characters of a file's name that its temporary file's name starts with; file systems allow 255 bytes in all."""
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MANIFEST = "manifest.json"
IN_PLACE_FOLDERS = ("/dev", "/proc")
"""Their files are streams, also where one leads to a regular file, such as `/dev/stdout`."""


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
            raise AuditorError(message, "Free space on the disk, then run the same command again.") from None
        raise UsageError(message, "Name an existing folder that you may write to.") from None


def hash_file(path: Path) -> str:
    """SHA-256 of a file's content, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist.

    Raises:
        AuditorError: as `report_write_errors`.
    """
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def require_replaceable(path: Path, kind: FileKind | None) -> None:
    """Check that an output may be written to a path.

    Args:
        kind: what is to be written; None if it is empty.

    Raises:
        UsageError: the path is a folder, an input of this command, or a file of another kind.
    """
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, not a file.", "Name a file in it.")
    with report_write_errors(path):
        existing_kind = identify_file(path)
    if is_remembered_input(path):
        raise UsageError(f"{path}: is an input of this command, so it is not replaced.", "Name another file to write.")
    if existing_kind is None or (existing_kind == kind and not existing_kind.is_unreplaceable):
        return
    raise _make_kind_error(path, existing_kind)


def _make_kind_error(path: Path, kind: FileKind) -> UsageError:
    """Build the error for a file that an output does not replace; it is not raised here."""
    advice = "Name another file." if kind.is_unreplaceable else "Name another file, or delete this one first."
    return UsageError(f"{path}: is {kind.name}, and is not replaced by an output of another kind.", advice)


def require_output(path: Path, replaces: Collection[str] = (), *, is_folder: bool = False) -> None:
    """Check a path that a command is to write before its work starts, when the content is not yet known.

    Args:
        replaces: names of kinds (`FileKind.name`) that the output may replace, though other outputs may not.

    Raises:
        UsageError: the path is a folder, is a file for an output that is a folder, or a file that is not replaced.
    """
    if is_folder:
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path}: is a file, not a folder.", "Name a folder to write to.")
        return
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, not a file.", "Name a file in it.")
    with report_write_errors(path):
        kind = None if _is_stream(path) else identify_file(path)
    is_never_replaced = kind is not None and (kind.is_unreplaceable or kind in (CONFIGURATION, SETTINGS, SURVEY))
    if kind is not None and is_never_replaced and kind.name not in replaces:
        raise _make_kind_error(path, kind)


def write_atomically(content: str | bytes, path: str | Path) -> None:
    """Write a file completely or not at all; text is encoded as UTF-8.

    Raises:
        AuditorError: as `report_write_errors`; an existing file is unchanged then.
        UsageError: as `require_replaceable`.
    """
    write_files({Path(path): content})


def write_files(content_by_path: Mapping[Path, str | bytes], mark_by_path: Mapping[Path, str] | None = None) -> None:
    """Write several files, each as `write_atomically`; none is replaced if one of them cannot be written.

    Args:
        mark_by_path: a text near the beginning or the end of what auditor writes to a path that the user did not name;
            a file without it is not replaced.

    Raises:
        AuditorError, UsageError: as `write_atomically`.
    """
    data_by_path = {
        path: content.encode() if isinstance(content, str) else content for path, content in content_by_path.items()
    }
    streams = [path for path in data_by_path if _is_stream(path)]
    files = [path for path in data_by_path if path not in streams]
    for path in files:
        require_replaceable(path, identify_content(data_by_path[path], path.name))
        _require_mark(path, (mark_by_path or {}).get(path, ""))
    temporary_paths: dict[Path, Path] = {}
    try:
        for path in files:
            with report_write_errors(path):
                temporary_paths[path] = _write_temporary_file(data_by_path[path], path)
        for path in streams:
            _write_in_place(data_by_path[path], path)
        for path, temporary_path in temporary_paths.items():
            failpoint("before_rename")
            with report_write_errors(path):
                os.replace(temporary_path, path)
    finally:
        for temporary_path in temporary_paths.values():
            temporary_path.unlink(missing_ok=True)


def _require_mark(path: Path, mark: str) -> None:
    """Raise UsageError if there is a file without a mark at a path."""
    if not mark or not path.exists():
        return
    with report_write_errors(path), path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(0, os.fstat(file.fileno()).st_size - HEAD_BYTES))
        tail = file.read()
    if head and mark.encode() not in head and mark.encode() not in tail:
        raise UsageError(
            f"{path}: is not recognized as a file of auditor, and is not replaced.",
            "Name another output, or delete this file first.",
        )


@contextmanager
def open_replacement(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield the path of a temporary file of the same name, for a library that writes it; then move it to the path.

    Args:
        mode: permissions of the file; those of new files if None.

    Raises:
        AuditorError, UsageError: as `write_atomically`.
    """
    is_stream = _is_stream(path)
    with report_write_errors(path):
        temporary_folder = Path(tempfile.mkdtemp(dir=None if is_stream else path.parent, prefix=".part-"))
        try:
            yield temporary_folder / path.name
            _move_file(temporary_folder / path.name, path, mode, is_stream=is_stream)
        finally:
            shutil.rmtree(temporary_folder, ignore_errors=True)


@contextmanager
def open_replacements(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, for a library that writes files to it; then move all of them to the folder, or none.

    Raises:
        AuditorError, UsageError: as `write_files`.
    """
    with report_write_errors(folder):
        temporary_folder = Path(tempfile.mkdtemp(dir=folder, prefix=".part-"))
        try:
            yield temporary_folder
            temporary_paths = sorted(temporary_folder.iterdir())
            for path in temporary_paths:
                require_replaceable(folder / path.name, identify_file(path))
            for path in temporary_paths:
                _move_file(path, folder / path.name, None, is_stream=False)
        finally:
            shutil.rmtree(temporary_folder, ignore_errors=True)


def _move_file(source: Path, target: Path, mode: int | None, *, is_stream: bool) -> None:
    """Move a complete file to its path, or write it to a stream."""
    if is_stream:
        _write_in_place(source.read_bytes(), target)
        return
    require_replaceable(target, identify_file(source))
    with source.open("rb+") as file:
        os.fsync(file.fileno())
    os.chmod(source, 0o666 & ~_umask() if mode is None else mode)
    os.replace(source, target)


def _is_stream(path: Path) -> bool:
    """Whether a path leads to a pipe, a device or an open stream, which is written in place."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    folder = os.path.realpath(path.parent)
    is_stream_folder = any(folder == name or folder.startswith(f"{name}/") for name in IN_PLACE_FOLDERS)
    return not stat.S_ISDIR(mode) and (
        not stat.S_ISREG(mode) or (is_stream_folder and not folder.startswith("/dev/shm"))
    )


def _write_in_place(data: bytes, path: Path) -> None:
    """Write to a pipe or a device."""
    with report_write_errors(path), path.open("ab", buffering=0) as stream:
        view = memoryview(data)
        while view:
            view = view[stream.write(view) :]


def _write_temporary_file(content: bytes, path: Path) -> Path:
    """Write a temporary file in the folder of `path`, sync it to disk, and return its path."""
    descriptor, temporary_path = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:MAX_TEMPORARY_PREFIX_LENGTH]}.", suffix=".part"
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary_path, 0o666 & ~_umask())
    except BaseException:
        Path(temporary_path).unlink(missing_ok=True)
        raise
    return Path(temporary_path)


def _umask() -> int:
    """The process's file mode creation mask; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- folders ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewFolder:
    """A temporary folder, whose files replace those of an earlier export when all are written."""

    path: Path

    def write(self, name: str, text: str) -> None:
        """Write a file of text as UTF-8; what it cannot encode is escaped."""
        with self.open(name) as file:
            file.write(text)

    def open(self, name: str) -> TextIO:
        """Open a file for writing text as UTF-8; what it cannot encode is escaped."""
        return (self.path / name).open("w", encoding="utf-8", errors="backslashreplace", newline="")


@contextmanager
def replace_folder(folder: Path, file_format: str) -> Iterator[NewFolder]:
    """Yield a temporary folder within `folder`; on success its files replace the earlier export, the manifest last.

    The caller writes a manifest, `MANIFEST`: JSON with the keys `format`, which is `file_format`, and `files`, a list
    of objects whose key `file` is a file's name.

    Args:
        folder: created if missing.
        file_format: marks a manifest as ours, so that a folder with other contents is never overwritten.

    Raises:
        UsageError: the folder holds other files, one that may not be replaced, or cannot be written to.
    """
    old_manifest = _read_manifest(folder, file_format)
    if folder.exists() and old_manifest is None and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder}: the folder contains other files.", "Name an empty folder, or one that does not exist yet."
        )
    make_folder(folder)
    with report_write_errors(folder):
        temporary_folder = Path(tempfile.mkdtemp(dir=folder, prefix=".part-"))
        try:
            yield NewFolder(temporary_folder)
            _move_into_place(temporary_folder, folder, old_manifest)
        finally:
            shutil.rmtree(temporary_folder, ignore_errors=True)


def _move_into_place(temporary_folder: Path, folder: Path, old_manifest: dict[str, Any] | None) -> None:
    """Move the files to the target folder, and delete files of the earlier export that have no successor."""
    new_names = {path.name for path in temporary_folder.iterdir()}
    old_names = {Path(file_entry["file"]).name for file_entry in old_manifest["files"]} if old_manifest else set()
    for name in new_names:
        require_replaceable(folder / name, identify_file(temporary_folder / name))
    for name in old_names - new_names:  # a manifest of a stranger may name any file
        kind = identify_file(folder / name)
        if kind is not None and (kind.is_unreplaceable or kind in (CONFIGURATION, SETTINGS)):
            raise UsageError(f"{folder / name}: is {kind.name}, and is not deleted.", "Name another folder.")
    for name in sorted(new_names, key=lambda name: name == MANIFEST):
        os.replace(temporary_folder / name, folder / name)
    for name in old_names - new_names:
        (folder / name).unlink(missing_ok=True)


def _read_manifest(folder: Path, file_format: str) -> dict[str, Any] | None:
    """Read the manifest of an earlier export; None if there is none, or it is of another format."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and manifest.get("format") == file_format else None
