"""Experiment `drift`: have judges become more lenient or stricter between two runs?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from auditor.experiments.declaration import AuditArgument, ExperimentContext, ExperimentResult


def drift(
    context: ExperimentContext,
    audit: AuditArgument,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The later run: another audit of the same traces.")],
    other_storage: Annotated[
        str | None, typer.Option("--other-storage", metavar="URL", help="Database of OTHER, if not that of AUDIT.")
    ] = None,
) -> ExperimentResult:
    """Compare each judge's verdicts in two runs.

    Both runs must review the same traces. Within one database, identical requests share one recorded answer, so a
    second run with new answers needs a database of its own.

    Example: auditor experiment drift may june --other-storage sqlite:///june.db
    """
    from auditor.reports.data.panel.judge_experiments import measure_judge_drift
    from auditor.reports.sections.experiments.judges import build_judge_drift_document

    other_context = replace(context, storage=other_storage or context.storage)
    with context.open_database() as db, other_context.open_database() as other_db:
        rows = measure_judge_drift(db, audit, other_db, other)
    return ExperimentResult(rows, build_judge_drift_document(audit, other, rows))
