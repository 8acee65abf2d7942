"""Import recorded answers to the items of a task as an audit, without a survey and without calling any model."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import pydantic

from auditor.agents.answer_parsing import parse_task_trace
from auditor.agents.cell_scoring import compute_cell_score
from auditor.config import TaskSection, require_audit_name
from auditor.config.validation_messages import explain_validation_error
from auditor.domain import Answer, AnswerKind, Cell, Outcome, Task, TaskItem, Trace, canonical_hash
from auditor.errors import ImportFileError, UsageError, format_count, pluralize
from auditor.imports.recorded_answers import AnswerFileFormat, detect_format
from auditor.imports.recorded_audits import save_imported_audit
from auditor.input_files import read_json, require_storable
from auditor.run import resolve_storage_url
from auditor.storage.database import open_database
from auditor.surveys.distributions import parse_enum_cell
from auditor.surveys.row_reader import TextRow, read_column_names, read_rows
from auditor.surveys.table_formats import find_suffix
from auditor.tasks import canonical_answer, load_task, survey_from_task
from auditor.tasks.answers import percentage_as_share
from auditor.tasks.loader import MISSING_MARKERS
from auditor.text_safety import clean_name, truncate_text

MORAL_EXCEPTION_COLUMNS = frozenset({"scenario", "human.response", "proba_1", "model"})
"""Columns of the table of predictions of MoralCoT: models' probabilities beside the shares of people's answers."""
MORAL_EXCEPTION_ID = ("study", "context", "condition")
MAX_LISTED_IDS = 5


class ImportedTaskAnswers(NamedTuple):
    """Counts of what `import_task_answers` read and stored.

    Attributes:
        rows: answers read, people's included.
        items: items of the task.
        models: different models.
        people: different people.
        failed: rows without a usable answer.
        replaced: whether an earlier import of this name was replaced.
        notes: a line for each problem of a log.
    """

    rows: int
    items: int
    models: int
    people: int
    failed: int
    replaced: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskAnswerRow:
    """One recorded answer to an item.

    Attributes:
        location: file and row, for messages.
        sample: its number; None if the file does not number them, so that they are numbered in its order.
        answer: the answer itself; empty if it is only in the text.
        text: the whole reply; empty if there is none.
        outcome: outcome of the call; None if the file does not say.
        number: the answer with a decimal point, if the column has decimal commas; for answers that are no choices.
    """

    location: str
    author: str
    item: str
    sample: int | None
    answer: str = ""
    text: str = ""
    outcome: Outcome | None = None
    number: str = ""


class RecordedTask(NamedTuple):
    """The answers of a file, and the task if the file itself has its items."""

    rows: Sequence[TaskAnswerRow]
    task: Task | None = None
    notes: tuple[str, ...] = ()


def import_task_answers(
    file: Path,
    *,
    audit: str,
    items: Path | None = None,
    answer_format: Mapping[str, Any] | None = None,
    people: Path | None = None,
    score: str | None = None,
    storage: str | None = None,
) -> ImportedTaskAnswers:
    """Store recorded answers to the items of a task as an audit. An earlier import of the same name is replaced.

    Args:
        file: a table with `model,id` and `answer` or `text`, optionally `sample` and `outcome`; labels by rater and
            item as JSON (the layout of AltTest); the predictions of MoralCoT; or logs of Inspect AI, which have their
            items themselves.
        audit: the audit's name.
        items: the file of the items, as in a configuration's `task`. None if `file` has the items, or only their ids.
        answer_format: the keys of a configuration's `task` but `source`. Not used if `file` has the items.
        people: a file of the same layouts as `file` with people's answers to the same items.
        score: in a log of Inspect, the name of the score whose answer counts; None if there is one.
        storage: database URL.

    Raises:
        ImportFileError: a row cannot be used; the message names it, and nothing is stored.
        UsageError: the name is invalid or belongs to an audit that was run, or the kind of answers is not known.
    """
    require_audit_name(audit)
    recorded = read_recorded_task(file, score, counts_null=True)
    people_rows = read_recorded_task(people, None).rows if people else ()
    task = _find_task(file, recorded, items, answer_format or {}, people_rows)
    names = tuple(dict.fromkeys(row.author for row in people_rows))
    if shared := set(names) & {row.author for row in recorded.rows}:
        raise UsageError(f"'{min(shared)}' is the name of a person and of a model.", "Rename one of them in its file.")
    task = replace(task, people=names)
    for source, rows in ((file, recorded.rows), (people, people_rows)):
        _require_known_items(source, rows, task)
        if recorded.task is None and task.kind is AnswerKind.EXACT and not task.numbers:
            _reject_missing_markers(rows, {item.truth for item in task.items.values()})
    traces = [*_build_traces(recorded.rows, task), *_build_traces(people_rows, task)]
    scores = [
        compute_cell_score(*key, group, len(group), None, "")
        for key, group in _group_traces(traces).items()
        if key[0] not in names
    ]
    with open_database(resolve_storage_url(storage)) as db:
        replaced = save_imported_audit(db, audit, survey_from_task(task), scores, traces)
    return ImportedTaskAnswers(
        rows=len(traces),
        items=len(task.items),
        models=len({row.author for row in recorded.rows}),
        people=len(names),
        failed=sum(trace.outcome is not Outcome.OK for trace in traces),
        replaced=replaced,
        notes=recorded.notes,
    )


def _find_task(
    file: Path,
    recorded: RecordedTask,
    items: Path | None,
    answer_format: Mapping[str, Any],
    people_rows: Sequence[TaskAnswerRow],
) -> Task:
    """The task that answers are about, from its file of items, from the file of answers, or of the ids alone.

    Raises:
        UsageError: the kind of answers is not stated or an option does not fit it, or the items are named twice.
    """
    if recorded.task is not None:
        if items is not None or answer_format:
            raise UsageError(f"{file}: has the items and the kind of answers itself.", "Leave out --task and --answer.")
        return recorded.task
    if "answer" not in answer_format:
        raise UsageError(
            f"{file}: the kind of answers is not known.",
            "Name the file of the items and the kind: --task ITEMS --answer choice. Without a file of items: --answer "
            "exact for labels that are equal or not, or --answer score --range 1 5 for numbers.",
        )
    section_keys = {"source": str(items or file), **answer_format}
    try:
        section = TaskSection.model_validate(section_keys)
    except pydantic.ValidationError as error:
        message = explain_validation_error(error, section_keys, TaskSection)
        raise UsageError(f"an option does not fit the kind of answers: {message}") from None
    if items is not None:
        return load_task(section)
    return _build_task_of_ids(file.name, [*recorded.rows, *people_rows], section)


def _group_traces(traces: Iterable[Trace]) -> Mapping[tuple[str, Cell], list[Trace]]:
    """Traces by model and item."""
    groups: dict[tuple[str, Cell], list[Trace]] = defaultdict(list)
    for trace in traces:
        groups[trace.model, trace.cell].append(trace)
    return groups


def _require_known_items(source: Path | None, rows: Sequence[TaskAnswerRow], task: Task) -> None:
    """Raise ImportFileError if answers are about items that the task does not have, with their counts."""
    unknown = Counter(row.item for row in rows if row.item not in task.items)
    if not unknown:
        return
    listed = []
    for item, n in unknown.most_common(MAX_LISTED_IDS):
        similar = get_close_matches(item, list(task.items), n=1, cutoff=0.7)
        hint = f"; did you mean {truncate_text(similar[0])}?" if similar else ""
        listed.append(f"{truncate_text(item)} ({format_count(n)}{hint})")
    more = f", and {format_count(len(unknown) - MAX_LISTED_IDS)} more" if len(unknown) > MAX_LISTED_IDS else ""
    raise ImportFileError(
        f"{source}: {task.source} does not have the items of {pluralize(unknown.total(), 'row')}: "
        f"{', '.join(listed)}{more}.",
        "Correct the ids, add the items, or remove the rows.",
    )


def _reject_missing_markers(rows: Sequence[TaskAnswerRow], truths: Set[str | None]) -> None:
    """Raise ImportFileError for an answer such as NA that is no right one: it would be wrong, and equal to others."""
    for row in rows:
        if row.outcome is None and row.answer.casefold() in MISSING_MARKERS - truths:
            raise ImportFileError(
                f"{row.location}: the answer '{row.answer}' may be a missing value.",
                "Leave it empty if there is no answer; else write it in words, such as 'not applicable'.",
            )


def _build_traces(rows: Sequence[TaskAnswerRow], task: Task) -> list[Trace]:
    """Parse answers to items; raise ImportFileError if an answer occurs twice."""
    n_by_item = Counter[tuple[str, str]]()
    traces: dict[tuple[str, Cell, int], Trace] = {}
    for row in rows:
        item = task.items[row.item]
        number = n_by_item[row.author, row.item] if row.sample is None else row.sample
        n_by_item[row.author, row.item] += 1
        key = (row.author, item.cell, number)
        if key in traces:
            raise ImportFileError(
                f"{row.location}: two rows have the same model, item and sample.",
                "Give each answer its own number in the column sample, or delete the duplicate row.",
            )
        traces[key] = _build_trace(row, task, item, number)
    return list(traces.values())


def _build_trace(row: TaskAnswerRow, task: Task, item: TaskItem, number: int) -> Trace:
    """The trace of a recorded answer: its own answer if there is one, else what its text says."""
    recorded_outcome = row.outcome or (Outcome.OK if row.answer or row.text else Outcome.CLIENT_ERROR)
    if recorded_outcome is not Outcome.OK:
        return Trace(row.author, item.cell, number, recorded_outcome, None, row.text or None)
    stated = row.answer if task.kind is AnswerKind.CHOICE else row.number or row.answer
    answer = canonical_answer(task, item, percentage_as_share(task, stated)) if stated else None
    if answer is None and stated.endswith(".0"):  # a column of whole numbers, in which some are missing
        answer = canonical_answer(task, item, stated.removesuffix(".0"))
    if answer is None and row.text:
        parsed = parse_task_trace(Answer("", Outcome.OK, row.text), task, row.author, item.cell, number, "text")
        return replace(parsed, key=None)
    score = task.scale_score(float(answer)) if answer is not None and task.kind is AnswerKind.SCORE else None
    outcome = Outcome.UNPARSED if answer is None else Outcome.OK
    return Trace(row.author, item.cell, number, outcome, score, row.text or row.answer, answer=answer)


def _build_task_of_ids(source: str, rows: Sequence[TaskAnswerRow], section: TaskSection) -> Task:
    """A task of the items that answers name, without questions and right answers; all have the options of `section`.

    Raises:
        UsageError: the answers are choices, but there are no options.
    """
    kind = AnswerKind(section.answer)
    if kind is AnswerKind.CHOICE and section.options is None:
        raise UsageError("the options are not known.", "Name the file of the items (--task), or --options 'A|B'.")
    ids = dict.fromkeys(row.item for row in rows)
    options = tuple(section.options or ())
    return Task(
        source=source,
        kind=kind,
        digest=canonical_hash([*ids, kind.value, section.range, options]),
        range=section.range,
        numbers=bool(section.numbers),
        items={name: TaskItem(name, "", options=options) for name in ids},
    )


# --- the layouts of files ---------------------------------------------------------------------------------------


def read_recorded_task(file: Path, score: str | None = None, *, counts_null: bool = False) -> RecordedTask:
    """Read the answers of a file in one of the layouts of `import_task_answers`.

    Args:
        score: as in `import_task_answers`.
        counts_null: whether null in labels as JSON is an answer that was lost, as of a model, and not an item that a
            person was not asked about.

    Raises:
        ImportFileError: the file has none of the layouts, or a row cannot be used.
    """
    if file.is_dir() or find_suffix(file) in (".eval", ".json"):
        return _read_documents(file, score, counts_null=counts_null)
    names = {name.casefold() for name in read_column_names(file)}
    if names >= MORAL_EXCEPTION_COLUMNS:
        return _read_moral_exceptions(file)
    rows = list(_read_table(file, names))
    if not rows:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return RecordedTask(rows)


def _read_documents(file: Path, score: str | None, *, counts_null: bool) -> RecordedTask:
    """Read labels as JSON, or one or several logs of Inspect."""
    from auditor.imports.inspect_logs import read_inspect_task

    if find_suffix(file) == ".json":
        document = read_json(file, ImportFileError)
        if _is_labels(document):
            require_storable(document, str(file), ImportFileError)
            rows = list(_read_labels(file, document, counts_null=counts_null))
            if not rows:
                raise ImportFileError(f"{file}: has no labels.", "Check that it is the right file.")
            return RecordedTask(rows)
        if detect_format(file) is not AnswerFileFormat.INSPECT:
            raise ImportFileError(
                f"{file}: is neither a log of Inspect AI nor a document of labels by rater and item.",
                "Write a table with the columns model,id,answer.",
            )
    return read_inspect_task(file, score)


def _is_labels(document: Any) -> bool:
    """Whether a document has an object of labels for each rater, and is no log of another program."""
    if not isinstance(document, dict) or not document or {"eval", "version", "results"} & document.keys():
        return False
    return all(isinstance(labels, dict) for labels in document.values())


def _read_labels(
    file: Path, document: Mapping[str, Mapping[str, Any]], *, counts_null: bool
) -> Iterator[TaskAnswerRow]:
    """Read labels by rater and item; a person who did not label an item has null or no entry."""
    for rater, labels in document.items():
        for item, label in labels.items():
            location = f"{file}: {truncate_text(rater)}, {truncate_text(item)}"
            if label is None:
                if counts_null:
                    yield TaskAnswerRow(location, rater, item, 0)
                continue
            if not isinstance(label, str | int | float):
                raise ImportFileError(f"{location}: the label is neither text nor a number.", "Write one of them.")
            text = label if isinstance(label, str) else json.dumps(label)
            yield TaskAnswerRow(location, rater, item, 0, answer=text.strip())


def _read_table(file: Path, names: set[str]) -> Iterator[TaskAnswerRow]:
    """Read `model,id` with `answer` or `text`; `auditor export tables` writes the id as `topic`."""
    item_column = "topic" if "topic" in names and "id" not in names else "id"
    author_column = "rater" if "rater" in names and "model" not in names else "model"
    required = [author_column, item_column, *([] if "text" in names else ["answer"])]
    optional = ["sample", "outcome", *(["text", "answer"] if "text" in names else [])]
    for row in read_rows(file, required, optional):
        yield TaskAnswerRow(
            row.location,
            clean_name(row.required_text(author_column)),
            row.required_text(item_column),
            row.integer("sample") if row.cells["sample"] else None,
            row.cells["answer"],
            row.cells.get("text", ""),
            parse_enum_cell(row, "outcome", Outcome, str.lower),
            row.with_decimal_point("answer"),
        )


def _read_moral_exceptions(file: Path) -> RecordedTask:
    """Read the predictions of MoralCoT: an item is a scenario, and its truth the share of people who accept it."""
    items: dict[str, TaskItem] = {}
    rows = []
    for row in read_rows(file, (*MORAL_EXCEPTION_ID, *sorted(MORAL_EXCEPTION_COLUMNS))):
        name = "/".join(row.required_text(column) for column in MORAL_EXCEPTION_ID)
        truth = _read_share(row, "human.response")
        if truth is None:
            raise row.make_cell_error("human.response", "is empty", "Write the share of people, from 0 to 1.")
        item = TaskItem(name, row.required_text("scenario"), truth=f"{truth:.15g}")
        if items.setdefault(name, item).truth != item.truth:
            raise row.make_cell_error("human.response", f"another row about {name} has another share", "Correct one.")
        probability = _read_share(row, "proba_1")
        answer = "" if probability is None else f"{probability:.15f}"
        rows.append(TaskAnswerRow(row.location, row.required_text("model"), name, None, answer=answer))
    digest = canonical_hash([[item.id, item.question, item.truth] for item in items.values()])
    return RecordedTask(rows, Task(file.name, AnswerKind.SCORE, digest, (0.0, 1.0), items=items))


def _read_share(row: TextRow, column: str) -> float | None:
    """A number from 0 to 1; None if the cell is empty."""
    share = row.number(column)
    if share is not None and not 0 <= share <= 1:
        raise row.make_cell_error(column, f"{share:g} is not from 0 to 1", "Write a share.")
    return share
