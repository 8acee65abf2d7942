"""From the traces of one cell to its score and self-consistency."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import TextEncoder
from auditor.domain import Cell, CellScore, Method, Outcome, SentencePairScore, Trace, canonical_hash
from auditor.metrics.logprob import min_max_scale
from auditor.metrics.self_consistency import self_consistency, sign_agreement, straddles_zero
from auditor.prompts.sentence_pairs import load_sentence_pairs
from auditor.tasks import most_common_answer

K = TypeVar("K", bound=Hashable)


def compute_cell_score(
    model: str, cell: Cell, traces: Sequence[Trace], n_planned: int, consistency: float | None, evidence: str
) -> CellScore:
    """The mean over languages of the means of their `ok` samples; no score when none is `ok`.

    Each language that has an answer counts alike, however many of its answers were lost. What samples do among
    themselves is asked within a language. Answers to an item of a task have a commonest one.
    """
    ok = [t for t in traces if t.outcome is Outcome.OK and (t.score is not None or t.answer is not None)]
    by_language: dict[str, list[float]] = {}
    for t in ok:
        if t.score is not None:
            by_language.setdefault(t.language, []).append(t.score)
    groups = [np.array(values) for values in by_language.values()]
    several = [values for values in groups if values.size > 1]
    return CellScore(
        model=model,
        cell=cell,
        method=Method.DIRECT.value,
        score=float(np.mean([values.mean() for values in groups])) if groups else None,
        variance=_pooled_variance(groups),
        sign_agreement=float(np.mean([sign_agreement(values) for values in several])) if several else None,
        straddles=any(straddles_zero(values) for values in several) if several else None,
        n_ok=len(ok),
        n_planned=n_planned,
        self_consistency=consistency,
        evidence=evidence,
        answer=most_common_answer(t.answer for t in ok if t.answer is not None) if not groups else mean_answer(ok),
    )


def _pooled_variance(groups: Sequence[NDArray[np.float64]]) -> float | None:
    """The pooled variance within languages, so scaled that over n samples it is the variance of the languages' mean."""
    freedom = sum(values.size - 1 for values in groups)
    if not freedom:
        return None
    pooled = sum(float(((values - values.mean()) ** 2).sum()) for values in groups) / freedom
    n, k = sum(values.size for values in groups), len(groups)
    return pooled * n * sum(1 / values.size for values in groups) / k**2


def mean_answer(traces: Sequence[Trace]) -> str | None:
    """The mean of answers that are scores, in their own units; None for scores of a survey."""
    given = [float(t.answer) for t in traces if t.answer is not None]
    return f"{fmean(given):.6g}" if given else None


def compute_logprob_scores(pair_scores: Iterable[SentencePairScore]) -> list[CellScore]:
    """Every cell's mean difference, and its place in its model's range over the survey, in [-1, 1].

    A mean over fewer than all comparisons could not be set beside the other cells', since the pairs differ in how
    likely their ends are anyway: such a cell has no score.
    """
    groups: dict[str, dict[Cell, list[SentencePairScore]]] = {}
    for contrast in pair_scores:
        groups.setdefault(contrast.model, {}).setdefault(contrast.cell, []).append(contrast)
    return [score for model, cells in groups.items() for score in _scale_to_model_range(model, cells)]


def _scale_to_model_range(
    model: str, pair_scores_by_cell: Mapping[Cell, Sequence[SentencePairScore]]
) -> list[CellScore]:
    planned = load_sentence_pairs().pairs_per_cell
    raw = {cell: _mean_difference(found, planned) for cell, found in pair_scores_by_cell.items()}
    scaled = min_max_scale([np.nan if value is None else value for value in raw.values()])
    return [
        CellScore(
            model=model,
            cell=cell,
            method=Method.LOGPROB.value,
            score=None if np.isnan(value) else float(value),
            n_ok=sum(c.outcome is Outcome.OK for c in pair_scores_by_cell[cell]),
            n_planned=planned,
            raw=raw[cell],
            measure=pair_scores_by_cell[cell][0].measure,
        )
        for cell, value in zip(pair_scores_by_cell, scaled, strict=True)
    ]


def _mean_difference(pair_scores: Sequence[SentencePairScore], n_planned: int) -> float | None:
    values = [c.difference for c in pair_scores if c.difference is not None]
    return float(np.mean(values)) if len(values) == n_planned else None


def evidence_hash(encoder: str, texts: Sequence[str]) -> str:
    """Names what a self-consistency rests on, so that it is computed anew only when that has changed."""
    return canonical_hash([encoder, *texts])


def self_consistencies(
    texts: Mapping[K, Mapping[str, Sequence[str]]], encoder: Callable[[], TextEncoder] | None
) -> dict[K, float | None]:
    """Self-consistency of each question's texts: the mean cosine of all pairs that answer in the same language.

    Returns:
        None where no language has two texts, or without an encoder.
    """
    groups = {(k, code): t for k, by in texts.items() for code, t in by.items() if len(t) > 1}
    if encoder is None or not groups:
        return dict.fromkeys(texts)
    vectors = encoder().encode([text for group in groups.values() for text in group])
    ends = np.cumsum([len(group) for group in groups.values()])
    sums: dict[K, float] = dict.fromkeys(texts, 0.0)
    pairs: dict[K, int] = dict.fromkeys(texts, 0)
    for (k, _), part in zip(groups, np.split(vectors, ends[:-1]), strict=True):
        n = len(part) * (len(part) - 1) // 2
        sums[k] += n * float(self_consistency(part))
        pairs[k] += n
    return {k: sums[k] / pairs[k] if pairs[k] else None for k in texts}
