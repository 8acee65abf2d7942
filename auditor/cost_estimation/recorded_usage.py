"""What is recorded of an audit, beside which its estimate is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.agents.call_builders import build_direct_call
from auditor.agents.localization import samples_per_cell
from auditor.config import AuditConfig
from auditor.domain import Cell, Survey
from auditor.reports.cost.forecast import RecordedUsage
from auditor.storage import costs, ledger
from auditor.storage.database import Database

MAX_CALLS_CHECKED = 50_000
"""Calls up to which the storage is asked which of them it knows."""


def count_recorded_calls(db: Database, config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> int | None:
    """Direct calls that the storage knows already; None where there are none, or too many to count."""
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


def actual_costs(db: Database, audit_id: int) -> Mapping[tuple[str, str], RecordedUsage]:
    """What is recorded of an audit, by the model's name and the purpose."""
    found: dict[tuple[str, str], RecordedUsage] = {}
    for t in costs.count_calls(db, audit_id):
        old = found.get((t.name, t.purpose))
        cost = None if t.cost_usd is None else t.cost_usd * t.calls
        known = [c for c in (old.usd if old else None, cost) if c is not None]
        found[t.name, t.purpose] = RecordedUsage(
            answers=t.answers + (old.answers if old else 0),
            prompt_tokens=t.prompt_tokens + (old.prompt_tokens if old else 0),
            completion_tokens=t.completion_tokens + (old.completion_tokens if old else 0),
            usd=sum(known) if known else None,
            unpriced=t.unpriced + (old.unpriced if old else 0),
        )
    return found
