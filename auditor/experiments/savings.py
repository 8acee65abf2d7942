"""Experiment `savings`: how much could have been saved by asking less?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult


def savings(
    context: ExperimentContext,
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="An audit with all answers and verdicts.")],
    target_width: Annotated[
        float,
        typer.Option("--target-width", min=0.001, max=2, help="Target width of Fisher's 95% CI of r, over cells."),
    ] = 0.1,
) -> ExperimentResult:
    """Replay an audit under smaller sampling plans.

    Plans with fewer judges per trace, adaptive panels, sampling until samples agree, fewer cells, and combinations are
    compared with the full design: calls, r, tiers, peer agreement, conflicts. See docs/savings.md.

    Example: auditor experiment savings my-audit
    """
    from auditor.experiments.stored_audit import load_survey_source
    from auditor.reports.data.cost.savings_study import run_savings_study
    from auditor.reports.sections.experiments.sampling import build_savings_document

    with context.open_database() as db:
        study = run_savings_study(db, load_survey_source(db, audit, "savings"), target_width)
    return ExperimentResult(study, build_savings_document(study))
