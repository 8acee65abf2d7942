"""Print data to standard output and messages to standard error; control characters and secrets are removed."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from auditor.atomic_files import report_write_errors
from auditor.config import load_stored_config
from auditor.errors import PROBLEM_SEPARATOR, AuditorError, UnusableModelsError
from auditor.lazy_imports import import_when_used
from auditor.redaction import redact
from auditor.reports.number_format import pluralize
from auditor.run import resolve_storage_url
from auditor.text_safety import escape_invisible, escape_json_controls

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.imports.recorded_audits import UnmatchedRows

if not TYPE_CHECKING:
    box = import_when_used("rich.box")
    rich_console = import_when_used("rich.console")
    rich_table = import_when_used("rich.table")
    rich_text = import_when_used("rich.text")
else:
    import rich.console as rich_console
    import rich.table as rich_table
    import rich.text as rich_text
    from rich import box


DEFAULT_LINE_WIDTH = 160
"""Characters in a line if the output is no terminal."""


def create_console(*, data: bool = False) -> Console:
    """A console on standard error, or on standard output for data."""
    console = rich_console.Console(stderr=not data, highlight=False, soft_wrap=True)
    return (
        console
        if console.is_terminal
        else rich_console.Console(stderr=not data, highlight=False, width=DEFAULT_LINE_WIDTH)
    )


def print_message(text: str = "") -> None:
    """Print a message to standard error, without secrets and control characters."""
    print(escape_invisible(redact(text)), file=sys.stderr)


def print_data(text: str) -> None:
    """Write data to standard output unchanged; for a terminal, control characters are made visible."""
    visible_text = escape_invisible(text) if sys.stdout.isatty() else text
    with _flush_standard_output():
        sys.stdout.write(visible_text if visible_text.endswith("\n") or not visible_text else visible_text + "\n")


@contextmanager
def _flush_standard_output() -> Iterator[None]:
    """Flush standard output after the context, so that a full disk is reported now and not at exit."""
    try:
        with report_write_errors("standard output"):
            yield
            sys.stdout.flush()
    except AuditorError:
        stream = sys.__stdout__
        if stream is not None and sys.stdout is stream:  # its buffer would fail again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def print_json(json_document: Any) -> None:
    """Write data as JSON to standard output; ASCII only, unless standard output supports Unicode."""
    print_json_text(json.dumps(json_document, indent=2, ensure_ascii=not stdout_supports_unicode(), allow_nan=False))


def print_json_text(text: str) -> None:
    """Write a JSON document to standard output; for a terminal, control characters are escaped within the JSON."""
    if not stdout_supports_unicode():
        text = json.dumps(json.loads(text), indent=2, allow_nan=False)
    print_data(escape_json_controls(text) if sys.stdout.isatty() else text)


def print_json_items(items: Iterable[Any]) -> None:
    """Write data as a JSON array to standard output, item by item, so that only one is in memory."""
    separator = "["
    for item in items:
        print_data(separator)
        print_json(item)
        separator = ","
    print_data("]" if separator == "," else "[]")


def stdout_supports_unicode() -> bool:
    """Whether the encoding of standard output has all characters; a locale may be without Unicode."""
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def print_error(error: AuditorError) -> None:
    """Print an error in one line, or in one for each problem or unusable model: what is wrong, and how to fix it."""
    if isinstance(error, UnusableModelsError):
        print_message(f"auditor: {error.message}")
        for model_error in error.errors:
            print_message(f"  {' '.join(str(model_error).split())}")
        return
    first, *others = (" ".join(problem.split()) for problem in str(error).split(PROBLEM_SEPARATOR))
    print_message(f"auditor: {first}")
    for problem in others:
        print_message(f"  also: {problem}")


def print_missing_probes(config: str | None) -> None:
    """Say which probes of a stored audit cannot be used now; nothing if all can.

    Args:
        config: the stored configuration as JSON; None for an audit of imported scores.
    """
    stored_config = load_stored_config(config)
    for reason in stored_config.probes.missing.values() if stored_config is not None else ():
        print_message(f"{reason[0].upper()}{reason[1:]} Its figures are left out.")


def format_command(*arguments: str, storage: str | None = None) -> str:
    """A command for the user to copy, with `--storage` if the storage is not the default.

    The URL of a database server with a user name is replaced by an ellipsis, as it may hold a password.
    """
    return " ".join(("auditor", *arguments, *filter(None, [format_storage_option(storage)])))


def format_storage_option(storage: str | None) -> str:
    """The option `--storage` as commands for the user to copy need it; empty if the storage is the default."""
    if storage is None or storage == resolve_storage_url():
        return ""
    return f"--storage {'…' if '@' in storage else shlex.quote(storage)}"


def list_called_words() -> list[str]:
    """The words of the called command, quoted for a shell, without `--storage`, which `format_command` adds."""
    words: list[str] = []
    is_storage = False
    for word in sys.argv[1:]:
        if not is_storage and word != "--storage" and not word.startswith("--storage="):
            words.append(shlex.quote(word))
        is_storage = word == "--storage"
    return words


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, data: bool = True) -> None:
    """Print a table to standard output, or to standard error if it is no data; None is shown as a dash."""
    table = rich_table.Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(
            rich_text.Text(escape_invisible(column)), overflow="fold"
        )  # as a string it would be read as markup
    for row in rows:
        table.add_row(
            *(
                rich_text.Text("–" if value is None else _isolate_right_to_left(escape_invisible(str(value))))
                for value in row
            )
        )
    with _flush_standard_output():
        create_console(data=data).print(table)


def print_layout(text: str, *, data: bool = True) -> None:
    """Print text in columns, two spaces or more apart, to standard output, or to standard error if it is no data."""
    isolated = re.sub(r"\S+(?: \S+)*", lambda cell: _isolate_right_to_left(cell.group()), escape_invisible(text))
    if data:
        with _flush_standard_output():
            print(isolated)
    else:
        print(isolated, file=sys.stderr)


def _isolate_right_to_left(cell: str) -> str:
    """Enclose right-to-left text in zero-width marks, so that a terminal does not swap table cells."""
    is_right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL") for char in cell)
    return f"\u200e{cell}\u200e" if is_right_to_left else cell


def can_ask() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty()


def print_unmatched_rows(unmatched: UnmatchedRows) -> None:
    """Print the rows that match no cell of the survey, by country and by topic; nothing if all match."""
    for line in unmatched.describe():
        print_message(f"  {line}.")
    if unmatched.rows:
        print_message(f"  Stored, but not compared with people: {pluralize(unmatched.rows, 'row')}.")
