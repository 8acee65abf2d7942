"""Experiment `samples`: what do more or fewer samples per cell change, at one temperature or at several?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import AskOption, AuditArgument, ExperimentContext, ExperimentResult


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
    from auditor.experiments.variants import (
        build_sampling_variants,
        forecast_variants,
        load_sampling_config,
        load_variant,
        run_variants,
        uses_temperature,
    )
    from auditor.reports.data.sampling.experiment import (
        compare_sample_sizes,
        compare_sizes_and_temperatures,
        compare_temperatures,
    )
    from auditor.reports.data.source_loading import load_source
    from auditor.reports.sections.experiments.sampling import build_sampling_document

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
