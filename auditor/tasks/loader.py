"""Loading a task's items from a user's file, with all checks before the first call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auditor.config import TaskSection
from auditor.domain import OPTION_LETTERS, AnswerKind, Survey, SurveyCell, Task, TaskItem, canonical_hash
from auditor.errors import ConfigError, ImportFileError, pluralize
from auditor.surveys.row_reader import TextRow, read_rows
from auditor.tasks.answers import canonical_answer, parse_number, percentage_as_share
from auditor.text_safety import LONE_SURROGATE

REQUIRED_COLUMNS, OPTIONAL_COLUMNS = ("id", "question"), ("context", "truth", "options")
OPTION_SEPARATOR = "|"
"""Separates the options in a table cell."""
MAX_ID_LENGTH = 120
MISSING_MARKERS = frozenset({"na", "n/a", "nan", "null", "<na>", "\\n", ".", "-", "?"})
"""What programs and people write where a number is missing."""


def load_task(section: TaskSection) -> Task:
    """Load the items of a file as a task, with the answer format from the configuration.

    Raises:
        ConfigError: the file does not exist.
        ImportFileError: the file is empty or a row is invalid; the message names the row.
    """
    path = Path(section.source)
    if not path.is_file():
        raise ConfigError(
            f"task.source: the file '{section.source}' does not exist.", "Name a file with the columns id,question."
        )
    rows = list(read_rows(path, REQUIRED_COLUMNS, OPTIONAL_COLUMNS))
    if not rows:
        raise ImportFileError(f"{path}: has no items.", "Check that it is the right file.")
    if _are_answers_numeric(section, rows):
        rows = list(map(_read_decimal_comma, rows))
    truths = [row.cells["truth"] for row in rows if row.cells["truth"]]
    if section.answer == "exact" and section.numbers is None:
        _reject_missing_markers(rows)
    task = Task(
        source=path.name,
        kind=AnswerKind(section.answer),
        digest=canonical_hash([row.cells for row in rows]),
        range=section.range,
        numbers=(bool(truths) and all(parse_number(truth) is not None for truth in truths))
        if section.numbers is None and section.answer == "exact"
        else bool(section.numbers),
        tolerance=section.tolerance,
    )
    if task.numbers:
        _reject_mixed_percentages(rows)
    for row in rows:
        item = _parse_item(task, row, section.options)
        if item.id in task.items:
            raise ImportFileError(
                f"{row.location}: the id '{item.id}' occurs twice.", "Use a different id for each item."
            )
        task.items[item.id] = item  # type: ignore[index]  # filled only here, read-only for all others
    return task


def _are_answers_numeric(section: TaskSection, rows: Sequence[TextRow]) -> bool:
    """Whether answers are numbers: by the configuration, else if all truths are, but for those that are missing."""
    if section.answer != "exact":
        return section.answer == "score"
    if section.numbers is not None:
        return section.numbers
    truths = [row.cells["truth"] for row in rows if row.cells["truth"].casefold() not in MISSING_MARKERS]
    return all(
        parse_number(truth) is not None or parse_number(truth.replace(",", ".")) is not None
        for truth in filter(None, truths)
    )


def _read_decimal_comma(row: TextRow) -> TextRow:
    """A row whose truth has a decimal point if the column has decimal commas: 3,142 is not always 3142."""
    truth = row.with_decimal_point("truth")
    if parse_number(truth) == parse_number(row.cells["truth"]):
        return row  # as it was, and with it the task's digest
    return row._replace(cells={**row.cells, "truth": truth})


def _reject_missing_markers(rows: Sequence[TextRow]) -> None:
    """Raise ImportFileError for a truth such as NA if all others are numbers: it is missing."""
    with_truth = [row for row in rows if row.cells["truth"]]
    markers = [row for row in with_truth if row.cells["truth"].casefold() in MISSING_MARKERS]
    if not markers or any(parse_number(row.cells["truth"]) is None for row in with_truth if row not in markers):
        return
    if len(markers) < len(with_truth):
        raise markers[0].make_cell_error(
            "truth",
            f"'{markers[0].cells['truth']}' is no number, and all other truths are",
            "Leave the cell empty if the right answer is not known, or set task.numbers = false.",
        )


def _reject_mixed_percentages(rows: Sequence[TextRow]) -> None:
    """Raise ImportFileError for a truth such as 50% if all others are shares: it may be 0.5, and is read as 50."""
    percentages = [row for row in rows if row.cells["truth"].endswith("%")]
    truths = [row.cells["truth"] for row in rows]
    others = [parse_number(truth) for truth in truths if truth and not truth.endswith("%")]
    are_shares = all(number is not None and 0 <= number <= 1 for number in others)
    if percentages and are_shares and any(number not in (0, 1) for number in others):
        raise percentages[0].make_cell_error(
            "truth",
            f"'{percentages[0].cells['truth']}' is a percentage, and other truths are numbers from 0 to 1",
            "Write all truths as numbers from 0 to 1, or all as percentages.",
        )


def describe_answer_format(task: Task) -> dict[str, Any]:
    """The keys of a configuration's `task` that say how the answers of a task are read and compared."""
    settings: dict[str, Any] = {"answer": task.kind.value, "range": task.range, "tolerance": task.tolerance}
    if task.kind is AnswerKind.EXACT:
        settings["numbers"] = task.numbers
    return {key: value for key, value in settings.items() if value is not None}


def survey_from_task(task: Task) -> Survey:
    """Wrap a task in a survey with one cell for each item; only items with a score have their truth as cell score."""
    cells = tuple(
        SurveyCell(item.cell, task.scale_score(float(item.truth)) if item.truth and task.range else None)
        for item in task.items.values()
    )
    return Survey(name="", title="", source="", wording="", scale=("", ""), cells=cells, task=task)


def _parse_item(task: Task, row: TextRow, shared_options: Sequence[str] | None) -> TaskItem:
    """Parse a row into an item with its canonical truth; raises an ImportFileError if it is invalid."""
    cells = {name: row.cells[name] for name in (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)}
    for name in REQUIRED_COLUMNS:
        row.required_text(name)
    if len(cells["id"]) > MAX_ID_LENGTH:
        raise ImportFileError(f"{row.location}: the id has more than {MAX_ID_LENGTH} characters.", "Use a shorter id.")
    for name, text in cells.items():
        if not text.isascii() and LONE_SURROGATE.search(text):
            raise row.make_cell_error(
                name, "an incomplete character (a lone surrogate)", "Save the file as UTF-8 again."
            )
    item = TaskItem(cells["id"], cells["question"], cells["context"], _parse_options(task, row, shared_options))
    if not cells["truth"]:
        return item
    truth = canonical_answer(task, item, percentage_as_share(task, cells["truth"]))
    if truth is None:
        raise ImportFileError(
            f"{row.location}: '{cells['truth'][:80]}' in the column truth is not a valid answer.",
            _how_to_fix_truth(task, item),
        )
    return TaskItem(item.id, item.question, item.context, item.options, truth)


def _parse_options(task: Task, row: TextRow, shared_options: Sequence[str] | None) -> tuple[str, ...]:
    """Options of an item, its own or the shared ones; empty for kinds other than `choice`."""
    row_options = row.cells["options"]
    if task.kind is not AnswerKind.CHOICE:
        if _split_options(row_options):
            raise ImportFileError(
                f"{row.location}: the item has options, but task.answer is not 'choice'.", 'Set task.answer = "choice".'
            )
        return ()
    options = _split_options(row_options) or tuple(shared_options or ())
    if not 2 <= len(options) <= len(OPTION_LETTERS) or not all(options):
        problem = "an option is empty" if not all(options) else f"the item has {pluralize(len(options), 'option')}"
        how_to_fix = (
            f"Write 2 to {len(OPTION_LETTERS)} options, such as yes{OPTION_SEPARATOR}no, here or in task.options."
        )
        raise ImportFileError(f"{row.location}: {problem}.", how_to_fix)
    item = TaskItem(row.cells["id"], "", "", options)
    for option in options:
        if canonical_answer(task, item, option) != option:
            raise ImportFileError(
                f"{row.location}: the option '{option}' is too similar to another option, or to its letter.",
                "Reword the options: none may be another's letter, or differ only in case or punctuation.",
            )
    return options


def _split_options(text: str) -> tuple[str, ...]:
    """The options in a cell, with separators or as a JSON list, as `auditor export tables` writes them."""
    if text.startswith("["):
        try:
            options = json.loads(text)
        except ValueError:
            options = None
        if isinstance(options, list) and all(isinstance(option, str) for option in options):
            return tuple(option.strip() for option in options)
    return tuple(part.strip() for part in text.split(OPTION_SEPARATOR)) if text else ()


def _how_to_fix_truth(task: Task, item: TaskItem) -> str:
    """Advice for an invalid truth, for an error message."""
    if task.kind is AnswerKind.CHOICE:
        return f"Name one of {', '.join(map(repr, item.options))}, or its letter."
    if task.kind is AnswerKind.SCORE and task.range:
        return f"Write a number from {task.range[0]:g} to {task.range[1]:g} without a unit, or leave it empty."
    return "Write a number, or set task.numbers = false." if task.numbers else "Write a few words, or leave it empty."
