"""Experiment `direct-temperature`: `samples` with several temperatures, and the audit's own number of samples."""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import AskOption, AuditArgument, ExperimentContext, ExperimentResult
from auditor.experiments.samples import samples


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
    from auditor.experiments.variants import load_sampling_config

    n_samples = load_sampling_config(context, audit).direct.samples
    return samples(context, audit, [n_samples], [0.0, 0.7, 1.0] if temperatures is None else temperatures, ask)
