"""Estimate the calls, tokens and cost of an audit from its actual prompts, without sending any."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.config import AuditConfig, load_stored_config
from auditor.cost_estimation.detectable_difference import plan_detectable_differences
from auditor.cost_estimation.planned_calls import PlannedCalls, merge_planned_calls
from auditor.cost_estimation.preflight_calls import discovery_check
from auditor.cost_estimation.probe_calls import describe_unestimated_probes, plan_calls
from auditor.cost_estimation.recorded_share import estimate_remaining_calls
from auditor.cost_estimation.recorded_usage import (
    count_recorded_calls,
    count_remaining_calls,
    load_recorded_usage,
)
from auditor.cost_estimation.token_forecast import build_forecast_row
from auditor.domain import Cell, Survey
from auditor.errors import UsageError
from auditor.reports.data.cost.forecast import CostForecast, sum_ranges
from auditor.run.config_changes import keep_earlier_defaults
from auditor.storage import audits, costs
from auditor.storage.database import Database


def estimate_audit(
    config: AuditConfig,
    survey: Survey,
    cells: Sequence[Cell],
    db: Database | None = None,
    *,
    experiment_calls: Sequence[PlannedCalls] = (),
    is_asked: bool = True,
) -> CostForecast:
    """Estimate calls, tokens and cost of an audit before it is run: one row per model and stage, and totals.

    Every figure is a range: low, expected and high.

    Args:
        config: the audit's configuration.
        survey, cells: what it would ask about, see `auditor.run.load_planned_survey`.
        db: database in which it would be run. It gives the mean lengths of each model's answers, and the number of
            calls that are recorded already. Without it, lengths are rules of thumb, and the number is None.
        experiment_calls: of experiments on the audit, which are added.
        is_asked: whether the audit asks its own questions, or only experiments need it.
    """
    if db is not None:
        config = keep_earlier_defaults(audits.find_audit(db, config.name), config)
    length_by_model_and_purpose = {
        (length.model, length.purpose): length for length in (costs.load_mean_answer_lengths(db) if db else ())
    }
    own_calls = plan_calls(config, survey, cells, discovery_check(db, config.name)) if is_asked else ()
    planned_calls = [*own_calls, *experiment_calls]
    rows = [
        build_forecast_row(
            calls, length_by_model_and_purpose.get((calls.model.model, calls.purpose.value)), config.batch
        )
        for calls in (merge_planned_calls(planned_calls) if experiment_calls else planned_calls)
    ]
    known_costs = [row.usd for row in rows if row.usd is not None]
    counted = count_remaining_calls(db, config, rows) if db else None
    estimated = estimate_remaining_calls(db, config, survey, cells, planned_calls) if db and counted is None else None
    return CostForecast(
        audit=config.name,
        cells=len(cells),
        rows=rows,
        calls=sum_ranges([row.calls for row in rows]),
        usd=sum_ranges(known_costs) if known_costs else None,
        unknown_prices=list(dict.fromkeys(row.name for row in rows if row.usd is None)),
        not_estimated=list(describe_unestimated_probes(config)),
        budget_usd=config.limits.budget_usd,
        recorded=count_recorded_calls(db, config, survey, cells) if db else None,
        remaining=counted or estimated,
        is_remaining_sampled=estimated is not None,
        detectable=plan_detectable_differences(config, survey, cells, db),
    )


def estimate_past_audit(db: Database, audit_name: str) -> CostForecast:
    """Estimate an audit that was run, as if before its run, and add its recorded usage and cost for comparison.

    Raises:
        StorageError: there is no such audit.
        UsageError: the audit was imported, so it asked nothing.
    """
    audit = audits.get_audit(db, audit_name)
    if audit.config is None:
        raise UsageError(f"audit '{audit_name}' was imported, so it sent no requests.", "Name one that was run.")
    config = load_stored_config(audit.config)
    survey = audits.load_audit_survey(db, audit)
    cells = list(survey.asked_cells)
    forecast = estimate_audit(config, survey, cells)
    usage_by_stage = load_recorded_usage(db, audit.id)
    rows = [row.model_copy(update={"actual": usage_by_stage.get((row.name, row.stage))}) for row in forecast.rows]
    known_costs = [usage.usd for usage in usage_by_stage.values() if usage.usd is not None]
    return forecast.model_copy(
        update={"rows": rows, "actual_usd": sum(known_costs) if known_costs else None, "detectable": None}
    )
