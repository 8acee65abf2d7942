"""The items of a task in the words in which models are asked about them, and the shape of the answer."""

from __future__ import annotations

from auditor.domain import AnswerKind, Cell, Task, TaskItem, lettered_options
from auditor.models.structured import ScoredAnswer, TaskAnswer, choice_schema_name


def task_prompt_name(task: Task) -> str:
    """Name of the prompt that asks for the task's kind of answer, without the mode behind it."""
    kind: str = task.kind.value
    if task.kind is AnswerKind.EXACT:
        kind = "number" if task.numbers else "words"
    return f"task.{kind}"


def item_prompt_fields(task: Task, cell: Cell) -> dict[str, str]:
    """What that prompt is filled with."""
    item = task.item_for(cell)
    fields = {"question": question_with_context(item)}
    if task.kind is AnswerKind.CHOICE:
        fields["options"] = "\n".join(lettered_options(item))
    if task.range is not None:
        fields |= {"least": f"{task.range[0]:g}", "most": f"{task.range[1]:g}"}
    return fields


def answer_schema_name(task: Task, cell: Cell) -> str:
    """Name of the structure that an item is answered in."""
    if task.kind is AnswerKind.CHOICE:
        return choice_schema_name(len(task.item_for(cell).options))
    return (ScoredAnswer if task.kind is AnswerKind.SCORE else TaskAnswer).__name__


def question_with_context(item: TaskItem) -> str:
    """The question, with what stands before it."""
    return f"{item.context}\n\n{item.question}" if item.context else item.question


def question_with_options(item: TaskItem) -> str:
    """The question with its options, as judges are shown it."""
    return "\n".join([question_with_context(item), *lettered_options(item)])
