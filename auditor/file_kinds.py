"""Recognise by its content what a file is, so that an output does not replace a thing of another kind."""

from __future__ import annotations

import csv
import io
import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.lazy_imports import import_when_used

if not TYPE_CHECKING:
    pa = import_when_used("pyarrow")
    pq = import_when_used("pyarrow.parquet")
else:
    import pyarrow as pa
    import pyarrow.parquet as pq

HEAD_BYTES = 1 << 16
SQLITE_MAGIC = b"SQLite format 3\0"
SQLITE_LOG_MAGICS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
"""First bytes of SQLite's write-ahead log, in either byte order, and of its rollback journal."""
PARQUET_MAGIC = b"PAR1"
BINARY_MAGICS = (b"\x89PNG", b"%PDF", b"PK\x03\x04", b"\x1f\x8b")
SIDE_FILE = re.compile(r"-(?:wal|shm|journal)|\..+\.(?:lock|holder)")
"""End of the name of a file that SQLite or a run keeps beside a database, after the database's name."""
SETTINGS_SUFFIXES = (".toml", ".yaml", ".yml")
SURVEY_COLUMNS = ("country", "topic", "score")
RESULT_COLUMNS = {"model", "rater"}
"""Columns of tables that have a survey's columns too, but are results: scores, and people's decisions."""
N_KEY_COLUMNS = 2
"""Two tables are of one kind if so many of their first columns are the same."""
_AUDIT_SETTING = re.compile(r"^(?:\[\[?models\b|models\s*=|models\s*:(?!\s*\d))", re.MULTILINE)
"""Models in TOML or YAML; "models: 5" is a line of a report in plain text."""
_JSON_KEY = re.compile(r'[\[{\s]*"((?:[^"\\]|\\.)*)"')
_TAG = re.compile(r"(?:\s|<!--.*?-->|<\?.*?\?>)*<(!?[a-z:]+)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is.

    Attributes:
        name: for messages, with its article, such as `a SQLite database`.
        key: what two files of one kind have in common besides the name, such as the first columns of a table.
        is_unreplaceable: whether no output of auditor is of this kind.
    """

    name: str
    key: tuple[str, ...] = ()
    is_unreplaceable: bool = False


DATABASE = FileKind("a SQLite database", is_unreplaceable=True)
SIDE_FILE_KIND = FileKind("a file of a SQLite database", is_unreplaceable=True)
CONFIGURATION = FileKind("a configuration")
SETTINGS = FileKind("a file of settings")
SURVEY = FileKind("a survey", SURVEY_COLUMNS)
DOCUMENT = FileKind("a document")
"""A page, a text, or JSON in a file without the suffix .json: a report in one format replaces one in another."""


def identify_file(path: Path) -> FileKind | None:
    """The kind of the regular file at a path; None if there is none, or it is empty.

    Raises:
        OSError: the file cannot be read.
    """
    if _is_side_file(path):
        return SIDE_FILE_KIND  # also if it does not exist now: SQLite would read what is written there
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        return None
    return _identify_parquet(path) if head.startswith(PARQUET_MAGIC) else identify_content(head, path.name)


def identify_content(content: bytes, name: str) -> FileKind | None:
    """The kind of a file by its content, or by the first 64 KiB of it unless it is Parquet; None if it is empty.

    Args:
        name: the file's name, whose suffix tells apart formats of text.
    """
    head = content[:HEAD_BYTES]
    if not head:
        return None
    if head.startswith(SQLITE_MAGIC):
        return DATABASE
    if head.startswith(SQLITE_LOG_MAGICS):
        return SIDE_FILE_KIND
    if head.startswith(PARQUET_MAGIC):
        return _identify_parquet(io.BytesIO(content))
    text = head.decode("utf-8-sig", errors="ignore")
    if "\0" in text or head.startswith(BINARY_MAGICS):
        return FileKind("a file in a binary format", (head[:4].hex(),))
    return _identify_text(text, Path(name).suffix.lower())


def _identify_text(text: str, suffix: str) -> FileKind:
    """The kind of a text by its suffix and its beginning."""
    if suffix in SETTINGS_SUFFIXES:
        return CONFIGURATION if _AUDIT_SETTING.search(text) else SETTINGS
    if _TAG.match(text):
        return DOCUMENT
    first_line = text.lstrip().split("\n", 1)[0]
    if suffix == ".jsonl":
        return _make_table(_read_keys(first_line))
    if text.lstrip()[:1] in "{[" and (key := _JSON_KEY.match(text)):
        return FileKind("a JSON document", (key[1],)) if suffix == ".json" else DOCUMENT
    columns = _split_header(first_line)
    if suffix in (".csv", ".tsv") or set(SURVEY_COLUMNS) <= {column.casefold() for column in columns}:
        return _make_table(columns)
    return CONFIGURATION if _AUDIT_SETTING.search(text) else DOCUMENT


def _identify_parquet(source: Path | io.BytesIO) -> FileKind:
    """The kind of a Parquet file by its columns."""
    try:
        return _make_table(tuple(pq.read_schema(source).names))
    except (pa.ArrowException, ValueError):
        return FileKind("a damaged Parquet file", is_unreplaceable=True)


def _make_table(columns: tuple[str, ...]) -> FileKind:
    """The kind of a table with these columns."""
    names = {column.casefold() for column in columns}
    if set(SURVEY_COLUMNS) <= names and not names & RESULT_COLUMNS:
        return SURVEY
    return FileKind("another table", columns[:N_KEY_COLUMNS])


def _read_keys(line: str) -> tuple[str, ...]:
    """The keys of the object in a line of JSON Lines; empty if there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    return tuple(record) if isinstance(record, dict) else ()


def _split_header(line: str) -> tuple[str, ...]:
    """The columns that the first line of a table names, separated by commas, semicolons or tabs."""
    delimiter = max(",;\t", key=line.count)
    try:
        return tuple(column.strip() for column in next(csv.reader(io.StringIO(line), delimiter=delimiter), []))
    except csv.Error:
        return (line[:80],)


def _is_side_file(path: Path) -> bool:
    """Whether a path is that of a file beside a database, which may have dots in its name, as audits may."""
    return any(
        SIDE_FILE.fullmatch(path.name, end) and _is_database(path.with_name(path.name[:end]))
        for end in range(1, len(path.name))
    )


def _is_database(path: Path) -> bool:
    """Whether a path is that of a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False
