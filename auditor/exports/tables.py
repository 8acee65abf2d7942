"""Export an audit as files: every table with its column types, `cells`, a manifest with hashes, and a data card."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.atomic_files import MANIFEST, NewFolder, hash_file, make_folder, replace_folder, write_files
from auditor.config import load_stored_config
from auditor.domain import Cell, Method, Survey, Task
from auditor.errors import ProbeError
from auditor.lazy_imports import import_when_used
from auditor.reports.data.build import build_report, garbage_collection_paused
from auditor.reports.document import Block, Code, Column, Document, Name, Paragraph, Section, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.markdown import render_markdown
from auditor.reports.render.table_files import LATEX_REQUIREMENTS, render_csv
from auditor.reports.render.tables import name_table_file
from auditor.reports.sections.probe_sections import build_exported_tables
from auditor.reports.sections.report import build_report_document
from auditor.storage import audit_archive, audits, results
from auditor.storage.audit_archive import ColumnBatch, DumpColumn, DumpTable, iterate_rows
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.count_queries import count_verdicts_by_cell
from auditor.storage.database import Database
from auditor.storage.review_queue import load_reviewed_conflicts
from auditor.storage.schema import SCHEMA_VERSION
from auditor.tasks import is_correct

if TYPE_CHECKING:
    from auditor.reports.data.report_schema import Report

if not TYPE_CHECKING:
    report_files = import_when_used("auditor.reports.report_files")
    pa = import_when_used("pyarrow")
    pq = import_when_used("pyarrow.parquet")
else:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from auditor.reports import report_files


STATUSES_BY_RESOLUTION = (ConflictStatus.OPEN, ConflictStatus.DISPUTED, ConflictStatus.MAJORITY, ConflictStatus.PERSON)
CELL_TABLE = DumpTable(
    "cells",
    "One row for each model, method and cell, joined from the tables score, survey_cell, conflict and verdict. "
    "`people_score`: the survey's; null where people were not asked. `n`: planned samples. `usable`: samples with a "
    "score. `conflict`: status of the model's conflict with another model on the cell, people's decisions included; of "
    "several, the least resolved one; null without one. `verdicts`, `valid`: usable verdicts of judges on the model's "
    "answers, and those that say VALID. Conflicts and verdicts are about the method direct. Of a task: `answer` is the "
    "most common one, or the mean score, `truth` the right one, and `correct` the number of right ones, of the usable.",
    (
        DumpColumn("model", "text", nullable=False),
        DumpColumn("country", "text", nullable=False),
        DumpColumn("topic", "text", nullable=False),
        DumpColumn("method", "text", nullable=False),
        DumpColumn("score", "number", nullable=True),
        DumpColumn("people_score", "number", nullable=True),
        DumpColumn("n", "integer", nullable=False),
        DumpColumn("usable", "integer", nullable=False),
        DumpColumn("conflict", "text", nullable=True),
        DumpColumn("verdicts", "integer", nullable=True),
        DumpColumn("valid", "integer", nullable=True),
        DumpColumn("answer", "text", nullable=True),
        DumpColumn("truth", "text", nullable=True),
        DumpColumn("correct", "integer", nullable=True),
    ),
)


def iterate_cell_batches(db: Database, audit: Audit, batch_size: int = 10_000) -> Iterator[ColumnBatch]:
    """Yield the rows of `CELL_TABLE` by model, country, topic and method, in batches of at most `batch_size`."""
    survey = audits.load_audit_survey(db, audit)
    people = {cell.cell: cell.score for cell in survey.cells}
    n_correct = _count_correct_answers(db, audit, survey.task)
    conflicts, verdicts = _load_conflict_statuses(db, audit), count_verdicts_by_cell(db, audit.id)
    scores = results.load_scores(db, audit.id)
    names = [column.name for column in CELL_TABLE.columns]
    for start in range(0, len(scores), batch_size):
        rows: list[tuple[Any, ...]] = []
        for score in scores[start : start + batch_size]:
            is_judged = score.method == Method.DIRECT
            status = conflicts.get((score.model, score.cell)) if is_judged else None
            verdict_counts = verdicts.get((score.model, score.cell), (0, 0)) if is_judged else (None, None)
            values = (score.score, people.get(score.cell), score.n_planned, score.n_ok, status and status.value)
            truth = survey.task.item_for(score.cell).truth if survey.task else None
            task_values = (score.answer, truth, n_correct.get((score.model, score.cell)))
            rows.append((score.model, *score.cell, score.method, *values, *verdict_counts, *task_values))
        yield dict(zip(names, zip(*rows, strict=True), strict=True))


def _count_correct_answers(db: Database, audit: Audit, task: Task | None) -> dict[tuple[str, Cell], int]:
    """Number of correct answers by model and item, where correctness is known; empty for a survey."""
    counts: dict[tuple[str, Cell], int] = {}
    for (model, cell, _), answer in audits.load_answers(db, audit.id).items() if task else ():
        if task and (is_right := is_correct(task, task.item_for(cell), answer)) is not None:
            counts[model, cell] = counts.get((model, cell), 0) + is_right
    return counts


def _load_conflict_statuses(db: Database, audit: Audit) -> dict[tuple[str, Cell], ConflictStatus]:
    """Status of each model's least resolved conflict with another model, by model and cell."""
    statuses: dict[tuple[str, Cell], ConflictStatus] = {}
    reviewed = [row for row in load_reviewed_conflicts(db, audit.id) if row.conflict.kind.is_voted]
    for row in sorted(reviewed, key=lambda row: STATUSES_BY_RESOLUTION.index(row.status)):
        for model in (row.conflict.left, row.conflict.right):
            statuses.setdefault((model, row.conflict.cell), row.status)
    return statuses


MODEL_COLUMNS = (Column("Name", "name"), Column("Provider and model", "name"))
TABLE_COLUMNS = (Column("File"), Column("Rows", "number"), Column("Content"))


def build_data_card(
    db: Database, audit: Audit, row_counts: Mapping[str, int], suffix: str, manifest: str, *, keep_rater_names: bool
) -> Document:
    """Build the data card of an audit's exported tables.

    Args:
        row_counts: number of rows by table.
        suffix: of the tables' files, without the dot.
        manifest: file name of the manifest.
        keep_rater_names: whether the tables have people's names, and not pseudonyms.
    """
    is_complete = audit.stage in audits.FINAL_STAGES
    survey = audits.load_audit_survey(db, audit)
    subject = (
        "how language models answer the questions of a task"
        if survey.task
        else "how well language models know what people in different countries find morally acceptable"
    )
    introduction = (
        f"An audit of {subject}, by auditor {metadata.version('auditor')} (schema {SCHEMA_VERSION}). "
        f"It was started at {audit.created_at} and is "
        f"{'complete' if is_complete else f'not complete (stage: {audit.stage})'}."
    )
    rater_phrase = "are given as they signed" if keep_rater_names else "are replaced by pseudonyms"
    limits = (
        f"Texts are written by models: they may be wrong or offensive. Names of raters {rater_phrase}; their notes are "
        "unchanged. The files contain no API key."
    )
    if not survey.task:
        limits = (
            "Scores show what a model reports about people, not what people think. The survey’s own terms apply to its "
            f"scores. {limits}"
        )
    rows = [
        (f"{table.name}.{suffix}", row_counts[table.name], " ".join(table.description.split()))
        for table in (CELL_TABLE, *audit_archive.list_tables())
    ]
    return Document(
        "Data card",
        f"Data of the audit {audit.name}",
        "",
        [
            Section("truth", "Ground truth", [_describe_truth(survey)]),
            Section("models", "Models", [_list_models(audit)]),
            Section(
                "tables",
                "Tables",
                [
                    Table("tables-table", "Tables", "Exported tables, one per file.", TABLE_COLUMNS, rows),
                    _describe_manifest(manifest),
                ],
            ),
            Section("reading", "How to read the tables", [_explain_tables()]),
            Section("limits", "Limits", [Paragraph(limits)]),
        ],
        [Paragraph(introduction)],
    )


def _describe_truth(survey: Survey) -> Paragraph:
    """Describe the survey, its scale and its source; or the items of a task."""
    if survey.task:
        items = survey.task.items.values()
        n_known = sum(item.truth is not None for item in items)
        return Paragraph(f"{survey.task.source}: the right answer is known for {n_known} of {len(items)} items.")
    n_scored = sum(cell.score is not None for cell in survey.cells)
    low, high = survey.scale
    return Paragraph(
        f"{survey.title}: {n_scored} of {len(survey.cells)} cells (country × topic) have a score of people, from −1 "
        f"({low}) to +1 ({high}). Source: {survey.source}"
    )


def _list_models(audit: Audit) -> Block:
    """Tabulate the models, or state that there are none."""
    config = load_stored_config(audit.config)
    if config is None:
        return Paragraph("Scores were imported; no model was queried.")
    rows = [(Name(model.name), Name(model.model)) for model in config.models]
    return Table("models-table", "Models", "Models of the audit.", MODEL_COLUMNS, rows)


def _describe_manifest(manifest: str) -> Paragraph:
    return Paragraph(
        [
            Code(manifest),
            " lists every column with its type, and the SHA-256 of every file. ",
            Code("report_*.csv"),
            " are the tables of the report with all their rows, in full precision.",
        ]
    )


def _explain_tables() -> Paragraph:
    return Paragraph(
        [
            "An empty score is a failure, never zero; ", Code("outcome"), " has the kind of failure. ", Code("answer"),
            " has the exact texts of the models, each under the hash of its request. Other tables refer to them by ",
            Code("key"), ".",
        ]
    )  # fmt: skip


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
        left_out: why tables of probes of other packages are left out.
    """

    folder: Path
    row_counts: dict[str, int] = field(default_factory=dict)
    file_hashes: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def export_tables(
    db: Database, name: str, folder: Path, file_format: TableFormat = "parquet", *, keep_rater_names: bool = False
) -> TableExport:
    """Write every table of an audit, and of its report as CSV, to a folder, with a manifest and a data card.

    The table `cells` joins what most analyses need. The manifest lists all tables with their numbers of rows, also the
    empty ones.

    Either all files are written or none; only tables of other packages' probes that CSV cannot show are left out. An
    earlier export in the folder is replaced; other files are left as they are.

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
    with garbage_collection_paused(), replace_folder(folder, MANIFEST_FORMAT) as new_folder:
        export = TableExport(folder)
        rename_rater = _rater_renamer(keep_rater_names)
        table_entries = [
            _write_table(db, audit, table, new_folder, file_metadata, rename_rater)
            for table in (CELL_TABLE, *audit_archive.list_tables())
        ]
        export.row_counts = {entry["name"]: entry["rows"] for entry in table_entries}
        report_tables = _write_report_tables(db, name, new_folder, export.left_out)
        card = build_data_card(db, audit, export.row_counts, file_format, MANIFEST, keep_rater_names=keep_rater_names)
        new_folder.write(DATA_CARD, render_markdown(card))
        export.file_hashes = {path.name: hash_file(path) for path in sorted(new_folder.path.iterdir())}
        files = [
            {"file": file_name, "sha256": file_hash, "bytes": (new_folder.path / file_name).stat().st_size}
            for file_name, file_hash in export.file_hashes.items()
        ]
        left_out = [
            {"table": table_name, "why": reason} for table_name, reason in audit_archive.list_excluded_tables().items()
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


def _write_table(
    db: Database,
    audit: Audit,
    table: DumpTable,
    folder: NewFolder,
    file_metadata: dict[str, Any],
    rename_rater: Callable[[str], str],
) -> dict[str, Any]:
    """Write the rows of one table, and return its entry of the manifest."""
    file = f"{table.name}.{file_metadata['form']}"
    stored = (
        iterate_cell_batches(db, audit) if table is CELL_TABLE else audit_archive.dump_columns(db, audit.id, table.name)
    )
    batches = (_rename_raters(batch, rename_rater) for batch in stored)
    if file_metadata["form"] == "parquet":
        n_rows = _write_parquet(folder.path / file, table, batches, file_metadata)
    else:
        n_rows = _write_jsonl(folder, file, batches)
    columns = [column._asdict() for column in table.columns]
    return {"name": table.name, "about": table.description, "file": file, "rows": n_rows, "columns": columns}


def _write_report_tables(db: Database, name: str, folder: NewFolder, left_out: list[str]) -> list[dict[str, Any]]:
    """Write each table of the report, and of probes of other packages, as CSV in full precision, with all its rows.

    Args:
        left_out: receives the reason of each table of a probe that cannot be written.

    Returns:
        Their entries in the manifest.
    """
    report = build_report(db, name)
    entries: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for block in (*iterate_blocks(build_report_document(report)), *build_exported_tables(report)):
        if isinstance(block, ProbeError):
            left_out.append(f"Left out: {block}")
        elif isinstance(block, Table):
            text, first = render_csv(block), Path(name_table_file(block))
            names = itertools.chain([first.name], (f"{first.stem}_{n}{first.suffix}" for n in itertools.count(2)))
            file = next(name for name in names if texts.get(name, text) == text)  # ids of probes may be taken
            texts[file] = text
            folder.write(file, text)
            entries[file] = {"name": Path(file).stem, "about": block.label, "file": file, "rows": len(block.rows)}
    return list(entries.values())


def export_paper(report: Report, folder: Path, on_removed: Callable[[Path], None] = lambda path: None) -> list[Path]:
    """Write the tables of the paper as CSV, and as one file of LaTeX; no file is left half written.

    In a folder with such an export, its files of tables without rows in this audit are removed: they are of another.

    Args:
        on_removed: receives the path of each file that was removed.

    Returns:
        Paths of the files; a table without rows in this audit has no file.

    Raises:
        UsageError: the folder cannot be written to, or has a file of such a name that auditor did not write.
    """
    make_folder(folder)
    text_by_path = {folder / name: text for name, text in report_files.render_paper_files(report)}
    is_export = (folder / report_files.PAPER_LATEX).exists()
    stale_files = report_files.list_stale_paper_files(report, folder) if is_export else []
    write_files(text_by_path, {folder / report_files.PAPER_LATEX: LATEX_REQUIREMENTS})
    for path in stale_files:
        path.unlink(missing_ok=True)
        on_removed(path)
    return list(text_by_path)


# --- tables -----------------------------------------------------------------------------------------------------


def _write_parquet(path: Path, table: DumpTable, batches: Iterable[ColumnBatch], file_metadata: dict[str, Any]) -> int:
    """Write a table as Parquet, with `file_metadata` as JSON under `auditor.NAME`; return the number of rows."""
    arrow_types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
    fields = [pa.field(column.name, arrow_types[column.kind], nullable=column.nullable) for column in table.columns]
    prefixed_metadata = {f"auditor.{key}": json.dumps(value) for key, value in file_metadata.items()}
    schema = pa.schema(
        fields, metadata={"auditor.table": table.name, "auditor.about": table.description, **prefixed_metadata}
    )
    n_rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            rows = pa.Table.from_pydict(batch, schema=schema)
            writer.write_table(rows)
            n_rows += rows.num_rows
    return n_rows


def _write_jsonl(folder: NewFolder, name: str, batches: Iterable[ColumnBatch]) -> int:
    """Write a table as one JSON object per line; return the number of rows."""
    encode, n_rows = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode, 0
    with folder.open(name) as file:
        for row in iterate_rows(batches):
            file.write(encode(row) + "\n")
            n_rows += 1
    return n_rows


def _rater_renamer(keep_rater_names: bool) -> Callable[[str], str]:
    """Return a function that maps a rater's name to itself, or to the pseudonym `rater-N` in order of first use."""
    pseudonyms: dict[str, str] = {}
    return (
        (lambda name: name)
        if keep_rater_names
        else lambda name: pseudonyms.setdefault(name, f"rater-{len(pseudonyms) + 1}")
    )


def _rename_raters(batch: ColumnBatch, rename_rater: Callable[[str], str]) -> ColumnBatch:
    """Replace the names of raters, where a table has them; a row without a name stays without."""
    raters = {"rater": [name and rename_rater(name) for name in batch["rater"]]} if "rater" in batch else {}
    return {**batch, **raters}
