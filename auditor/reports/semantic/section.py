"""Consistency under paraphrase: how alike a model's answers to one moral question in several wordings are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from auditor.domain import Outcome, Purpose
from auditor.domain.semantic import FOUNDATIONS, NullScore, PairVerdict, Question, QuestionScore, SemanticFacts
from auditor.metrics.bootstrap import holm
from auditor.metrics.resampling import bootstrap_mean, bootstrap_share, paired_difference
from auditor.reports.estimate_conversion import estimate, unmeasured
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import Floats, Source
from auditor.reports.semantic.least_consistent import worst
from auditor.reports.semantic.schema import (
    DifferenceRow,
    FoundationRow,
    JudgedRow,
    LanguagePairRow,
    NullPart,
    RivalRow,
    SemanticModelRow,
    SemanticPart,
)
from auditor.storage import semantic_results
from auditor.storage.database import Database

LANGUAGES = "languages:"
RIVALS = ("cosine", "bleu", "rouge_l", "bertscore")
Tally = tuple[str, bool, str, str | None, int]


def semantic(db: Database, source: Source) -> SemanticPart | None:
    """What the probe `semantic` found; None where nothing has been scored."""
    facts = semantic_results.facts(db, source.audit.id)
    if facts is None:
        return None
    questions = semantic_results.questions(db, source.audit.id)
    scores = semantic_results.scores(db, source.audit.id)
    table = _Table(questions, scores, facts)
    models = [*source.models, *sorted({s.model for s in scores}.difference(source.models))]
    models = [m for m in models if m in table.models]
    return SemanticPart(
        source=facts.source,
        questions=len(questions),
        wordings=facts.wordings,
        encoder=facts.encoder,
        revision=facts.revision,
        variant=facts.variant,
        alpha=facts.alpha,
        rot_weight=facts.rot_weight,
        measured=facts.measured,
        models=_models(db, source, models, table),
        foundations=_foundations(models, table, source.seed),
        differences=_differences(models, table, source.seed),
        rivals=_rivals(models, table, source.seed),
        languages=_languages(models, table, source.seed),
        judged=_judged(db, source, models),
        worst=worst(db, source, facts, models, questions, scores),
        rejected=_rejected(db, source),
    )


class _Table:
    """Scores as arrays over the questions, by model, text and measure."""

    def __init__(self, questions: Sequence[Question], scores: Sequence[QuestionScore], facts: SemanticFacts) -> None:
        self.facts = facts
        self.questions = questions
        self.foundations = [q.foundation for q in questions]
        place = {q.id: i for i, q in enumerate(questions)}
        self._values: dict[tuple[str, str, str], Floats] = {}
        for score in scores:
            key = (score.model, score.text, score.metric)
            column = self._values.setdefault(key, np.full(len(questions), np.nan))
            if score.value is not None:
                column[place[score.question]] = score.value

    @property
    def models(self) -> set[str]:
        return {model for model, _, _ in self._values}

    @property
    def metrics(self) -> set[tuple[str, str]]:
        """Texts and measures that there are, `sage` and `sge` aside."""
        return {(text, metric) for _, text, metric in self._values if metric != self.facts.variant}

    def column(self, model: str, text: str | None = None, metric: str | None = None) -> Floats:
        """Values by question, nan where there is none; of the score itself where not told otherwise."""
        key = (model, text or self.facts.measured, metric or self.facts.variant)
        return self._values.get(key, np.full(len(self.questions), np.nan))


def mean_over(values: Floats, seed: int, none: str) -> Estimate:
    """A mean over questions, of values that are 1 at most, with its interval."""
    mean = bootstrap_mean(values, seed=seed, bounds=(-1.0, 1.0))
    return estimate(mean) if mean.n else unmeasured(none)


def _models(db: Database, source: Source, models: Sequence[str], table: _Table) -> list[SemanticModelRow]:
    tallies = semantic_results.outcome_tallies(db, source.audit.id)
    chance = {(n.model, n.kind): n for n in semantic_results.nulls(db, source.audit.id)}
    missing = "no question has two usable answers"
    no_rules = "no question has two usable rules of thumb"
    planned = len(table.questions) * table.facts.wordings if source.config else None
    return [
        SemanticModelRow(
            model=model,
            consistency=mean_over(table.column(model), source.seed, missing),
            rules=mean_over(table.column(model, "rot"), source.seed, no_rules),
            answers=mean_over(table.column(model, "answer"), source.seed, missing),
            shuffled=_null(chance.get((model, "shuffled"))),
            length_matched=_null(chance.get((model, "length"))),
            **_coverage([t for t in tallies if t[0] == model and not t[1]], planned),
        )
        for model in models
    ]


def _null(null: NullScore | None) -> NullPart:
    if null is None:
        return NullPart(mean=None, low=None, high=None, questions=0, reason="not computed")
    return NullPart(mean=null.mean, low=null.low, high=null.high, questions=null.questions, reason=null.reason)


def _coverage(tallies: Sequence[Tally], planned: int | None) -> dict[str, int | dict[str, int]]:
    """Answers and rules that were planned, those that are usable, and the others by outcome."""
    answers, rules = Counter[str](), Counter[str]()
    for _, _, outcome, rule, n in tallies:
        answers[outcome] += n
        if rule is not None:
            rules[rule] += n
    there = answers.total()
    return {
        "planned": max(planned or 0, there),
        "ok": answers[Outcome.OK.value],
        "losses": _losses(answers),
        "missing": max((planned or 0) - there, 0),
        "rules_planned": rules.total(),
        "rules_ok": rules[Outcome.OK.value],
        "rules_losses": _losses(rules),
    }


def _losses(counts: Mapping[str, int]) -> dict[str, int]:
    return {o.value: counts[o.value] for o in Outcome if o is not Outcome.OK and counts[o.value]}


def _foundations(models: Sequence[str], table: _Table, seed: int) -> list[FoundationRow]:
    names = [f for f in (*FOUNDATIONS, "") if f in table.foundations]
    if names == [""]:
        return []
    of = np.array(table.foundations)
    return [
        FoundationRow(
            model=model,
            foundation=name or "none given",
            consistency=mean_over(table.column(model)[of == name], seed, "no question has two usable answers"),
        )
        for name in names
        for model in models
    ]


def _differences(models: Sequence[str], table: _Table, seed: int) -> list[DifferenceRow]:
    """Each pair of models on the questions that both have a score on."""
    pairs = list(combinations(models, 2))
    found = [paired_difference(table.column(a), table.column(b), seed=seed) for a, b in pairs]
    adjusted = holm([np.nan if d.p_value is None else d.p_value for d in found])
    return [
        DifferenceRow(
            first=a,
            second=b,
            difference=estimate(d) if d.n else unmeasured(d.reason or ""),
            p_value=None if np.isnan(p) else float(p),
        )
        for (a, b), d, p in zip(pairs, found, adjusted, strict=True)
    ]


def _rivals(models: Sequence[str], table: _Table, seed: int) -> list[RivalRow]:
    order = [(t, m) for t in ("rot", "answer") for m in RIVALS if (t, m) in table.metrics]
    return [
        RivalRow(
            model=model,
            text=text,
            metric=metric,
            value=mean_over(table.column(model, text, metric), seed, "no question has two usable texts"),
        )
        for text, metric in order
        for model in models
    ]


def _languages(models: Sequence[str], table: _Table, seed: int) -> list[LanguagePairRow]:
    text = table.facts.measured
    names = sorted({m for t, m in table.metrics if t == text and m.startswith(LANGUAGES)})
    pairs = [(name, *name.removeprefix(LANGUAGES).split("-", 1)) for name in names]
    return [
        LanguagePairRow(
            model=model,
            first=first,
            second=second,
            similarity=mean_over(table.column(model, text, name), seed, "no question has a usable pair"),
        )
        for model in models
        for name, first, second in pairs
    ]


def _judged(db: Database, source: Source, models: Sequence[str]) -> list[JudgedRow]:
    groups: dict[tuple[str, str], list[PairVerdict]] = defaultdict(list)
    for verdict in semantic_results.verdicts(db, source.audit.id, Purpose.CONSISTENCY.value):
        groups[verdict.model, verdict.judge].append(verdict)
    return [
        _judged_row(model, judge, groups[model, judge], source.seed)
        for model, judge in sorted(groups, key=lambda who: (models.index(who[0]), who[1]))
    ]


def _judged_row(model: str, judge: str, verdicts: Sequence[PairVerdict], seed: int) -> JudgedRow:
    hits, totals = Counter[str](), Counter[str]()
    for v in verdicts:
        hits[v.question] += v.holds is True
        totals[v.question] += v.holds is not None
    ids = sorted(totals)
    share = bootstrap_share([hits[q] for q in ids], [totals[q] for q in ids], seed=seed)
    return JudgedRow(
        model=model,
        judge=judge,
        score=estimate(share) if share.n else unmeasured(share.reason or ""),
        questions=len(ids),
        asked=len(verdicts),
        consistent=hits.total(),
        failed=len(verdicts) - totals.total(),
    )


def _rejected(db: Database, source: Source) -> dict[str, int]:
    reasons: dict[str, int] = defaultdict(int)
    for group in semantic_results.wordings(db, source.audit.id).values():
        for wording in group:
            if wording.number is None:
                reasons[wording.reason or "not told"] += 1
    return dict(sorted(reasons.items()))
