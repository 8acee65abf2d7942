"""What commands print: data to standard output, talk to standard error, and no text of others unsanitised."""

from __future__ import annotations

import json
import os
import shlex
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from auditor.atomic_files import report_write_errors
from auditor.errors import AuditorError
from auditor.redaction import redact
from auditor.text_safety import escape_invisible, escape_json_controls

if TYPE_CHECKING:
    from rich.console import Console


DEFAULT_LINE_WIDTH = 160
"""Characters in a line where no terminal sets a bound."""


def create_console(*, data: bool = False) -> Console:
    """A console on standard error, or on standard output for data."""
    from rich.console import Console

    shown = Console(stderr=not data, highlight=False, soft_wrap=True)
    return shown if shown.is_terminal else Console(stderr=not data, highlight=False, width=DEFAULT_LINE_WIDTH)


def print_message(text: str = "") -> None:
    """Tell the person something."""
    print(escape_invisible(redact(text)), file=sys.stderr)


def print_data(text: str) -> None:
    """Write data, byte for byte as it is; only a terminal gets no character that would act on it."""
    shown = escape_invisible(text) if sys.stdout.isatty() else text
    with _flush_standard_output():
        sys.stdout.write(shown if shown.endswith("\n") or not shown else shown + "\n")


@contextmanager
def _flush_standard_output() -> Iterator[None]:
    """Write out what is printed, so that a disk that is full is noticed now and not when the process ends."""
    try:
        with report_write_errors("standard output"):
            yield
            sys.stdout.flush()
    except AuditorError:
        stream = sys.__stdout__
        if stream is not None and sys.stdout is stream:  # what is left in its buffer would fail again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def print_json(json_document: Any) -> None:
    """Write data as JSON."""
    print_json_text(json.dumps(json_document, indent=2, ensure_ascii=not stdout_supports_unicode(), allow_nan=False))


def print_json_text(text: str) -> None:
    """Write a document in JSON. What would act on a terminal is escaped there, and it stays the same document."""
    if not stdout_supports_unicode():
        text = json.dumps(json.loads(text), indent=2, allow_nan=False)
    print_data(escape_json_controls(text) if sys.stdout.isatty() else text)


def stdout_supports_unicode() -> bool:
    """Whether standard output takes every character; in a locale without Unicode JSON has to be plain ASCII."""
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def print_error(error: AuditorError) -> None:
    """One line: what is wrong, and how to mend it."""
    print_message(f"auditor: {' '.join(str(error).split())}")


def format_command(*arguments: str, storage: str | None = None) -> str:
    """A command to give next, with its storage where that is not the one that it would take by itself."""
    from auditor.run import resolve_storage_url

    if storage is not None and storage != resolve_storage_url():
        shown = "…" if "@" in storage else shlex.quote(storage)  # a URL with a user in it may hold a password
        arguments = (*arguments, "--storage", shown)
    return " ".join(("auditor", *arguments))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, data: bool = True) -> None:
    """Print a table; None shows as a dash."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        shown.add_column(Text(escape_invisible(column)), overflow="fold")  # as a string it would be read as markup
    for row in rows:
        shown.add_row(
            *(Text("–" if value is None else _isolate_right_to_left(escape_invisible(str(value)))) for value in row)
        )
    with _flush_standard_output():
        create_console(data=data).print(shown)


def _isolate_right_to_left(cell: str) -> str:
    """A cell of right-to-left text between marks of no width, so that a terminal does not swap it with others."""
    is_turned = any(unicodedata.bidirectional(char) in ("R", "AL") for char in cell)
    return f"\u200e{cell}\u200e" if is_turned else cell
