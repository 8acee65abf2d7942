"""An audit as files for other programs: every table typed, a manifest of hashes, and a card that says what it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.atomic_files import make_folder, report_write_errors, write_atomically
from auditor.errors import UsageError
from auditor.storage import audits, table_dump
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.table_dump import DumpTable
from auditor.storage.tables import SCHEMA_VERSION

if TYPE_CHECKING:
    from auditor.reports.report_schema import Report

TableFormat = Literal["parquet", "jsonl"]

MANIFEST = "manifest.json"
DATA_CARD = "README.md"
MANIFEST_FORMAT = "auditor tables"
"""Names our exports, so that no other folder is ever written over."""


@dataclass
class TableExport:
    """What an export wrote.

    Attributes:
        rows: by table.
        files: SHA-256 by file name.
    """

    folder: Path
    row_counts: dict[str, int] = field(default_factory=dict)
    file_hashes: dict[str, str] = field(default_factory=dict)


def export_tables(
    db: Database, name: str, folder: Path, file_format: TableFormat = "parquet", *, keep_rater_names: bool = False
) -> TableExport:
    """Write every table of an audit to a folder, with a manifest and a data card.

    The files appear all together or not at all; an earlier export in the folder is replaced, anything else is left
    alone.

    Args:
        name: the audit's.
        folder: made if it is not there.
        form: `parquet`, with schema version and audit in each file's metadata, or `jsonl`, a line a row.
        names: keep people's names; else each rater is `rater-1`, `rater-2`, in order of their first decision.

    Raises:
        StorageError: there is no such audit.
        UsageError: the folder holds other files, or cannot be written to.
    """
    audit = audits.get_audit(db, name)
    facts = {"format": MANIFEST_FORMAT, "audit": audit.name, "audit_id": audit.id, "schema_version": SCHEMA_VERSION}
    facts |= {"auditor": metadata.version("auditor"), "form": file_format, "config_hash": audit.config_hash}
    with _replace_atomically(folder) as temporary:
        found = TableExport(folder)
        told = []
        hide = _rater_renamer(keep_rater_names)
        for table in table_dump.list_tables():
            file = f"{table.name}.{file_format}"
            rows = (_prepare_rows(batch, hide) for batch in table_dump.dump_rows(db, audit.id, table.name))
            n = (_write_parquet if file_format == "parquet" else _write_jsonl)(temporary / file, table, rows, facts)
            found.row_counts[table.name] = n
            columns = [c._asdict() for c in table.columns]
            told.append({"name": table.name, "about": table.description, "file": file, "rows": n, "columns": columns})
        (temporary / DATA_CARD).write_text(
            _build_card(db, audit, found, file_format, keep_rater_names), encoding="utf-8"
        )
        found.file_hashes = {path.name: _sha256(path) for path in sorted(temporary.iterdir())}
        files = [
            {"file": f, "sha256": h, "bytes": (temporary / f).stat().st_size} for f, h in found.file_hashes.items()
        ]
        left_out = [{"table": t, "why": why} for t, why in table_dump.list_excluded_tables().items()]
        manifest = {**facts, "raters": "named" if keep_rater_names else "pseudonyms", "tables": told, "files": files}
        text = json.dumps({**manifest, "left_out": left_out}, indent=2, ensure_ascii=False)
        (temporary / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return found


def export_paper(report: Report, folder: Path) -> list[Path]:
    """Write the tables of the paper as CSV, and as one file of LaTeX; each file appears whole or not at all.

    Returns:
        The files; a table that has no rows in this audit has none.

    Raises:
        UsageError: the folder cannot be written to.
    """
    from auditor.reports.pages.paper_tables import render_paper_files

    make_folder(folder)
    files = render_paper_files(report)
    for name, text in files:
        write_atomically(text, folder / name)
    return [folder / name for name, _ in files]


def verify_tables(folder: Path) -> list[str]:
    """Files of an export that are not as they were written, each with what is wrong; empty when all are.

    Raises:
        UsageError: the folder holds no export.
    """
    manifest = _read_manifest(folder)
    if manifest is None:
        raise UsageError(f"{folder}: no export of auditor.", f"Name the folder that holds {MANIFEST}.")
    wrong = []
    for item in manifest["files"]:
        path = folder / Path(item["file"]).name
        if not path.is_file():
            wrong.append(f"{path.name}: is missing")
        elif _sha256(path) != item["sha256"]:
            wrong.append(f"{path.name}: is not as it was written")
    return wrong


# --- tables -----------------------------------------------------------------------------------------------------

RowBatches = Iterable[list[dict[str, Any]]]


def _write_parquet(path: Path, table: DumpTable, batches: RowBatches, file_metadata: dict[str, Any]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
    fields = [pa.field(c.name, types[c.kind], nullable=c.nullable) for c in table.columns]
    told = {f"auditor.{key}": json.dumps(value) for key, value in file_metadata.items()}
    schema = pa.schema(fields, metadata={"auditor.table": table.name, "auditor.about": table.description, **told})
    n = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            n += len(batch)
    return n


def _write_jsonl(path: Path, table: DumpTable, batches: RowBatches, file_metadata: dict[str, Any]) -> int:
    n = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in batches:
            file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in batch)
            n += len(batch)
    return n


def _rater_renamer(keep_rater_names: bool) -> Callable[[str], str]:
    known: dict[str, str] = {}
    return (lambda name: name) if keep_rater_names else lambda name: known.setdefault(name, f"rater-{len(known) + 1}")


def _prepare_rows(batch: list[dict[str, Any]], rename_rater: Callable[[str], str]) -> list[dict[str, Any]]:
    """The rows with lone surrogates, which no file can hold, spelled out, and raters hidden."""
    return [
        {
            name: rename_rater(value)
            if name == "rater" and value
            else _escape_surrogates(value)
            if isinstance(value, str)
            else value
            for name, value in row.items()
        }
        for row in batch
    ]


def _escape_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# --- the card ---------------------------------------------------------------------------------------------------


def _build_card(
    db: Database, audit: Audit, table_export: TableExport, file_format: TableFormat, keep_rater_names: bool
) -> str:
    from auditor.reports.pages.markdown_format import escape_markdown
    from auditor.reports.pages.report_page import markdown_table

    survey = audits.load_audit_survey(db, audit)
    config = json.loads(audit.config) if audit.config else None
    models = [[m["name"], m["model"]] for m in config["models"]] if config else []
    asked = sum(cell.score is not None for cell in survey.cells)
    whole = "ran to its end" if audit.stage in audits.FINAL_STAGES else f"has not run to its end (stage: {audit.stage})"
    tables = [
        [f"{t.name}.{file_format}", str(table_export.row_counts[t.name]), " ".join(t.description.split())]
        for t in table_dump.list_tables()
    ]
    sections = [
        f"# Data of the audit {escape_markdown(audit.name)}",
        "An audit of language models' moral judgement against people's, by auditor "
        f"{metadata.version('auditor')} (schema {SCHEMA_VERSION}). The audit {whole}; it was begun {audit.created_at}.",
        "## Ground truth",
        f"{escape_markdown(survey.title)}: {asked} of {len(survey.cells)} cells (country × topic) have people's "
        f"score, from -1 ({escape_markdown(survey.scale[0])}) to +1 ({escape_markdown(survey.scale[1])}). Source: "
        f"{escape_markdown(survey.source)}",
        "## Models",
        markdown_table(["Name", "Provider and model"], models)
        if models
        else "Scores were imported; nothing was asked.",
        "## Tables",
        markdown_table(["File", "Rows", "What it holds"], tables),
        f"`{MANIFEST}` has every column with its type, and the SHA-256 of every file.",
        "## How to read it",
        "An empty score is a failure, never zero: `outcome` says of which kind. `answer` holds what models said, word "
        "for word, under the hash of all that determines it; the other tables refer to it by `key`.",
        "## Limits",
        "Scores say what a model reports of people, not what people think; texts are of models, may be wrong and may "
        "offend. Raters are "
        + ("named as they signed." if keep_rater_names else "pseudonyms; their notes are as written."),
        "The survey's own terms hold for its scores. No key of any provider is in these files.",
    ]
    return "\n\n".join(sections) + "\n"


# --- whole or not at all ----------------------------------------------------------------------------------------


@contextmanager
def _replace_atomically(folder: Path) -> Iterator[Path]:
    """A temporary folder beside the target, whose files take their places when all are written, the manifest last."""
    old = _read_manifest(folder)
    if folder.exists() and old is None and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: holds something else.", "Name an empty folder, or one that is not there yet.")
    make_folder(folder)
    with report_write_errors(folder):
        temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".part-"))
        try:
            yield temporary
            _move_into_place(temporary, folder, old)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _move_into_place(temporary: Path, folder: Path, old_manifest: dict[str, Any] | None) -> None:
    """Move the files to their places, and delete those of the export that they replace."""
    fresh = {path.name for path in temporary.iterdir()}
    for name in sorted(fresh, key=lambda name: name == MANIFEST):
        os.replace(temporary / name, folder / name)
    for item in old_manifest["files"] if old_manifest else ():
        if (stale := Path(item["file"]).name) not in fresh:
            (folder / stale).unlink(missing_ok=True)


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == MANIFEST_FORMAT else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
