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

from auditor.atomic_files import writing
from auditor.errors import AuditorError
from auditor.redaction import redact
from auditor.text_safety import plain_json, visible

if TYPE_CHECKING:
    from rich.console import Console


PIPE_WIDTH = 160
"""Characters in a line where no terminal sets a bound."""


def console(*, data: bool = False) -> Console:
    """A console on standard error, or on standard output for data."""
    from rich.console import Console

    shown = Console(stderr=not data, highlight=False, soft_wrap=True)
    return shown if shown.is_terminal else Console(stderr=not data, highlight=False, width=PIPE_WIDTH)


def say(text: str = "") -> None:
    """Tell the person something."""
    print(visible(redact(text)), file=sys.stderr)


def put(text: str) -> None:
    """Write data, byte for byte as it is; only a terminal gets no character that would act on it."""
    shown = visible(text) if sys.stdout.isatty() else text
    with _to_standard_output():
        sys.stdout.write(shown if shown.endswith("\n") or not shown else shown + "\n")


@contextmanager
def _to_standard_output() -> Iterator[None]:
    """Write out what is printed, so that a disk that is full is noticed now and not when the process ends."""
    try:
        with writing("standard output"):
            yield
            sys.stdout.flush()
    except AuditorError:
        stream = sys.__stdout__
        if stream is not None and sys.stdout is stream:  # what is left in its buffer would fail again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def put_json(value: Any) -> None:
    """Write data as JSON."""
    put_json_text(json.dumps(value, indent=2, ensure_ascii=not takes_unicode(), allow_nan=False))


def put_json_text(text: str) -> None:
    """Write a document in JSON. What would act on a terminal is escaped there, and it stays the same document."""
    if not takes_unicode():
        text = json.dumps(json.loads(text), indent=2, allow_nan=False)
    put(plain_json(text) if sys.stdout.isatty() else text)


def takes_unicode() -> bool:
    """Whether standard output takes every character; in a locale without Unicode JSON has to be plain ASCII."""
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def complain(error: AuditorError) -> None:
    """One line: what is wrong, and how to mend it."""
    say(f"auditor: {' '.join(str(error).split())}")


def command(*words: str, storage: str | None = None) -> str:
    """A command to give next, with its storage where that is not the one that it would take by itself."""
    from auditor.run import storage_url

    if storage is not None and storage != storage_url():
        shown = "…" if "@" in storage else shlex.quote(storage)  # a URL with a user in it may hold a password
        words = (*words, "--storage", shown)
    return " ".join(("auditor", *words))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, data: bool = True) -> None:
    """Print a table; None shows as a dash."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        shown.add_column(Text(visible(column)), overflow="fold")  # as a string it would be read as markup
    for row in rows:
        shown.add_row(*(Text("–" if value is None else _in_place(visible(str(value)))) for value in row))
    with _to_standard_output():
        console(data=data).print(shown)


def _in_place(cell: str) -> str:
    """A cell of right-to-left text between marks of no width, so that a terminal does not swap it with others."""
    is_turned = any(unicodedata.bidirectional(char) in ("R", "AL") for char in cell)
    return f"\u200e{cell}\u200e" if is_turned else cell
