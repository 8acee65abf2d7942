"""The command `estimate`: calls, tokens and cost of an audit, before or after its run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor import bootstrap
from auditor.agents.call_builders import build_call
from auditor.config import load_config
from auditor.config.trust import require_supported_providers
from auditor.console.options import (
    JsonOption,
    LimitOption,
    PageFileOption,
    SetOption,
    StorageOption,
    list_overrides,
    resolve_audit_name,
)
from auditor.console.output import print_message
from auditor.console.page_output import present_document, resolve_page_format
from auditor.domain import Message, Purpose
from auditor.errors import EmptyStorageError, UsageError
from auditor.models.request_params import check_params, require_effects
from auditor.run import (
    describe_survey_problems,
    list_unmeasurable,
    load_planned_survey,
    locate_storage,
    open_stored_audit,
    open_stored_database,
)

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.reports.data.cost import CostForecast
    from auditor.storage.database import Database


def estimate(
    config: Annotated[Path | None, typer.Argument(metavar="CONFIG", help="The audit's TOML or YAML file.")] = None,
    settings: SetOption = None,
    limit: LimitOption = None,
    audit_name: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="AUDIT",
            callback=resolve_audit_name,
            help="Instead of CONFIG: an audit whose estimate is compared with its recorded cost.",
        ),
    ] = None,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the calls, tokens and cost of an audit.

    Calls, tokens and costs have a low, an expected and a high value, by model and stage of the audit. No model is
    asked, and no key is needed. Lengths come from the real prompts, and from recorded answers if there are enough.

    Example: auditor estimate audit.toml
    """
    bootstrap.prepare_environment()
    resolve_page_format(output)
    if (config is None) == (audit_name is None):
        raise UsageError("estimate needs either a config file or --compare AUDIT.", "Give one of the two.")
    overrides = list_overrides(settings, limit)
    if audit_name is not None and overrides:
        raise UsageError(
            "--set and --limit change a config, and --compare is about an audit as it was run.",
            "Leave them out, or name the config instead of --compare.",
        )
    from auditor.reports.sections.forecast import build_forecast_document

    forecast = (
        _forecast_past_audit(audit_name, storage)
        if audit_name is not None
        else forecast_config(load_config(config or Path(), overrides), storage)
    )
    present_document(forecast.model_dump(mode="json"), build_forecast_document(forecast), output, as_json)


def forecast_config(
    config: AuditConfig,
    storage: str | None,
    experiment_calls: Sequence[PlannedCalls] = (),
    *,
    is_asked: bool = True,
) -> CostForecast:
    """Estimate the cost of a config's audit; recorded answers are used if the database exists and is not empty.

    Args:
        experiment_calls, is_asked: see `estimate_audit`.

    Raises:
        ConfigError: a run would refuse the provider or a parameter of a model.
    """
    from auditor.cost_estimation.audit_estimate import estimate_audit

    require_supported_providers(config)
    check_params(config.models_by_name.values(), config.limits)
    models = [model for model in config.models_by_name.values() if model.params]
    chat = (Message("user", "-"),)  # any will do: it is not sent
    calls = [build_call(model, Purpose.PREFLIGHT, chat, temperature=0, max_tokens=1, seed=0) for model in models]
    asyncio.run(require_effects(zip(models, calls, strict=True)))
    survey = load_planned_survey(config)
    location = locate_storage(storage, config)
    notices = (location.notice, describe_survey_problems(config, survey), *list_unmeasurable(config, survey))
    for notice in filter(None, notices):
        print_message(notice)
    with open_existing_database(config, storage) as db:
        cells = list(survey.asked_cells)
        return estimate_audit(config, survey, cells, db, experiment_calls=experiment_calls, is_asked=is_asked)


@contextmanager
def open_existing_database(config: AuditConfig, storage: str | None) -> Iterator[Database | None]:
    """Open the database of a config's audit; None if it does not exist, or is empty."""
    from auditor.storage.database import parse_sqlite_path

    location = locate_storage(storage, config)
    file = parse_sqlite_path(location.url)
    with ExitStack() as stack:
        db = None
        if file is None or file.exists():
            with suppress(EmptyStorageError):
                db = stack.enter_context(open_stored_database(location.url))
        yield db


def _forecast_past_audit(audit: str, storage: str | None) -> CostForecast:
    """Estimate the cost of an audit that was run, for comparison with its actual cost."""
    from auditor.cost_estimation.audit_estimate import estimate_past_audit

    with open_stored_audit(audit, storage) as (db, stored_audit):
        return estimate_past_audit(db, stored_audit.name)
