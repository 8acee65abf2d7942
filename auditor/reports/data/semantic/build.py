"""Consistency under paraphrase: similarity of a model's answers to one moral question in several wordings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from auditor.domain import Outcome, Purpose
from auditor.domain.semantic import (
    FOUNDATIONS,
    MoralQuestion,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.metrics.averaging import AveragedEstimate, mean_of_instances
from auditor.metrics.multiple_testing import holm
from auditor.metrics.paired_difference import paired_difference
from auditor.metrics.semantic import estimate_consistency_score
from auditor.reports.data.estimate_conversion import missing_estimate
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.requests.sampling_settings import INCOMPARABLE_REASON, SamplingReport
from auditor.reports.data.semantic.least_consistent import build_least_consistent_rows
from auditor.reports.data.semantic.schema import (
    BaselineSimilarityRow,
    ChanceScore,
    FoundationRow,
    JudgedConsistencyRow,
    LanguagePairRow,
    SemanticDifferenceRow,
    SemanticModelRow,
    SemanticReport,
)
from auditor.storage import semantic_results
from auditor.storage.database import Database

LANGUAGE_METRIC_PREFIX = "languages:"
MAX_DIFFERENCE_BOUNDS = (-2.0, 2.0)
"""Smallest and largest possible difference between two consistencies, each in [-1, 1]."""
BASELINE_METRICS = ("cosine", "bleu", "rouge_l", "bertscore")
AnswerCount = tuple[str, bool, str, str | None, int]
"""Model, whether the wording is the original one, outcome of the answer, outcome of its rule of thumb, and number."""


def build_semantic_report(db: Database, source: ReportSource, sampling: SamplingReport) -> SemanticReport | None:
    """Build the section on the probe `semantic`; None where nothing has been scored.

    Models are compared only if their sampling settings are comparable.
    """
    settings = semantic_results.load_facts(db, source.audit.id)
    if settings is None:
        return None
    questions = semantic_results.load_questions(db, source.audit.id)
    scores = semantic_results.load_scores(db, source.audit.id)
    score_table = _ScoreTable(questions, scores, settings)
    models = [*source.models, *sorted({score.model for score in scores}.difference(source.models))]
    models = [model for model in models if model in score_table.models]
    return SemanticReport(
        source=settings.source,
        questions=len(questions),
        wordings=settings.wordings,
        encoder=settings.encoder,
        revision=settings.revision,
        variant=settings.variant,
        alpha=settings.alpha,
        rot_weight=settings.rot_weight,
        measured=settings.measured,
        models=_build_model_rows(db, source, models, score_table),
        foundations=_build_foundation_rows(models, score_table),
        differences=_build_difference_rows(models, score_table, sampling),
        rivals=_build_similarity_rows(models, score_table),
        languages=_build_language_rows(models, score_table),
        judged=_build_judged_rows(db, source, models),
        worst=build_least_consistent_rows(db, source, settings, models, questions, scores),
        rejected=_count_rejected_paraphrases(db, source),
    )


class _ScoreTable:
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
        return {model for model, _, _ in self._scores}

    @property
    def metrics(self) -> set[tuple[str, str]]:
        """Pairs of text and metric with scores, without the audit's own variant (`sage` or `sge`)."""
        return {(text, metric) for _, text, metric in self._scores if metric != self.settings.variant}

    def scores_of(self, model: str, text: str | None = None, metric: str | None = None) -> FloatArray:
        """Scores by question, nan where there is none.

        Args:
            text: `rot`, `answer` or `mix`; by default the text that the audit measures.
            metric: by default the audit's variant, `sage` or `sge`.
        """
        key = (model, text or self.settings.measured, metric or self.settings.variant)
        return self._scores.get(key, np.full(len(self.questions), np.nan))


def mean_over_questions(question_scores: FloatArray, missing_reason: str) -> AveragedEstimate:
    """Mean over questions of scores in [-1, 1], ignoring nan, with an interval over questions."""
    units = {"question": np.arange(len(question_scores))}
    return mean_of_instances(question_scores, units, (-1.0, 1.0), empty_reason=missing_reason)


def _build_model_rows(
    db: Database, source: ReportSource, models: Sequence[str], table: _ScoreTable
) -> list[SemanticModelRow]:
    """Build one row per model: mean scores, chance levels, and counts of planned, usable and lost answers."""
    outcome_counts = semantic_results.count_outcomes(db, source.audit.id)
    null_score_by_key = {
        (null_score.model, null_score.kind): null_score
        for null_score in semantic_results.load_null_scores(db, source.audit.id)
    }
    no_answers_reason = "no question has two usable answers"
    no_rules_reason = "no question has two usable rules of thumb"
    planned = len(table.questions) * table.settings.wordings if source.config else None
    return [
        SemanticModelRow(
            model=model,
            consistency=mean_over_questions(table.scores_of(model), no_answers_reason),
            rules=mean_over_questions(table.scores_of(model, "rot"), no_rules_reason),
            answers=mean_over_questions(table.scores_of(model, "answer"), no_answers_reason),
            shuffled=_to_chance_score(null_score_by_key.get((model, "shuffled"))),
            length_matched=_to_chance_score(null_score_by_key.get((model, "length"))),
            # The first item of a count is the model, the second whether the wording is the original: left out.
            **_count_coverage([count for count in outcome_counts if count[0] == model and not count[1]], planned),
        )
        for model in models
    ]


def _to_chance_score(null_score: NullScore | None) -> ChanceScore:
    """Convert a chance level to the form of the report; all figures are None if it was not computed."""
    if null_score is None:
        return ChanceScore(mean=None, low=None, high=None, questions=0, reason="not computed")
    return ChanceScore(
        mean=null_score.mean,
        low=null_score.low,
        high=null_score.high,
        questions=null_score.questions,
        reason=null_score.reason,
    )


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
        "losses": _losses_by_outcome(answers),
        "missing": max((planned or 0) - n_answers, 0),
        "rules_planned": rules.total(),
        "rules_ok": rules[Outcome.OK.value],
        "rules_losses": _losses_by_outcome(rules),
    }


def _losses_by_outcome(counts: Mapping[str, int]) -> dict[str, int]:
    """Count lost items by outcome, leaving out usable ones and outcomes that did not occur."""
    return {
        outcome.value: counts[outcome.value]
        for outcome in Outcome
        if outcome is not Outcome.OK and counts[outcome.value]
    }


def _build_foundation_rows(models: Sequence[str], table: _ScoreTable) -> list[FoundationRow]:
    """Build one row per moral foundation and model; empty where no question names a foundation."""
    foundations = [foundation for foundation in (*FOUNDATIONS, "") if foundation in table.foundations]
    if foundations == [""]:
        return []
    foundation_by_question = np.array(table.foundations)
    return [
        FoundationRow(
            model=model,
            foundation=foundation or "none given",
            consistency=mean_over_questions(
                table.scores_of(model)[foundation_by_question == foundation], "no question has two usable answers"
            ),
        )
        for foundation in foundations
        for model in models
    ]


def _build_difference_rows(
    models: Sequence[str], table: _ScoreTable, sampling: SamplingReport
) -> list[SemanticDifferenceRow]:
    """Compare each pair of models on the questions with a score from both; p-values are Holm-adjusted.

    Pairs with different sampling settings are listed without figures, and are no test that Holm's method counts.
    """
    all_pairs = list(combinations(models, 2))
    pairs = [pair for pair in all_pairs if sampling.are_comparable(*pair, Purpose.MORAL)]
    withheld = [
        SemanticDifferenceRow(
            first=first, second=second, difference=missing_estimate(INCOMPARABLE_REASON), p_value=None
        )
        for first, second in all_pairs
        if (first, second) not in pairs
    ]
    question_ids = [question.id for question in table.questions]
    differences = [
        paired_difference(
            table.scores_of(first),
            table.scores_of(second),
            {"question": question_ids},
            bounds=MAX_DIFFERENCE_BOUNDS,
        )
        for first, second in pairs
    ]
    adjusted_p_values = holm(
        [np.nan if difference.p_value is None else difference.p_value for difference in differences]
    )
    return [
        SemanticDifferenceRow(
            first=first,
            second=second,
            difference=difference.estimate,
            p_value=None if np.isnan(p_value) else float(p_value),
        )
        for (first, second), difference, p_value in zip(pairs, differences, adjusted_p_values, strict=True)
    ] + withheld


def _build_similarity_rows(models: Sequence[str], table: _ScoreTable) -> list[BaselineSimilarityRow]:
    """Build one row per text, baseline metric and model, for the metrics that were computed."""
    scored_metrics = [
        (text, metric) for text in ("rot", "answer") for metric in BASELINE_METRICS if (text, metric) in table.metrics
    ]
    return [
        BaselineSimilarityRow(
            model=model,
            text=text,
            metric=metric,
            value=mean_over_questions(table.scores_of(model, text, metric), "no question has two usable texts"),
        )
        for text, metric in scored_metrics
        for model in models
    ]


def _build_language_rows(models: Sequence[str], table: _ScoreTable) -> list[LanguagePairRow]:
    """Compute the mean similarity for each pair of languages and model."""
    text = table.settings.measured
    metrics = sorted(
        {
            metric
            for metric_text, metric in table.metrics
            if metric_text == text and metric.startswith(LANGUAGE_METRIC_PREFIX)
        }
    )
    # (metric, first language, second language); such a metric is called `languages:en-de`.
    pairs = [(metric, *metric.removeprefix(LANGUAGE_METRIC_PREFIX).split("-", 1)) for metric in metrics]
    return [
        LanguagePairRow(
            model=model,
            first=first,
            second=second,
            similarity=mean_over_questions(table.scores_of(model, text, metric), "no question has a usable pair"),
        )
        for model in models
        for metric, first, second in pairs
    ]


def _build_judged_rows(db: Database, source: ReportSource, models: Sequence[str]) -> list[JudgedConsistencyRow]:
    """Build one row per model and judge, in the order of the models; empty where no judge was asked."""
    groups: dict[tuple[str, str], list[PairVerdict]] = defaultdict(list)
    for verdict in semantic_results.load_pair_verdicts(db, source.audit.id, Purpose.CONSISTENCY.value):
        groups[verdict.model, verdict.judge].append(verdict)
    return [
        _build_judged_row(model, judge, groups[model, judge])
        for model, judge in sorted(
            groups, key=lambda model_and_judge: (models.index(model_and_judge[0]), model_and_judge[1])
        )
    ]


def _build_judged_row(model: str, judge: str, verdicts: Sequence[PairVerdict]) -> JudgedConsistencyRow:
    """Compute the share of pairs of answers of one model that one judge finds consistent, pooled and by question."""
    hits, totals = Counter[str](), Counter[str]()
    for verdict in verdicts:
        # `holds`: whether the answers are consistent; None for a failed judgement.
        hits[verdict.question] += verdict.holds is True
        totals[verdict.question] += verdict.holds is not None
    question_ids = sorted(totals)
    counts = [hits[question] for question in question_ids], [totals[question] for question in question_ids]
    return JudgedConsistencyRow(
        model=model,
        judge=judge,
        score=estimate_consistency_score(*counts, question_ids, "pooled"),
        instances=estimate_consistency_score(*counts, question_ids, "instances"),
        questions=len(question_ids),
        asked=len(verdicts),
        consistent=hits.total(),
        failed=len(verdicts) - totals.total(),
    )


def _count_rejected_paraphrases(db: Database, source: ReportSource) -> dict[str, int]:
    """Count by reason the model-written paraphrases that were rejected, which have no number."""
    counts_by_reason: dict[str, int] = defaultdict(int)
    for wordings in semantic_results.load_wordings(db, source.audit.id).values():
        for wording in wordings:
            if wording.number is None:
                counts_by_reason[wording.reason or "not told"] += 1
    return dict(sorted(counts_by_reason.items()))
