"""Rows of the models: mean scores, chance levels, and counts of usable and lost answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from auditor.domain import Outcome
from auditor.metrics.semantic import NullDistribution
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.answer_counts import count_losses
from auditor.probes.semantic.figures.schema import SemanticModelRow
from auditor.probes.semantic.figures.score_table import ScoreTable, mean_over_questions
from auditor.probes.semantic.records import NullScore
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database
from auditor.storage.records import load_records

AnswerCount = tuple[str, bool, str, str | None, int]
"""Model, whether the wording is the original one, outcome of the answer, outcome of its rule of thumb, and number."""


def build_model_rows(
    db: Database, source: ReportSource, models: Sequence[str], table: ScoreTable
) -> list[SemanticModelRow]:
    """Build one row per model: mean scores, chance levels, and counts of planned, usable and lost answers."""
    outcome_counts = answer_rows.count_outcomes(db, source.audit.id)
    nulls = {(score.model, score.kind): score.null for score in load_records(db, source.audit.id, NullScore)}
    not_computed = NullDistribution(None, None, None, 0, 0, "not computed")
    no_answers_reason = "no question has two usable answers"
    no_rules_reason = "no question has two usable rules of thumb"
    return [
        SemanticModelRow(
            model=model,
            consistency=mean_over_questions(table.scores_of(model), no_answers_reason),
            rules=mean_over_questions(table.scores_of(model, "rot"), no_rules_reason),
            answers=mean_over_questions(table.scores_of(model, "answer"), no_answers_reason),
            shuffled=nulls.get((model, "shuffled"), not_computed),
            length_matched=nulls.get((model, "length"), not_computed),
            # The first item of a count is the model, the second whether the wording is the original: counted if it is
            # the only one.
            **_count_coverage(
                [count for count in outcome_counts if count[0] == model and count[1] == (not table.settings.wordings)],
                _count_planned(source, model, table),
            ),
        )
        for model in models
    ]


def _count_planned(source: ReportSource, model: str, table: ScoreTable) -> int | None:
    """Count the answers that a model is asked for; None where they are given, or imported."""
    probe = source.config.probes.find(SemanticProbe) if source.config is not None else None
    if source.config is None or probe is None:
        return None
    if table.settings.wordings:
        return len(table.questions) * table.settings.wordings
    if probe.consistency is None or probe.has_given_answers(source.config, source.config.model(model)):
        return None
    return len(table.questions) * probe.consistency.samples


def _count_coverage(answer_counts: Sequence[AnswerCount], planned: int | None) -> dict[str, int | dict[str, int]]:
    """Count planned, usable and lost answers and rules of thumb, as fields of `SemanticModelRow`."""
    answers, rules = Counter[str](), Counter[str]()
    for _, _, outcome, rule, n in answer_counts:  # rule: outcome of the rule of thumb, None where not asked for
        answers[outcome] += n
        if rule is not None:
            rules[rule] += n
    n_answers = answers.total()
    return {
        "planned": max(planned or 0, n_answers),
        "ok": answers[Outcome.OK.value],
        "losses": count_losses(answers),
        "missing": max((planned or 0) - n_answers, 0),
        "rules_planned": rules.total(),
        "rules_ok": rules[Outcome.OK.value],
        "rules_losses": count_losses(rules),
    }
