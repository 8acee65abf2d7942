"""The commands `report` and `traces`: figures of an audit, and answers with their prompts, verdicts and costs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.atomic_files import write_atomically
from auditor.console.options import AuditArgument, JsonOption, StorageOption, output_file, resolve_output
from auditor.console.output import (
    create_console,
    format_command,
    format_storage_option,
    print_data,
    print_json_items,
    print_json_text,
    print_message,
)
from auditor.errors import UsageError
from auditor.reports.number_format import pluralize
from auditor.reports.output import REPORT_FORMATS, render_report
from auditor.run import open_audit, open_stored_audit

if TYPE_CHECKING:
    from auditor.exports.traces import TraceReader, TraceSelection
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.traces import TraceReport
    from auditor.reports.document import Block


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
    from auditor.exports.traces import write_trace_pages

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
    command_options = format_storage_option(storage)
    write_atomically(
        render_report(audit_report, report_format, is_brief=is_brief, command_options=command_options), path
    )
    print_message(f"Report: {path.resolve()}")


DEFAULT_LIMIT = 10


def traces(
    audit: AuditArgument,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="NAME", help="Only this model; may be repeated.")
    ] = None,
    country: Annotated[
        list[str] | None, typer.Option("--country", metavar="NAME", help="Only this country; may be repeated.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="Only this topic, or item of a task; may be repeated."),
    ] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            "--outcome", metavar="NAME", help="Only answers with this outcome, such as refused; may be repeated."
        ),
    ] = None,
    addressing_judge: Annotated[
        bool, typer.Option("--addressing-judge", help="Only answers that address their judge.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Show at most N answers; 0 shows all.")
    ] = DEFAULT_LIMIT,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what models were asked and answered.

    Each answer is shown with its prompt, score or outcome, cost, and the judges' verdicts. While conflicts are open,
    judges are numbered instead of named. For pages to read in a browser: auditor report --traces

    Example: auditor traces moral-alignment --country Japan --outcome refused
    """
    from auditor.exports.traces import TraceFilter, TraceReader

    with open_stored_audit(audit, storage) as (db, stored_audit):
        reader = TraceReader(db, stored_audit.name)
        selection = reader.select(TraceFilter(model or (), country or (), topic or (), outcome or (), addressing_judge))
        selected = (trace for cell_traces in reader.iterate_cells(selection) for trace in cell_traces.traces)
        shown = islice(selected, limit or None)
        if as_json:
            print_json_items(trace.model_dump(mode="json") for trace in shown)
        else:
            _print_traces(shown)
        _print_summary(reader, selection, limit)


def _print_traces(shown: Iterator[TraceReport]) -> None:
    """Print answers one after the other; a prompt that equals the previous one is printed once."""
    from auditor.reports.document import Paragraph, Section
    from auditor.reports.render.plain_text import render_text_blocks
    from auditor.reports.sections.traces.cell_page import build_answer_blocks, build_prompt_blocks, title_answer

    previous_prompt = None
    for number, trace in enumerate(shown):
        messages = trace.transcript.messages
        is_repeated = number > 0 and messages == previous_prompt
        prompt: Sequence[Block] = [Paragraph("Prompt as above.")] if is_repeated else build_prompt_blocks(messages)
        section = Section("answer", title_answer(trace), [*prompt, *build_answer_blocks(trace)])
        print_data(("\n" * (number > 0)) + render_text_blocks([section], create_console(data=True).width))
        previous_prompt = messages


def _print_summary(reader: TraceReader, selection: TraceSelection, limit: int) -> None:
    """Say how many answers were shown, how to see others, and why judges are not named."""
    n_shown = min(selection.n_traces, limit or selection.n_traces)
    if not reader.n_traces:
        print_message(f"'{reader.audit.name}' has no answers yet. To ask the models, run the audit: auditor run CONFIG")
    elif not selection.n_traces:
        print_message(f"None of {pluralize(reader.n_traces, 'answer')} matches.")
    elif n_shown < selection.n_traces:
        noun = "answer" if selection.n_traces == reader.n_traces else "matching answer"
        print_message(
            f"Shown: {n_shown} of {pluralize(selection.n_traces, noun)}. Choose with --model, --country, --topic, "
            "--outcome or --addressing-judge; --limit 0 shows all."
        )
    if reader.is_simulated and n_shown:
        print_message("All models are simulated: a program made these answers and verdicts.")
    if reader.n_open_conflicts and n_shown:
        conflicts = pluralize(reader.n_open_conflicts, "conflict")
        print_message(
            f"{conflicts} await a human decision. Until then, judges have numbers instead of names; the numbers "
            "differ from answer to answer."
        )
