"""Experiment `samples`: what do more or fewer samples per cell change?"""

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
    ask: AskOption = False,
) -> ExperimentResult:
    """Compare results with more or fewer repeated answers.

    The results are accuracy, stability and cost. Results for fewer samples are computed from random subsets of the
    recorded samples. More samples need --ask. They become a new audit named AUDIT.kN, which asks only for answers that
    are not recorded yet.

    Example: auditor experiment samples my-audit --k 3 --k 5 --k 10 -o samples.html
    """
    from auditor.experiments.variants import build_variant, load_sampling_config, load_variant, run_variants
    from auditor.reports.data.sampling.experiment import compare_sample_sizes
    from auditor.reports.data.source_loading import load_source
    from auditor.reports.sections.experiments.sampling import build_sampling_document

    sizes = sorted(set(sample_counts or [3, 5, 10]))
    config = load_sampling_config(context, audit)
    larger = build_variant(config, samples=sizes[-1]) if sizes[-1] > config.direct.samples else None
    if ask and larger:
        run_variants(context, [larger])
    with context.open_database() as db:
        source = (load_variant(db, larger) if larger else None) or load_source(db, audit)
        experiment = compare_sample_sizes(db, source, sizes).model_copy(update={"audit": audit})
    return ExperimentResult(experiment, build_sampling_document(experiment))
