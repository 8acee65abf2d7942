"""From answers and rules of thumb to scores: block by block, so that memory does not grow with the questions."""

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

QUESTIONS_PER_BLOCK = 256
"""Questions of a model scored together."""
MAX_NULL_QUESTIONS = 1000
"""Questions, drawn at random, that the null is computed on at most."""
N_SHUFFLES = 20
LANGUAGE_METRIC_PREFIX = "languages:"
"""Begins the names of measures that compare answers between languages."""

Floats32 = NDArray[np.float32]
TextGrid = list[list[str | None]]
ConsistencyMeasure = Callable[[Sequence[Sequence[str | None]]], list[float]]
"""Consistency of the texts of each question; nan with fewer than two."""


@dataclass(frozen=True)
class ScoringPlan:
    """How answers are to be scored.

    Attributes:
        facts: what goes into the report; revision and evidence are filled in here.
        encoder: loaded on first use.
        seed: of the shuffles.
        named, rivals: further measures by name, made with the encoder at hand.
        planned, done: are told of texts to embed, and of those that are embedded.
    """

    settings: SemanticScoringSettings
    load_encoder: Callable[[], TextEncoder]
    seed: int = 0
    baseline_names: Sequence[str] = ()
    load_baselines: Callable[[TextEncoder], dict[str, ConsistencyMeasure]] = lambda encoder: {}
    on_texts_planned: Callable[[int], None] = lambda n: None
    on_texts_embedded: Callable[[int], None] = lambda n: None


class QuestionBlock(NamedTuple):
    """Some questions' texts of a model, each of shape (questions, wordings); None where there is none."""

    question_ids: list[str]
    answers: TextGrid
    rules: TextGrid
    languages: TextGrid
    """Of the wordings; empty where all are in one."""


@dataclass
class _NullSample:
    """What the null is computed on: vectors and mean lengths of some questions."""

    question_ids: frozenset[str]
    vectors: list[Floats32] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)


def score_audit(db: Database, audit_id: int, plan: ScoringPlan) -> None:
    """Score every model's answers and store the scores; nothing is done where what they rest on is unchanged."""
    models = semantic_results.answering_models(db, audit_id)
    ids = [q.id for q in semantic_results.load_questions(db, audit_id)]
    digest, texts = _hash_texts(db, audit_id, models, ids, plan.settings.wordings)
    evidence = canonical_hash([digest, _scoring_identity(plan.settings), plan.seed, sorted(plan.baseline_names)])
    old = semantic_results.load_facts(db, audit_id)
    if old is not None and old.evidence == evidence:
        return
    encoder = plan.load_encoder()
    facts = replace(plan.settings, revision=encoder.revision, evidence=evidence)
    plan.on_texts_planned(texts)
    scores: list[QuestionScore] = []
    nulls: list[NullScore] = []
    measures = plan.load_baselines(encoder)
    vectors = VectorCache(db, encoder, plan.on_texts_embedded)
    for model in models:
        sample = _NullSample(_draw_null_questions(ids, plan.seed))
        for block in iterate_blocks(db, audit_id, model, ids, facts.wordings):
            scores += _score_block(model, block, facts, vectors, measures, sample)
        nulls += _null_scores(model, sample, facts, plan.seed)
    semantic_results.replace_scores(db, audit_id, scores, nulls, facts)


def _scoring_identity(settings: SemanticScoringSettings) -> list[object]:
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
    """Hash of all texts, and how many there are."""
    digest, count = hashlib.sha256(), 0
    for model in models:
        for block in iterate_blocks(db, audit_id, model, question_ids, n_wordings):
            digest.update(canonical_hash([model, block.question_ids, block.answers, block.rules]).encode())
            count += sum(t is not None for texts in (*block.answers, *block.rules) for t in texts)
    return digest.hexdigest(), count


def iterate_blocks(
    db: Database, audit_id: int, model: str, question_ids: Sequence[str], n_wordings: int
) -> Iterator[QuestionBlock]:
    """A model's answers to the wordings, and their rules, a block of questions at a time."""
    for start in range(0, len(question_ids), QUESTIONS_PER_BLOCK):
        part = list(question_ids[start : start + QUESTIONS_PER_BLOCK])
        row = {question: i for i, question in enumerate(part)}
        answers: TextGrid = [[None] * n_wordings for _ in part]
        rules: TextGrid = [[None] * n_wordings for _ in part]
        for answer in semantic_results.load_answers(db, audit_id, part, model=model):
            if 1 <= answer.wording <= n_wordings and answer.sample == 0:
                answers[row[answer.question]][answer.wording - 1] = answer.text
                rules[row[answer.question]][answer.wording - 1] = answer.rot
        yield QuestionBlock(part, answers, rules, _wording_languages(db, audit_id, part, n_wordings))


def _wording_languages(db: Database, audit_id: int, question_ids: Sequence[str], n_wordings: int) -> TextGrid:
    """Languages of the wordings, shape (questions, wordings); nothing where there is only one."""
    known = semantic_results.load_wordings(db, audit_id, question_ids)
    if len({w.language for group in known.values() for w in group if w.number}) < 2:
        return []
    found: TextGrid = [[None] * n_wordings for _ in question_ids]
    for i, question in enumerate(question_ids):
        for w in known.get(question, []):
            if w.number and w.number <= n_wordings:
                found[i][w.number - 1] = w.language
    return found


def _score_language_pairs(model: str, block: QuestionBlock, text_kind: str, rows: Floats32) -> list[QuestionScore]:
    """Mean cosine of the answers to wordings in each pair of languages, those of one language among themselves too."""
    similar = cosine_similarities(rows)
    left, right = np.triu_indices(similar.shape[-1], 1)
    found = []
    for i, question in enumerate(block.question_ids):
        pairs: dict[str, list[float]] = {}
        for a, b in zip(left, right, strict=True):
            one, other = block.languages[i][a], block.languages[i][b]
            if one and other and np.isfinite(similar[i, a, b]):
                name = LANGUAGE_METRIC_PREFIX + "-".join(sorted((one, other)))
                pairs.setdefault(name, []).append(float(similar[i, a, b]))
        found += [QuestionScore(model, question, text_kind, k, float(np.mean(v)), len(v)) for k, v in pairs.items()]
    return found


def _score_block(
    model: str,
    block: QuestionBlock,
    settings: SemanticScoringSettings,
    vectors: VectorCache,
    measures: dict[str, ConsistencyMeasure],
    sample: _NullSample,
) -> list[QuestionScore]:
    known = vectors.embed(t for texts in (*block.answers, *block.rules) for t in texts if t is not None)
    n = settings.wordings
    rows = {"answer": stack_vectors(block.answers, known, n)}
    if settings.measured != "answer" or any(t is not None for texts in block.rules for t in texts):
        rows["rot"] = stack_vectors(block.rules, known, n)
    if settings.measured == "mix" and "rot" in rows:
        rows["mix"] = mix_vectors(rows["rot"], rows["answer"], settings.rot_weight)
    found: list[QuestionScore] = []
    for text, vectors_of in rows.items():
        found += _score_vectors(model, block.question_ids, text, vectors_of, settings)
    for text, texts in (("answer", block.answers), ("rot", block.rules)):
        for name, measure in measures.items() if text in rows else ():
            present = [sum(t is not None for t in group) for group in texts]
            values = zip(block.question_ids, measure(texts), present, strict=True)
            found += [QuestionScore(model, q, text, name, _nan_to_none(v), k) for q, v, k in values]
    if settings.measured in rows and block.languages:
        found += _score_language_pairs(model, block, settings.measured, rows[settings.measured])
    if settings.measured in rows:
        _extend_null_sample(sample, block, rows[settings.measured], settings.measured)
    return found


def mix_vectors(rules: Floats32, answers: Floats32, weight: float) -> Floats32:
    """Vectors whose cosines are `weight` times those of the rules plus the rest of those of the answers."""
    parts = (rules * np.float32(weight**0.5), answers * np.float32((1 - weight) ** 0.5))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _score_vectors(
    model: str, question_ids: Sequence[str], text_kind: str, rows: Floats32, settings: SemanticScoringSettings
) -> list[QuestionScore]:
    """The score and the mean cosine of each question, with the two answers that differ most."""
    similar = cosine_similarities(rows)
    values = entropy_of_similarities(similar, _entropy_variant(settings), settings.alpha)
    n = np.isfinite(np.diagonal(similar, axis1=1, axis2=2)).sum(axis=1)
    left, right = np.triu_indices(similar.shape[-1], 1)
    pairs = similar[:, left, right]
    found = []
    for i, question in enumerate(question_ids):
        if n[i] < 2:
            found += [
                QuestionScore(model, question, text_kind, m, None, int(n[i])) for m in (settings.variant, "cosine")
            ]
            continue
        k = int(np.nanargmin(pairs[i]))
        worst = (int(left[k]) + 1, int(right[k]) + 1, float(pairs[i, k]))
        found += [
            QuestionScore(model, question, text_kind, settings.variant, float(values[i]), int(n[i]), *worst),
            QuestionScore(model, question, text_kind, "cosine", float(np.nanmean(pairs[i])), int(n[i]), *worst),
        ]
    return found


def _entropy_variant(settings: SemanticScoringSettings) -> EntropyVariant:
    return "sge" if settings.variant == "sge" else "sage"


def _nan_to_none(score: float) -> float | None:
    return None if np.isnan(score) else float(score)


# --- what the scores would be by chance -------------------------------------------------------------------------


def _draw_null_questions(question_ids: Sequence[str], seed: int) -> frozenset[str]:
    if len(question_ids) <= MAX_NULL_QUESTIONS:
        return frozenset(question_ids)
    rng = np.random.default_rng(derive_seed(seed, "null questions"))
    return frozenset(
        np.asarray(question_ids)[rng.choice(len(question_ids), MAX_NULL_QUESTIONS, replace=False)].tolist()
    )


def _extend_null_sample(sample: _NullSample, block: QuestionBlock, rows: Floats32, text_kind: str) -> None:
    texts = block.rules if text_kind == "rot" else block.answers
    for i, question in enumerate(block.question_ids):
        lengths = [len(t) for t in texts[i] if t is not None]
        if question in sample.question_ids and lengths:
            sample.vectors.append(rows[i])
            sample.lengths.append(sum(lengths) / len(lengths))


def _null_scores(model: str, sample: _NullSample, settings: SemanticScoringSettings, seed: int) -> list[NullScore]:
    found = []
    for kind, lengths in (("shuffled", None), ("length", sample.lengths)):
        if not sample.vectors:
            found.append(NullScore(model, kind, None, None, None, 0, 0, "no question has a usable answer"))
            continue
        null = shuffled_null(
            np.stack(sample.vectors),
            _entropy_variant(settings),
            settings.alpha,
            shuffles=N_SHUFFLES,
            seed=seed,
            lengths=lengths,
        )
        values = (null.mean, null.low, null.high, null.shuffles, len(sample.vectors), null.reason)
        found.append(NullScore(model, kind, *values))
    return found
