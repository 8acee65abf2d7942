"""The command `report`, and writing a report to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import AuditArgument, StorageOption, output_file, resolve_output
from auditor.console.output import (
    format_command,
    format_storage_option,
    print_data,
    print_json_text,
    print_message,
)
from auditor.reports.number_format import pluralize
from auditor.reports.output import REPORT_FORMATS

if TYPE_CHECKING:
    from auditor.reports.data.report_schema import Report


def report(
    audit: AuditArgument,
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", help="html, json, md or text; by default from the suffix of the file to write."),
    ] = None,
    output: Annotated[Path | None, output_file()] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Write one page only: the main answers, reasons for caution and next steps.")
    ] = False,
    with_traces: Annotated[
        bool, typer.Option("--traces", help="Also write pages with all answers, in the folder REPORT-traces.")
    ] = False,
    storage: StorageOption = None,
) -> None:
    """Write the report as HTML, JSON, Markdown or plain text.

    HTML is one self-contained file, AUDIT.html (with --brief AUDIT-brief.html) unless -o names another; the other
    formats go to standard output. With --traces, the cells of the HTML report link to pages that show what was asked
    and answered; the list of all answers has a search.

    Example: auditor report moral-alignment --format json
    """
    from auditor.errors import UsageError
    from auditor.reports.output import render_report
    from auditor.run import open_audit

    report_format = resolve_report_format(output, format)
    if with_traces and report_format != "html":
        raise UsageError("--traces needs a report in HTML.", "Leave out --traces, or use --format html.")
    audit_report = open_audit(audit, storage=storage).report()
    if output is None and report_format != "html":
        (print_json_text if report_format == "json" else print_data)(
            render_report(audit_report, report_format, is_brief=brief, command_options=format_storage_option(storage))
        )
        return
    path = resolve_output(output, f"{audit}{'-brief' * brief}.html")
    if with_traces:
        audit_report = _write_traces(audit_report, audit, path, storage)
    write_report(audit_report, path, report_format, storage, is_brief=brief)


def _write_traces(audit_report: Report, audit: str, path: Path, storage: str | None) -> Report:
    """Write the pages of answers beside the report's file, and return the report with links to them."""
    from auditor.exports.traces.pages import write_trace_pages
    from auditor.run import open_stored_audit

    with open_stored_audit(audit, storage) as (db, stored_audit):
        folder = resolve_output(None, str(path.with_name(f"{path.stem}-traces")))
        pages = write_trace_pages(db, stored_audit.name, folder, path.name)
    if pages.n_omitted_cells:
        print_message(
            f"{pages.n_omitted_cells} countries and topics have no page, since there are too many. To read their "
            f"answers: {format_command('traces', audit, storage=storage)}"
        )
    print_message(f"Answers: {pluralize(len(pages.links.by_cell), 'page')} in {pages.folder.resolve()}")
    return audit_report.with_trace_pages(pages.links)


def resolve_report_format(output: Path | None, format_name: str | None) -> str:
    """The report format by its name or alias, else by the file's suffix, else html.

    Raises:
        UsageError: neither is a report format.
    """
    from auditor.errors import UsageError

    suffix_format = REPORT_FORMATS.get(output.suffix) if output else "html"
    resolved_format = REPORT_FORMATS.get(f".{format_name}", format_name) if format_name else suffix_format
    if resolved_format is None or resolved_format not in REPORT_FORMATS.values():
        requested_format = f"'{format_name}'" if format_name else f"the suffix of '{output}'"
        raise UsageError(
            f"{requested_format} is not a report format.",
            "Use html, json, md or text (.html, .json, .md or .txt).",
        )
    return resolved_format


def require_writable(path: Path) -> None:
    """Raise UsageError if a report could not be written to this file, before a request is paid for."""
    from auditor.errors import UsageError

    resolve_report_format(path, None)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        problem = "is a folder" if path.is_dir() else "is in a folder that does not exist or is not writable"
        raise UsageError(f"--report: {path} {problem}.", "Name a file in an existing folder that you may write to.")


def write_report(
    audit_report: Report, path: Path, report_format: str, storage: str | None, *, is_brief: bool = False
) -> None:
    """Write a report to a file in one of `REPORT_FORMATS`, and print its path.

    Args:
        storage: URL of the audit's database, which commands on the page name if it is not the default.
    """
    from auditor.atomic_files import write_atomically
    from auditor.reports.output import render_report

    command_options = format_storage_option(storage)
    write_atomically(
        render_report(audit_report, report_format, is_brief=is_brief, command_options=command_options), path
    )
    print_message(f"Report: {path.resolve()}")
