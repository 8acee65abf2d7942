"""A report as text in one of its forms."""

from __future__ import annotations

from typing import Literal

from auditor.errors import UsageError
from auditor.reports.report_schema import Report

ReportFormat = Literal["html", "json", "markdown"]


def render_report(report: Report, report_format: ReportFormat | str) -> str:
    """The report as HTML, JSON or Markdown; equal reports give equal texts.

    Raises:
        UsageError: no such format.
    """
    if report_format == "json":
        return report.model_dump_json(indent=2) + "\n"
    if report_format == "html":
        from auditor.reports.pages.html_report import render_html

        return render_html(report)
    if report_format == "markdown":
        from auditor.reports.pages.markdown_report import render_markdown

        return render_markdown(report)
    raise UsageError(f"'{report_format}' is no report format.", "Known are html, json and markdown.")
