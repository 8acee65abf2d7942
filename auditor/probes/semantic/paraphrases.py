"""Paraphrases: generating and selecting them; and translations of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.agents.vector_cache import VectorCache
from auditor.domain import Call
from auditor.metrics.answers.semantic import MIN_EDIT_DISTANCE, edit_distance, parascore
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answers import parse_answer, parse_paraphrases
from auditor.probes.semantic.call_builders import build_paraphrase_call, build_translation_call, semantic_probe
from auditor.probes.semantic.records import (
    MoralAnswerRecord,
    MoralQuestion,
    MoralTranslation,
    MoralWording,
    QuestionScore,
)
from auditor.probes.semantic.settings import SemanticProbe
from auditor.storage.database import Database
from auditor.storage.records import delete_unplanned, load_records, save_records

TOO_SIMILAR, MEANING_CHANGED = "too near to another wording", "too far in meaning"


async def generate_paraphrases(context: RunContext, probe: SemanticProbe, questions: Sequence[MoralQuestion]) -> None:
    """Ask for the missing paraphrases, and store accepted and rejected candidates.

    Of a question that still has too few, all candidates are read again from the recorded answers: the calls are those
    of the first time, so a second run makes none. If it gets an answer that failed the first time, the candidates of
    that time are replaced, with the answers to them.
    """
    ids = [question.id for question in questions]
    stored = await asyncio.to_thread(answer_rows.load_wordings, context.db, context.audit_id, ids)
    incomplete = [question for question in questions if _count_missing(probe, stored[question.id]) > 0]
    wordings = {
        question.id: [wording for wording in stored[question.id] if wording.key is None] for question in incomplete
    }
    await add_paraphrases(context, probe, incomplete, wordings)
    added = [wording for group in wordings.values() for wording in group if wording.key is not None]
    if wordings and not context.stop_event.is_set():  # else some recorded answers may not have been read
        await asyncio.to_thread(_delete_replaced, context, stored, wordings)
    await asyncio.to_thread(save_records, context.db, context.audit_id, added)


def _delete_replaced(
    context: RunContext, stored: Mapping[str, Sequence[MoralWording]], wordings: Mapping[str, Sequence[MoralWording]]
) -> None:
    """Delete candidates that are none any more, and the answers to wordings that are now others, or none.

    Args:
        stored, wordings: earlier and present candidates by question.
    """
    keys = [(wording.question, wording.candidate) for group in wordings.values() for wording in group]
    delete_unplanned(context.db, context.audit_id, MoralWording, keys, question=wordings)
    present = {(wording.question, wording.number, wording.text) for group in wordings.values() for wording in group}
    unchanged = {
        (wording.question, wording.number)
        for question in wordings
        for wording in stored[question]
        if (wording.question, wording.number, wording.text) in present
    }
    answers = [
        (answer.model, answer.question, answer.wording, answer.sample)
        for answer in answer_rows.load_answers(context.db, context.audit_id, wordings)
        if (answer.question, answer.wording) in unchanged
    ]
    models = [model.name for model in context.config.models]
    delete_unplanned(context.db, context.audit_id, MoralAnswerRecord, answers, model=models, question=wordings)


async def add_paraphrases(
    context: RunContext,
    probe: SemanticProbe,
    questions: Sequence[MoralQuestion],
    wordings_by_question: dict[str, list[MoralWording]],
) -> None:
    """Ask for the missing paraphrases, up to `attempts` times.

    Args:
        wordings_by_question: each question itself and its earlier candidates, by its id; the new ones are added.
    """
    assert probe.paraphraser is not None
    author = context.config.model(probe.paraphraser)
    for attempt in range(probe.attempts):
        n_missing_by_question = {
            question.id: n_missing
            for question in questions
            if (n_missing := _count_missing(probe, wordings_by_question[question.id])) > 0
        }
        calls = {
            question: build_paraphrase_call(
                context.config, author, question, n_missing_by_question[question.id], attempt
            )
            for question in questions
            if question.id in n_missing_by_question
        }
        answers = await run_audit_calls(context, "paraphrase", list(calls.values()))
        for question, call in calls.items():
            if call.key in answers:
                answer = answers[call.key]
                assessed = await asyncio.to_thread(
                    _assess_candidates,
                    context,
                    probe,
                    parse_paraphrases(answer),
                    wordings_by_question[question.id],
                    answer.key,
                )
                wordings_by_question[question.id] += assessed


def _count_missing(probe: SemanticProbe, wordings: Sequence[MoralWording]) -> int:
    """Number of paraphrases that a question lacks; accepted ones have a number, that of the question itself is 0."""
    return probe.paraphrases - sum(bool(wording.number) for wording in wordings)


def _assess_candidates(
    context: RunContext, probe: SemanticProbe, texts: Sequence[str], known_wordings: Sequence[MoralWording], key: str
) -> list[MoralWording]:
    """Accept or reject the texts from one call, until the question has enough paraphrases.

    Args:
        known_wordings: the question itself and all earlier candidates.
        key: key of the answer.
    """
    assert probe.paraphraser is not None
    question = next(wording for wording in known_wordings if wording.number == 0)
    vectors = VectorCache(context.db, context.encoder_loaders["semantic"]()).embed([question.text, *texts])
    candidates: list[MoralWording] = []
    for text in texts:
        similarity = float(vectors[question.text] @ vectors[text])
        accepted = [wording.text for wording in (*known_wordings, *candidates) if wording.number is not None]
        if len(accepted) > probe.paraphrases:  # `accepted` has the question itself, too
            break
        reason, distance, score = assess_paraphrase(text, question.text, accepted, similarity, probe.threshold)
        candidates.append(
            MoralWording(
                question=question.question,
                candidate=len(known_wordings) + len(candidates),
                number=len(accepted) if reason is None else None,
                text=text,
                source=probe.paraphraser,
                similarity=similarity,
                distance=distance,
                score=score,
                reason=reason,
                key=key,
                language=question.language,
            )
        )
    return candidates


def assess_paraphrase(
    text: str, question: str, accepted: Sequence[str], similarity: float, threshold: float
) -> tuple[str | None, float, float]:
    """Reason for rejecting a paraphrase (None if accepted), its edit distance to the question, and its score.

    Args:
        text: the paraphrase.
        question: text of the original question.
        accepted: texts of the wordings accepted so far, including the question.
        similarity: cosine similarity of paraphrase and question.
        threshold: minimum score.
    """
    distance = edit_distance(question, text)
    score = parascore(similarity, distance)
    if any(edit_distance(wording, text) < MIN_EDIT_DISTANCE for wording in accepted):
        return TOO_SIMILAR, distance, score
    return (None if score >= threshold else MEANING_CHANGED), distance, score


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
    compares them. Translations of other answers, which one that came later replaces, are deleted.
    """
    probe = semantic_probe(context.config)
    if probe.translator is None:
        return
    translator = context.config.model(probe.translator)
    for question in questions:
        planned = await asyncio.to_thread(_plan_translations, context.db, context.audit_id, question.id, probe.measured)
        keys = [(answer.model, answer.question, answer.wording, language) for answer, _, language in planned]
        await asyncio.to_thread(
            delete_unplanned,
            *(context.db, context.audit_id, MoralTranslation, keys),
            model=[model.name for model in context.config.models],
            question=[question.id],
        )
        requests = [
            _Request(build_translation_call(context.config, translator, text, language), answer, language)
            for answer, text, language in planned
            if text is not None
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
) -> list[tuple[MoralAnswerRecord, str | None, str]]:
    """An answer of each model, its text and the other language, for each pair of languages of a question's wordings.

    The text is None if the answer was excluded since.
    """
    language_by_wording = {
        wording.number: wording.language
        for wording in answer_rows.load_wordings(db, audit_id, [question]).get(question, [])
        if wording.number
    }
    first_answers: dict[tuple[str, str], tuple[MoralAnswerRecord, str | None]] = {}
    for answer, original in answer_rows.load_answers_as_given(db, audit_id, [question]):
        text, original_text = (x.rot if measured == "rot" else x.text for x in (answer, original))
        if answer.wording in language_by_wording and original_text is not None:
            first_answers.setdefault((answer.model, language_by_wording[answer.wording]), (answer, text))
    pairs = list(combinations(sorted(set(language_by_wording.values())), 2))
    return [
        (*first_answers[model, first], second)
        for model in sorted({model for model, _ in first_answers})
        for first, second in pairs
        if (model, first) in first_answers
    ]


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
