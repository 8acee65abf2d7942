"""Read labels from Label Studio's export as JSON (https://labelstud.io/guide/task_format)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.errors import ImportFileError
from auditor.input_files import read_json, require_storable
from auditor.surveys.row_reader import TextRow

VERDICT_CONTROL = "verdict"
"""Name of the control with the verdict; needed if there are several controls with choices."""
EXPORT_HINT = "In Label Studio, export the project as JSON, not as JSON-MIN."


def read_label_studio(path: Path, part_names: Sequence[str], aspects: Sequence[str]) -> Iterator[TextRow]:
    """Yield a row for each annotation that was submitted, with the columns of an import of labels.

    The rater is the annotator's e-mail address, or their number if the export has no more. Skipped tasks are left out.

    Args:
        path: the export.
        part_names: keys of a task's `data` that identify what was labelled.
        aspects: names of controls with the answers to questions about aspects.

    Raises:
        ImportFileError: the file is no such export, or an annotation cannot be used.
    """
    tasks = read_json(path, ImportFileError)
    require_storable(tasks, str(path), ImportFileError)
    if not isinstance(tasks, list):
        raise ImportFileError(f"{path}: the file is not a list of tasks from Label Studio.", EXPORT_HINT)
    for number, task in enumerate(tasks, start=1):
        location = f"{path}: task {task['id'] if isinstance(task, dict) and 'id' in task else number}"
        data, annotations = (task.get("data"), task.get("annotations")) if isinstance(task, dict) else (None, None)
        if not isinstance(data, dict) or not isinstance(annotations, list):
            raise ImportFileError(f"{location}: the task has no 'data' or no 'annotations'.", EXPORT_HINT)
        cells = {name: _read_datum(data, name, location) for name in part_names}
        cells["inclusion"] = _read_datum(data, "inclusion", location, is_required=False)
        for annotation in annotations:
            if not isinstance(annotation, dict):
                raise ImportFileError(f"{location}: an annotation is not in the format of Label Studio.", EXPORT_HINT)
            if not annotation.get("was_cancelled"):
                choices = _read_choices(annotation, aspects, location)
                yield TextRow(location, {**cells, **choices, "rater": _read_rater(annotation, location)})


def _read_datum(data: Mapping[str, Any], name: str, location: str, *, is_required: bool = True) -> str:
    """Return a value of a task's data as text; empty if it is missing and not required."""
    value = data.get(name)
    if value is None and is_required:
        raise ImportFileError(
            f"{location}: the task's data has no '{name}'.",
            f"Import the tasks into Label Studio with '{name}' in their data.",
        )
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int | float)):
        raise ImportFileError(
            f"{location}: '{name}' in the task's data is neither text nor a number.", "Write it as text or a number."
        )
    return "" if value is None else str(value).strip()


def _read_rater(annotation: Mapping[str, Any], location: str) -> str:
    """Name of the annotator: `completed_by` is a number, or an object with an e-mail address."""
    annotator = annotation.get("completed_by")
    if isinstance(annotator, dict):
        annotator = annotator.get("email") or annotator.get("id")
    if not isinstance(annotator, str | int) or isinstance(annotator, bool) or annotator == "":
        raise ImportFileError(f"{location}: an annotation does not name its annotator ('completed_by').", EXPORT_HINT)
    return str(annotator)


def _read_choices(annotation: Mapping[str, Any], aspects: Sequence[str], location: str) -> dict[str, str]:
    """Return the verdict and the answers on aspects, by column; empty texts where there is none."""
    choices = dict.fromkeys((VERDICT_CONTROL, *aspects), "")
    verdicts: dict[str, str] = {}
    for result in annotation.get("result") or ():
        if not isinstance(result, dict) or result.get("type") != "choices":
            continue
        control, selected = str(result.get("from_name")), (result.get("value") or {}).get("choices")
        if not isinstance(selected, list) or len(selected) != 1:
            raise ImportFileError(
                f"{location}: the annotation has no choice for '{control}', or several choices.",
                "In Label Studio, allow exactly one choice for it.",
            )
        (choices if control in aspects else verdicts)[control] = str(selected[0]).strip()
    if len(verdicts) > 1 and VERDICT_CONTROL not in verdicts:
        raise ImportFileError(
            f"{location}: several questions of the labelling form have choices: {', '.join(verdicts)}.",
            f"In Label Studio, name the question (control) for the verdict '{VERDICT_CONTROL}'.",
        )
    choices[VERDICT_CONTROL] = verdicts.get(VERDICT_CONTROL) or next(iter(verdicts.values()), "")
    return choices
