"""The command `status`: how far audits are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.console.options import JsonOption, StorageOption, resolve_audit_name
from auditor.console.output import print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.reports.data.failures.schema import FailureGroup

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
    from auditor.cli.failures import print_top_failures
    from auditor.reports.data.audit_status import load_audit_status
    from auditor.reports.data.failures.build import load_failure_groups
    from auditor.run import open_stored_database
    from auditor.storage import audits
    from auditor.storage.failure_queries import count_unsent_calls

    with open_stored_database(storage) as db:
        selected_audits = [audits.get_audit(db, audit)] if audit else audits.load_audits(db)
        statuses = [load_audit_status(db, selected_audit) for selected_audit in selected_audits]
        audit_ids = [] if as_json else [selected_audit.id for selected_audit in selected_audits]
        failures = [load_failure_groups(db, audit_id) for audit_id in audit_ids]
        unsent_calls = [count_unsent_calls(db, audit_id) for audit_id in audit_ids]
    if as_json:
        print_json(statuses)
        return
    _print_statuses(statuses, failures)
    for audit_status, audit_failures, n_unsent in zip(statuses, failures, unsent_calls, strict=True):
        print_top_failures(audit_failures, n_unsent, audit_status["audit"], storage)
        _print_remarks(audit_status)


def _print_statuses(statuses: Sequence[dict[str, Any]], failures: Sequence[Sequence[FailureGroup]]) -> None:
    """Print one row per audit, without the columns that no audit uses; `failures` are those of each."""
    from auditor.config.installed_probes import list_built_in_names, load_built_in

    columns: dict[str, list[object]] = {
        "audit": [status["audit"] for status in statuses],
        "stage": [STAGE_LABELS.get(status["stage"], status["stage"]) for status in statuses],
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


def _print_remarks(audit_status: dict[str, Any]) -> None:
    """Print what an audit waits for, what its preflight cost, and which models changed."""
    from auditor.reports.number_format import pluralize
    from auditor.run.batches.waiting_calls import describe_waiting_calls

    name = audit_status["audit"]
    if waiting_note := describe_waiting_calls([batch["calls"] for batch in audit_status["batches"]]):
        print_message(f"{name}: {waiting_note}. To collect the answers, run the audit again with the same command.")
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
