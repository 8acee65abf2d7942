"""A report as text in one of its forms, and its way to the disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

from auditor.errors import UsageError
from auditor.failpoints import failpoint
from auditor.reports.model import Report

Format = Literal["html", "json", "markdown"]


def render(report: Report, fmt: Format | str) -> str:
    """The report as HTML, JSON or Markdown; equal reports give equal texts.

    Raises:
        UsageError: no such format.
    """
    if fmt == "json":
        return report.model_dump_json(indent=2) + "\n"
    if fmt == "html":
        from auditor.reports.html import render_html

        return render_html(report)
    if fmt == "markdown":
        from auditor.reports.markdown import render_markdown

        return render_markdown(report)
    raise UsageError(f"'{fmt}' is no report format.", "Known are html, json and markdown.")


def write_report(content: str | bytes, path: str | Path) -> None:
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
