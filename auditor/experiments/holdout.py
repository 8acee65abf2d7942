"""Experiment `holdout`: does peer agreement predict agreement with people?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import AuditArgument, ExperimentContext, ExperimentResult


def holdout(
    context: ExperimentContext,
    audit: AuditArgument,
    splits: Annotated[int, typer.Option("--splits", min=20, help="Number of random splits of the cells.")] = 500,
) -> ExperimentResult:
    """Test if peer agreement predicts agreement with people.

    The test uses cells and models that the prediction was not fitted to. Cells are split 80 to 20 many times: peer
    agreement on the larger part is compared with r on the smaller part, over models. Each model is also left out in
    turn: its r is compared with the prediction from the other models. Of a task, items take the place of cells, and
    accuracy that of r. No model is asked.

    Example: auditor experiment holdout my-audit
    """
    from auditor.reports.data.panel.judge_experiments import cross_validate_peers
    from auditor.reports.data.source_loading import load_source
    from auditor.reports.sections.experiments.judges import build_holdout_document

    with context.open_database() as db:
        rows = cross_validate_peers(load_source(db, audit), splits)
    return ExperimentResult(rows, build_holdout_document(audit, rows))
