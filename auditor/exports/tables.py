"""Export an audit as files: every table with its column types, a manifest with SHA-256 hashes, and a data card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.atomic_files import MANIFEST, NewFolder, make_folder, replace_folder, write_files
from auditor.exports.cell_table import CELL_TABLE, iterate_cell_rows
from auditor.exports.data_card import build_data_card
from auditor.reports.render.markdown import render_markdown
from auditor.storage import audits, table_dump
from auditor.storage.database import Database
from auditor.storage.table_dump import DumpTable
from auditor.storage.tables import SCHEMA_VERSION

if TYPE_CHECKING:
    from auditor.reports.data.report_schema import Report

TableFormat = Literal["parquet", "jsonl"]

DATA_CARD = "README.md"
MANIFEST_FORMAT = "auditor tables"
"""Marks the folder of an export of tables."""


@dataclass
class TableExport:
    """Files that an export wrote.

    Attributes:
        folder: where they are.
        row_counts: number of rows by table.
        file_hashes: SHA-256 by file name.
    """

    folder: Path
    row_counts: dict[str, int] = field(default_factory=dict)
    file_hashes: dict[str, str] = field(default_factory=dict)


def export_tables(
    db: Database, name: str, folder: Path, file_format: TableFormat = "parquet", *, keep_rater_names: bool = False
) -> TableExport:
    """Write every table of an audit, and of its report as CSV, to a folder, with a manifest and a data card.

    The table `cells` joins what most analyses need. The manifest lists all tables with their numbers of rows, also the
    empty ones.

    Either all files are written or none. An earlier export in the folder is replaced; other files are left as they are.

    Args:
        db: the database that holds the audit.
        name: name of the audit.
        folder: created if missing.
        file_format: `parquet`, with schema version and audit in each file's metadata, or `jsonl`, one line per row.
        keep_rater_names: keep people's names; else raters become `rater-1`, `rater-2`, … by their first decision.

    Raises:
        StorageError: there is no such audit.
        UsageError: the folder holds other files, or cannot be written to.
    """
    audit = audits.get_audit(db, name)
    file_metadata = {
        "format": MANIFEST_FORMAT,
        "audit": audit.name,
        "audit_id": audit.id,
        "schema_version": SCHEMA_VERSION,
    }
    file_metadata |= {"auditor": metadata.version("auditor"), "form": file_format, "config_hash": audit.config_hash}
    with replace_folder(folder, MANIFEST_FORMAT) as new_folder:
        export = TableExport(folder)
        table_entries = []
        rename_rater = _rater_renamer(keep_rater_names)
        for table in (CELL_TABLE, *table_dump.list_tables()):
            file = f"{table.name}.{file_format}"
            batches = (
                iterate_cell_rows(db, audit) if table is CELL_TABLE else table_dump.dump_rows(db, audit.id, table.name)
            )
            rows = (_prepare_rows(batch, rename_rater) for batch in batches)
            if file_format == "parquet":
                n_rows = _write_parquet(new_folder.path / file, table, rows, file_metadata)
            else:
                n_rows = _write_jsonl(new_folder, file, rows)
            export.row_counts[table.name] = n_rows
            columns = [column._asdict() for column in table.columns]
            table_entries.append(
                {"name": table.name, "about": table.description, "file": file, "rows": n_rows, "columns": columns}
            )
        report_tables = _write_report_tables(db, name, new_folder)
        card = build_data_card(db, audit, export.row_counts, file_format, MANIFEST, keep_rater_names=keep_rater_names)
        new_folder.write(DATA_CARD, render_markdown(card))
        export.file_hashes = {path.name: _sha256(path) for path in sorted(new_folder.path.iterdir())}
        files = [
            {"file": file_name, "sha256": file_hash, "bytes": (new_folder.path / file_name).stat().st_size}
            for file_name, file_hash in export.file_hashes.items()
        ]
        left_out = [
            {"table": table_name, "why": reason} for table_name, reason in table_dump.list_excluded_tables().items()
        ]
        manifest = {
            **file_metadata,
            "raters": "named" if keep_rater_names else "pseudonyms",
            "tables": table_entries,
            "report_tables": report_tables,
            "files": files,
        }
        text = json.dumps({**manifest, "left_out": left_out}, indent=2, ensure_ascii=False)
        new_folder.write(MANIFEST, text + "\n")
    return export


def _write_report_tables(db: Database, name: str, folder: NewFolder) -> list[dict[str, Any]]:
    """Write each table of the report, and of probes of other packages, as CSV in full precision, with all its rows.

    Returns:
        Their entries in the manifest.
    """
    from auditor.reports.data.build import build_report
    from auditor.reports.document import Table
    from auditor.reports.document.traversal import iterate_blocks
    from auditor.reports.render.csv_tables import render_csv
    from auditor.reports.render.shortened_tables import name_table_file
    from auditor.reports.sections.probe_sections import build_exported_tables
    from auditor.reports.sections.report import build_report_document

    report = build_report(db, name)
    entries: dict[str, dict[str, Any]] = {}
    for block in (*iterate_blocks(build_report_document(report)), *build_exported_tables(report)):
        if isinstance(block, Table):
            file = name_table_file(block)
            folder.write(file, render_csv(block))
            entries[file] = {"name": Path(file).stem, "about": block.label, "file": file, "rows": len(block.rows)}
    return list(entries.values())


def export_paper(report: Report, folder: Path) -> list[Path]:
    """Write the tables of the paper as CSV, and as one file of LaTeX; no file is left half written.

    Returns:
        Paths of the files; a table without rows in this audit has no file.

    Raises:
        UsageError: the folder cannot be written to.
    """
    from auditor.reports.paper_files import render_paper_files  # loads all of the report's sections (0.4 s)

    make_folder(folder)
    text_by_path = {folder / name: text for name, text in render_paper_files(report)}
    write_files(text_by_path)
    return list(text_by_path)


# --- tables -----------------------------------------------------------------------------------------------------

RowBatches = Iterable[list[dict[str, Any]]]


def _write_parquet(path: Path, table: DumpTable, batches: RowBatches, file_metadata: dict[str, Any]) -> int:
    """Write a table as Parquet, with `file_metadata` as JSON under `auditor.NAME`; return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow_types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
    fields = [pa.field(column.name, arrow_types[column.kind], nullable=column.nullable) for column in table.columns]
    prefixed_metadata = {f"auditor.{key}": json.dumps(value) for key, value in file_metadata.items()}
    schema = pa.schema(
        fields, metadata={"auditor.table": table.name, "auditor.about": table.description, **prefixed_metadata}
    )
    n_rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            n_rows += len(batch)
    return n_rows


def _write_jsonl(folder: NewFolder, name: str, batches: RowBatches) -> int:
    """Write a table as one JSON object per line; return the number of rows."""
    n_rows = 0
    with folder.open(name) as file:
        for batch in batches:
            file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in batch)
            n_rows += len(batch)
    return n_rows


def _rater_renamer(keep_rater_names: bool) -> Callable[[str], str]:
    """Return a function that maps a rater's name to itself, or to the pseudonym `rater-N` in order of first use."""
    pseudonyms: dict[str, str] = {}
    return (
        (lambda name: name)
        if keep_rater_names
        else lambda name: pseudonyms.setdefault(name, f"rater-{len(pseudonyms) + 1}")
    )


def _prepare_rows(batch: list[dict[str, Any]], rename_rater: Callable[[str], str]) -> list[dict[str, Any]]:
    """Rename raters, and escape lone surrogates, which UTF-8 cannot encode."""
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


def _sha256(path: Path) -> str:
    """SHA-256 of a file's content, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
