"""The score in the forms that papers and their programs use, and of the questions' wordings themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.metrics.averaging import AveragedEstimate
from auditor.probes.semantic.figures.schema import ScoreFormRow
from auditor.probes.semantic.figures.score_table import ScoreTable, mean_over_questions
from auditor.probes.semantic.records import QUESTION_TEXT

NO_WORDINGS_REASON = "no question has two wordings"


def score_questions_only(table: ScoreTable) -> AveragedEstimate | None:
    """Score of the wordings of the questions themselves, in the audit's form; None where it was not computed."""
    question_scores = table.scores_of("", QUESTION_TEXT)
    return None if np.isnan(question_scores).all() else mean_over_questions(question_scores, NO_WORDINGS_REASON)


def build_form_rows(models: Sequence[str], table: ScoreTable) -> list[ScoreFormRow]:
    """Build one row per published form of the questions' wordings and of each model; only for forms with a score."""
    answer_forms = [form for form in table.settings.forms if form.text == "answer"]
    sources = [("", QUESTION_TEXT, form) for form in answer_forms]
    sources += [(model, form.text, form) for model in models for form in table.settings.forms]
    return [
        ScoreFormRow(
            model=model,
            text=text.partition(":")[0],
            rot_weight=None if text == QUESTION_TEXT else form.rot_weight,
            alpha=form.alpha,
            value=mean_over_questions(scores, "no question has two usable texts"),
        )
        for model, text, form in sources
        if not np.isnan(scores := table.scores_of(model, text, form.metric)).all()
    ]
