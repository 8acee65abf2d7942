"""Render a report as HTML, JSON or Markdown."""

from __future__ import annotations

from typing import Literal

from auditor.errors import UsageError
from auditor.reports.data.report_schema import Report
from auditor.reports.pages.html_report import render_html
from auditor.reports.pages.markdown_report import render_markdown

ReportFormat = Literal["html", "json", "markdown"]


def render_report(report: Report, report_format: ReportFormat | str) -> str:
    """Render the report as HTML, JSON or Markdown; equal reports give equal texts.

    Raises:
        UsageError: the format is unknown.
    """
    if report_format == "json":
        return report.model_dump_json(indent=2) + "\n"
    if report_format == "html":
        return render_html(report)
    if report_format == "markdown":
        return render_markdown(report)
    raise UsageError(f"'{report_format}' is no report format.", "Known are html, json and markdown.")
