"""Recorded calls and cost of an audit, for comparison with its estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.agents.call_builders import build_direct_call
from auditor.agents.localization import samples_per_cell
from auditor.config import AuditConfig
from auditor.domain import Cell, Survey
from auditor.reports.data.cost.forecast import ForecastRange, ForecastRow, RecordedUsage, sum_ranges
from auditor.run.fingerprints import was_run_with
from auditor.storage import audits, costs, ledger
from auditor.storage.database import Database

MAX_CALLS_CHECKED = 50_000
"""Number of planned calls up to which the recorded ones are counted; more take too long."""


def count_recorded_calls(db: Database, config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> int | None:
    """Count the planned direct calls that have a recorded answer; None without direct calls, or with too many."""
    planned = sum(samples_per_cell(config, cell.country) for cell in cells) * len(config.models)
    if not config.probes.direct or planned > MAX_CALLS_CHECKED:
        return None
    calls = (
        build_direct_call(config, survey, model, cell, sample)
        for model in config.models
        for cell in cells
        for sample in range(samples_per_cell(config, cell.country))
    )
    return len(ledger.find_answered_keys(db, (call.key for call in calls)))


def count_remaining_calls(db: Database, config: AuditConfig, rows: Sequence[ForecastRow]) -> ForecastRange | None:
    """Count the calls of a config's audit that are still to be sent: the planned ones without those answered in it.

    Once the audit has reached its last stage, the expected and the high number of calls no longer count: what was not
    needed, such as repairs, will not be sent.

    Args:
        rows: forecast of the whole audit, by model and stage.

    Returns:
        None if the audit was not begun, or with other settings.
    """
    audit = audits.find_audit(db, config.name)
    if audit is None or not was_run_with(audit, config):
        return None
    usage_by_stage = load_recorded_usage(db, audit.id)
    remaining = []
    for row in rows:
        usage = usage_by_stage.get((row.name, row.stage))
        n_answers = usage.answers if usage else 0
        low, *others = (max(0, end - n_answers) for end in (row.calls.low, row.calls.expected, row.calls.high))
        remaining.append(ForecastRange.from_bounds(low, *([] if audit.stage in audits.FINAL_STAGES else others)))
    return sum_ranges(remaining)


def load_recorded_usage(db: Database, audit_id: int) -> Mapping[tuple[str, str], RecordedUsage]:
    """Load an audit's recorded usage by (model name, purpose of the calls).

    Calls that cost different amounts are counted in separate rows, which are added up here. The cost leaves out calls
    whose price is unknown, which are counted as `unpriced`; it is None where no price is known.
    """
    usage_by_stage: dict[tuple[str, str], RecordedUsage] = {}
    for counts in costs.count_calls(db, audit_id):
        previous = usage_by_stage.get((counts.name, counts.purpose))
        # `cost_usd` is the cost of one call, the same for all calls of the row.
        cost = None if counts.cost_usd is None else counts.cost_usd * counts.calls
        known_costs = [usd for usd in (previous.usd if previous else None, cost) if usd is not None]
        usage_by_stage[counts.name, counts.purpose] = RecordedUsage(
            answers=counts.answers + (previous.answers if previous else 0),
            prompt_tokens=counts.prompt_tokens + (previous.prompt_tokens if previous else 0),
            completion_tokens=counts.completion_tokens + (previous.completion_tokens if previous else 0),
            usd=sum(known_costs) if known_costs else None,
            unpriced=counts.unpriced + (previous.unpriced if previous else 0),
        )
    return usage_by_stage
