"""Experiment `nonresponse`: does the treatment of survey respondents without an answer change the result?"""

from __future__ import annotations

from auditor.experiments.declaration import AuditArgument, ExperimentContext, ExperimentResult


def nonresponse(context: ExperimentContext, audit: AuditArgument) -> ExperimentResult:
    """Test if the treatment of nonresponse changes results.

    Nonresponse is a survey respondent's missing answer. drop leaves missing answers out, neutral counts them as 0,
    low as never and high as always acceptable, and impute fills them in from respondents of the same country. The
    ranking of models is compared between the treatments.

    Example: auditor experiment nonresponse my-audit
    """
    from auditor.experiments.stored_audit import load_survey_source
    from auditor.reports.data.agreement.nonresponse import build_nonresponse_report
    from auditor.reports.sections.experiments.nonresponse import build_nonresponse_document

    with context.open_database() as db:
        report = build_nonresponse_report(load_survey_source(db, audit, "nonresponse"))
    return ExperimentResult(report, build_nonresponse_document(audit, report))
