"""Scoring the consistency of answers and rules of thumb, in blocks of questions, so that memory use is bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import TextEncoder
from auditor.agents.semantic.vector_cache import VectorCache, stack_vectors
from auditor.domain import canonical_hash, derive_seed
from auditor.domain.semantic import NullScore, QuestionScore, SemanticScoringSettings
from auditor.metrics.semantic import (
    EntropyVariant,
    cosine_similarities,
    entropy_of_similarities,
    shuffled_null,
)
from auditor.storage import semantic_results
from auditor.storage.database import Database
from auditor.storage.probe_answers import list_answering_models

QUESTIONS_PER_BLOCK = 256
"""Questions of a model scored together."""
MAX_NULL_QUESTIONS = 1000
"""Maximum number of questions, drawn at random, for the null distribution."""
N_SHUFFLES = 20
LANGUAGE_METRIC_PREFIX = "languages:"
"""Prefix of the names of metrics that compare answers between languages."""

Floats32 = NDArray[np.float32]
TextGrid = list[list[str | None]]
ConsistencyMeasure = Callable[[Sequence[Sequence[str | None]]], list[float]]
"""Consistency of the texts of each question; nan with fewer than two."""


@dataclass(frozen=True)
class ScoringPlan:
    """How answers are to be scored.

    Attributes:
        settings: settings for the report; `score_audit` fills in `revision` and `evidence`.
        load_encoder: returns the encoder, loaded on first use.
        seed: seed of the shuffles.
        baseline_names: names of further measures.
        load_baselines: returns these measures by name, given the encoder.
        on_texts_planned, on_texts_embedded: called with the number of texts to embed, and of texts embedded.
    """

    settings: SemanticScoringSettings
    load_encoder: Callable[[], TextEncoder]
    seed: int = 0
    baseline_names: Sequence[str] = ()
    load_baselines: Callable[[TextEncoder], dict[str, ConsistencyMeasure]] = lambda encoder: {}
    on_texts_planned: Callable[[int], None] = lambda n: None
    on_texts_embedded: Callable[[int], None] = lambda n: None


class QuestionBlock(NamedTuple):
    """Texts of a model for a block of questions, as lists of shape (questions, wordings); None if there is no text."""

    question_ids: list[str]
    answers: TextGrid
    rules: TextGrid
    languages: TextGrid
    """Languages of the wordings; empty if all are in one language."""


@dataclass
class _NullSample:
    """Data for a model's null distribution, collected block by block.

    Attributes:
        question_ids: the questions to include.
        vectors: by question with an answer, its vectors, shape (wordings, dimensions).
        lengths: mean length of each of these questions' texts, in characters.
    """

    question_ids: frozenset[str]
    vectors: list[Floats32] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)


def score_audit(db: Database, audit_id: int, plan: ScoringPlan) -> None:
    """Score every model's answers and store the scores; does nothing if all inputs are unchanged."""
    models = list_answering_models(db, audit_id, ["semantic"])
    ids = [question.id for question in semantic_results.load_questions(db, audit_id)]
    digest, n_texts = _hash_texts(db, audit_id, models, ids, plan.settings.wordings)
    evidence = canonical_hash([digest, _scoring_identity(plan.settings), plan.seed, sorted(plan.baseline_names)])
    stored_settings = semantic_results.load_facts(db, audit_id)
    if stored_settings is not None and stored_settings.evidence == evidence:
        return
    encoder = plan.load_encoder()
    settings = replace(plan.settings, revision=encoder.revision, evidence=evidence)
    plan.on_texts_planned(n_texts)
    scores: list[QuestionScore] = []
    null_scores: list[NullScore] = []
    measures = plan.load_baselines(encoder)
    vectors = VectorCache(db, encoder, plan.on_texts_embedded)
    for model in models:
        sample = _NullSample(_draw_null_questions(ids, plan.seed))
        for block in iterate_blocks(db, audit_id, model, ids, settings.wordings):
            scores += _score_block(model, block, settings, vectors, measures, sample)
        null_scores += _null_scores(model, sample, settings, plan.seed)
    semantic_results.replace_scores(db, audit_id, scores, null_scores, settings)


def _scoring_identity(settings: SemanticScoringSettings) -> list[object]:
    """Settings that change the scores; part of the hash of their inputs."""
    return [
        settings.encoder,
        settings.variant,
        settings.alpha,
        settings.rot_weight,
        settings.measured,
        settings.wordings,
    ]


def _hash_texts(
    db: Database, audit_id: int, models: list[str], question_ids: list[str], n_wordings: int
) -> tuple[str, int]:
    """Hash of all answers and rules of thumb of the models, in hex, and the number of these texts."""
    digest, n_texts = hashlib.sha256(), 0
    for model in models:
        for block in iterate_blocks(db, audit_id, model, question_ids, n_wordings):
            digest.update(canonical_hash([model, block.question_ids, block.answers, block.rules]).encode())
            n_texts += sum(text is not None for texts in (*block.answers, *block.rules) for text in texts)
    return digest.hexdigest(), n_texts


def iterate_blocks(
    db: Database, audit_id: int, model: str, question_ids: Sequence[str], n_wordings: int
) -> Iterator[QuestionBlock]:
    """Yield a model's answers to the paraphrases, and their rules of thumb, in blocks of questions."""
    for start in range(0, len(question_ids), QUESTIONS_PER_BLOCK):
        block_ids = list(question_ids[start : start + QUESTIONS_PER_BLOCK])
        row_by_question = {question: index for index, question in enumerate(block_ids)}
        answers: TextGrid = [[None] * n_wordings for _ in block_ids]
        rules: TextGrid = [[None] * n_wordings for _ in block_ids]
        for answer in semantic_results.load_answers(db, audit_id, block_ids, model=model):
            if 1 <= answer.wording <= n_wordings and answer.sample == 0:
                answers[row_by_question[answer.question]][answer.wording - 1] = answer.text
                rules[row_by_question[answer.question]][answer.wording - 1] = answer.rot
        yield QuestionBlock(block_ids, answers, rules, _wording_languages(db, audit_id, block_ids, n_wordings))


def _wording_languages(db: Database, audit_id: int, question_ids: Sequence[str], n_wordings: int) -> TextGrid:
    """Languages of the wordings, shape (questions, wordings); empty if there is only one language."""
    wordings_by_question = semantic_results.load_wordings(db, audit_id, question_ids)
    if len({wording.language for group in wordings_by_question.values() for wording in group if wording.number}) < 2:
        return []
    languages: TextGrid = [[None] * n_wordings for _ in question_ids]
    for i, question in enumerate(question_ids):
        for wording in wordings_by_question.get(question, []):
            if wording.number and wording.number <= n_wordings:
                languages[i][wording.number - 1] = wording.language
    return languages


def _score_language_pairs(model: str, block: QuestionBlock, text_kind: str, rows: Floats32) -> list[QuestionScore]:
    """Score each question by the mean cosine of answers to wordings in each pair of languages, and in each language.

    Args:
        text_kind: `rot`, `answer` or `mix`.
        rows: vectors of shape (questions, wordings, dimensions), nan for a missing text.
    """
    similarities = cosine_similarities(rows)
    first_wordings, second_wordings = np.triu_indices(similarities.shape[-1], 1)
    scores = []
    for i, question in enumerate(block.question_ids):
        cosines_by_metric: dict[str, list[float]] = {}
        for a, b in zip(first_wordings, second_wordings, strict=True):
            language_a, language_b = block.languages[i][a], block.languages[i][b]
            if language_a and language_b and np.isfinite(similarities[i, a, b]):
                metric = LANGUAGE_METRIC_PREFIX + "-".join(sorted((language_a, language_b)))
                cosines_by_metric.setdefault(metric, []).append(float(similarities[i, a, b]))
        scores += [
            QuestionScore(model, question, text_kind, metric, float(np.mean(cosines)), len(cosines))
            for metric, cosines in cosines_by_metric.items()
        ]
    return scores


def _score_block(
    model: str,
    block: QuestionBlock,
    settings: SemanticScoringSettings,
    vectors: VectorCache,
    measures: dict[str, ConsistencyMeasure],
    sample: _NullSample,
) -> list[QuestionScore]:
    """Scores of one block by all metrics; also adds the block's vectors to the null sample."""
    vectors_by_text = vectors.embed(
        text for texts in (*block.answers, *block.rules) for text in texts if text is not None
    )
    n_wordings = settings.wordings
    vectors_by_kind = {"answer": stack_vectors(block.answers, vectors_by_text, n_wordings)}
    if settings.measured != "answer" or any(text is not None for texts in block.rules for text in texts):
        vectors_by_kind["rot"] = stack_vectors(block.rules, vectors_by_text, n_wordings)
    if settings.measured == "mix" and "rot" in vectors_by_kind:
        vectors_by_kind["mix"] = mix_vectors(vectors_by_kind["rot"], vectors_by_kind["answer"], settings.rot_weight)
    scores: list[QuestionScore] = []
    for text_kind, kind_vectors in vectors_by_kind.items():
        scores += _score_vectors(model, block.question_ids, text_kind, kind_vectors, settings)
    for text_kind, texts in (("answer", block.answers), ("rot", block.rules)):
        for name, measure in measures.items() if text_kind in vectors_by_kind else ():
            n_present = [sum(text is not None for text in group) for group in texts]
            question_values = zip(block.question_ids, measure(texts), n_present, strict=True)
            scores += [
                QuestionScore(model, question, text_kind, name, _nan_to_none(consistency), n_usable)
                for question, consistency, n_usable in question_values
            ]
    if settings.measured in vectors_by_kind and block.languages:
        scores += _score_language_pairs(model, block, settings.measured, vectors_by_kind[settings.measured])
    if settings.measured in vectors_by_kind:
        _extend_null_sample(sample, block, vectors_by_kind[settings.measured], settings.measured)
    return scores


def mix_vectors(rules: Floats32, answers: Floats32, weight: float) -> Floats32:
    """Vectors whose cosines are `weight` * cosine of the rules + (1 - `weight`) * cosine of the answers."""
    parts = (rules * np.float32(weight**0.5), answers * np.float32((1 - weight) ** 0.5))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _score_vectors(
    model: str, question_ids: Sequence[str], text_kind: str, rows: Floats32, settings: SemanticScoringSettings
) -> list[QuestionScore]:
    """Compute the score and the mean cosine of each question, with its two least similar answers.

    Args:
        rows: vectors of shape (questions, wordings, dimensions), nan for a missing text.
    """
    similarities = cosine_similarities(rows)
    entropies = entropy_of_similarities(similarities, _entropy_variant(settings), settings.alpha)
    n_usable = np.isfinite(np.diagonal(similarities, axis1=1, axis2=2)).sum(axis=1)
    first_wordings, second_wordings = np.triu_indices(similarities.shape[-1], 1)
    pair_cosines = similarities[:, first_wordings, second_wordings]
    scores = []
    for i, question in enumerate(question_ids):
        if n_usable[i] < 2:
            scores += [
                QuestionScore(model, question, text_kind, metric, None, int(n_usable[i]))
                for metric in (settings.variant, "cosine")
            ]
            continue
        lowest = int(np.nanargmin(pair_cosines[i]))
        # Numbers of the two wordings, from 1, and the cosine of their answers.
        worst_pair = (int(first_wordings[lowest]) + 1, int(second_wordings[lowest]) + 1, float(pair_cosines[i, lowest]))
        scores += [
            QuestionScore(
                model, question, text_kind, settings.variant, float(entropies[i]), int(n_usable[i]), *worst_pair
            ),
            QuestionScore(
                model, question, text_kind, "cosine", float(np.nanmean(pair_cosines[i])), int(n_usable[i]), *worst_pair
            ),
        ]
    return scores


def _entropy_variant(settings: SemanticScoringSettings) -> EntropyVariant:
    """Variant of the entropy to compute; every metric other than `sge` uses `sage`."""
    return "sge" if settings.variant == "sge" else "sage"


def _nan_to_none(score: float) -> float | None:
    """Return a score as a plain number; None for nan."""
    return None if np.isnan(score) else float(score)


# --- null distribution of the scores ----------------------------------------------------------------------------


def _draw_null_questions(question_ids: Sequence[str], seed: int) -> frozenset[str]:
    """Draw the questions for the null distribution; the same ones in every run."""
    if len(question_ids) <= MAX_NULL_QUESTIONS:
        return frozenset(question_ids)
    rng = np.random.default_rng(derive_seed(seed, "null questions"))
    return frozenset(
        np.asarray(question_ids)[rng.choice(len(question_ids), MAX_NULL_QUESTIONS, replace=False)].tolist()
    )


def _extend_null_sample(sample: _NullSample, block: QuestionBlock, rows: Floats32, text_kind: str) -> None:
    """Add the vectors and mean text lengths of a block's questions to the null sample, if these were drawn for it.

    Args:
        rows: vectors of shape (questions, wordings, dimensions).
        text_kind: `rot`, `answer` or `mix`; for `mix` the lengths are those of the answers.
    """
    texts = block.rules if text_kind == "rot" else block.answers
    for i, question in enumerate(block.question_ids):
        lengths = [len(text) for text in texts[i] if text is not None]
        if question in sample.question_ids and lengths:
            sample.vectors.append(rows[i])
            sample.lengths.append(sum(lengths) / len(lengths))


def _null_scores(model: str, sample: _NullSample, settings: SemanticScoringSettings, seed: int) -> list[NullScore]:
    """Null distributions of a model's mean score: answers shuffled across all questions, and among similar lengths."""
    null_scores = []
    for kind, lengths in (("shuffled", None), ("length", sample.lengths)):
        if not sample.vectors:
            # No mean and quantiles, 0 shuffles, 0 questions, and the reason.
            null_scores.append(NullScore(model, kind, None, None, None, 0, 0, "no question has a usable answer"))
            continue
        null = shuffled_null(
            np.stack(sample.vectors),
            _entropy_variant(settings),
            settings.alpha,
            shuffles=N_SHUFFLES,
            seed=seed,
            lengths=lengths,
        )
        null_summary = (null.mean, null.low, null.high, null.shuffles, len(sample.vectors), null.reason)
        null_scores.append(NullScore(model, kind, *null_summary))
    return null_scores
