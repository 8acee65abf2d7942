"""Parsing answers to items of a task into traces; unreadable ones get an outcome, never an answer."""

from __future__ import annotations

import re
from typing import TypeAlias

from auditor.agents.answer_parsing import TO_ASCII, is_refusal
from auditor.domain import ENGLISH, Answer, AnswerKind, Cell, Outcome, Task, TaskItem, Trace
from auditor.models.answer_schemas import ScoredAnswer, TaskAnswer
from auditor.models.structured_reading import parse_structured_answer
from auditor.models.thinking import strip_thinking
from auditor.tasks import canonical_answer

TaskAnswerSchema: TypeAlias = ScoredAnswer | TaskAnswer
PLACEHOLDER = "x"
"""Placeholder for the answer in the requested form, "ANSWER = x"."""
_LINE_PREFIX = r"[\s>*_#`\-$]*(?:step\s*\d+\s*[:.)]\s*)?(?:(?:so|thus|therefore|hence)\b,?\s*)?"
_ANSWER_LINE = re.compile(
    rf"^{_LINE_PREFIX}(?:(?:the|my)\s+)?(?:final\s+|correct\s+|right\s+)?answer\b[\s*_`]*(?:[=:]|is\b:?)[\s*_`]*(?:x\s*=)?"
    r"(?P<value>[^\n]+)$",
    re.IGNORECASE,
)
_INLINE_ANSWER = re.compile(r"\bANSWER[\s*_`]*=[\s*_`]*(?:x\s*=)?(?P<value>[^\n]+)$")
"""The requested form, in capitals, anywhere in a line."""


def parse_task_trace(
    answer: Answer, task: Task, model: str, cell: Cell, sample: int, mode: str, request: str = ""
) -> Trace:
    """Parse the answer to an item of a task into a trace; only the outcome `ok` has an answer.

    A scored item also gets its score in [-1, 1]. As in `parse_trace`, a readable answer is used regardless of the text
    around it, only an unreadable one is checked for a refusal, and a truncated text is read only up to its last
    complete line.

    Args:
        answer: the model's answer.
        task: the task.
        model: name of the model.
        cell, sample: the cell of the item, and the index of the sample.
        mode: `structured` or `text`.
        request: what the model was asked; an answer that only repeats it does not count.
    """
    item, canonical, text, outcome = task.item_for(cell), None, answer.text, answer.outcome
    if text is not None and outcome in (Outcome.OK, Outcome.TRUNCATED):
        visible_text = strip_thinking(text)
        if mode == "structured":
            canonical, text = (
                _parse_structured(task, item, text, request) if outcome is Outcome.OK else (None, visible_text)
            )
        else:
            complete_lines = visible_text if outcome is Outcome.OK else visible_text[: visible_text.rfind("\n") + 1]
            canonical, text = (
                parse_answer_line(task, item, complete_lines),
                _strip_answer_lines(visible_text) or visible_text,
            )
        if canonical is not None and not (task.kind is AnswerKind.EXACT and is_refusal(canonical, ENGLISH)):
            outcome = Outcome.OK
        elif outcome is Outcome.OK:
            canonical, outcome = None, Outcome.REFUSED if is_refusal(visible_text, ENGLISH) else Outcome.UNPARSED
        else:
            canonical = None
    score = task.scale_score(float(canonical)) if canonical is not None and task.kind is AnswerKind.SCORE else None
    return Trace(model, cell, sample, outcome, score, text, answer.key, answer=canonical)


def parse_answer_line(task: Task, item: TaskItem, text: str) -> str | None:
    """Parse the canonical answer from a text with "ANSWER = x"; None if it is missing, invalid or ambiguous.

    Accepted are lines such as `ANSWER = B`, `**Answer:** (b) Rome`, `The final answer is $\\boxed{42}$.` and
    `So ANSWER = 42`; the same answer may be repeated. Rejected are several lines with different answers.
    """
    answers = {canonical_answer(task, item, candidate) for candidate in _candidate_answers(text)}
    return answers.pop() if len(answers) == 1 else None


def describe_parse_problem(task: Task, text: str, request: str = "") -> str:
    """Explain in one line why a structured answer is invalid, for the model that gave it."""
    parsed_answer = parse_structured_answer(_answer_schema(task), text, request)
    return (
        parsed_answer
        if isinstance(parsed_answer, str)
        else f"answer: '{parsed_answer.answer}' is not one of the allowed answers"
    )


def _answer_schema(task: Task) -> type[TaskAnswerSchema]:
    """Schema of a structured answer to the task."""
    return ScoredAnswer if task.kind is AnswerKind.SCORE else TaskAnswer


def _parse_structured(task: Task, item: TaskItem, text: str, request: str) -> tuple[str | None, str]:
    """Parse a structured answer into the canonical answer and the reasoning; None and the visible text if invalid.

    The canonical answer is also None if the answer is not valid for the item, or if all free texts are refusals: a
    server that enforces the structure makes a model that refuses add some answer.
    """
    parsed_answer = parse_structured_answer(_answer_schema(task), text, request)
    if isinstance(parsed_answer, str):
        return None, strip_thinking(text)
    has_free_answer = task.kind is AnswerKind.EXACT and not task.numbers
    free_texts = [parsed_answer.reasoning, *([str(parsed_answer.answer)] if has_free_answer else [])]
    if all(is_refusal(part, ENGLISH) for part in free_texts):
        return None, strip_thinking(text)
    return canonical_answer(task, item, str(parsed_answer.answer)), parsed_answer.reasoning.strip()


def _candidate_answers(text: str) -> list[str]:
    """Texts that follow the requested "ANSWER ="; if there are none, those after "answer is" and the like."""
    lines = text.split("\n")
    inline_answers = [match["value"] for line in lines if (match := _INLINE_ANSWER.search(line.translate(TO_ASCII)))]
    # A repetition of the instruction, "ANSWER = x", is no answer.
    inline_answers = [candidate for candidate in inline_answers if candidate.strip(" .*_`'\"") != PLACEHOLDER]
    return inline_answers or [match["value"] for line in lines if (match := _ANSWER_LINE.match(line))]


def _strip_answer_lines(text: str) -> str:
    """Return a text without the lines that state the answer; empty if nothing else is left."""
    return "\n".join(line for line in text.split("\n") if not _ANSWER_LINE.match(line)).strip()
