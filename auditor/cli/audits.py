"""Commands about audits: run, status, report, review, graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.options import JsonOption, StorageOption
from auditor.cli.output import format_command, print_data, print_json, print_json_text, print_message, print_table

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
    storage: StorageOption = None,
) -> None:
    """Write an audit's report as one self-contained HTML file, JSON, Markdown or plain text.

    HTML goes to AUDIT.html unless -o names a file; the other formats go to standard output.

    Example: auditor report moral-alignment --format json
    """
    from auditor.reports.output import render_report
    from auditor.run import open_audit

    report_format = _resolve_report_format(output, format)
    audit_report = open_audit(audit, storage=storage).report()
    if output is None and report_format != "html":
        (print_json_text if report_format == "json" else print_data)(render_report(audit_report, report_format))
        return
    _write_report(audit_report, output or Path(f"{audit}.html"), report_format)


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


def _write_report(audit_report: Report, path: Path, report_format: str) -> None:
    """Write a report to a file in one of the values of `REPORT_FORMATS`, and print its path."""
    from auditor.atomic_files import write_atomically
    from auditor.reports.output import render_report

    write_atomically(render_report(audit_report, report_format), path)
    print_message(f"Report: {path.resolve()}")


def status(
    audit: Annotated[str | None, typer.Argument(metavar="[AUDIT]", help="One audit; else all of them.")] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """How far audits have come: stage, coverage, open conflicts, cost.

    Example: auditor status moral-alignment --json
    """
    from auditor.cli.failures import print_top_failures
    from auditor.reports.data.audit_status import load_audit_status
    from auditor.reports.data.failures.build import load_failure_groups
    from auditor.reports.number_format import pluralize
    from auditor.run import resolve_storage_url
    from auditor.run.batches.waiting_calls import describe_waiting_calls
    from auditor.storage import audits
    from auditor.storage.database import open_database
    from auditor.storage.failure_queries import count_unsent_calls

    with open_database(resolve_storage_url(storage), create=False) as db:
        selected_audits = [audits.get_audit(db, audit)] if audit else audits.load_audits(db)
        statuses = [load_audit_status(db, selected_audit) for selected_audit in selected_audits]
        audit_ids = [] if as_json else [selected_audit.id for selected_audit in selected_audits]
        failures = [load_failure_groups(db, audit_id) for audit_id in audit_ids]
        unsent_calls = [count_unsent_calls(db, audit_id) for audit_id in audit_ids]
    if as_json:
        print_json(statuses)
        return
    columns = [
        "audit",
        "stage",
        "traces ok",
        "verdicts ok",
        "comparisons ok",
        "moral answers ok",
        "conflicts",
        "open",
        "cost (USD)",
        "updated",
    ]
    rows = [
        [
            audit_status["audit"],
            audit_status["stage"],
            _format_progress(audit_status, "traces"),
            _format_progress(audit_status, "verdicts"),
            f"{audit_status['comparisons_ok']} of {audit_status['comparisons']}",
            f"{audit_status['moral_answers_ok']} of {audit_status['moral_answers']}",
            audit_status["conflicts"],
            audit_status["open"],
            _format_cost(
                audit_status["cost_usd"], audit_status["unpriced"], "no answers" if audit_failures else "no calls"
            ),
            audit_status["updated_at"][:16].replace("T", " "),
        ]
        for audit_status, audit_failures in zip(statuses, failures, strict=True)
    ]
    print_table(columns, rows)
    for audit_status, audit_failures, n_unsent in zip(statuses, failures, unsent_calls, strict=True):
        print_top_failures(audit_failures, n_unsent, audit_status["audit"], storage)
        if waiting_note := describe_waiting_calls([batch["calls"] for batch in audit_status["batches"]]):
            print_message(
                f"{audit_status['audit']}: {waiting_note}; the run that submitted them, or the same command again, "
                "collects them."
            )
        if n_requests := audit_status["preflight"]["requests"]:
            preflight_cost = _format_cost(audit_status["preflight"]["cost_usd"], audit_status["preflight"]["unpriced"])
            print_message(
                f"{audit_status['audit']}: {pluralize(n_requests, 'request')} found out what judges accept; "
                f"cost (USD): {preflight_cost}."
            )
        for name in audit_status["drift"]:
            print_message(f"{audit_status['audit']}: what stands behind {name} changed; see the report, or --json.")


def _format_progress(audit_status: dict[str, Any], record_kind: str) -> str:
    """Usable records of the planned ones; a dash for imported scores, which have neither traces nor verdicts."""
    planned = audit_status[f"{record_kind}_planned"]
    return f"{audit_status[f'{record_kind}_ok']} of {planned}" if planned else "-"


def _format_cost(cost: float | None, unpriced: int, uncharged_text: str = "no answers") -> str:
    """A cost in USD, with the number of calls of unknown price; the given text if nothing was charged."""
    if cost is None:
        return "unknown" if unpriced else uncharged_text
    return f"{cost:.4f}" + (f" + {unpriced} unpriced" if unpriced else "")


def review(
    audit: Annotated[str | None, typer.Argument(metavar="[AUDIT]", help="Which to review; else choose.")] = None,
    rater: Annotated[str | None, typer.Option("--rater", help="Who decides; your user name if not given.")] = None,
    plain_text: Annotated[
        bool, typer.Option("--plain", help="Plain text without a full screen; chosen by itself without a terminal.")
    ] = False,
    open_book: Annotated[
        bool, typer.Option("--open-book", help="Show authors, verdicts and survey before the decision.")
    ] = False,
    second_rater_share: Annotated[
        float | None, typer.Option("--second-share", min=0, max=1, help="Share of conflicts put to two raters.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Open the app in a browser, on this machine only.")] = False,
    host: Annotated[str, typer.Option("--host", help="With --serve: the interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="With --serve: the port.")] = 8321,
    public_url: Annotated[
        str | None,
        typer.Option("--public-url", metavar="URL", help="With --serve: how browsers reach it, if otherwise."),
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Settle by hand what the models could not, in a terminal app.

    Example: auditor review moral-alignment --rater ada
    """
    import getpass

    from auditor.review.session import DEFAULT_SECOND_RATER_SHARE
    from auditor.storage.database import STORAGE_VARIABLE, resolve_database_url
    from auditor.tui.plain_text_app import needs_plain_text, run_plain_text_review

    url, rater_name = resolve_database_url(storage), rater or getpass.getuser()
    if serve:
        from auditor.tui import web_server

        os.environ[STORAGE_VARIABLE] = url  # not an argument: other users of this machine can list those
        arguments = ["review", *([audit] if audit else []), "--rater", rater_name]
        arguments += ["--open-book"] if open_book else []
        arguments += [] if second_rater_share is None else ["--second-share", str(second_rater_share)]
        web_server.serve_app(
            [sys.executable, "-P", "-m", "auditor", *arguments], host=host, port=port, public_url=public_url
        )
        return
    open_by_audit: dict[str, int] = {}

    def on_decided(name: str) -> None:
        """Resume the audit after a decision, and keep how many of its conflicts are still open."""
        from auditor.run import resume_after_review

        open_by_audit[name] = resume_after_review(name, storage=url)

    second_share = DEFAULT_SECOND_RATER_SHARE if second_rater_share is None else second_rater_share
    if plain_text or needs_plain_text():
        run_plain_text_review(
            url, audit, rater=rater_name, blind=not open_book, second_rater_share=second_share, on_decided=on_decided
        )
    else:
        from auditor.tui.app import run_review

        run_review(
            url, audit, rater=rater_name, blind=not open_book, second_rater_share=second_share, on_decided=on_decided
        )
    for name in (name for name, n_open in open_by_audit.items() if n_open == 0):
        print_message(f"Nothing is open any more in '{name}': {format_command('report', name, storage=url)}")


def graph() -> None:
    """Print the audit's graph as Mermaid.

    Example: auditor graph > graph.mmd
    """
    from auditor import bootstrap

    bootstrap.prepare_environment()
    from auditor.agents.graph import draw_mermaid

    print_data(draw_mermaid())
