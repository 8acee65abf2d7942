"""The commands `status` and `errors`: how far audits are, and why requests failed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from auditor.config import REPLAY, load_stored_config
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.console.options import AuditArgument, JsonOption, StorageOption, resolve_audit_name
from auditor.console.output import format_command, print_data, print_json, print_message, print_table
from auditor.domain import Outcome
from auditor.errors import ConfigError, NoUsableAnswerError, UsageError, did_you_mean
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.coverage.build import ANSWER_OUTCOMES, count_first_answers
from auditor.reports.data.coverage.counts import ASK_UNANSWERED_ADVICE
from auditor.reports.data.failures import MAX_TOP_FAILURES, find_unusable_models, load_failure_groups
from auditor.reports.number_format import pluralize
from auditor.review.failure_text import describe_failure, summarize_failure
from auditor.run import open_stored_audit, open_stored_database
from auditor.run.batches.waiting_calls import describe_waiting_calls
from auditor.storage import audits, ledger
from auditor.storage.count_queries import count_trace_repeats, count_traces
from auditor.storage.failure_queries import OTHER_TABLES, count_model_outcomes, count_unsent_calls
from auditor.text_safety import truncate_text

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.reports.data.failures import FailureGroup, UnusableModel
    from auditor.run.audit_handle import AuditHandle
    from auditor.storage.audits import Audit
    from auditor.storage.database import Database


MAX_SHOWN_BODY_CHARS = 4_000
"""Characters of a response's body that --full shows."""


ModelOption: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Show only the failures of this model.")
]
FullOption: TypeAlias = Annotated[
    bool, typer.Option("--full", help="Show complete messages, and for each message one response of the server.")
]


def errors(
    audit: AuditArgument,
    model: ModelOption = None,
    full: FullOption = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """List why requests failed, and how to fix it.

    Failed requests are grouped by model, HTTP status and message. The groups that left the most questions without a
    usable answer come first. Failed requests are listed even if they succeeded when sent again.

    Example: auditor errors moral-alignment --model gpt
    """
    with open_stored_audit(audit, storage) as (db, selected_audit):
        failures = load_failure_groups(db, selected_audit.id)
        n_unsent = count_unsent_calls(db, selected_audit.id) if model is None else 0
        refusals = _count_refusals(db, selected_audit.id)
        if model is not None:
            _require_model(model, selected_audit, failures)
            failures = [failure for failure in failures if failure.name == model]
        bodies = [_load_body(db, failure) if full else None for failure in failures]
    if as_json:
        print_json([failure.model_dump(mode="json") for failure in failures])
        return
    if not failures:
        addressee = f" to '{model}'" if model else ""
        print_message(f"No request{addressee} failed in '{selected_audit.name}'.")
    for failure, body in zip(failures, bodies, strict=True):
        heading, *lines = describe_failure(failure, full=full)
        lines += [f"Response: {body}"] if body else []
        print_data("\n".join([heading, *(f"  {line}" for line in lines), ""]))
    _print_unsent_calls(n_unsent, selected_audit.name)
    _print_refusals([count for count in refusals if model in (None, count.name)], selected_audit.name, storage)


class RefusalCount(NamedTuple):
    """Number of a model's answers that are refusals.

    Attributes:
        name: the model's name in the audit.
        role: what it answers, as the end of "'NAME' ": empty for direct questions.
        refused, answers: number of refusals, and of all answers; failed requests are none.
    """

    name: str
    role: str
    refused: int
    answers: int


def _count_refusals(db: Database, audit_id: int) -> list[RefusalCount]:
    """Count the refusals of each model and judge that refused; of direct questions as in the report."""
    direct = count_first_answers(count_traces(db, audit_id), count_trace_repeats(db, audit_id))
    others = [count for count in count_model_outcomes(db, audit_id, OTHER_TABLES) if count.outcome in ANSWER_OUTCOMES]
    rows = [(count.model, "", count.outcome, count.n) for count in direct]
    rows += [
        (count.name, " as a judge" if count.is_judge else ", in other questions,", count.outcome, count.n)
        for count in others
    ]
    refused, answers = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for name, role, outcome, n in rows:
        answers[name, role] += n
        refused[name, role] += n * (outcome == Outcome.REFUSED)
    return [RefusalCount(*key, n, answers[key]) for key, n in sorted(refused.items()) if n]


def _print_refusals(refusals: Sequence[RefusalCount], audit_name: str, storage: str | None) -> None:
    """Print which models and judges refuse to answer, and the command that shows a model's answers."""
    for count in refusals:
        answers = pluralize(count.answers, "answer")
        sentence = f"{audit_name}: '{count.name}'{count.role} refused {count.refused} of {answers}."
        command = format_command(
            "traces", audit_name, "--model", shlex.quote(count.name), "--outcome", "refused", storage=storage
        )
        print_message(sentence if count.role else f"{sentence} To read them: {command}")


def _require_model(name: str, audit: Audit, failures: Sequence[FailureGroup]) -> None:
    """Raise UsageError if an audit has no model of this name."""
    config = load_stored_config(audit.config)
    names = {failure.name for failure in failures}
    names |= config.models_by_name.keys() if config else set()
    if name not in names:
        hint = did_you_mean(name, sorted(names), f"Its models: {', '.join(sorted(names)) or 'none'}.")
        raise UsageError(f"--model: the audit '{audit.name}' has no model '{name}'.", hint)


def _load_body(db: Database, failure: FailureGroup) -> str | None:
    """The beginning of a recorded response body as text; None if none was recorded."""
    payload = ledger.load_payload(db, failure.payload) if failure.payload else None
    return None if payload is None else truncate_text(payload.decode("utf-8", "replace"), MAX_SHOWN_BODY_CHARS)


def _print_unsent_calls(n_unsent: int, audit_name: str) -> None:
    """Print how many calls were not sent since their model was stopped, if any, to standard error."""
    if n_unsent:
        from auditor.reports.sections.coverage import describe_unsent_calls

        print_message(f"{audit_name}: {describe_unsent_calls(n_unsent)}")


def print_top_failures(failures: Sequence[FailureGroup], n_unsent: int, audit_name: str, storage: str | None) -> None:
    """Print the most frequent reasons for calls without a usable answer to standard error, and where the others are.

    Args:
        failures: the audit's failures.
        n_unsent: number of calls that were not sent since their model was stopped.
        audit_name: the audit.
        storage: database that the suggested command names, if it is not the default.
    """
    lasting_failures = [failure for failure in failures if failure.unusable]
    for failure in lasting_failures[:MAX_TOP_FAILURES]:
        print_message(f"{audit_name}: {summarize_failure(failure)}")
    _print_unsent_calls(n_unsent, audit_name)
    if lasting_failures:
        print_message(f"All failures: {format_command('errors', audit_name, storage=storage)}")


def report_run_failures(audit: AuditHandle, config: AuditConfig) -> None:
    """Print the most frequent reasons for unusable answers after a run.

    Raises:
        NoUsableAnswerError: there is no usable answer of some or all models; the message names them.
    """
    with open_stored_audit(audit.name, audit.storage) as (db, stored_audit):
        failures = load_failure_groups(db, stored_audit.id)
        outcome_counts = count_model_outcomes(db, stored_audit.id)
        unusable_models = find_unusable_models(outcome_counts, failures, config)
        n_unsent = count_unsent_calls(db, stored_audit.id)
        refusals = _count_refusals(db, stored_audit.id)
    print_top_failures(failures, n_unsent, audit.name, audit.storage)
    _print_refusals(refusals, audit.name, audit.storage)
    recorded = {name for name, model in config.models_by_name.items() if model.provider is REPLAY}
    _require_usable_answers([model for model in unusable_models if model.name in config.models_by_name], recorded)


def _require_usable_answers(unusable_models: Sequence[UnusableModel], recorded: Collection[str]) -> None:
    """Raise NoUsableAnswerError if a run ended without a usable answer of some models.

    Args:
        recorded: names of the models whose answers are recorded, so that none can be sent again.
    """
    if not unusable_models:
        return
    names_by_reason: dict[str, list[str]] = {}
    for model in unusable_models:
        role_name = f"'{model.name}'{' as a judge' if model.is_judge else ''}"
        names_by_reason.setdefault(model.reason.rstrip("."), []).append(role_name)
    reasons = [f"{', '.join(names)} ({reason})" for reason, names in names_by_reason.items()]
    fix = next((model.how_to_fix for model in unusable_models if model.how_to_fix), "")
    next_step = "To send the unanswered calls again, run the same command."
    if all(model.name in recorded for model in unusable_models):
        next_step = "Recorded answers cannot be requested again: correct their file."
    fix = fix or f"See `{format_command('errors')}`. {next_step}"
    raise NoUsableAnswerError(
        f"the run ended, but there is no usable answer from {', '.join(reasons)}.",
        f"How to fix: {fix}",
    )


STAGE_LABELS = {"person": "waiting for review", "done": "finished"}
"""Stages whose stored name does not say what an audit does; the others do."""


def status(
    audit: Annotated[
        str | None,
        typer.Argument(
            metavar="AUDIT",
            help="Show only this audit, by its name or config file; by default all.",
            callback=resolve_audit_name,
        ),
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the progress and the cost of audits.

    For each audit: stage, usable answers, open conflicts, cost, and the most frequent failures.

    Example: auditor status moral-alignment --json
    """
    with open_stored_database(storage) as db:
        selected_audits = [audits.get_audit(db, audit)] if audit else audits.load_audits(db)
        statuses, config_errors = _load_statuses(db, selected_audits)
        unreadable_names = {name for name, _ in config_errors}
        audit_ids = [selected.id for selected in selected_audits if selected.name not in unreadable_names]
        failures = [load_failure_groups(db, audit_id) for audit_id in audit_ids]
        unsent_calls = [count_unsent_calls(db, audit_id) for audit_id in audit_ids]
    if as_json:
        print_json(statuses)
    elif statuses or not config_errors:
        _print_statuses(statuses, failures)
        for audit_status, audit_failures, n_unsent in zip(statuses, failures, unsent_calls, strict=True):
            print_top_failures(audit_failures, n_unsent, audit_status["audit"], storage)
            _print_remarks(audit_status)
    for _, error in config_errors[1:]:
        print_message(f"Not shown: {error.message}")
    if config_errors:
        raise config_errors[0][1]


def _load_statuses(
    db: Database, selected_audits: Sequence[Audit]
) -> tuple[list[dict[str, Any]], list[tuple[str, ConfigError]]]:
    """Load the status of each audit; and name and error of those whose configuration cannot be read."""
    statuses, config_errors = [], []
    for selected_audit in selected_audits:
        try:
            statuses.append(load_audit_status(db, selected_audit))
        except ConfigError as error:
            config_errors.append((selected_audit.name, error))
    return statuses, config_errors


def _print_statuses(statuses: Sequence[dict[str, Any]], failures: Sequence[Sequence[FailureGroup]]) -> None:
    """Print one row per audit, without the columns that no audit uses; `failures` are those of each."""
    columns: dict[str, list[object]] = {
        "audit": [status["audit"] for status in statuses],
        "stage": [
            "incomplete" if _is_incomplete(status) else STAGE_LABELS.get(status["stage"], status["stage"])
            for status in statuses
        ],
        "samples ok": [_format_progress(status, "traces") for status in statuses],
        "verdicts ok": [_format_progress(status, "verdicts") for status in statuses],
        **{
            f"{key.replace('_', ' ')} ok": [_format_count(status, key) for status in statuses]
            for key in (load_built_in(name).answers_key for name in list_built_in_names())
        },
        **{
            f"{key.removeprefix('probe_')} ok": [_format_count(status, key) for status in statuses]
            for key in sorted({key for status in statuses for key in status if key.startswith("probe_")})
            if not key.endswith("_ok")
        },
        "conflicts": [
            status["conflicts"] if status["conflicts_looked_for"] else "not looked for" for status in statuses
        ],
        "open": [status["open"] if status["conflicts_looked_for"] else None for status in statuses],
        "cost (USD)": [
            _format_cost(status["cost_usd"], status["unpriced"], "no answers" if audit_failures else "no calls")
            for status, audit_failures in zip(statuses, failures, strict=True)
        ],
        "updated": [status["updated_at"][:16].replace("T", " ") for status in statuses],
    }
    used_columns = {name: cells for name, cells in columns.items() if any(cell is not None for cell in cells)}
    print_table(list(used_columns), list(zip(*used_columns.values(), strict=True)))


def _describe_uncollected_batches(audit_status: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about batches that were submitted, and about those of which this is not known."""
    is_needed = audit_status["stage"] not in audits.FINAL_STAGES
    for are_submitted in (True, False):
        calls_per_batch = [
            batch["calls"] for batch in audit_status["batches"] if (batch["batch"] is not None) == are_submitted
        ]
        if not (waiting_note := describe_waiting_calls(calls_per_batch, are_submitted=are_submitted)):
            continue
        if is_needed:
            yield f"{waiting_note}. To collect the answers, run the audit again with the same command."
        else:
            condition = "They" if are_submitted else "If they were submitted, they"
            yield f"{waiting_note}, which the present configuration does not ask for. {condition} may be charged."


def _print_remarks(audit_status: dict[str, Any]) -> None:
    """Print what an audit waits for, what its preflight cost, and which models changed."""
    name = audit_status["audit"]
    if _is_incomplete(audit_status):
        print_message(
            f"{name}: of {pluralize(audit_status['traces_planned'], 'sample')}, "
            f"{audit_status['traces_never_asked']} were never asked for and {audit_status['traces_lost']} got no "
            f"answer. {ASK_UNANSWERED_ADVICE}."
        )
    for remark in _describe_uncollected_batches(audit_status):
        print_message(f"{name}: {remark}")
    preflight = audit_status["preflight"]
    if preflight["requests"]:
        print_message(
            f"{name}: {pluralize(preflight['requests'], 'request')} tested which parameters models and judges "
            f"accept; cost (USD): {_format_cost(preflight['cost_usd'], preflight['unpriced'])}."
        )
    for reason in audit_status.get("unavailable_probes", {}).values():
        print_message(f"{name}: {reason}")
    for model in audit_status["drift"]:
        print_message(
            f"{name}: the provider changed the version of {model} while the audit ran, so its answers are of several "
            "versions. `auditor report` lists the versions; programs can read them from `auditor status --json`."
        )


def _is_incomplete(audit_status: dict[str, Any]) -> bool:
    """Whether an audit came to its end without having asked for, or got, too many of its answers."""
    return audit_status["stage"] in audits.FINAL_STAGES and not audit_status["complete"]


def _format_progress(audit_status: dict[str, Any], record_kind: str) -> str | None:
    """Usable records of the planned ones; None if none are planned, as in an audit of imported scores."""
    planned = audit_status[f"{record_kind}_planned"]
    return f"{audit_status[f'{record_kind}_ok']} of {planned}" if planned else None


def _format_count(audit_status: dict[str, Any], record_kind: str) -> str | None:
    """Usable records of the recorded ones; None if there are none."""
    recorded = audit_status.get(record_kind)
    return f"{audit_status[f'{record_kind}_ok']} of {recorded}" if recorded else None


def _format_cost(cost: float | None, unpriced: int, uncharged_text: str = "no answers") -> str:
    """A cost in USD, with the number of calls of unknown price; the given text if nothing was charged."""
    if cost is None:
        return "unknown" if unpriced else uncharged_text
    return f"{cost:.4f}" + (f" + {unpriced} unpriced" if unpriced else "")
