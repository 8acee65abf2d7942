"""Experiments on the direct probe: other numbers of samples, other temperatures, with the same ledger."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.config import AuditConfig, PanelSection, Probes, load_stored_config
from auditor.errors import UsageError
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.reports.data.sampling.experiment import SamplingExperiment, build_temperature_rows, compare_sample_sizes
from auditor.storage import audits
from auditor.storage.database import Database


def load_sample_size_experiment(db: Database, audit_name: str, sizes: Sequence[int]) -> SamplingExperiment:
    """Compare smaller numbers of samples, drawn from the recorded ones; calls no model.

    They are drawn from the audit's variant with `max(sizes)` samples if that was run to its end (see `build_variant`),
    else from the audit itself. Sizes for which there are too few samples are in `missing`.

    Raises:
        StorageError: there is no such audit.
        UsageError: it has no direct samples.
    """
    config = _load_audit_config(db, audit_name)
    larger_variant = (
        _load_variant(db, build_variant(config, samples=max(sizes))) if max(sizes) > config.direct.samples else None
    )
    experiment = compare_sample_sizes(db, larger_variant or load_source(db, audit_name), sizes)
    return experiment.model_copy(update={"audit": audit_name})


def load_temperature_experiment(db: Database, audit_name: str, temperatures: Sequence[float]) -> SamplingExperiment:
    """Compare the temperatures at which the audit or a variant of it was run; calls no model.

    `missing` has the number of calls that each temperature that was not run yet would take.

    Raises: as `load_sample_size_experiment`.
    """
    config = _load_audit_config(db, audit_name)
    audit_source = load_source(db, audit_name)
    rows, n_missing_calls = [], {}
    for temperature in temperatures:
        source = (
            audit_source
            if uses_temperature(config, temperature)
            else _load_variant(db, build_variant(config, temperature=temperature))
        )
        if source is None:
            n_cells = len(audit_source.survey.scores)
            n_missing_calls[f"{temperature:g}"] = n_cells * config.direct.samples * len(config.models)
        else:
            rows += build_temperature_rows(source, temperature)
    rows.sort(key=lambda row: (audit_source.models.index(row.model), row.setting))
    n_cells = len(audit_source.survey.scores)
    return SamplingExperiment(audit=audit_name, what="temperature", cells=n_cells, rows=rows, missing=n_missing_calls)


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
        direct_changes, suffix = (
            direct_changes | {"samples": samples, "tolerance": None, "target_width": None},
            f".k{samples}",
        )
    if temperature is not None:
        direct_changes, suffix = direct_changes | {"temperature": temperature}, f"{suffix}.t{temperature:g}"
        models = [model.model_copy(update={"temperature": None}) for model in models]
    probes = Probes(direct=config.direct.model_copy(update=direct_changes), review=config.probes.review)
    name = config.name[: 100 - len(suffix)] + suffix
    config_changes = {"name": name, "judges": [], "probes": probes, "models": models, "panel": PanelSection()}
    return config.model_copy(update=config_changes)


def _load_variant(db: Database, expected: AuditConfig) -> ReportSource | None:
    """The results of a variant; None where it has not finished, or an audit of that name has another config."""
    audit = audits.find_audit(db, expected.name)
    if audit is None or audit.config is None or audit.stage not in audits.FINAL_STAGES:
        return None
    has_same_config = load_stored_config(audit.config).hash == expected.hash
    return load_source(db, audit.name) if has_same_config else None


def _load_audit_config(db: Database, audit_name: str) -> AuditConfig:
    """The config of an audit with direct samples; UsageError where it does not fit these experiments."""
    audit = audits.get_audit(db, audit_name)
    config = load_stored_config(audit.config)
    if config is None or not config.probes.direct:
        raise UsageError(f"audit '{audit_name}' has no direct samples.", "Name one that asked for direct scores.")
    if config.direct.is_open_ended:
        raise UsageError(f"audit '{audit_name}' stopped asking early.", "Name one without tolerance and target_width.")
    if config.task is not None:
        raise UsageError(f"audit '{audit_name}' is of a task, whose answers are no scores.", "Name one of a survey.")
    if len(config.languages) > 1:
        raise UsageError(f"audit '{audit_name}' was asked in several languages.", "Name one that was asked in one.")
    return config
