"""Experiment `rules`: is a model more consistent when it follows a rule of thumb?"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult, MoralAuditArgument

if TYPE_CHECKING:
    from auditor.agents.semantic.group_scores import GroupScores
    from auditor.reports.data.semantic.experiment_rows import RuleFollowingRow


def rules(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Rules to follow, with the columns question_id,rule; other questions are left out.",
        ),
    ] = None,
) -> ExperimentResult:
    """Test if rules of thumb make models more consistent.

    Each question is asked again in all its wordings, with a rule to follow: of FILE, such as rules that people wrote,
    or else the first rule of thumb that the model gave for the question. Models are asked, which may cost money;
    recorded answers are reused.

    Example: auditor experiment rules moral
    """
    from auditor.agents.semantic.experiments import scores_by_rule
    from auditor.experiments.stored_audit import MORAL_QUESTIONS, ask_models
    from auditor.reports.data.adjusted_tests import adjust_rows
    from auditor.reports.sections.experiments.consistency import build_rules_document

    rule_by_question = None if file is None else _read_rules(file, _load_question_ids(context, audit), audit)
    scores = ask_models(context, audit, (MORAL_QUESTIONS,), lambda run: scores_by_rule(run, rule_by_question))
    # Keys are (model, whether it was told the rule).
    rows = [
        _build_row(model, scores[model, False], scores[model, True], file)
        for model in dict.fromkeys(model for model, _ in scores)
    ]
    adjusted_rows = adjust_rows(rows)
    return ExperimentResult(adjusted_rows, build_rules_document(audit, adjusted_rows))


def _build_row(model: str, before: GroupScores, after: GroupScores, file: Path | None) -> RuleFollowingRow:
    """Compare a model's consistency without and with a rule."""
    from auditor.reports.data.semantic.differences import difference_over_questions
    from auditor.reports.data.semantic.experiment_rows import RuleFollowingRow
    from auditor.reports.data.semantic.measure_changes import compare_rules
    from auditor.reports.data.semantic.score_table import mean_over_questions

    change = difference_over_questions(before.main, after.main)
    return RuleFollowingRow(
        model=model,
        before=mean_over_questions(before.main),
        after=mean_over_questions(after.main),
        change=change,
        p_value=change.p_value,
        rules_file=None if file is None else file.name,
        measures=compare_rules(before.by_measure, after.by_measure),
    )


def _load_question_ids(context: ExperimentContext, audit_name: str) -> list[str]:
    """Ids of the questions of an audit; StorageError or UsageError if it has none."""
    from auditor.experiments.stored_audit import MORAL_QUESTIONS, require_config
    from auditor.storage import audits, semantic_results

    with context.open_database() as db:
        audit = audits.get_audit(db, audit_name)
        require_config(db, audit, MORAL_QUESTIONS)
        return [question.id for question in semantic_results.load_questions(db, audit.id)]


def _read_rules(file: Path, question_ids: Collection[str], audit: str) -> dict[str, str]:
    """Read the rules of a file, by question id.

    Raises:
        ImportFileError: a row cannot be used, names a question that the audit did not ask, or repeats one; or there
            are no rows.
    """
    from auditor.errors import ImportFileError, did_you_mean
    from auditor.surveys.row_reader import read_rows

    rule_by_question: dict[str, str] = {}
    for row in read_rows(file, ("question_id", "rule")):
        question, rule = (row.required_text(column) for column in ("question_id", "rule"))
        if question not in question_ids:
            how_to_fix = did_you_mean(question, question_ids, f"Remove the row. Known: {', '.join(question_ids)}.")
            raise row.make_cell_error("question_id", f"the audit '{audit}' has no question '{question}'", how_to_fix)
        if question in rule_by_question:
            raise ImportFileError(
                f"{row.location}: question '{question}' has a rule in an earlier row.", "Keep one of the rows."
            )
        rule_by_question[question] = rule
    if not rule_by_question:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return rule_by_question
