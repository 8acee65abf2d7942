"""Prompts for the items of a task: template, placeholder values and answer schema."""

from __future__ import annotations

from auditor.domain import AnswerKind, Cell, Task, TaskItem, lettered_options
from auditor.models.answer_schemas import ScoredAnswer, TaskAnswer, choice_schema_name


def task_prompt_name(task: Task) -> str:
    """Name of the prompt for the task's kind of answer, without the suffix for the mode."""
    kind: str = task.kind.value
    if task.kind is AnswerKind.EXACT:
        kind = "number" if task.numbers else "words"
    return f"task.{kind}"


def item_prompt_fields(task: Task, cell: Cell) -> dict[str, str]:
    """Values for the placeholders of an item's prompt: question, and options of a choice or range of a score."""
    item = task.item_for(cell)
    fields = {"question": question_with_context(item)}
    if task.kind is AnswerKind.CHOICE:
        fields["options"] = "\n".join(lettered_options(item))
    if task.range is not None:
        fields |= {"least": f"{task.range[0]:g}", "most": f"{task.range[1]:g}"}
    return fields


def answer_schema_name(task: Task, cell: Cell) -> str:
    """Name of the schema of a structured answer to an item."""
    if task.kind is AnswerKind.CHOICE:
        return choice_schema_name(len(task.item_for(cell).options))
    return (ScoredAnswer if task.kind is AnswerKind.SCORE else TaskAnswer).__name__


def question_with_context(item: TaskItem) -> str:
    """The question, after its context if it has one."""
    return f"{item.context}\n\n{item.question}" if item.context else item.question


def question_with_options(item: TaskItem) -> str:
    """The question with its context and its options, as shown to judges."""
    return "\n".join([question_with_context(item), *lettered_options(item)])
