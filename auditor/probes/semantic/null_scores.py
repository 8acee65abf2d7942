"""Null distribution of the scores: groups of answers to different questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.domain import derive_seed
from auditor.metrics.semantic import NullDistribution, shuffled_null
from auditor.probes.semantic.question_blocks import QuestionBlock
from auditor.probes.semantic.records import NullScore, SemanticScoringSettings
from auditor.probes.semantic.text_scores import Floats32, entropy_variant

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
