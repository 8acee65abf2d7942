"""The commands `run` and `graph`: run an audit, show what a run would send, or its steps as a diagram."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from auditor import bootstrap
from auditor.cli.estimate import forecast_config, open_existing_database
from auditor.cli.report import require_writable, resolve_report_format, write_report
from auditor.cli.status import report_run_failures
from auditor.config import load_config
from auditor.console.options import (
    ConfigArgument,
    LimitOption,
    SetOption,
    StorageOption,
    list_overrides,
    output_file,
    split_names,
)
from auditor.console.output import format_command, print_data, print_message
from auditor.console.page_output import print_document, print_document_table
from auditor.console.progress import RunProgress
from auditor.cost_estimation.planned_calls import find_first_call
from auditor.domain import Outcome
from auditor.errors import RunInterrupted, UsageError
from auditor.reports.data.coverage.counts import ASK_UNANSWERED_ADVICE
from auditor.reports.number_format import format_usd, pluralize
from auditor.reports.sections.cost import describe_lost_requests, describe_savings
from auditor.reports.sections.forecast import build_forecast_document
from auditor.reports.sections.run_summary import build_run_summary, describe_low_coverage
from auditor.run import load_planned_survey, open_stored_audit, run_audit
from auditor.run.fingerprints import keep_earlier_defaults
from auditor.run.model_access import sum_spending
from auditor.storage import audits

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.domain import Call
    from auditor.reports.data.report_schema import Report
    from auditor.run import AuditHandle


def print_dry_run(config: AuditConfig, storage: str | None) -> None:
    """Print the planned calls by model and stage, their cost, and the first request as JSON. Nothing is written.

    Raises:
        AuditorError: the configuration, its survey or its database cannot be used.
    """
    bootstrap.prepare_environment()

    survey = load_planned_survey(config)
    print_document(build_forecast_document(forecast_config(config, storage)))
    with open_existing_database(config, storage) as db:
        config = config if db is None else keep_earlier_defaults(audits.find_audit(db, config.name), config)
    call = find_first_call(config, survey, list(survey.asked_cells))
    if call is not None:
        print_message(f"\nThe first request, to '{call.name}':")
        print_data(json.dumps(describe_request(call), indent=2, ensure_ascii=False))
    print_message("Dry run: nothing was sent or written.")


def describe_request(call: Call) -> dict[str, object]:
    """What a call asks for; its key and the form of structured output depend on the model's server."""
    request: dict[str, object] = {
        "model": call.model,
        "server": call.server,
        "purpose": call.purpose.value,
        "messages": [{"role": message.role, "content": message.content} for message in call.messages],
        "params": dict(call.params),
        "schema": call.schema,
    }
    return {name: value for name, value in request.items() if value is not None}


def graph(
    xray: Annotated[bool, typer.Option("--xray", help="Show the steps inside branches too.")] = False,
) -> None:
    """Print the steps of an audit as a Mermaid diagram.

    Example: auditor graph > graph.mmd
    """
    bootstrap.prepare_environment()
    from auditor.agents.graph import draw_mermaid

    print_data(draw_mermaid(xray=xray))


RepeatableOutcome: TypeAlias = Literal["refused", "truncated", "unparsed"]
"""Outcomes of recorded answers that can be asked for again."""
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show the calls, the cost and the first request; send and write nothing.")
]
ReportOption: TypeAlias = Annotated[
    Path | None, output_file("Write the report to this file (.html, .json, .md or .txt).", "--report")
]
EngineOption: TypeAlias = Annotated[
    Literal["local", "ray"] | None,
    typer.Option(
        "--engine",
        help="What sends requests: local (one process) or ray (several, on this computer or a cluster); by default as "
        "in the config.",
    ),
]
RayAddressOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ray-address", metavar="HOST:PORT", help="Address of the Ray cluster, HOST:PORT (or set RAY_ADDRESS)."
    ),
]
PreflightOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--preflight/--no-preflight", help="First send one question to each new model and judge, to find errors early."
    ),
]
RediscoverOption: TypeAlias = Annotated[
    bool,
    typer.Option("--rediscover", help="Test again which parameters and answer formats the models' servers accept."),
]


AskAgainOption: TypeAlias = Annotated[
    RepeatableOutcome | None,
    typer.Option(
        "--ask-again",
        metavar="OUTCOME",
        help="Ask again, once each, for recorded answers that are refused, truncated or unparsed. The first outcome "
        "stays in the coverage.",
    ),
]
AskAgainModelsOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--models", metavar="NAMES", help="With --ask-again: only these models, separated by commas."),
]


def run(
    config: ConfigArgument,
    settings: SetOption = None,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    report_path: ReportOption = None,
    storage: StorageOption = None,
    engine: EngineOption = None,
    ray_address: RayAddressOption = None,
    preflight: PreflightOption = True,
    rediscover: RediscoverOption = False,
    ask_again: AskAgainOption = None,
    ask_again_models: AskAgainModelsOption = None,
) -> None:
    """Run an audit, or resume one.

    Recorded answers are never requested again, so a run that was stopped, or one with more cells, only sends what is
    missing. With --limit, cells beyond the limit are not planned, so they do not count as missing.

    --ask-again repeats questions to models, of all probes, and reviews by judges, each at most once. Figures use a
    usable second answer; coverage and the share of refusals count the first one, and page one of the report says how
    many there are.

    A run that ends with a part of the answers missing, as when its budget is used up, is no error: `auditor check` says
    4 then, and the same command asks for the rest.

    Exit codes: 0 finished; 1 not started; 2 invalid command or configuration; 4 no usable answer from some or all
    models, with the main reason; 130 interrupted, with everything saved.

    Example: auditor run examples/quickstart.toml --limit 10 --report report.html
    """
    if ray_address is not None:
        os.environ["RAY_ADDRESS"] = ray_address  # given by the user, so it needs no trust, unlike the config's
    overrides = list_overrides(settings, limit)
    repeat_models = _select_repeat_models(ask_again, ask_again_models)
    audit_config = load_config(config, overrides).with_run(engine=engine, ray_address=ray_address)
    if dry_run and ask_again is not None:
        raise UsageError(
            "--dry-run does not count the answers that --ask-again would repeat.",
            "Leave out one of them; `auditor status` shows how many answers are not usable.",
        )
    if dry_run:
        return print_dry_run(audit_config, storage)
    if report_path is not None:
        require_writable(report_path)
    command = ["run", str(config), *(word for text in overrides for word in ("--set", shlex.quote(text)))]
    if ask_again is not None:
        command += ["--ask-again", ask_again, *(["--models", ",".join(repeat_models)] if repeat_models else [])]
    audit, progress = run_with_progress(
        audit_config,
        command,
        storage,
        preflight=preflight,
        rediscover=rediscover,
        ask_again=ask_again,
        ask_again_models=repeat_models,
    )
    if rediscover and not progress.n_calls:
        print_message(
            "No request was sent, so --rediscover had no effect: it tests what servers accept before new requests."
        )
    _finish_run(audit, audit_config, progress, report_path)


def _select_repeat_models(ask_again: RepeatableOutcome | None, names: str | None) -> list[str]:
    """The names in the value of --models; raises UsageError without --ask-again."""
    if names is not None and ask_again is None:
        raise UsageError("--models is only used with --ask-again.", "Add --ask-again refused, truncated or unparsed.")
    return split_names("--models", names)


def run_with_progress(
    config: AuditConfig,
    command: Sequence[str],
    storage: str | None,
    *,
    preflight: bool,
    rediscover: bool,
    ask_again: str | None = None,
    ask_again_models: Sequence[str] = (),
) -> tuple[AuditHandle, RunProgress]:
    """Run an audit with a progress display.

    Args:
        command: words of the command that resumes the audit, shown if it is interrupted.
        ask_again, ask_again_models: see `run_audit`.

    Raises:
        RunInterrupted: a signal stopped the run; the advice is the command that resumes it.
    """
    samples = config.samples_by_cell(load_planned_survey(config))
    with RunProgress(
        expected_answers=0 if config.direct.is_open_ended else len(config.models) * sum(samples.values()),
        expected_reviews=_count_expected_reviews(config, samples.values()),
    ) as progress:
        try:
            audit = run_audit(
                config,
                storage=storage,
                progress=progress,
                signals=True,
                preflight=preflight,
                rediscover=rediscover,
                ask_again=None if ask_again is None else Outcome(ask_again),
                ask_again_models=ask_again_models,
            )
        except RunInterrupted as error:
            raise RunInterrupted(error.message, f"To resume: {format_command(*command, storage=storage)}") from None
    return audit, progress


def _count_expected_reviews(config: AuditConfig, samples: Iterable[int]) -> int:
    """Number of verdicts that the audit will need, if every trace is usable.

    Args:
        config: the audit's configuration.
        samples: number of samples of each cell.
    """
    limit = config.probes.review.traces  # traces to judge per cell and model, or "all"
    n_traces = sum(n_samples if limit == "all" else min(limit, n_samples) for n_samples in samples)
    return n_traces * sum(config.panel_size(model.name) for model in config.models)


def _finish_run(audit: AuditHandle, config: AuditConfig, progress: RunProgress, report_path: Path | None) -> None:
    """Print the summary, write the report if a file is named, and print what to do next.

    Raises:
        NoUsableAnswerError: there is no usable answer of some or all models.
    """
    audit_report = audit.report()
    _print_summary(audit_report, progress)
    if config.limits.budget_usd is not None and progress.outcomes[Outcome.OVER_BUDGET]:
        print_message(_describe_spending(audit, config, config.limits.budget_usd))
    for warning in describe_low_coverage(audit_report, config.check.min_coverage):
        print_message(warning)
    if report_path is not None:
        write_report(audit_report, report_path, resolve_report_format(report_path, None), audit.storage)
    else:
        print_message(f"To see the report: {format_command('report', audit.name, storage=audit.storage)}")
    states = audit_report.conflicts.states
    if n_waiting := states.get("open", 0) + states.get("disputed", 0):
        command = format_command("review", audit.name, storage=audit.storage)
        waiting = pluralize(n_waiting, "conflict needs", "conflicts need")
        print_message(f"{waiting} a human decision: {command}")
    report_run_failures(audit, config)


def _print_summary(report: Report, progress: RunProgress) -> None:
    """Print the run's summary: tables for each probe, calls, cost, savings, and unusable records by cause."""
    for table in build_run_summary(report):
        print_document_table(table, data=False)
    unsent = f", {progress.n_unsent} not sent" if progress.n_unsent else ""
    print_message(
        f"{pluralize(progress.n_calls, 'call')} in {progress.elapsed_seconds:.1f} s{unsent}, {progress.n_recorded} "
        f"already recorded; cost {progress.cost_text}."
    )
    if lost_note := describe_lost_requests(report.cost):
        print_message(lost_note)
    if n_unplanned := report.coverage.unplanned_cells:
        print_message(f"Not planned: {pluralize(n_unplanned, 'cell')} beyond --limit (limits.max_cells).")
    for saving in report.savings:
        print_message(describe_savings(saving))
    # One row per kind of record, such as samples or verdicts; `ok` of the `planned` ones are usable.
    for row in report.coverage.total:
        if row.ok < row.planned:
            losses = [f"{count} {outcome}" for outcome, count in row.losses.items()]
            losses += [f"{row.missing} not recorded"] if row.missing else []
            print_message(
                f"  {row.planned - row.ok} of {row.planned} {row.counted_label} are not usable. Causes: "
                f"{', '.join(losses)}"
            )
    if any(row.is_incomplete for row in report.coverage.models):
        print_message(f"The audit is not complete, so `auditor check` leaves it undecided. {ASK_UNANSWERED_ADVICE}.")


def _describe_spending(audit: AuditHandle, config: AuditConfig, budget_usd: float) -> str:
    """Say what an audit has spent of its budget, and what the budget still covers."""
    with open_stored_audit(audit.name, audit.storage) as (db, stored_audit):
        spending = sum_spending(db, stored_audit.id, config)
    unreturned = (
        f" {format_usd(spending.unreturned_usd)} of it is for requests without an answer, which may have been charged."
        if spending.unreturned_usd
        else ""
    )
    left = (
        "Before a request is sent, its largest possible cost is reserved; the rest does not cover another one. To send "
        "more requests, raise limits.budget_usd."
        if spending.usd < budget_usd
        else "To send more requests, raise limits.budget_usd."
    )
    return f"Budget: {format_usd(spending.usd)} of {format_usd(budget_usd)} are spent.{unreturned} {left}"
