"""Parsing judges' answers into verdicts, and the follow-up call for a justification that is too long."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from auditor.agents.answer_parsing import begins_with_refusal
from auditor.domain import ENGLISH, Answer, Call, Message, Outcome, Ruling, Trace, Verdict
from auditor.domain.review_aspects import SURVEY_REVIEW, TASK_REVIEWS, aspect_questions
from auditor.models.review_schemas import Review, TraceReview
from auditor.models.structured import SCHEMA_BY_NAME
from auditor.models.structured_reading import parse_structured_answer
from auditor.models.thinking import strip_thinking
from auditor.prompts import load_prompt
from auditor.text_safety import truncate_middle


def parse_verdict(
    answer: Answer,
    judge: str,
    trace: Trace,
    max_words: int,
    shorter_answer: Answer | None = None,
    schema: type[Review] = TraceReview,
    request: str = "",
) -> Verdict:
    """Parse the verdict from a judge's answer.

    The ruling is always that of the first answer. The justification is the shorter one of the two answers if both have
    the same ruling; if it is still too long, it is cut and the verdict marked as `shortened`.

    Args:
        answer: the judge's answer.
        judge: name of the judge.
        trace: the trace judged.
        max_words: maximum length of the justification.
        shorter_answer: answer to the call from `build_shorter_call`, if there was one.
        schema: schema of the answer.
        request: what the judge was asked; an answer that only repeats it does not count.
    """
    unanswered = Verdict(judge, trace.model, trace.cell, trace.sample, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return unanswered
    review = parse_structured_answer(schema, answer.text, request)
    if isinstance(review, str):
        return replace(unanswered, outcome=Outcome.UNPARSED)
    if begins_with_refusal(review.justification, ENGLISH):
        # A server that enforces the structure makes a verdict of a refusal.
        return replace(unanswered, outcome=Outcome.REFUSED)
    justification = review.justification
    if shorter_answer is not None and shorter_answer.outcome is Outcome.OK and shorter_answer.text is not None:
        shorter_review = parse_structured_answer(schema, shorter_answer.text, request)
        if not isinstance(shorter_review, str) and shorter_review.verdict == review.verdict:
            justification = min(justification, shorter_review.justification, key=_word_count)
    return replace(
        unanswered,
        ruling=Ruling(review.verdict),
        aspects={
            name: getattr(review, question.key)
            for name, question in aspect_questions(for_task=schema.__name__ in TASK_REVIEWS).items()
        },
        confidence=None if review.confidence is None else review.confidence / 100,
        justification=truncate_words(justification, max_words),
        shortened=_word_count(justification) > max_words,
        # Key of the call that asked for a shorter justification.
        again_key=shorter_answer.key if shorter_answer is not None else None,
    )


def build_shorter_call(call: Call, answer: Answer, max_words: int, max_chars: int) -> Call | None:
    """Build the call that asks a judge for a shorter justification; None if not needed, or without a valid verdict.

    Args:
        call, answer: the first call, and the judge's answer.
        max_words: maximum length of the justification.
        max_chars: maximum length of the judge's first answer as repeated in the new call.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return None
    if _word_count(answer.text.replace("\\", " ")) <= max_words:  # an escape may stand for a space
        return None
    review = parse_structured_answer(review_schema(call), answer.text, call.request_text)
    if isinstance(review, str) or _word_count(review.justification) <= max_words:
        return None
    follow_up = load_prompt("review.shorter").render(
        words=str(_word_count(review.justification)), max_words=str(max_words)
    )
    shown_answer = Message("assistant", truncate_middle(strip_thinking(answer.text), max_chars))
    return replace(call, messages=(*call.messages, shown_answer, follow_up[-1]))


def review_schema(call: Call) -> type[Review]:
    """Schema of the verdict that a call asks for."""
    return cast(type[Review], SCHEMA_BY_NAME[call.schema or SURVEY_REVIEW])


def truncate_words(text: str, max_words: int) -> str:
    """Cut a text with more than `max_words` words, and append an ellipsis."""
    words = text.split()
    return text.strip() if len(words) <= max_words else " ".join(words[:max_words]) + " …"


def _word_count(text: str) -> int:
    """Number of words of a text, separated by white space."""
    return len(text.split())
