"""Experiments on sampling: `samples`, `direct-temperature`, `savings` and `nonresponse`, and variants of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from auditor.config import AuditConfig, PanelSection, Probes, load_stored_config
from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.experiments.stored_audit import (
    DIRECT_SAMPLES,
    EQUAL_SAMPLES,
    ONE_LANGUAGE,
    SURVEY,
    AskOption,
    AuditArgument,
    ExperimentContext,
    ExperimentResult,
    load_survey_source,
    require_config,
)
from auditor.reports.data.agreement.population import build_nonresponse_report
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.reports.data.sampling import (
    compare_sample_sizes,
    compare_sizes_and_temperatures,
    compare_temperatures,
)
from auditor.reports.data.savings_study import run_savings_study
from auditor.reports.sections.experiments.sampling import (
    build_nonresponse_document,
    build_sampling_document,
    build_savings_document,
)
from auditor.reports.sections.forecast import describe_forecast
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


def samples(
    context: ExperimentContext,
    audit: AuditArgument,
    sample_counts: Annotated[
        list[int] | None,
        typer.Option(
            "--k", min=1, help="A number of answers per question to compare; may be repeated. By default 3, 5 and 10."
        ),
    ] = None,
    temperatures: Annotated[
        list[float] | None,
        typer.Option(
            "--temperature", min=0, max=2, help="A temperature to compare; may be repeated. By default the audit's own."
        ),
    ] = None,
    ask: AskOption = False,
) -> ExperimentResult:
    """Compare results with more or fewer repeated answers.

    The results are accuracy, stability and cost, and where more answers stop helping, at one or several temperatures.
    Each temperature is asked with the largest number of answers; results for fewer are computed from random subsets of
    them. What is not recorded needs --ask, which prints the expected cost first. It becomes new audits, such as
    AUDIT.k10 or AUDIT.k10.t0.7, which ask only for answers that are not recorded yet.

    Example: auditor experiment samples my-audit --k 3 --k 10 --temperature 0 --temperature 0.7 -o samples.html
    """
    sizes = sorted(set(sample_counts or [3, 5, 10]))
    config = load_sampling_config(context, audit)
    variants = build_sampling_variants(config, sizes[-1], sorted(set(temperatures)) if temperatures else None)
    changed = [variant for variant in variants.values() if variant]
    forecasts = forecast_variants(context, audit, changed)
    if ask:
        for name, forecast in forecasts.items():
            context.print_message(f"{name}: {forecast}")
        run_variants(context, changed)
    with context.open_database() as db:
        source = load_source(db, audit)
        source_by_temperature = {
            temperature: (load_variant(db, variant) if variant else source)
            # The audit's own temperature has fewer samples at least.
            or (source if temperature is None or uses_temperature(config, temperature) else None)
            for temperature, variant in variants.items()
        }
        if temperatures is None:
            experiment = compare_sample_sizes(db, source_by_temperature[None] or source, sizes)
        elif sizes == [config.direct.samples]:
            experiment = compare_temperatures(source, source_by_temperature)
        else:
            experiment = compare_sizes_and_temperatures(db, source, source_by_temperature, sizes)
    update = {"audit": audit, "forecasts": forecasts if experiment.missing else {}}
    experiment = experiment.model_copy(update=update)
    return ExperimentResult(experiment, build_sampling_document(experiment))


def direct_temperature(
    context: ExperimentContext,
    audit: AuditArgument,
    temperatures: Annotated[
        list[float] | None,
        typer.Option("--at", min=0, max=2, help="A temperature to compare; may be repeated. By default 0, 0.7 and 1."),
    ] = None,
    ask: AskOption = False,
) -> ExperimentResult:
    """Compare models' scores at several temperatures.

    The same as `samples --temperature` with the audit's number of samples: accuracy, stability and cost. Other
    temperatures than the audit's need --ask. Each becomes a new audit, such as AUDIT.t0.7.

    Example: auditor experiment direct-temperature my-audit --at 0 --at 0.7 --at 1 --ask
    """

    n_samples = load_sampling_config(context, audit).direct.samples
    return samples(context, audit, [n_samples], [0.0, 0.7, 1.0] if temperatures is None else temperatures, ask)


def savings(
    context: ExperimentContext,
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="An audit with all answers and verdicts.")],
    target_width: Annotated[
        float,
        typer.Option(
            "--target-width",
            min=0.001,
            max=2,
            help="Width of the 95% CI of r (Fisher's) at which no further question would have been asked.",
        ),
    ] = 0.1,
) -> ExperimentResult:
    """Compute what an audit would find with fewer questions.

    Results are computed again as if fewer samples, judges or cells had been asked, to see how much could be saved and
    what would change: calls, r, tiers, peer agreement, conflicts. No model is asked. For an explanation, see
    docs/savings.md.

    Example: auditor experiment savings my-audit
    """
    with context.open_database() as db:
        study = run_savings_study(db, load_survey_source(db, audit, "savings"), target_width)
    return ExperimentResult(study, build_savings_document(study))


def nonresponse(context: ExperimentContext, audit: AuditArgument) -> ExperimentResult:
    """Test if the treatment of nonresponse changes results.

    Nonresponse is a survey respondent's missing answer. drop leaves missing answers out, neutral counts them as 0,
    low as never and high as always acceptable, and impute fills them in from respondents of the same country. The
    ranking of models is compared between the treatments.

    Example: auditor experiment nonresponse my-audit
    """
    with context.open_database() as db:
        report = build_nonresponse_report(load_survey_source(db, audit, "nonresponse"))
    return ExperimentResult(report, build_nonresponse_document(audit, report))
