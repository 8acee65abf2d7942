"""Experiment `rules`: is a model more consistent when it follows its own rule of thumb?"""

from __future__ import annotations

from auditor.experiments.declaration import ExperimentContext, ExperimentResult, MoralAuditArgument


def rules(context: ExperimentContext, audit: MoralAuditArgument) -> ExperimentResult:
    """Test if rules of thumb make models more consistent.

    Each question is asked again in all its wordings, with the first rule of thumb that the model gave for it. Models
    are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment rules moral
    """
    from auditor.agents.semantic.experiments import scores_by_rule
    from auditor.experiments.stored_audit import MORAL_QUESTIONS, ask_models
    from auditor.reports.data.adjusted_tests import adjust_rows
    from auditor.reports.data.semantic.differences import difference_over_questions
    from auditor.reports.data.semantic.score_table import mean_over_questions
    from auditor.reports.sections.experiments.consistency import RuleFollowingRow, build_rules_document

    scores = ask_models(context, audit, (MORAL_QUESTIONS,), scores_by_rule)
    rows = []
    # Keys are (model, whether it was told the rule); values are one consistency per question.
    for model in dict.fromkeys(model for model, _ in scores):
        before, after = scores[model, False], scores[model, True]
        change = difference_over_questions(before, after)
        rows.append(
            RuleFollowingRow(
                model=model,
                before=mean_over_questions(before),
                after=mean_over_questions(after),
                change=change,
                p_value=change.p_value,
            )
        )
    adjusted_rows = adjust_rows(rows)
    return ExperimentResult(adjusted_rows, build_rules_document(audit, adjusted_rows))
