"""From a judge's answer to its verdict, and the second question where the justification is too long."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from auditor.domain import Answer, Call, Message, Outcome, Ruling, Trace, Verdict
from auditor.models.structured import AnswerReview, TraceReview, parse_structured_answer
from auditor.prompts import load_prompt
from auditor.text_safety import truncate_middle

ReviewSchema: TypeAlias = TraceReview | AnswerReview


def parse_verdict(
    answer: Answer,
    judge: str,
    trace: Trace,
    max_words: int,
    shorter_answer: Answer | None = None,
    schema: type[ReviewSchema] = TraceReview,
) -> Verdict:
    """The verdict in a judge's answer.

    What the first answer rules stands. A justification longer than asked for is replaced by that of the second answer
    where that is short enough and rules the same, else cut and marked so.

    Args:
        answer: what came back.
        judge, trace: who was asked about what.
        max_words: of the justification.
        again: the answer to `shorter_call`, where it was asked.
        shape: of the verdict that was asked for.
    """
    empty = Verdict(judge, trace.model, trace.cell, trace.sample, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    review = parse_structured_answer(schema, answer.text)
    if isinstance(review, str):
        return replace(empty, outcome=Outcome.UNPARSED)
    told = review.justification
    if shorter_answer is not None and shorter_answer.outcome is Outcome.OK and shorter_answer.text is not None:
        second = parse_structured_answer(schema, shorter_answer.text)
        if not isinstance(second, str) and second.verdict == review.verdict:
            told = min(told, second.justification, key=_word_count)
    return replace(
        empty,
        ruling=Ruling(review.verdict),
        cultural_accuracy=review.cultural_accuracy if isinstance(review, TraceReview) else None,
        logical_consistency=review.logical_consistency,
        score_fit=review.score_fit if isinstance(review, TraceReview) else review.answer_fit,
        confidence=None if review.confidence is None else review.confidence / 100,
        justification=truncate_words(told, max_words),
        shortened=_word_count(told) > max_words,
        again_key=shorter_answer.key if shorter_answer is not None else None,
    )


def build_shorter_call(call: Call, answer: Answer, max_words: int, max_chars: int) -> Call | None:
    """The question to a judge whose justification is too long; None where it is not, or where there is none.

    Args:
        call, answer: the first question, and what the judge said.
        max_words: of the justification.
        max_chars: of the judge's own answer, as it is shown again.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return None
    review = parse_structured_answer(review_schema(call), answer.text)
    if isinstance(review, str) or _word_count(review.justification) <= max_words:
        return None
    asked = load_prompt("review.shorter").render(words=str(_word_count(review.justification)), max_words=str(max_words))
    shown = Message("assistant", truncate_middle(answer.text, max_chars))
    return replace(call, messages=(*call.messages, shown, asked[-1]))


def review_schema(call: Call) -> type[ReviewSchema]:
    """The shape of the verdict that a call asks for."""
    return AnswerReview if call.schema == AnswerReview.__name__ else TraceReview


def truncate_words(text: str, max_words: int) -> str:
    """The text, or its first words and an ellipsis when it has too many."""
    words = text.split()
    return text.strip() if len(words) <= max_words else " ".join(words[:max_words]) + " …"


def _word_count(text: str) -> int:
    return len(text.split())
