"""The texts of an audit, read in blocks of questions so that memory use is bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.domain import canonical_hash
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.text_scores import TextGrid
from auditor.storage.database import Database

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
