"""Wording questions anew by a model, and keeping of its wordings what is close in meaning and in other words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from auditor.agents.run_context import RunContext
from auditor.agents.semantic.answer_collection import run_audit_calls
from auditor.agents.semantic.answer_parsing import parse_paraphrases
from auditor.agents.semantic.call_builders import build_paraphrase_call
from auditor.agents.semantic.vector_cache import VectorCache
from auditor.config.semantic import SemanticProbe
from auditor.domain.semantic import MoralQuestion, MoralWording
from auditor.metrics.paraphrase import MIN_EDIT_DISTANCE, edit_distance, parascore
from auditor.storage import semantic_results

TOO_SIMILAR, MEANING_CHANGED = "too near to another wording", "too far in meaning"


async def generate_paraphrases(context: RunContext, probe: SemanticProbe, questions: Sequence[MoralQuestion]) -> None:
    """Ask for the wordings that questions lack, again up to the limit, and store what was kept and what was not."""
    assert probe.paraphraser is not None
    author = context.config.model(probe.paraphraser)
    ids = [q.id for q in questions]
    known = await asyncio.to_thread(semantic_results.load_wordings, context.db, context.audit_id, ids)
    for attempt in range(probe.attempts):
        lacking = {q.id: n for q in questions if (n := probe.paraphrases - len(_accepted_paraphrases(known[q.id]))) > 0}
        asked = {
            q: build_paraphrase_call(context.config, author, q, lacking[q.id], attempt)
            for q in questions
            if q.id in lacking
        }
        answers = await run_audit_calls(context, "paraphrase", list(asked.values()))
        for question, call in asked.items():
            if call.key in answers:
                texts = parse_paraphrases(answers[call.key])
                new = await asyncio.to_thread(_assess_candidates, context, probe, texts, known[question.id], call.key)
                known[question.id] += new
    added = [w for group in known.values() for w in group if w.key is not None]
    await asyncio.to_thread(semantic_results.save_wordings, context.db, context.audit_id, added)


def _accepted_paraphrases(wordings: Sequence[MoralWording]) -> list[MoralWording]:
    """Those that are asked, the question itself aside."""
    return [w for w in wordings if w.number]


def _assess_candidates(
    context: RunContext, probe: SemanticProbe, texts: Sequence[str], known_wordings: Sequence[MoralWording], key: str
) -> list[MoralWording]:
    assert context.load_semantic_encoder is not None
    assert probe.paraphraser is not None
    question = next(w for w in known_wordings if w.number == 0)
    vectors = VectorCache(context.db, context.load_semantic_encoder()).embed([question.text, *texts])
    found: list[MoralWording] = []
    for text in texts:
        similarity = float(vectors[question.text] @ vectors[text])
        taken = [w.text for w in (*known_wordings, *found) if w.number is not None]
        if len(taken) > probe.paraphrases:
            break
        reason, distance, score = assess_paraphrase(text, question.text, taken, similarity, probe.threshold)
        found.append(
            MoralWording(
                question=question.question,
                candidate=len(known_wordings) + len(found),
                number=len(taken) if reason is None else None,
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
    return found


def assess_paraphrase(
    text: str, question: str, accepted: Sequence[str], similarity: float, threshold: float
) -> tuple[str | None, float, float]:
    """Why a paraphrase is rejected, None if it is not; its distance to the question; and its score.

    Args:
        text: the paraphrase.
        question: what it should ask in other words.
        taken: wordings that are kept already, the question among them.
        similarity: cosine of paraphrase and question.
        threshold: least score.
    """
    distance = edit_distance(question, text)
    score = parascore(similarity, distance)
    if any(edit_distance(other, text) < MIN_EDIT_DISTANCE for other in accepted):
        return TOO_SIMILAR, distance, score
    return (None if score >= threshold else MEANING_CHANGED), distance, score
