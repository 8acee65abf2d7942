"""Write a folder of files completely or not at all, and replace the files of an earlier export only."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auditor.atomic_files import make_folder, report_write_errors
from auditor.errors import UsageError

MANIFEST = "manifest.json"


@contextmanager
def replace_folder(folder: Path, file_format: str) -> Iterator[Path]:
    """Yield a temporary folder within `folder`; on success its files replace the earlier export, the manifest last.

    The caller writes a manifest, `MANIFEST`: JSON with the keys `format`, which is `file_format`, and `files`, a list
    of objects whose key `file` is a file's name.

    Args:
        folder: created if missing.
        file_format: marks a manifest as ours, so that a folder with other contents is never overwritten.

    Raises:
        UsageError: the folder holds other files, or cannot be written to.
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
            yield temporary_folder
            _move_into_place(temporary_folder, folder, old_manifest)
        finally:
            shutil.rmtree(temporary_folder, ignore_errors=True)


def _move_into_place(temporary_folder: Path, folder: Path, old_manifest: dict[str, Any] | None) -> None:
    """Move the files to the target folder, and delete files of the earlier export that have no successor."""
    new_names = {path.name for path in temporary_folder.iterdir()}
    for name in sorted(new_names, key=lambda name: name == MANIFEST):
        os.replace(temporary_folder / name, folder / name)
    for file_entry in old_manifest["files"] if old_manifest else ():
        if (old_name := Path(file_entry["file"]).name) not in new_names:
            (folder / old_name).unlink(missing_ok=True)


def _read_manifest(folder: Path, file_format: str) -> dict[str, Any] | None:
    """Read the manifest of an earlier export; None if there is none, or it is of another format."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and manifest.get("format") == file_format else None
