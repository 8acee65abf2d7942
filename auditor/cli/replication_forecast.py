"""What the audits of a replication and the experiments on them cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from auditor.console.output import print_message

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.replications.trial_plans import AuditPlan
    from auditor.reports.data.cost.forecast import CostForecast


def forecast_audits(
    configs: Mapping[str, AuditConfig], plans: Mapping[str, AuditPlan], storage: str | None
) -> dict[str, CostForecast]:
    """Forecast each audit that asks models, with the experiments on it, by its stored name.

    Args:
        configs, plans: by name of the survey or data set.
    """
    from auditor.cli.estimate import forecast_config

    return {
        configs[name].name: forecast_config(configs[name], storage, plan.calls, is_asked=plan.is_asked)
        for name, plan in plans.items()
        if plan.is_asked or plan.calls
    }


def print_forecasts(
    configs: Mapping[str, AuditConfig], plans: Mapping[str, AuditPlan], forecasts: Mapping[str, CostForecast]
) -> None:
    """Print what each audit costs with the experiments on it, which are named."""
    from auditor.reports.sections.forecast import describe_forecast

    for name, plan in plans.items():
        audit_name = configs[name].name
        if audit_name not in forecasts:
            print_message(f"{audit_name}: no calls; the data of its tables are not at hand.")
            continue
        message = f"{audit_name}: {describe_forecast(forecasts[audit_name])}"
        if plan.calls:
            listed = ", ".join(plan.asking_trials)
            subject = "These include" if plan.is_asked else "All are"
            message += f" {subject} calls of the experiments on it ({listed})."
        print_message(message)
