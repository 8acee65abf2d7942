"""Translations of answers: how similar a model's answers in two languages would be if they meant the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.domain import Call
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_parsing import parse_answer
from auditor.probes.semantic.call_builders import build_translation_call, semantic_probe
from auditor.probes.semantic.records import MoralAnswerRecord, MoralQuestion, MoralTranslation, QuestionScore
from auditor.probes.semantic.vector_cache import VectorCache
from auditor.storage.database import Database
from auditor.storage.records import load_records, save_records

TRANSLATION_METRIC_PREFIX = "translations:"
"""Prefix of the names of metrics that compare answers with their translations; the two languages follow."""


class _Request(NamedTuple):
    """A text to translate, and its answer."""

    call: Call
    answer: MoralAnswerRecord
    language: str


async def translate_answers(context: RunContext, questions: Sequence[MoralQuestion]) -> None:
    """Have the translator translate one answer for each pair of languages of a question, and store the translations.

    That is the model's first usable answer in the first of the two languages, or its rule of thumb, as the score
    compares them.
    """
    probe = semantic_probe(context.config)
    if probe.translator is None:
        return
    translator = context.config.model(probe.translator)
    for question in questions:
        planned = await asyncio.to_thread(_plan_translations, context.db, context.audit_id, question.id, probe.measured)
        requests = [
            _Request(build_translation_call(context.config, translator, text, language), answer, language)
            for answer, text, language in planned
        ]
        answers = await run_audit_calls(context, "translation", [request.call for request in requests])
        translations = []
        for call, answer, language in requests:
            if call.key in answers:
                outcome, text = parse_answer(answers[call.key], "structured")
                identity = (answer.model, answer.question, answer.wording, language)
                translations.append(MoralTranslation(*identity, outcome, text, answers[call.key].key))
        await asyncio.to_thread(save_records, context.db, context.audit_id, translations)


def _plan_translations(
    db: Database, audit_id: int, question: str, measured: str
) -> Iterator[tuple[MoralAnswerRecord, str, str]]:
    """An answer of each model, its text and the other language, for each pair of languages of a question's wordings."""
    language_by_wording = {
        wording.number: wording.language
        for wording in answer_rows.load_wordings(db, audit_id, [question]).get(question, [])
        if wording.number
    }
    first_answers: dict[tuple[str, str], tuple[MoralAnswerRecord, str]] = {}
    for answer in answer_rows.load_answers(db, audit_id, [question]):
        text = answer.rot if measured == "rot" else answer.text
        if answer.wording in language_by_wording and text is not None:
            first_answers.setdefault((answer.model, language_by_wording[answer.wording]), (answer, text))
    pairs = list(combinations(sorted(set(language_by_wording.values())), 2))
    return (
        (*first_answers[model, first], second)
        for model in sorted({model for model, _ in first_answers})
        for first, second in pairs
        if (model, first) in first_answers
    )


def load_translations(db: Database, audit_id: int) -> list[MoralTranslation]:
    """The usable translations of an audit, in order."""
    return [row for row in load_records(db, audit_id, MoralTranslation) if row.text is not None]


def score_translations(
    db: Database, audit_id: int, translations: Sequence[MoralTranslation], measured: str, vectors: VectorCache
) -> list[QuestionScore]:
    """Score each question by the mean cosine of answers and their translations, for each pair of languages."""
    cosines: dict[tuple[str, str, str], list[float]] = {}
    languages: dict[tuple[str, int | None], str] = {}
    for question in sorted({row.question for row in translations}):
        for wording in answer_rows.load_wordings(db, audit_id, [question]).get(question, []):
            languages[question, wording.number] = wording.language
    answers = {
        (answer.model, answer.question, answer.wording): answer.rot if measured == "rot" else answer.text
        for answer in answer_rows.load_answers(db, audit_id, {row.question for row in translations})
        if answer.wording
    }
    for row in translations:
        original = answers.get((row.model, row.question, row.wording))
        if original is None or row.text is None:
            continue
        by_text = vectors.embed([original, row.text])
        pair = "-".join(sorted((languages[row.question, row.wording], row.language)))
        cosine = float(np.dot(by_text[original], by_text[row.text]))
        cosines.setdefault((row.model, row.question, TRANSLATION_METRIC_PREFIX + pair), []).append(cosine)
    return [
        QuestionScore(model, question, measured, metric, float(np.mean(values)), len(values))
        for (model, question, metric), values in cosines.items()
    ]
