"""Experiment `rules`: is a model more consistent when it follows a rule of thumb?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult
from auditor.probes.semantic.experiments.temperature import MoralAuditArgument

if TYPE_CHECKING:
    from auditor.probes.semantic.figures.experiment_rows import RuleFollowingRow
    from auditor.probes.semantic.group_scores import GroupScores
    from auditor.probes.semantic.questions import QuestionIds


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
    from auditor.experiments.stored_audit import ask_models
    from auditor.probes.semantic.experiment_runs import SEMANTIC_PROBE, scores_by_rule
    from auditor.probes.semantic.experiments.section_consistency import build_rules_document
    from auditor.reports.data.adjusted_tests import adjust_rows

    rule_by_question = None if file is None else read_rules(file, _load_question_ids(context, audit), audit)
    scores = ask_models(context, audit, (SEMANTIC_PROBE,), lambda run: scores_by_rule(run, rule_by_question))
    # Keys are (model, whether it was told the rule).
    rows = [
        _build_row(model, scores[model, False], scores[model, True])
        for model in dict.fromkeys(model for model, _ in scores)
    ]
    if file is not None and rule_by_question is not None:
        rows = [row.model_copy(update=_describe_file(file, rule_by_question)) for row in rows]
    adjusted_rows = adjust_rows(rows, "change", "changes by a rule")
    return ExperimentResult(adjusted_rows, build_rules_document(audit, adjusted_rows))


def _describe_file(file: Path, rule_by_question: Mapping[str, str]) -> dict[str, Any]:
    """The file of rules as fields of a row."""
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"rules_file": file.name, "rules_sha256": sha256, "questions": len(rule_by_question)}


def _build_row(model: str, before: GroupScores, after: GroupScores) -> RuleFollowingRow:
    """Compare a model's consistency without and with a rule."""
    from auditor.probes.semantic.figures.answer_counts import build_count_rows
    from auditor.probes.semantic.figures.differences import difference_over_questions
    from auditor.probes.semantic.figures.experiment_rows import MeasureByRuleRow, RuleFollowingRow
    from auditor.probes.semantic.figures.measure_changes import compare_measures
    from auditor.probes.semantic.figures.score_table import mean_over_questions

    change = difference_over_questions(before.main, after.main)
    return RuleFollowingRow(
        model=model,
        before=mean_over_questions(before.main),
        after=mean_over_questions(after.main),
        change=change,
        measures=compare_measures(MeasureByRuleRow, before.by_measure, after.by_measure),
        counts=build_count_rows({"before": before.outcomes, "after": after.outcomes}),
    )


def _load_question_ids(context: ExperimentContext, audit_name: str) -> QuestionIds:
    """Ids of an audit's questions; StorageError or UsageError if it has none."""
    from auditor.experiments.stored_audit import require_config
    from auditor.probes.semantic import answer_rows
    from auditor.probes.semantic.experiment_runs import SEMANTIC_PROBE
    from auditor.probes.semantic.questions import list_question_ids
    from auditor.storage import audits

    with context.open_database() as db:
        audit = audits.get_audit(db, audit_name)
        config = require_config(db, audit, SEMANTIC_PROBE)
        stored_ids = [question.id for question in answer_rows.load_questions(db, audit.id)]
        return list_question_ids(config, audits.load_audit_survey(db, audit), stored_ids)


def read_rules(file: Path, ids: QuestionIds, audit: str) -> dict[str, str]:
    """Read the rules of a file for the questions that an audit asks, by question id.

    Raises:
        ImportFileError: a row cannot be used, names a question that is not the audit's, or repeats one; or no row is
            of a question that it asks.
    """
    from auditor.errors import ImportFileError, did_you_mean
    from auditor.reports.sections.phrasing import join_first
    from auditor.surveys.row_reader import read_rows

    known_ids = (*ids.asked, *ids.beyond_limit)
    rule_by_question: dict[str, str] = {}
    for row in read_rows(file, ("question_id", "rule")):
        question, rule = (row.required_text(column) for column in ("question_id", "rule"))
        if question not in known_ids:
            how_to_fix = did_you_mean(question, known_ids, f"Remove the row. Known: {join_first(known_ids)}.")
            raise row.make_cell_error("question_id", f"the audit '{audit}' has no question '{question}'", how_to_fix)
        if question in rule_by_question:
            raise ImportFileError(
                f"{row.location}: question '{question}' has a rule in an earlier row.", "Keep one of the rows."
            )
        rule_by_question[question] = rule
    if not rule_by_question:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    rules = {question: rule for question, rule in rule_by_question.items() if question in ids.asked}
    if not rules:
        raise ImportFileError(f"{file}: no row is of a question that the audit '{audit}' asks.", "Raise its limit.")
    return rules
