"""Audits in a notebook: every table as a pandas or polars data frame, and a short HTML summary of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from auditor.errors import UsageError, did_you_mean
from auditor.extras import load_extra
from auditor.lazy_imports import import_when_used
from auditor.reports.number_format import MISSING_SYMBOL, format_count, format_interval, format_number
from auditor.storage import audit_archive, audits
from auditor.storage.database import Database
from auditor.text_safety import escape_invisible

if TYPE_CHECKING:
    import pandas as pd

    from auditor.metrics.intervals.estimate import Estimate
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource

if not TYPE_CHECKING:
    agreement_alignment = import_when_used("auditor.reports.data.agreement.alignment")
    build = import_when_used("auditor.reports.data.build")
    report_source = import_when_used("auditor.reports.data.report_source")
    task = import_when_used("auditor.reports.data.task")
else:
    from auditor.reports.data import build, report_source, task
    from auditor.reports.data.agreement import alignment as agreement_alignment

FrameLibrary = Literal["pandas", "polars"]

REPORT_TABLES: Mapping[str, Callable[[Report], list[Any]]] = {
    "alignment": lambda report: report.alignment,
    "regions": lambda report: report.regions.rows,
    "topics": lambda report: report.topics,
    "countries": lambda report: report.countries,
    "self_consistency": lambda report: report.self_consistency,
    "peer_agreement": lambda report: report.peer_agreement,
    "tiers": lambda report: [
        row.model_copy(update={"scope": tiers.scope, "by": tiers.by}) for tiers in report.tiers for row in tiers.rows
    ],
    "coverage": lambda report: report.coverage.models,
    "cost": lambda report: report.cost.rows,
    "accuracy": lambda report: report.task.models if report.task else [],
    "items": lambda report: report.task.items if report.task else [],
}
"""Rows of a table of the report, by the table's name."""


def load_frame(db: Database, audit_name: str, table: str, library: FrameLibrary = "pandas") -> Any:
    """Load one table of an audit as a data frame.

    Args:
        db: the database.
        audit_name: the audit's name.
        table: a stored table, such as `score`, `trace`, `verdict`, `conflict`, `rating`, or their plural; or a table of
            the report, such as `alignment`, `topics`, `countries`, or `accuracy` and `items` of a task.
        library: `pandas` returns a DataFrame whose missing values are NA, `polars` a polars DataFrame.

    Raises:
        UsageError: there is no such table, or the library is not installed.
        StorageError: there is no such audit.
    """
    stored_tables = {table_definition.name: table_definition for table_definition in audit_archive.list_tables()}
    stored_name = next(
        (candidate for candidate in (table, table.removesuffix("s")) if candidate in stored_tables), None
    )
    if table not in REPORT_TABLES and stored_name is None:
        hint = did_you_mean(
            table, [*stored_tables, *REPORT_TABLES], f"Known: {', '.join(sorted([*stored_tables, *REPORT_TABLES]))}."
        )
        raise UsageError(f"there is no table '{table}'.", hint)
    if table in REPORT_TABLES or stored_name is None:
        rows = [_flatten(row.model_dump()) for row in REPORT_TABLES[table](build.build_report(db, audit_name))]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return _create_frame(library, rows, columns, {})
    audit = audits.get_audit(db, audit_name)
    rows = list(audit_archive.iterate_rows(audit_archive.dump_columns(db, audit.id, stored_name)))
    column_kinds = {column.name: column.kind for column in stored_tables[stored_name].columns}
    return _create_frame(library, rows, list(column_kinds), column_kinds)


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten the fields of a row of the report, or of a part of it, whose name is the prefix.

    An estimate becomes its value, and its bounds with the suffixes `_low` and `_high`. Lists are left out.
    """
    flat_row: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and {"value", "n", "ci_low", "ci_high"} <= set(value):
            flat_row |= {name: value["value"], f"{name}_low": value["ci_low"], f"{name}_high": value["ci_high"]}
        elif isinstance(value, dict):
            flat_row |= _flatten(value, f"{name}_")
        elif not isinstance(value, list):
            flat_row[name] = value
    return flat_row


def _create_frame(
    library: FrameLibrary, rows: list[dict[str, Any]], columns: list[str], column_kinds: Mapping[str, str]
) -> Any:
    """Build a pandas or polars data frame.

    Args:
        library: which of the two.
        rows: values by column.
        columns: the columns, in order.
        column_kinds: `integer`, `number`, `boolean` or `text` by column; if empty, types are inferred from the values.

    Raises:
        UsageError: the library is unknown or not installed.
    """
    if library == "polars":
        polars = load_extra("polars", "polars")
        types = {"integer": polars.Int64, "number": polars.Float64, "boolean": polars.Boolean, "text": polars.String}
        schema = {column: types[column_kinds[column]] for column in columns} if column_kinds else columns
        return polars.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None)
    if library != "pandas":
        raise UsageError(f"'{library}' is not a supported library.", "Use pandas or polars.")
    frame: pd.DataFrame = load_extra("pandas", "pandas").DataFrame.from_records(rows, columns=columns)
    pandas_types = {"integer": "Int64", "number": "Float64", "boolean": "boolean", "text": "string"}
    return (
        frame.astype({column: pandas_types[column_kinds[column]] for column in columns})
        if column_kinds
        else frame.convert_dtypes()
    )


# --- HTML ---------------------------------------------------------------------------------------------------------


def render_html_table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """A small HTML table for a notebook; all texts are escaped."""

    def render_cell(tag: str, text: str) -> str:
        """One cell as HTML; `tag` is th or td."""
        return f"<{tag}>{escape(escape_invisible(text))}</{tag}>"

    head = "".join(render_cell("th", text) for text in columns)
    body = "".join(f"<tr>{''.join(render_cell('td', text) for text in row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(escape_invisible(title))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def render_audit_html(db: Database, name: str) -> str:
    """An HTML summary of an audit: its stage, and how well each model agrees with people."""
    source = report_source.load_source(db, name)
    if source.survey.task is not None:
        return _render_task_html(source)
    rows = [
        [
            alignment.model,
            alignment.method,
            format_count(alignment.n),
            format_number(alignment.pearson_r.value),
            format_interval(alignment.pearson_r.ci_low, alignment.pearson_r.ci_high),
            format_number(alignment.mae.value),
        ]
        for alignment in agreement_alignment.compute_alignment(source)
    ]
    title = f"Audit {name}: {source.survey.title}, stage {source.audit.stage}"
    return render_html_table(title, ["model", "method", "cells", "r", "95% CI", "MAE"], rows)


def _render_task_html(source: ReportSource) -> str:
    """An HTML table of an audit of a task: accuracy and mean absolute error of each model."""
    task_report = task.build_task_report(source)
    assert task_report is not None  # the audit is of a task
    rows = [
        [
            row.model,
            format_count(row.accuracy.n),
            *(
                text
                for estimate in (row.accuracy, row.score.mae if row.score else None)
                for text in _format_estimate(estimate)
            ),
            f"{format_count(row.usable)} of {format_count(row.planned)}",
        ]
        for row in task_report.models
    ]
    title = f"Audit {source.audit.name}: answers to the items of {task_report.task.source}, stage {source.audit.stage}"
    columns = ["model", "answers", "accuracy", "95% CI", "MAE", "95% CI", "usable"]
    return render_html_table(title, columns, rows)


def _format_estimate(estimate: Estimate | None) -> list[str]:
    """The value and its interval as two table cells; the symbol for a missing value twice if there is no estimate."""
    return (
        [MISSING_SYMBOL, MISSING_SYMBOL]
        if estimate is None
        else [format_number(estimate.value), format_interval(estimate.ci_low, estimate.ci_high)]
    )
