"""Variants of an audit: its config with another number of samples or another temperature, and the same ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.config import AuditConfig, PanelSection, Probes, load_stored_config
from auditor.experiments.declaration import ExperimentContext
from auditor.experiments.stored_audit import (
    DIRECT_SAMPLES,
    EQUAL_SAMPLES,
    ONE_LANGUAGE,
    SURVEY,
    require_config,
)
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.source_loading import load_source
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.database import Database


def load_sampling_config(context: ExperimentContext, audit_name: str) -> AuditConfig:
    """The config of an audit with as many direct samples in all cells; StorageError or UsageError for any other."""
    with context.open_database() as db:
        audit = audits.get_audit(db, audit_name)
        return require_config(db, audit, DIRECT_SAMPLES, EQUAL_SAMPLES, SURVEY, ONE_LANGUAGE)


def uses_temperature(config: AuditConfig, temperature: float) -> bool:
    """Whether all models of the audit itself were asked at this temperature."""
    default_temperature = config.direct.temperature
    return all(
        (default_temperature if model.temperature is None else model.temperature) == temperature
        for model in config.models
    )


def build_variant(config: AuditConfig, *, samples: int | None = None, temperature: float | None = None) -> AuditConfig:
    """The audit's config with another number of samples or another temperature, and without judges.

    Its name is the audit's with a suffix such as `.k10` (samples) or `.t0.5` (temperature), of at most 100 characters.

    Recorded calls are not repeated: the calls of a sample depend on the cell and the sample only.
    """
    direct_changes: dict[str, object] = {}
    models, suffix = config.models, ""
    if samples is not None:
        direct_changes |= {"samples": samples, "tolerance": None, "target_width": None}
        suffix += f".k{samples}"
    if temperature is not None:
        direct_changes |= {"temperature": temperature}
        suffix += f".t{temperature:g}"
        models = [model.model_copy(update={"temperature": None}) for model in models]
    probes = Probes(direct=config.direct.model_copy(update=direct_changes), review=config.probes.review)
    name = config.name[: 100 - len(suffix)] + suffix
    config_changes = {"name": name, "judges": [], "probes": probes, "models": models, "panel": PanelSection()}
    return config.model_copy(update=config_changes)


def build_sampling_variants(
    config: AuditConfig, n_samples: int, temperatures: Sequence[float] | None
) -> dict[float | None, AuditConfig | None]:
    """The audit with a number of samples at each temperature; None where the recorded audit has them.

    Args:
        n_samples: the largest number of samples a cell.
        temperatures: None for the audit's own temperature, which is the only key of the result then.
    """
    other_number = n_samples if n_samples > config.direct.samples else None
    if temperatures is None:
        return {None: build_variant(config, samples=other_number) if other_number else None}
    variants: dict[float | None, AuditConfig | None] = {}
    for temperature in temperatures:
        if uses_temperature(config, temperature):
            variants[temperature] = build_variant(config, samples=other_number) if other_number else None
        else:
            changed = n_samples if n_samples != config.direct.samples else None
            variants[temperature] = build_variant(config, samples=changed, temperature=temperature)
    return variants


def forecast_variants(context: ExperimentContext, audit_name: str, variants: Iterable[AuditConfig]) -> dict[str, str]:
    """The expected calls and cost of the variants of an audit that have not finished, in words, by name."""
    from auditor.cost_estimation.audit_estimate import estimate_audit
    from auditor.reports.sections.forecast import describe_forecast

    forecasts = {}
    with context.open_database() as db:
        survey = audits.load_audit_survey(db, audits.get_audit(db, audit_name))
        for variant in variants:
            if load_variant(db, variant) is None:
                forecast = estimate_audit(variant, survey, list(survey.asked_cells), db)
                forecasts[variant.name] = describe_forecast(forecast)
    return forecasts


def run_variants(context: ExperimentContext, variants: Iterable[AuditConfig]) -> None:
    """Run variants of an audit, to get the answers that an experiment lacks."""
    for variant in variants:
        with context.open_progress() as progress:
            run_audit(variant, storage=context.url, progress=progress, signals=context.handles_signals)


def load_variant(db: Database, expected: AuditConfig) -> ReportSource | None:
    """The results of a variant; None where it has not finished, or an audit of that name has another config."""
    audit = audits.find_audit(db, expected.name)
    if audit is None or audit.stage not in audits.FINAL_STAGES:
        return None
    config = load_stored_config(audit.config)
    return load_source(db, audit.name) if config and config.hash == expected.hash else None
