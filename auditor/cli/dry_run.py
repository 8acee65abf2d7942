"""`auditor run --dry-run`: what a run would send, and what it would cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from auditor.console.output import print_data, print_message
from auditor.console.page_output import print_document

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.domain import Call


def print_dry_run(config: AuditConfig, storage: str | None) -> None:
    """Print the planned calls by model and stage, their cost, and the first request as JSON. Nothing is written.

    Raises:
        AuditorError: the configuration, its survey or its database cannot be used.
    """
    from auditor import bootstrap

    bootstrap.prepare_environment()
    from auditor.cli.estimate import forecast_config, open_existing_database
    from auditor.cost_estimation.probe_calls import find_first_call
    from auditor.reports.sections.forecast import build_forecast_document
    from auditor.run import load_planned_survey
    from auditor.run.config_changes import keep_earlier_defaults
    from auditor.storage import audits

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
