"""From a judge's answer to its verdict, and the second question where the justification is too long."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from auditor.domain import Answer, Call, Message, Outcome, Ruling, Trace, Verdict
from auditor.models.structured import AnswerReview, TraceReview, read
from auditor.prompts import load_prompt
from auditor.text_safety import cut_middle

Review: TypeAlias = TraceReview | AnswerReview


def read_verdict(
    answer: Answer,
    judge: str,
    trace: Trace,
    max_words: int,
    again: Answer | None = None,
    shape: type[Review] = TraceReview,
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
    review = read(shape, answer.text)
    if isinstance(review, str):
        return replace(empty, outcome=Outcome.UNPARSED)
    told = review.justification
    if again is not None and again.outcome is Outcome.OK and again.text is not None:
        second = read(shape, again.text)
        if not isinstance(second, str) and second.verdict == review.verdict:
            told = min(told, second.justification, key=_length)
    return replace(
        empty,
        ruling=Ruling(review.verdict),
        cultural_accuracy=review.cultural_accuracy if isinstance(review, TraceReview) else None,
        logical_consistency=review.logical_consistency,
        score_fit=review.score_fit if isinstance(review, TraceReview) else review.answer_fit,
        confidence=None if review.confidence is None else review.confidence / 100,
        justification=cut_words(told, max_words),
        shortened=_length(told) > max_words,
        again_key=again.key if again is not None else None,
    )


def shorter_call(call: Call, answer: Answer, max_words: int, max_chars: int) -> Call | None:
    """The question to a judge whose justification is too long; None where it is not, or where there is none.

    Args:
        call, answer: the first question, and what the judge said.
        max_words: of the justification.
        max_chars: of the judge's own answer, as it is shown again.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return None
    review = read(shape_of(call), answer.text)
    if isinstance(review, str) or _length(review.justification) <= max_words:
        return None
    asked = load_prompt("review.shorter").render(words=str(_length(review.justification)), max_words=str(max_words))
    shown = Message("assistant", cut_middle(answer.text, max_chars))
    return replace(call, messages=(*call.messages, shown, asked[-1]))


def shape_of(call: Call) -> type[Review]:
    """The shape of the verdict that a call asks for."""
    return AnswerReview if call.schema == AnswerReview.__name__ else TraceReview


def cut_words(text: str, max_words: int) -> str:
    """The text, or its first words and an ellipsis when it has too many."""
    words = text.split()
    return text.strip() if len(words) <= max_words else " ".join(words[:max_words]) + " …"


def _length(text: str) -> int:
    return len(text.split())
