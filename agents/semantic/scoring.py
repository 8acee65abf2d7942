"""From answers and rules of thumb to scores: block by block, so that memory does not grow with the questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import Encoder
from auditor.agents.semantic.vector_cache import Vectors, stacked
from auditor.domain import canonical_hash, derive_seed
from auditor.domain.semantic import NullScore, QuestionScore, SemanticFacts
from auditor.metrics.semantic import (
    Variant,
    cosine_similarities,
    entropy_of_similarities,
    shuffled_null,
)
from auditor.storage import semantic_results
from auditor.storage.database import Database

BLOCK = 256
"""Questions of a model scored together."""
NULL_QUESTIONS = 1000
"""Questions, drawn at random, that the null is computed on at most."""
SHUFFLES = 20
LANGUAGES = "languages:"
"""Begins the names of measures that compare answers between languages."""

Floats32 = NDArray[np.float32]
Texts = list[list[str | None]]
Measure = Callable[[Sequence[Sequence[str | None]]], list[float]]
"""Consistency of the texts of each question; nan with fewer than two."""


@dataclass(frozen=True)
class Plan:
    """How answers are to be scored.

    Attributes:
        facts: what goes into the report; revision and evidence are filled in here.
        encoder: loaded on first use.
        seed: of the shuffles.
        named, rivals: further measures by name, made with the encoder at hand.
        planned, done: are told of texts to embed, and of those that are embedded.
    """

    facts: SemanticFacts
    encoder: Callable[[], Encoder]
    seed: int = 0
    named: Sequence[str] = ()
    rivals: Callable[[Encoder], dict[str, Measure]] = lambda encoder: {}
    planned: Callable[[int], None] = lambda n: None
    done: Callable[[int], None] = lambda n: None


class Block(NamedTuple):
    """Some questions' texts of a model, each of shape (questions, wordings); None where there is none."""

    ids: list[str]
    answers: Texts
    rules: Texts
    languages: Texts
    """Of the wordings; empty where all are in one."""


@dataclass
class _Sample:
    """What the null is computed on: vectors and mean lengths of some questions."""

    wanted: frozenset[str]
    vectors: list[Floats32] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)


def score_audit(db: Database, audit_id: int, plan: Plan) -> None:
    """Score every model's answers and store the scores; nothing is done where what they rest on is unchanged."""
    models = semantic_results.answering_models(db, audit_id)
    ids = [q.id for q in semantic_results.questions(db, audit_id)]
    digest, texts = _digest(db, audit_id, models, ids, plan.facts.wordings)
    evidence = canonical_hash([digest, _settings(plan.facts), plan.seed, sorted(plan.named)])
    old = semantic_results.facts(db, audit_id)
    if old is not None and old.evidence == evidence:
        return
    encoder = plan.encoder()
    facts = replace(plan.facts, revision=encoder.revision, evidence=evidence)
    plan.planned(texts)
    scores: list[QuestionScore] = []
    nulls: list[NullScore] = []
    measures = plan.rivals(encoder)
    vectors = Vectors(db, encoder, plan.done)
    for model in models:
        sample = _Sample(_drawn(ids, plan.seed))
        for block in blocks(db, audit_id, model, ids, facts.wordings):
            scores += _score_block(model, block, facts, vectors, measures, sample)
        nulls += _nulls(model, sample, facts, plan.seed)
    semantic_results.replace_scores(db, audit_id, scores, nulls, facts)


def _settings(facts: SemanticFacts) -> list[object]:
    return [facts.encoder, facts.variant, facts.alpha, facts.rot_weight, facts.measured, facts.wordings]


def _digest(db: Database, audit_id: int, models: list[str], ids: list[str], n: int) -> tuple[str, int]:
    """Hash of all texts, and how many there are."""
    digest, count = hashlib.sha256(), 0
    for model in models:
        for block in blocks(db, audit_id, model, ids, n):
            digest.update(canonical_hash([model, block.ids, block.answers, block.rules]).encode())
            count += sum(t is not None for texts in (*block.answers, *block.rules) for t in texts)
    return digest.hexdigest(), count


def blocks(db: Database, audit_id: int, model: str, ids: Sequence[str], n: int) -> Iterator[Block]:
    """A model's answers to the wordings, and their rules, a block of questions at a time."""
    for start in range(0, len(ids), BLOCK):
        part = list(ids[start : start + BLOCK])
        row = {question: i for i, question in enumerate(part)}
        answers: Texts = [[None] * n for _ in part]
        rules: Texts = [[None] * n for _ in part]
        for answer in semantic_results.answers(db, audit_id, part, model=model):
            if 1 <= answer.wording <= n and answer.sample == 0:
                answers[row[answer.question]][answer.wording - 1] = answer.text
                rules[row[answer.question]][answer.wording - 1] = answer.rot
        yield Block(part, answers, rules, _languages(db, audit_id, part, n))


def _languages(db: Database, audit_id: int, ids: Sequence[str], n: int) -> Texts:
    """Languages of the wordings, shape (questions, wordings); nothing where there is only one."""
    known = semantic_results.wordings(db, audit_id, ids)
    if len({w.language for group in known.values() for w in group if w.number}) < 2:
        return []
    found: Texts = [[None] * n for _ in ids]
    for i, question in enumerate(ids):
        for w in known.get(question, []):
            if w.number and w.number <= n:
                found[i][w.number - 1] = w.language
    return found


def _by_languages(model: str, block: Block, text: str, rows: Floats32) -> list[QuestionScore]:
    """Mean cosine of the answers to wordings in each pair of languages, those of one language among themselves too."""
    similar = cosine_similarities(rows)
    left, right = np.triu_indices(similar.shape[-1], 1)
    found = []
    for i, question in enumerate(block.ids):
        pairs: dict[str, list[float]] = {}
        for a, b in zip(left, right, strict=True):
            one, other = block.languages[i][a], block.languages[i][b]
            if one and other and np.isfinite(similar[i, a, b]):
                name = LANGUAGES + "-".join(sorted((one, other)))
                pairs.setdefault(name, []).append(float(similar[i, a, b]))
        found += [QuestionScore(model, question, text, k, float(np.mean(v)), len(v)) for k, v in pairs.items()]
    return found


def _score_block(
    model: str, block: Block, facts: SemanticFacts, vectors: Vectors, measures: dict[str, Measure], sample: _Sample
) -> list[QuestionScore]:
    known = vectors.of(t for texts in (*block.answers, *block.rules) for t in texts if t is not None)
    n = facts.wordings
    rows = {"answer": stacked(block.answers, known, n)}
    if facts.measured != "answer" or any(t is not None for texts in block.rules for t in texts):
        rows["rot"] = stacked(block.rules, known, n)
    if facts.measured == "mix" and "rot" in rows:
        rows["mix"] = mixed(rows["rot"], rows["answer"], facts.rot_weight)
    found: list[QuestionScore] = []
    for text, vectors_of in rows.items():
        found += _by_vectors(model, block.ids, text, vectors_of, facts)
    for text, texts in (("answer", block.answers), ("rot", block.rules)):
        for name, measure in measures.items() if text in rows else ():
            present = [sum(t is not None for t in group) for group in texts]
            values = zip(block.ids, measure(texts), present, strict=True)
            found += [QuestionScore(model, q, text, name, _or_none(v), k) for q, v, k in values]
    if facts.measured in rows and block.languages:
        found += _by_languages(model, block, facts.measured, rows[facts.measured])
    if facts.measured in rows:
        _keep(sample, block, rows[facts.measured], facts.measured)
    return found


def mixed(rules: Floats32, answers: Floats32, weight: float) -> Floats32:
    """Vectors whose cosines are `weight` times those of the rules plus the rest of those of the answers."""
    parts = (rules * np.float32(weight**0.5), answers * np.float32((1 - weight) ** 0.5))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _by_vectors(model: str, ids: Sequence[str], text: str, rows: Floats32, facts: SemanticFacts) -> list[QuestionScore]:
    """The score and the mean cosine of each question, with the two answers that differ most."""
    similar = cosine_similarities(rows)
    values = entropy_of_similarities(similar, _variant(facts), facts.alpha)
    n = np.isfinite(np.diagonal(similar, axis1=1, axis2=2)).sum(axis=1)
    left, right = np.triu_indices(similar.shape[-1], 1)
    pairs = similar[:, left, right]
    found = []
    for i, question in enumerate(ids):
        if n[i] < 2:
            found += [QuestionScore(model, question, text, m, None, int(n[i])) for m in (facts.variant, "cosine")]
            continue
        k = int(np.nanargmin(pairs[i]))
        worst = (int(left[k]) + 1, int(right[k]) + 1, float(pairs[i, k]))
        found += [
            QuestionScore(model, question, text, facts.variant, float(values[i]), int(n[i]), *worst),
            QuestionScore(model, question, text, "cosine", float(np.nanmean(pairs[i])), int(n[i]), *worst),
        ]
    return found


def _variant(facts: SemanticFacts) -> Variant:
    return "sge" if facts.variant == "sge" else "sage"


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# --- what the scores would be by chance -------------------------------------------------------------------------


def _drawn(ids: Sequence[str], seed: int) -> frozenset[str]:
    if len(ids) <= NULL_QUESTIONS:
        return frozenset(ids)
    rng = np.random.default_rng(derive_seed(seed, "null questions"))
    return frozenset(np.asarray(ids)[rng.choice(len(ids), NULL_QUESTIONS, replace=False)].tolist())


def _keep(sample: _Sample, block: Block, rows: Floats32, text: str) -> None:
    texts = block.rules if text == "rot" else block.answers
    for i, question in enumerate(block.ids):
        lengths = [len(t) for t in texts[i] if t is not None]
        if question in sample.wanted and lengths:
            sample.vectors.append(rows[i])
            sample.lengths.append(sum(lengths) / len(lengths))


def _nulls(model: str, sample: _Sample, facts: SemanticFacts, seed: int) -> list[NullScore]:
    found = []
    for kind, lengths in (("shuffled", None), ("length", sample.lengths)):
        if not sample.vectors:
            found.append(NullScore(model, kind, None, None, None, 0, 0, "no question has a usable answer"))
            continue
        null = shuffled_null(
            np.stack(sample.vectors), _variant(facts), facts.alpha, shuffles=SHUFFLES, seed=seed, lengths=lengths
        )
        values = (null.mean, null.low, null.high, null.shuffles, len(sample.vectors), null.reason)
        found.append(NullScore(model, kind, *values))
    return found
