"""Commands about audits: run, report, graph; status and review have modules of their own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import StorageOption
from auditor.cli.output import format_command, print_data, print_json_text, print_message
from auditor.cli.review import review
from auditor.cli.status import status

if TYPE_CHECKING:
    from auditor.cli.progress import RunProgress
    from auditor.config import AuditConfig
    from auditor.reports.data.report_schema import Report


class EngineOption(StrEnum):
    """What sends the requests: this process, or workers of a Ray cluster."""

    LOCAL = "local"
    RAY = "ray"


REPORT_FORMATS = {".html": "html", ".json": "json", ".md": "markdown", ".txt": "text"}


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    for function in (run, status, report, review, graph):
        app.command()(function)


def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The audit's TOML or YAML file.")],
    storage: StorageOption = None,
    report_path: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the report here (.html, .json, .md or .txt).")
    ] = None,
    engine: Annotated[
        EngineOption | None,
        typer.Option("--engine", help="What sends requests: this process or Ray workers; else as the config says."),
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option("--ray-address", metavar="HOST:PORT", help="The Ray cluster (or set RAY_ADDRESS).")
    ] = None,
    preflight: Annotated[
        bool,
        typer.Option("--preflight/--no-preflight", help="Send one call to each new model and judge before all others."),
    ] = True,
    rediscover: Annotated[
        bool, typer.Option("--rediscover", help="Find out again which parameters and forms of answers models accept.")
    ] = False,
) -> None:
    """Run an audit, or resume one: recorded answers are never requested again.

    Exit codes: 0 finished, 1 it could not start, 4 it ended without a usable answer of some or all models, which are
    named with the main reason, 130 interrupted with everything saved.

    Example: auditor run examples/quickstart.toml --report report.html
    """
    from auditor.cli.failures import report_run_failures
    from auditor.cli.progress import RunProgress
    from auditor.config import load_config
    from auditor.errors import RunInterrupted
    from auditor.run import load_planned_survey, run_audit

    if ray_address is not None:
        os.environ["RAY_ADDRESS"] = ray_address  # given by the user, so it needs no trust, unlike the config's
    audit_config = load_config(config).with_run(engine=engine and engine.value, ray_address=ray_address)
    report_format = _resolve_report_format(report_path, None) if report_path else None
    if report_path is not None:
        _require_writable(report_path)
    samples = audit_config.samples_by_cell(load_planned_survey(audit_config))
    with RunProgress(expected_reviews=_count_expected_reviews(audit_config, samples.values())) as progress:
        try:
            audit = run_audit(
                audit_config,
                storage=storage,
                progress=progress,
                signals=True,
                preflight=preflight,
                rediscover=rediscover,
            )
        except RunInterrupted as error:
            raise RunInterrupted(
                error.message, f"Go on with: {format_command('run', str(config), storage=storage)}"
            ) from None
    audit_report = audit.report()
    _print_summary(audit_report, progress)
    if rediscover and not progress.n_calls:
        print_message("No request was sent, so nothing was found out again: --rediscover acts with the next calls.")
    if report_path and report_format:
        _write_report(audit_report, report_path, report_format)
    if report_path is None:
        print_message(f"The report: {format_command('report', audit.name, storage=audit.storage)}")
    if n_waiting := audit_report.conflicts.states.get("open", 0) + audit_report.conflicts.states.get("disputed", 0):
        print_message(
            f"{n_waiting} conflicts wait for a person: {format_command('review', audit.name, storage=audit.storage)}"
        )
    report_run_failures(audit, audit_config)


def _count_expected_reviews(config: AuditConfig, samples: Iterable[int]) -> int:
    """Number of verdicts that the audit will need, if every trace is usable.

    Args:
        config: the audit's configuration.
        samples: number of samples of each cell.
    """
    limit = config.probes.review.traces  # traces to judge per cell and model, or "all"
    n_traces = sum(n_samples if limit == "all" else min(limit, n_samples) for n_samples in samples)
    return n_traces * sum(config.panel_size(model.name) for model in config.models)


def _print_summary(report: Report, progress: RunProgress) -> None:
    """Print the run's summary: tables for each probe, calls, cost, savings, and unusable records by cause."""
    from auditor.cli.page_output import print_document_table
    from auditor.reports.sections.cost import describe_savings
    from auditor.reports.sections.run_summary import build_run_summary

    for table in build_run_summary(report):
        print_document_table(table, data=False)
    print_message(
        f"{progress.n_calls} calls in {progress.elapsed_seconds:.1f} s, {progress.n_recorded} known already; cost "
        f"{progress.cost_text}."
    )
    for saving in report.savings:
        print_message(describe_savings(saving))
    # One row per kind of record, such as samples or verdicts; `ok` of the `planned` ones are usable.
    for row in report.coverage.total:
        if row.ok < row.planned:
            losses = [f"{count} {outcome}" for outcome, count in row.losses.items()]
            losses += [f"{row.missing} not asked"] if row.missing else []
            print_message(
                f"  {row.planned - row.ok} of {row.planned} {row.counted_label} cannot be used: {', '.join(losses)}"
            )


def report(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", help="html, json, markdown or text; by default, by the file's suffix."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
    brief: Annotated[bool, typer.Option("--brief", help="One page: answers, cautions and next steps.")] = False,
    storage: StorageOption = None,
) -> None:
    """Write an audit's report as one self-contained HTML file, JSON, Markdown or plain text.

    HTML goes to AUDIT.html (with --brief to AUDIT-brief.html) unless -o names a file; other formats go to standard
    output.

    Example: auditor report moral-alignment --format json
    """
    from auditor.reports.output import render_report
    from auditor.run import open_audit

    report_format = _resolve_report_format(output, format)
    audit_report = open_audit(audit, storage=storage).report()
    if output is None and report_format != "html":
        (print_json_text if report_format == "json" else print_data)(
            render_report(audit_report, report_format, is_brief=brief)
        )
        return
    _write_report(audit_report, output or Path(f"{audit}{'-brief' * brief}.html"), report_format, is_brief=brief)


def _resolve_report_format(output: Path | None, format_name: str | None) -> str:
    """The report format by its name, else by the file's suffix, else html."""
    from auditor.errors import UsageError

    resolved_format = format_name or (REPORT_FORMATS.get(output.suffix) if output else "html")
    if resolved_format is None or resolved_format not in REPORT_FORMATS.values():
        requested_format = f"'{format_name}'" if format_name else f"the suffix of '{output}'"
        raise UsageError(
            f"{requested_format} is not a report format.",
            "Use html, json, markdown or text (.html, .json, .md or .txt).",
        )
    return resolved_format


def _require_writable(path: Path) -> None:
    """Raise UsageError if the report could not be written, before a request is paid for."""
    from auditor.errors import UsageError

    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        problem = "is a folder" if path.is_dir() else "lies in a folder that does not exist or cannot be written to"
        raise UsageError(f"--report: {path} {problem}.", "Name a file in a folder that is there.")


def _write_report(audit_report: Report, path: Path, report_format: str, *, is_brief: bool = False) -> None:
    """Write a report to a file in one of the values of `REPORT_FORMATS`, and print its path."""
    from auditor.atomic_files import write_atomically
    from auditor.reports.output import render_report

    write_atomically(render_report(audit_report, report_format, is_brief=is_brief), path)
    print_message(f"Report: {path.resolve()}")


def graph() -> None:
    """Print the audit's graph as Mermaid.

    Example: auditor graph > graph.mmd
    """
    from auditor import bootstrap

    bootstrap.prepare_environment()
    from auditor.agents.graph import draw_mermaid

    print_data(draw_mermaid())
