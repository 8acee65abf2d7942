"""From an answer's words to what it answers an item of a task; what cannot be read is an outcome, never an answer."""

from __future__ import annotations

import re
from typing import TypeAlias

from auditor.agents.answer_parsing import TO_ASCII, is_refusal, strip_thinking
from auditor.domain import ENGLISH, Answer, AnswerKind, Cell, Outcome, Task, TaskItem, Trace
from auditor.models.structured import ScoredAnswer, TaskAnswer, parse_structured_answer
from auditor.tasks import canonical_answer

TaskAnswerSchema: TypeAlias = ScoredAnswer | TaskAnswer
PLACEHOLDER = "x"
"""What stands for the answer in the form that is asked for."""
_LINE_PREFIX = r"[\s>*_#`\-$]*(?:step\s*\d+\s*[:.)]\s*)?(?:(?:so|thus|therefore|hence)\b,?\s*)?"
_ANSWER_LINE = re.compile(
    rf"^{_LINE_PREFIX}(?:(?:the|my)\s+)?(?:final\s+|correct\s+|right\s+)?answer\b[\s*_`]*(?:[=:]|is\b:?)[\s*_`]*(?:x\s*=)?"
    r"(?P<value>[^\n]+)$",
    re.IGNORECASE,
)
_INLINE_ANSWER = re.compile(r"\bANSWER[\s*_`]*=[\s*_`]*(?:x\s*=)?(?P<value>[^\n]+)$")
"""The form that was asked for, in capitals, wherever it stands in a line."""


def parse_task_trace(answer: Answer, task: Task, model: str, cell: Cell, sample: int, mode: str) -> Trace:
    """The trace in an answer to an item; only one that can be read has an answer, and of scores one in [-1, 1].

    As `read_trace`: what is readable is taken, whatever words stand around it, only what is not can be a refusal, and
    a text that was cut off is read only up to its last whole line.

    Args:
        answer: what came back.
        task: what it is an answer to.
        model: who was asked.
        cell, sample: about what, and the how-manieth time.
        mode: `structured` or `text`.
    """
    item, found, text, outcome = task.item_for(cell), None, answer.text, answer.outcome
    if text is not None and outcome in (Outcome.OK, Outcome.TRUNCATED):
        said = strip_thinking(text)
        if mode == "structured":
            found, text = _parse_structured(task, item, said) if outcome is Outcome.OK else (None, text)
        else:
            whole = said if outcome is Outcome.OK else said[: said.rfind("\n") + 1]
            found, text = parse_answer_line(task, item, whole), _strip_answer_lines(said) or said
        if found is not None and not (task.kind is AnswerKind.EXACT and is_refusal(found, ENGLISH)):
            outcome = Outcome.OK
        elif outcome is Outcome.OK:
            found, outcome = None, Outcome.REFUSED if is_refusal(said, ENGLISH) else Outcome.UNPARSED
        else:
            found = None
    score = task.scale_score(float(found)) if found is not None and task.kind is AnswerKind.SCORE else None
    return Trace(model, cell, sample, outcome, score, text, answer.key, answer=found)


def parse_answer_line(task: Task, item: TaskItem, text: str) -> str | None:
    """The answer in a text that ends in "ANSWER = x"; None when there is none, or when it is ambiguous.

    Read are lines such as `ANSWER = B`, `**Answer:** (b) Rome`, `The final answer is $\\boxed{42}$.` and `So ANSWER =
    42`; an answer may be said again. Not read are several lines with different answers, and what the item cannot have.
    """
    found = {canonical_answer(task, item, value) for value in _candidate_answers(text)}
    return found.pop() if len(found) == 1 else None


def describe_parse_problem(task: Task, cell: Cell, text: str) -> str:
    """In one line why an answer as JSON cannot be read, for the model that gave it."""
    problem = parse_structured_answer(_answer_schema(task), strip_thinking(text))
    return problem if isinstance(problem, str) else f"answer: '{problem.answer}' is none of those asked for"


def _answer_schema(task: Task) -> type[TaskAnswerSchema]:
    return ScoredAnswer if task.kind is AnswerKind.SCORE else TaskAnswer


def _parse_structured(task: Task, item: TaskItem, text: str) -> tuple[str | None, str]:
    given = parse_structured_answer(_answer_schema(task), text)
    if isinstance(given, str):
        return None, text
    return canonical_answer(task, item, str(given.answer)), given.reasoning.strip()


def _candidate_answers(text: str) -> list[str]:
    """What stands behind the form that was asked for; only where that is nowhere, behind looser ones."""
    lines = text.split("\n")
    asked = [m["value"] for line in lines if (m := _INLINE_ANSWER.search(line.translate(TO_ASCII)))]
    asked = [value for value in asked if value.strip(" .*_`'\"") != PLACEHOLDER]  # the instruction, said again
    return asked or [m["value"] for line in lines if (m := _ANSWER_LINE.match(line))]


def _strip_answer_lines(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not _ANSWER_LINE.match(line)).strip()
