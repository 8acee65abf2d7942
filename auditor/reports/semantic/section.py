"""Consistency under paraphrase: how alike a model's answers to one moral question in several wordings are."""

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
from auditor.metrics.bootstrap import holm
from auditor.metrics.resampling import bootstrap_mean, bootstrap_share, paired_difference
from auditor.reports.estimate_conversion import missing_estimate, to_estimate
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.reports.semantic.least_consistent import build_least_consistent_rows
from auditor.reports.semantic.schema import (
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
BASELINE_METRICS = ("cosine", "bleu", "rouge_l", "bertscore")
AnswerCount = tuple[str, bool, str, str | None, int]


def build_semantic_report(db: Database, source: ReportSource) -> SemanticReport | None:
    """What the probe `semantic` found; None where nothing has been scored."""
    facts = semantic_results.load_facts(db, source.audit.id)
    if facts is None:
        return None
    questions = semantic_results.load_questions(db, source.audit.id)
    scores = semantic_results.load_scores(db, source.audit.id)
    table = _ScoreTable(questions, scores, facts)
    models = [*source.models, *sorted({s.model for s in scores}.difference(source.models))]
    models = [m for m in models if m in table.models]
    return SemanticReport(
        source=facts.source,
        questions=len(questions),
        wordings=facts.wordings,
        encoder=facts.encoder,
        revision=facts.revision,
        variant=facts.variant,
        alpha=facts.alpha,
        rot_weight=facts.rot_weight,
        measured=facts.measured,
        models=_build_model_rows(db, source, models, table),
        foundations=_build_foundation_rows(models, table, source.seed),
        differences=_build_difference_rows(models, table, source.seed),
        rivals=_build_similarity_rows(models, table, source.seed),
        languages=_build_language_rows(models, table, source.seed),
        judged=_build_judged_rows(db, source, models),
        worst=build_least_consistent_rows(db, source, facts, models, questions, scores),
        rejected=_count_rejected_paraphrases(db, source),
    )


class _ScoreTable:
    """Scores as arrays over the questions, by model, text and measure."""

    def __init__(
        self, questions: Sequence[MoralQuestion], scores: Sequence[QuestionScore], facts: SemanticScoringSettings
    ) -> None:
        self.facts = facts
        self.questions = questions
        self.foundations = [q.foundation for q in questions]
        place = {q.id: i for i, q in enumerate(questions)}
        self._scores: dict[tuple[str, str, str], FloatArray] = {}
        for score in scores:
            key = (score.model, score.text, score.metric)
            column = self._scores.setdefault(key, np.full(len(questions), np.nan))
            if score.value is not None:
                column[place[score.question]] = score.value

    @property
    def models(self) -> set[str]:
        return {model for model, _, _ in self._scores}

    @property
    def metrics(self) -> set[tuple[str, str]]:
        """Texts and measures that there are, `sage` and `sge` aside."""
        return {(text, metric) for _, text, metric in self._scores if metric != self.facts.variant}

    def scores_of(self, model: str, text: str | None = None, metric: str | None = None) -> FloatArray:
        """Values by question, nan where there is none; of the score itself where not told otherwise."""
        key = (model, text or self.facts.measured, metric or self.facts.variant)
        return self._scores.get(key, np.full(len(self.questions), np.nan))


def mean_over_questions(question_scores: FloatArray, seed: int, missing_reason: str) -> Estimate:
    """A mean over questions, of values that are 1 at most, with its interval."""
    mean = bootstrap_mean(question_scores, seed=seed, bounds=(-1.0, 1.0))
    return to_estimate(mean) if mean.n else missing_estimate(missing_reason)


def _build_model_rows(
    db: Database, source: ReportSource, models: Sequence[str], table: _ScoreTable
) -> list[SemanticModelRow]:
    tallies = semantic_results.count_outcomes(db, source.audit.id)
    chance = {(n.model, n.kind): n for n in semantic_results.load_null_scores(db, source.audit.id)}
    missing = "no question has two usable answers"
    no_rules = "no question has two usable rules of thumb"
    planned = len(table.questions) * table.facts.wordings if source.config else None
    return [
        SemanticModelRow(
            model=model,
            consistency=mean_over_questions(table.scores_of(model), source.seed, missing),
            rules=mean_over_questions(table.scores_of(model, "rot"), source.seed, no_rules),
            answers=mean_over_questions(table.scores_of(model, "answer"), source.seed, missing),
            shuffled=_to_chance_score(chance.get((model, "shuffled"))),
            length_matched=_to_chance_score(chance.get((model, "length"))),
            **_count_coverage([t for t in tallies if t[0] == model and not t[1]], planned),
        )
        for model in models
    ]


def _to_chance_score(null_score: NullScore | None) -> ChanceScore:
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
    """Answers and rules that were planned, those that are usable, and the others by outcome."""
    answers, rules = Counter[str](), Counter[str]()
    for _, _, outcome, rule, n in answer_counts:
        answers[outcome] += n
        if rule is not None:
            rules[rule] += n
    there = answers.total()
    return {
        "planned": max(planned or 0, there),
        "ok": answers[Outcome.OK.value],
        "losses": _losses_by_outcome(answers),
        "missing": max((planned or 0) - there, 0),
        "rules_planned": rules.total(),
        "rules_ok": rules[Outcome.OK.value],
        "rules_losses": _losses_by_outcome(rules),
    }


def _losses_by_outcome(counts: Mapping[str, int]) -> dict[str, int]:
    return {o.value: counts[o.value] for o in Outcome if o is not Outcome.OK and counts[o.value]}


def _build_foundation_rows(models: Sequence[str], table: _ScoreTable, seed: int) -> list[FoundationRow]:
    names = [f for f in (*FOUNDATIONS, "") if f in table.foundations]
    if names == [""]:
        return []
    of = np.array(table.foundations)
    return [
        FoundationRow(
            model=model,
            foundation=name or "none given",
            consistency=mean_over_questions(
                table.scores_of(model)[of == name], seed, "no question has two usable answers"
            ),
        )
        for name in names
        for model in models
    ]


def _build_difference_rows(models: Sequence[str], table: _ScoreTable, seed: int) -> list[SemanticDifferenceRow]:
    """Each pair of models on the questions that both have a score on."""
    pairs = list(combinations(models, 2))
    found = [paired_difference(table.scores_of(a), table.scores_of(b), seed=seed) for a, b in pairs]
    adjusted = holm([np.nan if d.p_value is None else d.p_value for d in found])
    return [
        SemanticDifferenceRow(
            first=a,
            second=b,
            difference=to_estimate(d) if d.n else missing_estimate(d.reason or ""),
            p_value=None if np.isnan(p) else float(p),
        )
        for (a, b), d, p in zip(pairs, found, adjusted, strict=True)
    ]


def _build_similarity_rows(models: Sequence[str], table: _ScoreTable, seed: int) -> list[BaselineSimilarityRow]:
    order = [(t, m) for t in ("rot", "answer") for m in BASELINE_METRICS if (t, m) in table.metrics]
    return [
        BaselineSimilarityRow(
            model=model,
            text=text,
            metric=metric,
            value=mean_over_questions(table.scores_of(model, text, metric), seed, "no question has two usable texts"),
        )
        for text, metric in order
        for model in models
    ]


def _build_language_rows(models: Sequence[str], table: _ScoreTable, seed: int) -> list[LanguagePairRow]:
    text = table.facts.measured
    names = sorted({m for t, m in table.metrics if t == text and m.startswith(LANGUAGE_METRIC_PREFIX)})
    pairs = [(name, *name.removeprefix(LANGUAGE_METRIC_PREFIX).split("-", 1)) for name in names]
    return [
        LanguagePairRow(
            model=model,
            first=first,
            second=second,
            similarity=mean_over_questions(table.scores_of(model, text, name), seed, "no question has a usable pair"),
        )
        for model in models
        for name, first, second in pairs
    ]


def _build_judged_rows(db: Database, source: ReportSource, models: Sequence[str]) -> list[JudgedConsistencyRow]:
    groups: dict[tuple[str, str], list[PairVerdict]] = defaultdict(list)
    for verdict in semantic_results.load_pair_verdicts(db, source.audit.id, Purpose.CONSISTENCY.value):
        groups[verdict.model, verdict.judge].append(verdict)
    return [
        _build_judged_row(model, judge, groups[model, judge], source.seed)
        for model, judge in sorted(groups, key=lambda who: (models.index(who[0]), who[1]))
    ]


def _build_judged_row(model: str, judge: str, verdicts: Sequence[PairVerdict], seed: int) -> JudgedConsistencyRow:
    hits, totals = Counter[str](), Counter[str]()
    for v in verdicts:
        hits[v.question] += v.holds is True
        totals[v.question] += v.holds is not None
    ids = sorted(totals)
    share = bootstrap_share([hits[q] for q in ids], [totals[q] for q in ids], seed=seed)
    return JudgedConsistencyRow(
        model=model,
        judge=judge,
        score=to_estimate(share) if share.n else missing_estimate(share.reason or ""),
        questions=len(ids),
        asked=len(verdicts),
        consistent=hits.total(),
        failed=len(verdicts) - totals.total(),
    )


def _count_rejected_paraphrases(db: Database, source: ReportSource) -> dict[str, int]:
    reasons: dict[str, int] = defaultdict(int)
    for group in semantic_results.load_wordings(db, source.audit.id).values():
        for wording in group:
            if wording.number is None:
                reasons[wording.reason or "not told"] += 1
    return dict(sorted(reasons.items()))
