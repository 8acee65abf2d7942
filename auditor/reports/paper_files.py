"""The paper's tables as files: CSV and LaTeX."""

from __future__ import annotations

from auditor.reports.data.report_schema import Report
from auditor.reports.render.csv_tables import render_csv
from auditor.reports.render.latex import render_latex
from auditor.reports.sections.paper_tables import build_paper_tables


def render_paper_files(report: Report) -> list[tuple[str, str]]:
    """Render the paper's files as (name, text): a CSV for every table that has rows, and one TeX file with all."""
    tables = [table for table in build_paper_tables(report) if table.rows]
    return [
        *((f"{table.id.replace('-', '_')}.csv", render_csv(table)) for table in tables),
        ("tables.tex", render_latex(tables)),
    ]
