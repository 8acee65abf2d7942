"""The data card of an export: what the audit is, its ground truth, models and tables, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from auditor.config import load_stored_config
from auditor.exports.cell_table import CELL_TABLE
from auditor.reports.document import Block, Code, Column, Document, Name, Paragraph, Section, Table
from auditor.storage import audits, table_dump
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.tables import SCHEMA_VERSION

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
    introduction = (
        "An audit of how well language models know what people in different countries find morally acceptable, by "
        f"auditor {metadata.version('auditor')} (schema {SCHEMA_VERSION}). It was started at {audit.created_at} and is "
        f"{'complete' if is_complete else f'not complete (stage: {audit.stage})'}."
    )
    rater_phrase = "are given as they signed" if keep_rater_names else "are replaced by pseudonyms"
    limits = (
        "Scores show what a model reports about people, not what people think. Texts are written by models: they may "
        f"be wrong or offensive. Names of raters {rater_phrase}; their notes are unchanged. The survey’s own terms "
        "apply to its scores. The files contain no API key."
    )
    return Document(
        "Data card",
        f"Data of the audit {audit.name}",
        "",
        [
            Section("truth", "Ground truth", [_describe_survey(db, audit)]),
            Section("models", "Models", [_list_models(audit)]),
            Section("tables", "Tables", [_tabulate_tables(row_counts, suffix), _describe_manifest(manifest)]),
            Section("reading", "How to read the tables", [_explain_tables()]),
            Section("limits", "Limits", [Paragraph(limits)]),
        ],
        [Paragraph(introduction)],
    )


def _describe_survey(db: Database, audit: Audit) -> Paragraph:
    """Describe the survey, its scale and its source."""
    survey = audits.load_audit_survey(db, audit)
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


def _tabulate_tables(row_counts: Mapping[str, int], suffix: str) -> Table:
    """Tabulate the exported tables."""
    rows = [
        (f"{table.name}.{suffix}", row_counts[table.name], " ".join(table.description.split()))
        for table in (CELL_TABLE, *table_dump.list_tables())
    ]
    return Table("tables-table", "Tables", "Exported tables, one per file.", TABLE_COLUMNS, rows)


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
