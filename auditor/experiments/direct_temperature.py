"""Experiment `direct-temperature`: what does the temperature of direct scores change?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import AskOption, AuditArgument, ExperimentContext, ExperimentResult


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

    The results are accuracy, stability and cost. Other temperatures than the audit's need --ask. Each becomes a new
    audit, such as AUDIT.t0.7.

    Example: auditor experiment direct-temperature my-audit --at 0 --at 0.7 --at 1 --ask
    """
    from auditor.experiments.variants import (
        build_variant,
        load_sampling_config,
        load_variant,
        run_variants,
        uses_temperature,
    )
    from auditor.reports.data.sampling.experiment import compare_temperatures
    from auditor.reports.data.source_loading import load_source
    from auditor.reports.sections.experiments.sampling import build_sampling_document

    distinct = sorted(set([0.0, 0.7, 1.0] if temperatures is None else temperatures))
    config = load_sampling_config(context, audit)
    variants = {
        temperature: build_variant(config, temperature=temperature)
        for temperature in distinct
        if not uses_temperature(config, temperature)
    }
    if ask:
        run_variants(context, variants.values())
    with context.open_database() as db:
        source = load_source(db, audit)
        sources = {t: load_variant(db, variants[t]) if t in variants else source for t in distinct}
    experiment = compare_temperatures(source, sources)
    return ExperimentResult(experiment, build_sampling_document(experiment))
