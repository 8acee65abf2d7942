"""Records and rows of published data sets: items, people's comparisons, questions and rules of thumb."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from auditor.domain import derive_seed
from auditor.errors import ImportFileError, UsageError
from auditor.input_files import parse_json, read_numbered_lines, read_text, require_file
from auditor.packed_files import iterate_parquet
from auditor.text_safety import truncate_text

WRONG_LAYOUT_HINT = "Check that DATASET is the name of this data set, and that the file is complete and unchanged."
_TYPE_NAMES: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}

T = TypeVar("T")


@dataclass(frozen=True)
class SourceRecord:
    """One object of a file, and its location for error messages.

    All methods raise an ImportFileError if the field is missing or has another type.
    """

    location: str
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a text."""
        return self._typed(name, str)

    def optional_text(self, name: str) -> str:
        """Return a text; an empty one if the field is missing or null."""
        return self.text(name) if self.fields.get(name) is not None else ""

    def number(self, name: str) -> float:
        """Return a finite number."""
        number = self._typed(name, float)
        if not math.isfinite(number):
            raise self.make_error(name, f"is {number}, not a finite number")
        return number

    def position(self, name: str, length: int) -> int:
        """Return a position in a list of `length` elements, counted from 0; it may be written as text."""
        value = self.fields.get(name)
        if isinstance(value, str) and value.isdecimal() and value.isascii():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < length:
            raise self.make_error(name, f"is {truncate_text(str(value))}, not a whole number from 0 to {length - 1}")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        return [element.text(name) for element in self._elements(name)]

    def numbers(self, name: str) -> list[float]:
        """Return a list of finite numbers."""
        return [element.number(name) for element in self._elements(name)]

    def child(self, name: str) -> SourceRecord:
        """Return an object."""
        return SourceRecord(f"{self.location}, field '{name}'", self._typed(name, dict))

    def children(self, name: str) -> list[SourceRecord]:
        """Return a list of objects; copies in columnar form have an object of lists of equal length instead."""
        location = f"{self.location}, field '{name}'"
        if not isinstance(self.fields.get(name), dict):
            elements = self._typed(name, list)
        else:
            columns = {key: values for key, values in self.fields[name].items() if isinstance(values, list)}
            if len({len(values) for values in columns.values()}) > 1:
                raise ImportFileError(f"{location}: its lists differ in length.", WRONG_LAYOUT_HINT)
            elements = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for element in elements:
            if not isinstance(element, dict):
                raise ImportFileError(f"{location}: an element is not an object.", WRONG_LAYOUT_HINT)
        return [SourceRecord(location, element) for element in elements]

    def make_error(self, name: str, problem: str) -> ImportFileError:
        """Build an error about a field, for the caller to raise."""
        return ImportFileError(f"{self.location}: the field '{name}' {problem}.", WRONG_LAYOUT_HINT)

    def _elements(self, name: str) -> list[SourceRecord]:
        """The elements of a list, each as the field `name` of a record."""
        return [SourceRecord(self.location, {name: element}) for element in self._typed(name, list)]

    def _typed(self, name: str, expected: type[T]) -> T:
        """Return a field of this type; a whole number is also a number."""
        value: Any = self.fields.get(name)
        if value is None:
            raise self.make_error(name, "is missing")
        if expected is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, expected):
            raise self.make_error(name, f"is not {_TYPE_NAMES[expected]}")
        return value


def read_records(source: Path) -> Iterator[SourceRecord]:
    """Yield the objects of a file, or of all `.json`, `.jsonl` and `.parquet` files in a folder.

    A `.parquet` file has one object in each row; any other file has one on each line, or is a JSON list of them.

    Raises:
        ImportFileError: a file cannot be read, or an element is not an object; the message names it.
    """
    files = [source]
    if source.is_dir():
        files = sorted(path for path in source.iterdir() if path.suffix.lower() in (".json", ".jsonl", ".parquet"))
        if not files:
            raise ImportFileError(
                f"{source}: the folder has no .json, .jsonl or .parquet file.", "Name the folder with the data."
            )
    for file in files:
        for location, value in _read_parquet(file) if file.suffix.lower() == ".parquet" else _read_json(file):
            if not isinstance(value, dict):
                raise ImportFileError(f"{location} is not a JSON object.", WRONG_LAYOUT_HINT)
            yield SourceRecord(location, value)


def select_split(records: Iterable[SourceRecord], split: str) -> list[SourceRecord]:
    """Return the records whose field `split` has this value; all of them if it is empty.

    Raises:
        UsageError: there is no such record.
    """
    all_records = list(records)
    selected = [record for record in all_records if not split or record.optional_text("split") == split]
    if all_records and not selected:
        raise unknown_split_error(split, (record.optional_text("split") for record in all_records))
    return selected


def unknown_split_error(split: str, known_splits: Iterable[str]) -> UsageError:
    """The error for a split that the data do not have; it is not raised here."""
    names = ", ".join(sorted(set(known_splits) - {""}))
    how_to_fix = f"Use one of {names}." if names else "Leave it out: the file has no splits."
    return UsageError(f"--split: the data have no split '{split}'.", how_to_fix)


def read_text_list(file: Path) -> list[str]:
    """Return the texts of a JSON list.

    Raises:
        ImportFileError: the file is not a JSON list of texts.
    """
    values = parse_json(read_text(file, ImportFileError), str(file), ImportFileError)
    if not isinstance(values, list):
        raise ImportFileError(f"{file}: is not a JSON list.", WRONG_LAYOUT_HINT)
    for number, value in enumerate(values, start=1):
        if not isinstance(value, str):
            raise ImportFileError(f"{file}: element {number} of the list is not text.", WRONG_LAYOUT_HINT)
    return values


def _read_json(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the values of a JSON list or of JSON Lines; published JSON Lines may have the suffix `.json`."""
    _, first_line = next(read_numbered_lines(file, ImportFileError), ("", ""))
    if first_line.lstrip()[:1] == "[":
        values = parse_json(read_text(file, ImportFileError), str(file), ImportFileError)
        yield from ((f"{file}: element {number}", value) for number, value in enumerate(values, start=1))
        return
    for location, line in read_numbered_lines(file, ImportFileError):
        yield location, parse_json(line, location, ImportFileError)


def _read_parquet(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a Parquet file."""
    require_file(file, ImportFileError)
    for number, row in enumerate(iterate_parquet(file, ImportFileError), start=1):
        yield f"{file}: row {number}", row


PEOPLE_JUDGE = "people"
"""Judge whose comparisons are people's, in a file of comparisons."""
PARTS = ("train", "test")
TRAIN_SHARE = 0.8
"""As the 800 and 200 queries of "Aligning with Logic" (ICML 2025), Appendix B."""


class PublishedItem(NamedTuple):
    """One item of a set; `human` is people's score of it, None if there is none."""

    context: str
    item: str
    text: str
    human: float | None = None


class PublishedDecision(NamedTuple):
    """The decision of people, or of a model that ranked the items: `A` stands for `item_a`, `B` for `item_b`."""

    context: str
    item_a: str
    item_b: str
    decision: str

    def to_columns(self, labeller: str) -> dict[str, str]:
        """The columns of a file of comparisons.

        Args:
            labeller: judge whose decision it is.
        """
        return {"judge": labeller, **self._asdict(), "relation": "standard"}


class PublishedTaskItem(NamedTuple):
    """One item of a task; options are separated by `|`, empty if it has none, and `truth` is empty if it is unknown."""

    id: str
    question: str
    options: str
    truth: str
    context: str = ""


class PublishedQuestion(NamedTuple):
    """One moral question; `topics` has all its moral foundations, separated by `|`."""

    question_id: str
    question: str
    foundation: str = ""
    topics: str = ""


class PublishedRule(NamedTuple):
    """The rule of thumb that a person wrote for a question."""

    question_id: str
    rule: str


class PublishedKnownAnswer(NamedTuple):
    """A question with a known answer, for the experiment `accuracy`; choices are separated by `|`."""

    question_id: str
    question: str
    choices: str
    correct: str


PublishedRow: TypeAlias = (
    PublishedItem | PublishedDecision | PublishedTaskItem | PublishedQuestion | PublishedRule | PublishedKnownAnswer
)


@dataclass(frozen=True)
class PublishedDataset:
    """The rows of a data set by kind, and sentences on what was counted, left out or changed.

    The kind says what a file of rows is for, such as "items"; `auditor logic convert --as` names it.
    """

    rows: Mapping[str, Sequence[PublishedRow]]
    notes: Sequence[str] = ()

    def sample(self, limit: int, seed: int) -> PublishedDataset:
        """Draw at most `limit` sets of items, task items or questions, in their order; the same ones for every kind."""
        units = self._list_units()
        random_order = np.random.default_rng(derive_seed(seed, "published", "sample")).permutation(len(units))
        drawn = {units[index] for index in random_order[:limit]}
        return self._select(drawn, f"Drawn at random with seed {seed}: {len(drawn)} of {len(units)}.")

    def take_part(self, part: str, seed: int) -> PublishedDataset:
        """Take the part `train`, a random 80% of the sets, or the part `test`, the others.

        Raises:
            UsageError: another part, or none of the sets is in it.
        """
        if part not in PARTS:
            raise UsageError(f"--split: there is no part '{part}'.", f"Use {' or '.join(PARTS)}.")
        units = self._list_units()
        random_order = np.random.default_rng(derive_seed(seed, "published", "split")).permutation(len(units))
        n_train = round(TRAIN_SHARE * len(units))
        selected = {units[index] for index in (random_order[:n_train] if part == "train" else random_order[n_train:])}
        if not selected:
            raise UsageError(
                f"--split {part}: none of {len(units)} sets is in this part.", "Raise --limit, or leave out --split."
            )
        return self._select(selected, f"Split at random with seed {seed}, {part}: {len(selected)} of {len(units)}.")

    def _list_units(self) -> list[str]:
        """The sets of items, task items or questions, in their order."""
        return list(dict.fromkeys(row[0] for rows in self.rows.values() for row in rows))

    def _select(self, units: Collection[str], note: str) -> PublishedDataset:
        """The rows of these sets, task items or questions, of every kind."""
        rows = {kind: [row for row in kind_rows if row[0] in units] for kind, kind_rows in self.rows.items()}
        return PublishedDataset(rows, [*self.notes, note])


class ConversionOptions(NamedTuple):
    """Options of a conversion; each format uses some of them.

    Attributes:
        aspect: what items are compared by; empty for the format's default.
        permutations: file of rankings of the items.
        min_events: fewest events of a story.
        passages: largest number of passages of a query.
        split: part of the data to read; empty for all.
        seed: for random orders and samples.
        limit: largest number of sets of items, task items or questions; None for all.
    """

    aspect: str = ""
    permutations: Path | None = None
    min_events: int | None = None
    passages: int | None = None
    split: str = ""
    seed: int = 0
    limit: int | None = None


class DatasetFormat(NamedTuple):
    """A data set that can be converted.

    Attributes:
        read: reads its file or folder.
        kinds: what it can be converted to; the first is the default.
        used_options: names of the fields of `ConversionOptions` that it uses.
        relation: what its items are compared by, for the probe `logic` and for imports of comparisons.
        labeller: judge of its comparisons.
        is_split_at_random: whether the data have no parts of their own, so that `split` draws one.
        layout_source: where its layout was taken from, if no original file was available to test the reader with;
            empty if the reader was tested with the original files.
    """

    read: Callable[[Path, ConversionOptions], PublishedDataset]
    kinds: tuple[str, ...] = ("items",)
    used_options: frozenset[str] = frozenset()
    relation: str = "preference"
    labeller: str = PEOPLE_JUDGE
    is_split_at_random: bool = False
    layout_source: str = ""
