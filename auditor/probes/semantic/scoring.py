"""Scoring the consistency of answers and rules of thumb in blocks of questions, with a null distribution."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import NamedTuple, get_args

import numpy as np

from auditor.agents.run_context import TextEncoder
from auditor.agents.vector_cache import VectorCache
from auditor.domain import canonical_hash, derive_seed
from auditor.metrics.answers.semantic import cosine_similarities, shuffled_null
from auditor.metrics.intervals.estimate import NullDistribution
from auditor.models.text_similarity import consistency_measures
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.encoder import (
    ConsistencyMeasure,
    Floats32,
    TextGrid,
    entropy_variant,
    score_measures,
    score_similarities,
    stack_text_kinds,
    stack_vectors,
)
from auditor.probes.semantic.paraphrases import load_translations, score_translations
from auditor.probes.semantic.records import QUESTION_TEXT, NullScore, QuestionScore, SemanticScoringSettings
from auditor.probes.semantic.settings import SimilarityMetric
from auditor.storage.database import Database
from auditor.storage.probe_results import list_answering_models
from auditor.storage.records import load_records

QUESTIONS_PER_BLOCK = 256
"""Questions of a model scored together."""


class QuestionBlock(NamedTuple):
    """Texts of a model for a block of questions, as lists of shape (questions, wordings); None if there is no text."""

    question_ids: list[str]
    answers: TextGrid
    rules: TextGrid
    languages: TextGrid
    """Languages of the wordings; empty if all are in one language."""


def hash_texts(
    db: Database, audit_id: int, models: list[str], question_ids: list[str], n_wordings: int
) -> tuple[str, int]:
    """Hash of all wordings, answers and rules of thumb, in hex, and the number of these texts."""
    digest, n_texts = hashlib.sha256(), 0
    for block_ids, wordings in iterate_wordings(db, audit_id, question_ids, n_wordings):
        digest.update(canonical_hash([block_ids, wordings]).encode())
        n_texts += sum(text is not None for texts in wordings for text in texts)
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
        for answer in answer_rows.load_answers(db, audit_id, block_ids, model=model):
            if 1 <= answer.wording <= n_wordings and answer.sample == 0:
                answers[row_by_question[answer.question]][answer.wording - 1] = answer.text
                rules[row_by_question[answer.question]][answer.wording - 1] = answer.rot
        yield QuestionBlock(block_ids, answers, rules, _wording_languages(db, audit_id, block_ids, n_wordings))


def iterate_wordings(
    db: Database, audit_id: int, question_ids: Sequence[str], n_wordings: int
) -> Iterator[tuple[list[str], TextGrid]]:
    """Yield the texts of the wordings, shape (questions, wordings), in blocks of questions, with the questions' ids.

    An imported wording of which only the number is known has no text.
    """
    for start in range(0, len(question_ids), QUESTIONS_PER_BLOCK):
        block_ids = list(question_ids[start : start + QUESTIONS_PER_BLOCK])
        wordings_by_question = answer_rows.load_wordings(db, audit_id, block_ids)
        texts: TextGrid = [[None] * n_wordings for _ in block_ids]
        for i, question in enumerate(block_ids):
            for wording in wordings_by_question.get(question, []):
                if wording.number and wording.number <= n_wordings and not wording.text.isdigit():
                    texts[i][wording.number - 1] = wording.text
        yield block_ids, texts


def _wording_languages(db: Database, audit_id: int, question_ids: Sequence[str], n_wordings: int) -> TextGrid:
    """Languages of the wordings, shape (questions, wordings); empty if there is only one language."""
    if not answer_rows.has_several_languages(db, audit_id):
        return []
    wordings_by_question = answer_rows.load_wordings(db, audit_id, question_ids)
    languages: TextGrid = [[None] * n_wordings for _ in question_ids]
    for i, question in enumerate(question_ids):
        for wording in wordings_by_question.get(question, []):
            if wording.number and wording.number <= n_wordings:
                languages[i][wording.number - 1] = wording.language
    return languages


MAX_NULL_QUESTIONS = 1000
"""Maximum number of questions, drawn at random, for the null distribution."""
N_SHUFFLES = 20


@dataclass
class NullQuestions:
    """Data for a model's null distribution, collected block by block.

    Attributes:
        question_ids: the questions to include.
        vectors: by question with an answer, its vectors, shape (wordings, dimensions).
        lengths: mean length of each of these questions' texts, in characters.
    """

    question_ids: frozenset[str]
    vectors: list[Floats32] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)


def draw_null_questions(question_ids: Sequence[str], seed: int) -> frozenset[str]:
    """Draw the questions for the null distribution; the same ones in every run."""
    if len(question_ids) <= MAX_NULL_QUESTIONS:
        return frozenset(question_ids)
    rng = np.random.default_rng(derive_seed(seed, "null questions"))
    return frozenset(
        np.asarray(question_ids)[rng.choice(len(question_ids), MAX_NULL_QUESTIONS, replace=False)].tolist()
    )


def extend_null_questions(null_questions: NullQuestions, block: QuestionBlock, rows: Floats32, text_kind: str) -> None:
    """Add the vectors and mean text lengths of a block's questions to the null questions, if they are among these.

    Args:
        rows: vectors of shape (questions, wordings, dimensions).
        text_kind: `rot`, `answer` or `mix`; for `mix` the lengths are those of the answers.
    """
    texts = block.rules if text_kind == "rot" else block.answers
    for i, question in enumerate(block.question_ids):
        lengths = [len(text) for text in texts[i] if text is not None]
        if question in null_questions.question_ids and lengths:
            null_questions.vectors.append(rows[i])
            null_questions.lengths.append(sum(lengths) / len(lengths))


def compute_null_scores(
    model: str, null_questions: NullQuestions, settings: SemanticScoringSettings, seed: int
) -> list[NullScore]:
    """Null distributions of a model's mean score: answers shuffled across all questions, and among similar lengths."""
    null_scores = []
    for kind, lengths in (("shuffled", None), ("length", null_questions.lengths)):
        if not null_questions.vectors:
            unknown = NullDistribution(None, None, None, 0, 0, "no question has a usable answer")
            null_scores.append(NullScore(model, kind, unknown))
            continue
        null = shuffled_null(
            np.stack(null_questions.vectors),
            entropy_variant(settings),
            settings.alpha,
            shuffles=N_SHUFFLES,
            seed=seed,
            lengths=lengths,
        )
        null_scores.append(NullScore(model, kind, null))
    return null_scores


LANGUAGE_METRIC_PREFIX = "languages:"
"""Prefix of the names of metrics that compare answers between languages."""
MIN_MULTILINGUAL_VOCABULARY = 100_000
"""Fewest tokens in the vocabulary of an encoder that reads several languages. Multilingual BERT has 119,547 and
XLM-RoBERTa 250,002; English encoders have at most 50,368."""


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
        vector_db: database of the cache of embeddings; None for the one of the audit.
    """

    settings: SemanticScoringSettings
    load_encoder: Callable[[], TextEncoder]
    seed: int = 0
    baseline_names: Sequence[str] = ()
    load_baselines: Callable[[TextEncoder], dict[str, ConsistencyMeasure]] = lambda encoder: {}
    on_texts_planned: Callable[[int], None] = lambda n: None
    on_texts_embedded: Callable[[int], None] = lambda n: None
    vector_db: Database | None = None


def score_audit(db: Database, audit_id: int, plan: ScoringPlan) -> None:
    """Score every model's answers and store the scores; does nothing if all inputs are unchanged."""
    models = list_answering_models(db, audit_id, ["semantic"])
    questions = answer_rows.load_questions(db, audit_id)
    ids = [question.id for question in questions]
    digest, n_texts = hash_texts(db, audit_id, models, ids, plan.settings.wordings)
    translations = load_translations(db, audit_id)
    by_culture = any(question.country for question in questions) or answer_rows.has_several_languages(db, audit_id)
    cultures = ["cultures", [astuple(translation) for translation in translations]] if by_culture else []
    evidence = canonical_hash(
        [digest, _scoring_identity(plan.settings), plan.seed, sorted(plan.baseline_names), *cultures]
    )
    stored_settings = answer_rows.load_facts(db, audit_id)
    if stored_settings is not None and stored_settings.evidence == evidence:
        return
    encoder = plan.load_encoder()
    has_large_vocabulary = getattr(encoder, "vocabulary_size", 0) >= MIN_MULTILINGUAL_VOCABULARY
    is_multilingual = getattr(encoder, "is_multilingual", has_large_vocabulary)  # stored with vectors that are stored
    settings = replace(
        plan.settings, revision=encoder.revision, evidence=evidence, is_multilingual=is_multilingual or None
    )
    plan.on_texts_planned(n_texts)
    scores: list[QuestionScore] = []
    null_scores: list[NullScore] = []
    measures = plan.load_baselines(encoder)
    vectors = VectorCache(plan.vector_db or db, encoder, plan.on_texts_embedded)
    for block_ids, wordings in iterate_wordings(db, audit_id, ids, settings.wordings):
        vectors_by_text = vectors.embed(text for texts in wordings for text in texts if text is not None)
        rows = stack_vectors(wordings, vectors_by_text, settings.wordings)
        scores += _score_vectors("", block_ids, QUESTION_TEXT, rows, settings)
    for model in models:
        null_questions = NullQuestions(draw_null_questions(ids, plan.seed))
        for block in iterate_blocks(db, audit_id, model, ids, settings.wordings):
            scores += _score_block(model, block, settings, vectors, measures, null_questions, by_culture=by_culture)
        null_scores += compute_null_scores(model, null_questions, settings, plan.seed)
    scores += score_translations(db, audit_id, translations, settings.measured, vectors)
    answer_rows.replace_scores(db, audit_id, scores, null_scores, settings)


def rescore_stored_answers(db: Database, audit_id: int) -> None:
    """Score the answers of an imported audit again, with the settings of its import; does nothing without scores.

    Raises:
        AuditorError: the encoder or a package of the measures cannot be used.
    """
    settings = answer_rows.load_facts(db, audit_id)
    if settings is None:
        return
    from auditor.models.embeddings import load_encoder  # late: tests replace `load_encoder` there

    metrics = {score.metric for score in load_records(db, audit_id, QuestionScore)}
    names = [name for name in get_args(SimilarityMetric) if name in metrics]
    plan = ScoringPlan(
        settings=settings,
        load_encoder=lambda: load_encoder(settings.encoder),
        baseline_names=names,
        load_baselines=lambda encoder: consistency_measures(names, encoder, settings.bertscore_model),
    )
    score_audit(db, audit_id, plan)


def _scoring_identity(settings: SemanticScoringSettings) -> list[object]:
    """Settings that change the scores; part of the hash of their inputs."""
    return [
        settings.encoder,
        settings.variant,
        settings.alpha,
        settings.rot_weight,
        settings.measured,
        settings.wordings,
        [[form.text, form.metric] for form in settings.forms],
        settings.bertscore_model,
    ]


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
    null_questions: NullQuestions,
    *,
    by_culture: bool,
) -> list[QuestionScore]:
    """Scores of one block by all metrics; also adds the block's vectors to the null questions.

    Args:
        by_culture: whether questions are about countries or in several languages: then both variants of the graph
            entropy are computed, and each measure for the wordings in each language.
    """
    vectors_by_text = vectors.embed(
        text for texts in (*block.answers, *block.rules) for text in texts if text is not None
    )
    vectors_by_kind = stack_text_kinds(block.answers, block.rules, vectors_by_text, settings, settings.wordings)
    scores = _score_texts(model, block, vectors_by_kind, settings, measures, by_culture=by_culture)
    for language in sorted({language for row in block.languages for language in row if language}):
        part, part_vectors = _select_language(block, vectors_by_kind, language)
        scores += [
            replace(score, metric=f"{score.metric}@{language}")
            for score in _score_texts(model, part, part_vectors, settings, measures, by_culture=True)
        ]
    if settings.measured in vectors_by_kind and block.languages:
        scores += _score_language_pairs(model, block, settings.measured, vectors_by_kind[settings.measured])
    if settings.measured in vectors_by_kind:
        extend_null_questions(null_questions, block, vectors_by_kind[settings.measured], settings.measured)
    return scores


def _select_language(
    block: QuestionBlock, vectors_by_kind: Mapping[str, Floats32], language: str
) -> tuple[QuestionBlock, dict[str, Floats32]]:
    """The texts and the vectors of the wordings in one language; the others are missing."""
    is_selected = np.array([[name == language for name in row] for row in block.languages])

    def select(texts: TextGrid) -> TextGrid:
        return [
            [text if selected else None for text, selected in zip(row, mask, strict=True)]
            for row, mask in zip(texts, is_selected, strict=True)
        ]

    part = block._replace(answers=select(block.answers), rules=select(block.rules))
    return part, {
        kind: np.where(is_selected[:, :, None], rows, np.nan).astype(np.float32)
        for kind, rows in vectors_by_kind.items()
    }


def _score_texts(
    model: str,
    block: QuestionBlock,
    vectors_by_kind: Mapping[str, Floats32],
    settings: SemanticScoringSettings,
    measures: dict[str, ConsistencyMeasure],
    *,
    by_culture: bool,
) -> list[QuestionScore]:
    """Scores of a block's texts by the variants of the graph entropy and by the further measures."""
    scores: list[QuestionScore] = []
    for text_kind, kind_vectors in vectors_by_kind.items():
        scores += _score_vectors(model, block.question_ids, text_kind, kind_vectors, settings)
        if by_culture and text_kind == settings.measured:
            other = replace(settings, variant="sge" if settings.variant == "sage" else "sage", measured=text_kind)
            scores += [
                score
                for score in _score_vectors(model, block.question_ids, text_kind, kind_vectors, other)
                if score.metric == other.variant
            ]
    texts_by_kind = {"answer": block.answers, "rot": block.rules}
    texts_by_kind = {kind: texts for kind, texts in texts_by_kind.items() if kind in vectors_by_kind}
    for (text_kind, name), values in score_measures(texts_by_kind, measures).items():
        n_present = [sum(text is not None for text in group) for group in texts_by_kind[text_kind]]
        scores += [
            QuestionScore(model, question, text_kind, name, _nan_to_none(value), n_usable)
            for question, value, n_usable in zip(block.question_ids, values, n_present, strict=True)
        ]
    return scores


def _score_vectors(
    model: str, question_ids: Sequence[str], text_kind: str, rows: Floats32, settings: SemanticScoringSettings
) -> list[QuestionScore]:
    """Compute the scores of each question, with its two least similar answers.

    Args:
        rows: vectors of shape (questions, wordings, dimensions), nan for a missing text.
    """
    similarities = cosine_similarities(rows)
    values_by_metric = score_similarities(similarities, text_kind, settings)
    n_usable = np.isfinite(np.diagonal(similarities, axis1=1, axis2=2)).sum(axis=1)
    first_wordings, second_wordings = np.triu_indices(similarities.shape[-1], 1)
    pair_cosines = similarities[:, first_wordings, second_wordings]
    scores = []
    for i, question in enumerate(question_ids):
        # Numbers of the two wordings, from 1, and the cosine of their answers.
        lowest_pair: tuple[int, int, float] | tuple[()] = ()
        if n_usable[i] >= 2:
            lowest = int(np.nanargmin(pair_cosines[i]))
            lowest_pair = (
                int(first_wordings[lowest]) + 1,
                int(second_wordings[lowest]) + 1,
                float(pair_cosines[i, lowest]),
            )
        scores += [
            QuestionScore(model, question, text_kind, metric, _nan_to_none(values[i]), int(n_usable[i]), *lowest_pair)
            for metric, values in values_by_metric.items()
        ]
    return scores


def _nan_to_none(score: float) -> float | None:
    """Return a score as a plain number; None for nan."""
    return None if np.isnan(score) else float(score)
