"""Write a document or a report in an output format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.errors import UsageError

if TYPE_CHECKING:
    from auditor.reports.data.report_schema import Report
    from auditor.reports.document import Document

DOCUMENT_FORMATS = {".html": "html", ".md": "markdown", ".txt": "text"}
"""Formats of documents, by the suffix of a file."""
REPORT_FORMATS = {**DOCUMENT_FORMATS, ".json": "json"}
"""Formats of an audit's report: those of documents, and JSON."""


def render_document(document: Document, output_format: str) -> str:
    """Render a document as HTML, Markdown or plain text; equal documents give equal texts.

    Raises:
        UsageError: the format is unknown.
    """
    match output_format:
        case "html":
            from auditor.reports.render.html import render_html

            return render_html(document)
        case "markdown":
            from auditor.reports.render.markdown import render_markdown

            return render_markdown(document)
        case "text":
            from auditor.reports.render.plain_text import render_text

            return render_text(document)
    raise UsageError(f"'{output_format}' is not an output format.", "Use html, markdown or text.")


def render_report(report: Report, output_format: str, *, is_brief: bool = False, command_options: str = "") -> str:
    """Render an audit's report as JSON, or as a document; equal reports give equal texts.

    Args:
        is_brief: only the summary, on one page.
        command_options: what the commands on the page need, such as `--storage sqlite:///my.db`.

    Raises:
        UsageError: the format is unknown, or JSON for a brief report.
    """
    if output_format == "json" and is_brief:
        raise UsageError("the brief report has no JSON form.", "Use html, markdown or text, or leave out --brief.")
    if output_format == "json":
        return report.model_dump_json(indent=2, exclude=None if report.probes else {"probes"}) + "\n"
    if output_format not in REPORT_FORMATS.values():
        raise UsageError(f"'{output_format}' is not a report format.", "Use html, markdown, text or json.")
    from auditor.reports.sections.report import build_report_document

    document = build_report_document(report, is_brief=is_brief)
    if command_options:
        from auditor.reports.document.blocks import map_code

        document = map_code(document, lambda text: f"{text} {command_options}" if text.startswith("auditor ") else text)
    return render_document(document, output_format)
