"""Import people's labels that were made elsewhere: a table, or Label Studio's JSON export."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from auditor.domain.decisions import aspect_questions
from auditor.domain.labels import DrawnUnit, Label, LabelDraw, LabelKind, LabelUnit
from auditor.errors import ImportFileError, UsageError, did_you_mean, pluralize
from auditor.input_files import read_json, require_storable
from auditor.run import open_stored_audit
from auditor.storage import audits, labels
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.labels import (
    LabelableUnit,
    hash_population,
    list_part_names,
    load_labelable_units,
    select_drawable_units,
)
from auditor.surveys.countries import make_country_speller, make_topic_speller
from auditor.surveys.row_reader import TextRow, read_rows
from auditor.text_safety import find_lookalike, make_name_speller, unescape_csv_cell

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
                annotator = annotation.get("completed_by")
                if isinstance(annotator, dict):
                    annotator = annotator.get("email") or annotator.get("id")
                if not isinstance(annotator, str | int) or isinstance(annotator, bool) or annotator == "":
                    raise ImportFileError(
                        f"{location}: an annotation does not name its annotator ('completed_by').", EXPORT_HINT
                    )
                yield TextRow(location, {**cells, **choices, "rater": str(annotator)})


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


TextHasher = Callable[[Database, Audit, Label], str]
"""SHA-256 of the text of a label's unit, as its rater would read it."""


class ImportedLabels(NamedTuple):
    """Counts of what `import_labels` read and stored.

    Attributes:
        rows: labels read.
        raters: different raters.
        empty: rows without a verdict, which were left out.
        unchanged: labels that were stored already.
        changed: labels that replaced another one of the same rater on the same unit.
        outside: labels on units outside of the sample, which no corrected figure uses.
        n_sampled: units in the audit's sample; 0 if it has none.
    """

    rows: int
    raters: int
    empty: int
    unchanged: int
    changed: int
    outside: int
    n_sampled: int


@dataclass(frozen=True, slots=True)
class _LabelRow:
    """A label as read, with the inclusion probability of its unit if the file has one.

    Attributes:
        is_exported: whether `auditor export labels` wrote the row; without a probability it is then outside the sample.
        text_hash: of the text that the rater read, if the row was exported from the review screen.
    """

    location: str
    label: Label
    inclusion: float | None
    is_exported: bool
    text_hash: str | None = None


def import_labels(
    file: Path,
    *,
    audit: str,
    storage: str | None = None,
    kind: LabelKind = LabelKind.TRACE,
    hash_text: TextHasher | None = None,
) -> ImportedLabels:
    """Store labels that people made elsewhere. Labels that are stored already are left as they are.

    Args:
        file: CSV, JSONL or Parquet with `rater,model,country,topic,sample,verdict`, a column for each aspect that
            raters were asked (true or false), and optionally `inclusion`; or Label Studio's export as JSON. For other
            kinds the columns of `list_part_names` take the place of `model,country,topic,sample`.
        audit: the audit's name.
        storage: database URL.
        kind: of the units.
        hash_text: finds the SHA-256 of a text as a rater would read it, with which that of an exported label must
            agree; None compares nothing.

    Raises:
        ImportFileError: a row cannot be used; the message names it, and nothing is stored.
        UsageError: the file has inclusion probabilities, and the audit has a drawn sample.
        StorageError: there is no such audit.
    """
    with open_stored_audit(audit, storage) as (db, stored_audit):
        units = load_labelable_units(db, stored_audit.id, kind)
        raters = labels.load_raters(db, stored_audit.id)
        reader = _LabelReader(db, stored_audit, kind, file.name, {unit.unit for unit in units}, raters)
        rows, n_empty = _collect_rows(reader.read(file), {unit.unit for unit in units}, audit)
        in_force = {(label.unit, label.rater): label for label in labels.load_labels(db, stored_audit.id, kind)}
        _require_one_spelling(rows, raters)
        if hash_text is not None:
            _require_labelled_texts(partial(hash_text, db, stored_audit), rows, audit)
        if not rows:
            raise ImportFileError(
                f"{file}: no row has a label.", "Check that it is the right file, and that the verdicts are filled in."
            )
        drawable_units = select_drawable_units(units)
        sampled = _find_new_sample(db, stored_audit, kind, rows, {unit.unit: unit for unit in drawable_units})
        new = [row.label for row in rows if not _is_same(row.label, in_force.get((row.label.unit, row.label.rater)))]
        labels.append_labels(db, stored_audit.id, new)
        if sampled:
            _save_sample(db, stored_audit, kind, file.name, sampled, drawable_units)
        in_sample = {unit.unit for unit in labels.load_label_sample(db, stored_audit.id, kind)}
    return ImportedLabels(
        rows=len(rows),
        raters=len({row.label.rater for row in rows}),
        empty=n_empty,
        unchanged=len(rows) - len(new),
        changed=sum((label.unit, label.rater) in in_force for label in new),
        outside=sum(row.label.unit not in in_sample for row in rows),
        n_sampled=len(in_sample),
    )


class _LabelReader:
    """Reads labels of one kind for an audit from a file."""

    def __init__(
        self,
        db: Database,
        audit: Audit,
        kind: LabelKind,
        source: str,
        units: Iterable[LabelUnit],
        raters: Iterable[str],
    ) -> None:
        survey = audits.load_audit_survey(db, audit)
        self._kind = kind
        self._source = source
        self._spell_country: Callable[[str], str] = make_country_speller(survey, source)
        self._spell_topic: Callable[[str], str] = make_topic_speller(survey)
        names = list_part_names(kind)
        position = names.index("model") if "model" in names else None
        self._spell_model = make_name_speller(unit.parts[position] for unit in units if position is not None)
        self._spell_rater = make_name_speller(raters)
        self._values = {choice.value.upper(): choice.value for choice in kind.choices}
        is_trace = kind is LabelKind.TRACE
        self._aspects = tuple(aspect_questions(for_task=survey.task is not None)) if is_trace else ()
        self._is_task = survey.task is not None
        self._labelled_at = datetime.now(UTC)

    def read(self, file: Path) -> Iterator[_LabelRow | None]:
        """Yield the labels of a file; None for a row without a verdict."""
        required = ("rater", *list_part_names(self._kind), "verdict")
        optional = (*self._aspects, "inclusion", "in_force", "text_hash")
        rows = (
            read_label_studio(file, list_part_names(self._kind), self._aspects)
            if file.suffix.lower() == ".json"
            else read_rows(file, required, optional, booleans=(*self._aspects, "in_force"))
        )
        for row in rows:
            if row.cells.get("in_force"):
                if not row.flag("in_force"):  # in an export: replaced or undone later
                    continue
                row = row._replace(cells={name: unescape_csv_cell(text) for name, text in row.cells.items()})
            yield self._parse(row) if row.cells["verdict"] else None

    def _parse(self, row: TextRow) -> _LabelRow:
        """Parse a row; raise ImportFileError if a cell cannot be used."""
        value = self._values.get(row.cells["verdict"].upper())
        if value is None:
            raise row.make_cell_error(
                "verdict", f"'{row.cells['verdict']}' is no label", f"Write {' or '.join(self._values.values())}."
            )
        inclusion = row.number("inclusion")
        if inclusion is not None and not 0 < inclusion <= 1:
            raise row.make_cell_error("inclusion", f"{inclusion:g} is no probability", "Write a number in (0, 1].")
        unit = LabelUnit(self._kind, tuple(self._parse_part(row, name) for name in list_part_names(self._kind)))
        aspects = row.flags(self._aspects)
        rater = self._spell_rater(row.required_text("rater"))
        label = Label(unit, rater, value, self._labelled_at, aspects, source=self._source)
        is_exported = bool(row.cells.get("in_force"))
        text_hash = (row.cells.get("text_hash") or None) if is_exported else None
        return _LabelRow(row.location, label, inclusion, is_exported, text_hash)

    def _parse_part(self, row: TextRow, name: str) -> str:
        """Parse a part of a unit's identity as stored."""
        if name in ("sample", "left", "right"):
            return str(row.integer(name))
        if name == "country":
            return "" if self._is_task else self._spell_country(row.required_text(name))
        if name == "topic" and not self._is_task:
            return self._spell_topic(row.required_text(name))
        return self._spell_model(row.required_text(name)) if name == "model" else row.required_text(name)


def _collect_rows(
    rows: Iterable[_LabelRow | None], known_units: Collection[LabelUnit], audit: str
) -> tuple[list[_LabelRow], int]:
    """Check all rows against each other and the audit; return the labels, and the number of rows without one."""
    n_empty = 0
    by_rater: dict[tuple[LabelUnit, str], _LabelRow] = {}
    for row in rows:
        if row is None:
            n_empty += 1
            continue
        unit, rater = row.label.unit, row.label.rater
        if unit not in known_units:
            parts = ", ".join(
                f"{name} {part}" for name, part in zip(list_part_names(unit.kind), unit.parts, strict=True)
            )
            raise ImportFileError(
                f"{row.location}: audit '{audit}' has no {unit.kind.noun} to label with {parts}.",
                f"{_suggest_name(unit, known_units) or 'Correct the row.'} Only traces with a readable answer can be "
                "labelled.",
            )
        if (unit, rater) in by_rater:
            raise ImportFileError(
                f"{row.location}: the label of {rater} on this {unit.kind.noun} occurs twice.", "Keep one of the rows."
            )
        by_rater[unit, rater] = row
    return list(by_rater.values()), n_empty


def _suggest_name(unit: LabelUnit, known_units: Iterable[LabelUnit]) -> str:
    """A question that names the known name closest to an unknown one of a unit; empty if none is close.

    Numbers have no close names: sample 1 is not meant where sample 10 has no readable answer.
    """
    for part, known_names in zip(unit.parts, zip(*(known.parts for known in known_units), strict=True), strict=False):
        is_unknown_name = not part.isdecimal() and part not in known_names
        if is_unknown_name and (hint := did_you_mean(part, dict.fromkeys(known_names), "")):
            return hint
    return ""


def _require_one_spelling(rows: Sequence[_LabelRow], raters: Iterable[str]) -> None:
    """Raise ImportFileError if a rater's name looks like another one, of the file or stored.

    One person would be two raters, who agree with each other.
    """
    known = set(raters)
    for row in rows:
        rater = row.label.rater
        twin = find_lookalike(rater, known)
        if twin is not None:
            raise ImportFileError(
                f"{row.location}: the raters '{rater}' and '{twin}' differ in capital letters or spaces only.",
                "Write each rater's name in one way; give two people names that differ in more.",
            )
        known.add(rater)


def _require_labelled_texts(hash_text: Callable[[Label], str], rows: Sequence[_LabelRow], audit: str) -> None:
    """Raise ImportFileError if exported labels were made of other traces than those of this audit.

    What a rater reads of other kinds depends on the audit's name, by which the order of both texts is drawn.
    """
    hashed = [row for row in rows if row.text_hash and row.label.unit.kind is LabelKind.TRACE]
    different = [row for row in hashed if row.text_hash != hash_text(row.label)]
    if different:
        raise ImportFileError(
            f"{different[0].location}: {pluralize(len(different), 'label')} made of another text than that of audit "
            f"'{audit}': the answers or the questions to raters differ.",
            "Import the labels into the audit that was labelled. If only the questions differ, empty the column "
            "text_hash in these rows.",
        )


def _is_same(label: Label, stored: Label | None) -> bool:
    """Whether a rater's stored label says the same."""
    return stored is not None and (label.value, label.aspects) == (stored.value, stored.aspects)


# --- a sample that was drawn elsewhere --------------------------------------------------------------------------


def _find_new_sample(
    db: Database, audit: Audit, kind: LabelKind, rows: list[_LabelRow], units: Mapping[LabelUnit, LabelableUnit]
) -> list[DrawnUnit]:
    """Return the units that a file with inclusion probabilities adds to the imported sample; empty without these.

    Args:
        units: the units that can be in a sample, by their identity; labels of others are in no sample.
    """
    if all(row.inclusion is None for row in rows):
        return []
    draw = labels.load_draw(db, audit.id, kind)
    known = {sampled.unit: sampled.inclusion for sampled in labels.load_label_sample(db, audit.id, kind)}
    probabilities = [(row.label.unit, row.inclusion) for row in rows if row.inclusion is not None]
    if all(known.get(unit) == inclusion for unit, inclusion in probabilities) and all(row.is_exported for row in rows):
        return []  # an export that is imported again
    if draw is not None and draw.source == labels.REVIEW_SOURCE:
        raise UsageError(
            f"audit '{audit.name}' has a drawn label sample of {kind.noun}s, so no other can be imported.",
            "Remove the column inclusion: labels of the drawn sample then count, and other labels are only stored.",
        )
    n_before = len(known)
    advice = f"Give every {kind.noun} of the sample one probability, the same in all rows."
    for row in rows:
        if row.inclusion is None and row.is_exported:
            continue
        if row.inclusion is None:
            raise ImportFileError(
                f"{row.location}: the row has no inclusion probability, but other rows have one.", advice
            )
        if row.label.unit not in units:
            continue
        inclusion = known.setdefault(row.label.unit, row.inclusion)
        if inclusion != row.inclusion:
            raise ImportFileError(
                f"{row.location}: the inclusion probability is {row.inclusion:g}, but {inclusion:g} in another row "
                "or import.",
                advice,
            )
    return [
        DrawnUnit(unit.parts, (), len(units), units[unit].content, inclusion)
        for unit, inclusion in list(known.items())[n_before:]
    ]


def _save_sample(
    db: Database, audit: Audit, kind: LabelKind, source: str, sampled: list[DrawnUnit], units: list[LabelableUnit]
) -> None:
    """Store an imported sample, or add units to the one that was imported before."""
    draw = labels.load_draw(db, audit.id, kind)
    if draw is not None:
        labels.extend_draw(db, audit.id, draw, sampled, len(labels.load_label_sample(db, audit.id, kind)))
        return
    new_draw = LabelDraw(0, kind, source, 0, (), (), len(units), hash_population(units))
    labels.save_draw(db, audit.id, new_draw, sampled)
