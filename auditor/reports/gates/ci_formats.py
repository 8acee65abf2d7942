"""Render the outcome of a check for continuous integration, as Markdown."""

from __future__ import annotations

from auditor.reports.data.gates.gate_check import CheckResult
from auditor.reports.junit import render_junit as render_junit
from auditor.reports.pages.markdown_format import escape_markdown
from auditor.reports.pages.report_page import markdown_table
from auditor.reports.sections.check import STATUS_LABELS as STATUS_SYMBOLS


def render_check_markdown(check_result: CheckResult) -> str:
    """Render as Markdown, for example for a pull request: a heading with the verdict and a table of the gates."""
    heading = f"### auditor check: {escape_markdown(check_result.audit)} {STATUS_SYMBOLS[check_result.verdict]}"
    rows = [[STATUS_SYMBOLS[gate.verdict], gate.name, gate.subject, gate.message] for gate in check_result.gates]
    return f"{heading}\n\n{markdown_table(['', 'Gate', 'Of', 'Found'], rows)}\n"
