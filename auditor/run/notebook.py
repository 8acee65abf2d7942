"""Audits in a notebook: every table as a pandas or polars frame, and a short view of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from auditor.errors import UsageError, did_you_mean
from auditor.storage import audits, table_dump
from auditor.storage.database import Database
from auditor.text_safety import escape_invisible

if TYPE_CHECKING:
    import pandas as pd

    from auditor.reports.measurement_schema import Estimate
    from auditor.reports.report_schema import Report
    from auditor.reports.report_source import ReportSource

FrameLibrary = Literal["pandas", "polars"]

REPORT_TABLES: Mapping[str, Callable[[Report], list[Any]]] = {
    "alignment": lambda r: r.alignment,
    "regions": lambda r: r.regions.rows,
    "topics": lambda r: r.topics,
    "countries": lambda r: r.countries,
    "self_consistency": lambda r: r.self_consistency,
    "peer_agreement": lambda r: r.peer_agreement,
    "tiers": lambda r: [row.model_copy(update={"scope": p.scope, "by": p.by}) for p in r.tiers for row in p.rows],
    "coverage": lambda r: r.coverage.models,
    "cost": lambda r: r.cost.rows,
}
"""Tables of the report, by name."""


def load_frame(db: Database, audit_name: str, table: str, library: FrameLibrary = "pandas") -> Any:
    """One table of an audit.

    Args:
        table: a stored one, such as `score`, `trace`, `verdict`, `conflict`, `rating`, or their plural; or one of the
            report, such as `alignment`, `topics`, `countries`.
        library: `pandas` gives a DataFrame whose missing values are NA, `polars` one of its own.

    Raises:
        UsageError: there is no such table, or polars is not installed.
        StorageError: there is no such audit.
    """
    stored = {d.name: d for d in table_dump.list_tables()}
    name = next((n for n in (table, table.removesuffix("s")) if n in stored), None)
    if table not in REPORT_TABLES and name is None:
        hint = did_you_mean(table, [*stored, *REPORT_TABLES], f"Known: {', '.join(sorted([*stored, *REPORT_TABLES]))}.")
        raise UsageError(f"there is no table '{table}'.", hint)
    if table in REPORT_TABLES or name is None:
        from auditor.reports.build import build_report

        rows = [_flatten_row(row) for row in REPORT_TABLES[table](build_report(db, audit_name))]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return _create_frame(library, rows, columns, {})
    audit = audits.get_audit(db, audit_name)
    rows = [row for batch in table_dump.dump_rows(db, audit.id, name) for row in batch]
    kinds = {c.name: c.kind for c in stored[name].columns}
    return _create_frame(library, rows, list(kinds), kinds)


def _flatten_row(row: Any) -> dict[str, Any]:
    """A part of the report in one level: an estimate becomes its value and its ends."""
    found: dict[str, Any] = {}
    for key, value in row.model_dump().items():
        if isinstance(value, dict) and {"value", "n", "ci_low", "ci_high"} <= set(value):
            found |= {key: value["value"], f"{key}_low": value["ci_low"], f"{key}_high": value["ci_high"]}
        elif isinstance(value, dict):
            found |= {f"{key}_{k}": v for k, v in value.items() if not isinstance(v, dict | list)}
        elif not isinstance(value, list):
            found[key] = value
    return found


def _create_frame(
    library: FrameLibrary, rows: list[dict[str, Any]], columns: list[str], column_kinds: Mapping[str, str]
) -> Any:
    if library == "polars":
        try:
            import polars
        except ImportError:
            raise UsageError("polars is not installed.", "pip install 'auditor[polars]', or ask for pandas.") from None
        types = {"integer": polars.Int64, "number": polars.Float64, "boolean": polars.Boolean, "text": polars.String}
        schema = {c: types[column_kinds[c]] for c in columns} if column_kinds else columns
        return polars.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None)
    if library != "pandas":
        raise UsageError(f"'{library}' is no library of frames.", "Known are pandas and polars.")
    import pandas as pd

    made: pd.DataFrame = pd.DataFrame.from_records(rows, columns=columns)
    wanted = {"integer": "Int64", "number": "Float64", "boolean": "boolean", "text": "string"}
    return made.astype({c: wanted[column_kinds[c]] for c in columns}) if column_kinds else made.convert_dtypes()


# --- how things show themselves ---------------------------------------------------------------------------------


def render_html_table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """A small table for a notebook, in which nothing of others is markup."""

    def cell(tag: str, text: str) -> str:
        return f"<{tag}>{escape(escape_invisible(text))}</{tag}>"

    head = "".join(cell("th", c) for c in columns)
    body = "".join(f"<tr>{''.join(cell('td', c) for c in row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(escape_invisible(title))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def render_audit_html(db: Database, name: str) -> str:
    """An audit at a glance: how far it is, and how well each model agrees with people."""
    from auditor.reports.agreement.section import compute_alignment
    from auditor.reports.pages.alignment_wording import two_way_interval
    from auditor.reports.pages.number_format import format_count, format_interval, format_number
    from auditor.reports.report_source import load_source

    source = load_source(db, name)
    if source.survey.task is not None:
        return _render_task_html(source)
    rows = [
        [
            r.model,
            r.method,
            format_count(r.n),
            format_number(r.pearson_r),
            format_interval(*two_way_interval(r)),
            format_number(r.mae),
        ]
        for r in compute_alignment(source)
    ]
    title = f"Audit {name}: {source.survey.title}, stage {source.audit.stage}"
    return render_html_table(title, ["model", "method", "cells", "r", "95% interval", "MAE"], rows)


def _render_task_html(source: ReportSource) -> str:
    from auditor.reports.pages.number_format import format_count
    from auditor.reports.task.section import build_task_report

    part = build_task_report(source)
    assert part is not None  # whose audit is of a task has this part
    rows = [
        [
            row.model,
            format_count(row.accuracy.n),
            *(text for e in (row.accuracy, row.score.mae if row.score else None) for text in _format_estimate(e)),
            f"{format_count(row.usable)} of {format_count(row.planned)}",
        ]
        for row in part.models
    ]
    title = f"Audit {source.audit.name}: answers to the items of {part.source}, stage {source.audit.stage}"
    columns = ["model", "answers", "accuracy", "95% interval", "MAE", "95% interval", "usable"]
    return render_html_table(title, columns, rows)


def _format_estimate(estimate: Estimate | None) -> list[str]:
    from auditor.reports.pages.number_format import MISSING_SYMBOL, format_interval, format_number

    return (
        [MISSING_SYMBOL, MISSING_SYMBOL]
        if estimate is None
        else [format_number(estimate.value), format_interval(estimate.ci_low, estimate.ci_high)]
    )
