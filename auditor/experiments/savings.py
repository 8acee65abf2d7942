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
    from auditor.experiments.stored_audit import load_survey_source
    from auditor.reports.data.cost.savings_study import run_savings_study
    from auditor.reports.sections.experiments.sampling import build_savings_document

    with context.open_database() as db:
        study = run_savings_study(db, load_survey_source(db, audit, "savings"), target_width)
    return ExperimentResult(study, build_savings_document(study))
