"""Experiment `validity`: do verdicts follow accuracy on a task?"""

from __future__ import annotations

from auditor.experiments.declaration import AuditArgument, ExperimentContext, ExperimentResult


def validity(context: ExperimentContext, audit: AuditArgument) -> ExperimentResult:
    """Test if verdicts follow accuracy on a task.

    The share of VALID on a model's right answers is compared with that on its wrong ones, within models: a model that
    is better and more often called VALID adds nothing. Items and models are crossed. Over models, VALID and accuracy
    are correlated if there are at least six models. No model is asked.

    Example: auditor experiment validity my-audit
    """
    from auditor.reports.data.source_loading import load_source
    from auditor.reports.data.task.validity import build_task_validity
    from auditor.reports.sections.experiments.validity import build_validity_document

    with context.open_database() as db:
        report = build_task_validity(load_source(db, audit))
    return ExperimentResult(report, build_validity_document(audit, report))
