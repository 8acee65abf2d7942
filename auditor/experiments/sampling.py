"""Experiments on the direct probe: other numbers of samples, other temperatures, over the same ledger."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.config import AuditConfig, PanelSection, Probes
from auditor.errors import UsageError
from auditor.reports.report_source import ReportSource, load_source
from auditor.reports.sampling.section import SamplingExperiment, build_temperature_rows, compare_sample_sizes
from auditor.storage import audits
from auditor.storage.database import Database


def load_sample_size_experiment(db: Database, audit_name: str, sizes: Sequence[int]) -> SamplingExperiment:
    """What fewer samples would have come to, from the recorded ones; asks nothing.

    Where the variant with more samples was run to its end (see `variant`), it is what is drawn from. What neither of
    the two has samples for is in `missing`.

    Raises:
        StorageError: there is no such audit.
        UsageError: it has no direct samples.
    """
    config = _load_audit_config(db, audit_name)
    more = _load_variant(db, build_variant(config, samples=max(sizes))) if max(sizes) > config.direct.samples else None
    found = compare_sample_sizes(db, more or load_source(db, audit_name), sizes)
    return found.model_copy(update={"audit": audit_name})


def load_temperature_experiment(db: Database, audit_name: str, temperatures: Sequence[float]) -> SamplingExperiment:
    """What was run at each temperature; those that were not run yet are in `missing`; asks nothing.

    Raises: as `experiment_samples`.
    """
    config = _load_audit_config(db, audit_name)
    here = load_source(db, audit_name)
    rows, missing = [], {}
    for temperature in temperatures:
        source = (
            here
            if uses_temperature(config, temperature)
            else _load_variant(db, build_variant(config, temperature=temperature))
        )
        if source is None:
            asked = len(here.survey.scores)
            missing[f"{temperature:g}"] = asked * config.direct.samples * len(config.models)
        else:
            rows += build_temperature_rows(source, temperature)
    rows.sort(key=lambda row: (here.models.index(row.model), row.setting))
    asked = len(here.survey.scores)
    return SamplingExperiment(audit=audit_name, what="temperature", cells=asked, rows=rows, missing=missing)


def uses_temperature(config: AuditConfig, temperature: float) -> bool:
    """Whether the audit itself was asked at a temperature, by all of its models."""
    usual = config.direct.temperature
    return all((usual if m.temperature is None else m.temperature) == temperature for m in config.models)


def build_variant(config: AuditConfig, *, samples: int | None = None, temperature: float | None = None) -> AuditConfig:
    """The audit with another number of samples or at another temperature, without review: only what it measures.

    What is recorded already is not asked again: the calls of a sample depend on the cell and the sample alone.
    """
    changes: dict[str, object] = {}
    models, suffix = config.models, ""
    if samples is not None:
        changes, suffix = changes | {"samples": samples, "tolerance": None, "target_width": None}, f".k{samples}"
    if temperature is not None:
        changes, suffix = changes | {"temperature": temperature}, f"{suffix}.t{temperature:g}"
        models = [m.model_copy(update={"temperature": None}) for m in models]
    probes = Probes(direct=config.direct.model_copy(update=changes), review=config.probes.review)
    name = config.name[: 100 - len(suffix)] + suffix
    changed = {"name": name, "judges": [], "probes": probes, "models": models, "panel": PanelSection()}
    return config.model_copy(update=changed)


def _load_variant(db: Database, expected: AuditConfig) -> ReportSource | None:
    """What was run of a variant; None where it is not whole, or an audit of that name was of another config."""
    found = audits.find_audit(db, expected.name)
    if found is None or found.config is None or found.stage not in audits.FINAL_STAGES:
        return None
    same = AuditConfig.model_validate_json(found.config).hash == expected.hash
    return load_source(db, found.name) if same else None


def _load_audit_config(db: Database, audit_name: str) -> AuditConfig:
    audit = audits.get_audit(db, audit_name)
    config = AuditConfig.model_validate_json(audit.config) if audit.config else None
    if config is None or not config.probes.direct:
        raise UsageError(f"audit '{audit_name}' has no direct samples.", "Name one that asked for direct scores.")
    if config.direct.is_open_ended:
        raise UsageError(f"audit '{audit_name}' stopped asking early.", "Name one without tolerance and target_width.")
    if config.task is not None:
        raise UsageError(f"audit '{audit_name}' is of a task, whose answers are no scores.", "Name one of a survey.")
    if len(config.languages) > 1:
        raise UsageError(f"audit '{audit_name}' was asked in several languages.", "Name one that was asked in one.")
    return config
