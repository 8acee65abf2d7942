"""Calls that find out what the servers of models accept, in addition to those that the probes make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from auditor.agents.call_builders import build_direct_call, plan_stand_ins
from auditor.config import EMBEDDED, REPLAY, SIMULATED, AuditConfig
from auditor.cost_estimation.planned_calls import PlannedCalls
from auditor.domain import Call, Cell, Purpose, Survey
from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS, CapabilityRegistry
from auditor.models.capability_store import MemoryCapabilityStore
from auditor.reports.data.cost.forecast import ForecastRange
from auditor.storage import audits
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import current_capabilities
from auditor.storage.database import Database
from auditor.storage.records import load_records


def discovery_check(db: Database | None, audit_name: str) -> Callable[[Call], bool]:
    """A function that says whether it is not known yet what the server of a call's model accepts.

    Args:
        db: database with the audit's capabilities; without it, nothing is known.
        audit_name: the audit.
    """
    audit = audits.find_audit(db, audit_name) if db else None
    history = load_records(db, audit.id, StoredCapability) if db and audit else []
    stored = {key: entry.capability for key, entry in current_capabilities(history).items()}
    return CapabilityRegistry(MemoryCapabilityStore(stored)).needs_discovery


def plan_preflight_calls(
    config: AuditConfig, survey: Survey, cell: Cell, needs_discovery: Callable[[Call], bool]
) -> Iterator[PlannedCalls]:
    """Yield the additional calls to each model over the network; none if it is known what its server accepts.

    An audited model's first planned call is no additional one, and shows how it judges if it is structured. How many
    requests discovery takes is not known before: the high end is the most that it may take.
    """
    direct_calls = {model.name: build_direct_call(config, survey, model, cell, 0) for model in config.models}
    stand_ins = {call.name: call for call in plan_stand_ins(config, survey, cell)}
    shown_forms = {call.capability_key for call in direct_calls.values() if call.schema is not None}
    for name, model in config.models_by_name.items():
        if model.provider in (EMBEDDED, REPLAY, SIMULATED):
            continue
        planned_call, stand_in = direct_calls.get(name), stand_ins.get(name)
        n_stand_ins = int(
            stand_in is not None and stand_in.capability_key not in shown_forms and needs_discovery(stand_in)
        )
        is_unknown = n_stand_ins or (planned_call is not None and needs_discovery(planned_call))
        n_planned = int(planned_call is not None)
        most = MAX_DISCOVERY_REQUESTS - (n_planned and not n_stand_ins) if is_unknown else 0
        yield PlannedCalls(
            model,
            Purpose.PREFLIGHT,
            ForecastRange.from_bounds(n_stand_ins, n_stand_ins, most),
            [call for call in (planned_call, stand_in) if call is not None],
            config.direct.max_words if stand_in is None else 0.7 * config.probes.review.max_words,
        )
