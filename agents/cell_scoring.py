"""Computing the scores of a cell and their self-consistency from its traces or sentence pairs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import TextEncoder
from auditor.domain import Cell, CellScore, Method, Outcome, SentencePairScore, Trace, canonical_hash
from auditor.metrics.answers.samples import (
    min_max_scale,
    self_consistency,
    sign_agreement,
    similarity_to_other_cells,
    straddles_zero,
)
from auditor.prompts.language_data import load_sentence_pairs
from auditor.tasks import most_common_answer

K = TypeVar("K", bound=Hashable)
CHANCE_COLUMNS = ("chance_similarity", "topic_similarity")
"""Columns of `CellScore` with similarities between cells."""


def compute_cell_score(
    model: str, cell: Cell, traces: Sequence[Trace], n_planned: int, consistency: float | None, evidence: str
) -> CellScore:
    """Score of a cell: the mean over languages of the mean of their `ok` samples; None if no sample is `ok`.

    Each language with an answer has the same weight, regardless of its number of `ok` samples. Variance and agreement
    of samples are computed within languages. Answers to an item of a task give their most common one.

    Args:
        traces: all traces of the model on the cell, with any outcome.
        n_planned: number of planned samples.
        consistency: self-consistency of the traces, in [-1, 1]; None if not measured.
        evidence: hash from `evidence_hash` of the texts that `consistency` was computed from.
    """
    ok_traces = [
        trace
        for trace in traces
        if trace.outcome is Outcome.OK and (trace.score is not None or trace.answer is not None)
    ]
    scores_by_language: dict[str, list[float]] = {}
    for trace in ok_traces:
        if trace.score is not None:
            scores_by_language.setdefault(trace.language, []).append(trace.score)
    language_groups = [np.array(scores) for scores in scores_by_language.values()]
    repeated_groups = [scores for scores in language_groups if scores.size > 1]
    return CellScore(
        model=model,
        cell=cell,
        method=Method.DIRECT.value,
        score=float(np.mean([scores.mean() for scores in language_groups])) if language_groups else None,
        variance=_pooled_variance(language_groups),
        sign_agreement=float(np.mean([sign_agreement(scores) for scores in repeated_groups]))
        if repeated_groups
        else None,
        straddles=any(straddles_zero(scores) for scores in repeated_groups) if repeated_groups else None,
        n_ok=len(ok_traces),
        n_planned=n_planned,
        self_consistency=consistency,
        evidence=evidence,
        answer=most_common_answer(trace.answer for trace in ok_traces if trace.answer is not None)
        if not language_groups
        else mean_answer(ok_traces),
    )


def _pooled_variance(language_groups: Sequence[NDArray[np.float64]]) -> float | None:
    """Pooled variance within languages, scaled so that variance / n_samples is the variance of the score.

    The score is the mean of the languages' means. None if no language has two samples.
    """
    degrees_of_freedom = sum(scores.size - 1 for scores in language_groups)
    if not degrees_of_freedom:
        return None
    pooled_variance = (
        sum(float(((scores - scores.mean()) ** 2).sum()) for scores in language_groups) / degrees_of_freedom
    )
    n_samples, n_languages = sum(scores.size for scores in language_groups), len(language_groups)
    return pooled_variance * n_samples * sum(1 / scores.size for scores in language_groups) / n_languages**2


def mean_answer(traces: Sequence[Trace]) -> str | None:
    """Mean of the answers to a scored item of a task, in the units of the task; None for a survey."""
    answers = [float(trace.answer) for trace in traces if trace.answer is not None]
    return f"{fmean(answers):.6g}" if answers else None


def compute_logprob_scores(pair_scores: Iterable[SentencePairScore]) -> list[CellScore]:
    """Compute each cell's mean log-probability difference, scaled to [-1, 1] by its model's range over all cells.

    A cell with a missing sentence pair has no score: pairs differ in the base rates of their endings, so means over
    different sets of pairs cannot be compared.
    """
    pairs_by_model: dict[str, dict[Cell, list[SentencePairScore]]] = {}
    for pair_score in pair_scores:
        pairs_by_model.setdefault(pair_score.model, {}).setdefault(pair_score.cell, []).append(pair_score)
    return [
        score
        for model, pairs_by_cell in pairs_by_model.items()
        for score in _scale_to_model_range(model, pairs_by_cell)
    ]


def _scale_to_model_range(
    model: str, pair_scores_by_cell: Mapping[Cell, Sequence[SentencePairScore]]
) -> list[CellScore]:
    """Compute the scores of all cells of one model: mean differences, scaled so that their range becomes [-1, 1].

    The score is None for a cell without a score for every sentence pair.
    """
    n_planned = load_sentence_pairs().pairs_per_cell
    mean_by_cell = {
        cell: _mean_difference(cell_pair_scores, n_planned) for cell, cell_pair_scores in pair_scores_by_cell.items()
    }
    scaled_means = min_max_scale([np.nan if mean is None else mean for mean in mean_by_cell.values()])
    return [
        CellScore(
            model=model,
            cell=cell,
            method=Method.LOGPROB.value,
            score=None if np.isnan(scaled_mean) else float(scaled_mean),
            n_ok=sum(pair_score.outcome is Outcome.OK for pair_score in pair_scores_by_cell[cell]),
            n_planned=n_planned,
            raw=mean_by_cell[cell],
            measure=pair_scores_by_cell[cell][0].measure,  # the same for all pairs of a model
        )
        for cell, scaled_mean in zip(pair_scores_by_cell, scaled_means, strict=True)
    ]


def _mean_difference(pair_scores: Sequence[SentencePairScore], n_planned: int) -> float | None:
    """Mean log-probability difference in nats; None unless all planned pairs have one."""
    differences = [pair_score.difference for pair_score in pair_scores if pair_score.difference is not None]
    return float(np.mean(differences)) if len(differences) == n_planned else None


def texts_by_language(traces: Iterable[Trace]) -> dict[str, list[str]]:
    """Group the texts of `ok` traces by language; self-consistency compares answers to the same question only."""
    texts: dict[str, list[str]] = {}
    for trace in traces:
        if trace.outcome is Outcome.OK and trace.text:
            texts.setdefault(trace.language, []).append(trace.text)
    return texts


def evidence_hash(encoder: str, texts: Sequence[str]) -> str:
    """Hash of the inputs of a self-consistency: encoder and texts; it is recomputed only if the hash has changed."""
    return canonical_hash([encoder, *texts])


def self_consistencies(
    texts: Mapping[K, Mapping[str, Sequence[str]]], load_encoder: Callable[[], TextEncoder]
) -> dict[K, float | None]:
    """Self-consistency by key: the mean cosine of all pairs of texts in the same language.

    Args:
        texts: by key, such as (model, cell), the texts by language.
        load_encoder: returns the sentence encoder; called only if there is something to compare.

    Returns:
        In [-1, 1]; None for a key without two texts in one language.
    """
    groups = {
        (key, language): group
        for key, texts_by_language in texts.items()
        for language, group in texts_by_language.items()
        if len(group) > 1
    }
    if not groups:
        return dict.fromkeys(texts)
    vectors = load_encoder().encode([text for group in groups.values() for text in group])
    # Positions in `vectors` at which the groups end.
    group_ends = np.cumsum([len(group) for group in groups.values()])
    cosine_sums: dict[K, float] = dict.fromkeys(texts, 0.0)
    pair_counts: dict[K, int] = dict.fromkeys(texts, 0)
    for (key, _), group_vectors in zip(groups, np.split(vectors, group_ends[:-1]), strict=True):
        n_pairs = len(group_vectors) * (len(group_vectors) - 1) // 2
        cosine_sums[key] += n_pairs * float(self_consistency(group_vectors))
        pair_counts[key] += n_pairs
    return {key: cosine_sums[key] / pair_counts[key] if pair_counts[key] else None for key in texts}


def chance_similarities(
    texts: Mapping[Cell, Mapping[str, Sequence[str]]], load_encoder: Callable[[], TextEncoder], seed: int
) -> dict[Cell, dict[str, float | None]]:
    """How alike a model's texts about different cells are: values of the columns of `CellScore`, by cell.

    One text of each cell and language is compared with those of about the same length in that language. It is any of
    the cell's texts, since texts of the first samples share a wording.

    Args:
        texts: of one model, by cell, the texts by language; languages with one text are left out, as they have no
            self-consistency.
        load_encoder: returns the sentence encoder; called only if there is something to compare.
        seed: determines the texts and their partners.
    """
    drawn: dict[str, list[tuple[Cell, str]]] = {}
    for cell, texts_by_language in texts.items():
        for language, group in texts_by_language.items():
            if len(group) > 1:
                position = int(canonical_hash([seed, cell.country, cell.topic, language])[:8], 16) % len(group)
                drawn.setdefault(language, []).append((cell, group[position]))
    values: dict[Cell, dict[str, list[float]]] = {cell: {column: [] for column in CHANCE_COLUMNS} for cell in texts}
    for pairs in drawn.values():
        if len({cell.country for cell, _ in pairs}) < 2:
            continue
        vectors = load_encoder().encode([text for _, text in pairs])
        countries, topics = [cell.country for cell, _ in pairs], [cell.topic for cell, _ in pairs]
        lengths = [len(text) for _, text in pairs]
        for column in CHANCE_COLUMNS:
            similarities = similarity_to_other_cells(
                vectors,
                countries,
                topics,
                lengths,
                same_topic=column == "topic_similarity",
                rng=np.random.default_rng(seed),
            )
            for (cell, _), similarity in zip(pairs, similarities, strict=True):
                if not np.isnan(similarity):
                    values[cell][column].append(float(similarity))
    return {
        cell: {column: fmean(of_languages) if of_languages else None for column, of_languages in by_column.items()}
        for cell, by_column in values.items()
    }
