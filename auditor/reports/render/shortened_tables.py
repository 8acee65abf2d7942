"""Tables as pages show them: the worst rows, and where the complete table is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.reports.document import Code, Inline, Table, Text
from auditor.reports.number_format import format_count
from auditor.reports.render.cell_format import iterate_rows

EXPORT_COMMAND = "auditor export tables"


def shorten_table(table: Table) -> Table:
    """The table with its first `max_rows` rows and its totals; the caption names the file with all rows."""
    rows = [row for row in iterate_rows(table) if not row.is_total]
    if table.max_rows is None or len(rows) <= table.max_rows:
        return table
    totals = [row for row in iterate_rows(table) if row.is_total]
    remark: list[Inline] = [
        f" Shown are the first {format_count(table.max_rows)} of {format_count(len(rows))} rows, worst first; ",
        Code(name_table_file(table)),
        " in the data export (",
        Code(EXPORT_COMMAND),
        ") has all.",
    ]
    caption = [*_as_nodes(table.caption), *remark]
    return replace(table, caption=caption, rows=[*rows[: table.max_rows], *totals], max_rows=None)


def name_table_file(table: Table) -> str:
    """File name of a table of the report in the data export."""
    return f"report_{table.id.replace('-', '_')}.csv"


def _as_nodes(text: Text) -> Sequence[Inline]:
    """A text as a sequence of inline nodes."""
    return [text] if isinstance(text, str) or not isinstance(text, Sequence) else text
