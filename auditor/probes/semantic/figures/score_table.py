"""Consistency scores as arrays over the questions, and their means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.metrics.averaging import AveragedEstimate, mean_of_instances
from auditor.probes.semantic.records import MoralQuestion, QuestionScore, SemanticScoringSettings
from auditor.reports.data.report_source import FloatArray

NON_NEGATIVE_METRICS = ("bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed")
"""Metrics between 0 and 1. BERTScore is not rescaled, so that it may be negative, as are graph entropies of cosines."""


class ScoreTable:
    """Scores as arrays over the questions, by model, text and metric."""

    def __init__(
        self, questions: Sequence[MoralQuestion], scores: Sequence[QuestionScore], settings: SemanticScoringSettings
    ) -> None:
        """Arrange the scores by model, text and metric, in the order of the questions; nan where there is none."""
        self.settings = settings
        self.questions = questions
        self.foundations = [q.foundation for q in questions]
        question_index = {q.id: i for i, q in enumerate(questions)}
        self._scores: dict[tuple[str, str, str], FloatArray] = {}
        for score in scores:
            key = (score.model, score.text, score.metric)
            column = self._scores.setdefault(key, np.full(len(questions), np.nan))
            if score.value is not None:
                column[question_index[score.question]] = score.value

    @property
    def models(self) -> set[str]:
        """Models with at least one score."""
        return {model for model, _, _ in self._scores if model}

    @property
    def metrics(self) -> set[tuple[str, str]]:
        """Pairs of text and metric with scores, without those of the audit's own variant (`sage` or `sge`)."""
        return {(text, metric) for _, text, metric in self._scores if metric != self.settings.variant}

    def scores_of(self, model: str, text: str | None = None, metric: str | None = None) -> FloatArray:
        """Scores by question, nan where there is none.

        Args:
            model: empty for the wordings of the questions themselves.
            text: `rot`, `answer` or `mix`; by default the text that the audit measures.
            metric: by default the audit's variant, `sage` or `sge`.
        """
        key = (model, text or self.settings.measured, metric or self.settings.variant)
        return self._scores.get(key, np.full(len(self.questions), np.nan))


def mean_over_questions(
    question_scores: FloatArray, missing_reason: str = "no question has two usable answers", *, metric: str = ""
) -> AveragedEstimate:
    """Mean over questions of scores, ignoring nan, with an interval over questions.

    Args:
        metric: of the scores, which says between which bounds they lie; by default a graph entropy or a cosine.
    """
    units = {"question": np.arange(len(question_scores))}
    return mean_of_instances(question_scores, units, bounds_of(metric), empty_reason=missing_reason)


def bounds_of(metric: str) -> tuple[float, float]:
    """Smallest and largest possible value of a metric: BLEU and ROUGE-L are no less than 0, cosines may be -1."""
    return (0.0 if metric in NON_NEGATIVE_METRICS else -1.0, 1.0)
