"""Respondents' answers on one scale, out of the codes of a file: what every estimate is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError
from auditor.surveys.column_reader import Column, Value, read_columns
from auditor.surveys.countries import country_code, country_name
from auditor.surveys.mapping import BLANK, Mapping, Scale, begins

ANSWERED = -1
"""Stands in `Microdata.kind` where the respondent gave an answer."""
EXPANSION = 5.0
"""Weights whose mean in a country is above this, or below its inverse, are no analysis weights of mean near 1."""


@dataclass(frozen=True, slots=True)
class Microdata:
    """Respondents, sorted by country.

    Attributes:
        countries: names, in the order of the file.
        topics: names, in the order of the mapping.
        starts: shape (countries + 1,): respondents of country i are rows starts[i] to starts[i + 1].
        weight: shape (respondents,), above 0.
        answers: shape (respondents, topics), in [-1, 1]; nan where there is none.
        kind: shape (respondents, topics): position in `kinds`, or ANSWERED.
        kinds: names of the kinds of nonresponse.
        asked: for each kind whether the question was put at all.
        choices: names and scores of the answers, where there are only a few.
        left_out: rows of the file that cannot be used, by reason.
        notes: what a reader of the estimates should know.
    """

    countries: tuple[str, ...]
    topics: tuple[str, ...]
    starts: NDArray[np.int64]
    weight: NDArray[np.float64]
    answers: NDArray[np.float64]
    kind: NDArray[np.int8]
    kinds: tuple[str, ...]
    asked: tuple[bool, ...]
    choices: dict[str, float]
    left_out: dict[str, int]
    notes: tuple[str, ...] = ()


def read_microdata(path: Path, mapping: Mapping) -> Microdata:
    """Read the columns that a mapping names, and nothing else.

    Raises:
        ImportFileError: the file cannot be used; the message names column and row.
    """
    weights = [[mapping.columns.weight]] if mapping.columns.weight else []
    wanted = [mapping.columns.country, *weights, *([k] for k in mapping.keep), *([t] for t in mapping.topics)]
    columns, left_out = _kept(read_columns(path, wanted), mapping, path)
    country, topics = columns[0], columns[-len(mapping.topics) :]
    weight = _weights(columns[1], path) if weights else np.ones(country.index.size)
    names, place = _countries(country, path)
    usable = _usable(place, weight, left_out)
    if not usable.any():
        raise _nothing_left(path, left_out)
    order = np.argsort(place[usable], kind="stable")
    present, starts = np.unique(place[usable][order], return_index=True)
    starts = np.append(starts, order.size)
    weight, notes = _rescaled(weight[usable][order], starts, [names[i] for i in present])
    kinds = mapping.kinds
    decoded = [_decode(column.only(usable), mapping, tuple(kinds), path) for column in topics]
    return Microdata(
        countries=tuple(names[i] for i in present),
        topics=tuple(mapping.topics.values()),
        starts=starts.astype(np.int64),
        weight=weight,
        answers=np.column_stack([score[order] for score, _ in decoded]),
        kind=np.column_stack([kind[order] for _, kind in decoded]),
        kinds=tuple(kinds),
        asked=tuple(k.asked for k in kinds.values()),
        choices={name: choice.score for name, choice in (mapping.choices or {}).items()},
        left_out=left_out,
        notes=tuple(notes + [f"not one row of {n} can be used" for i, n in enumerate(names) if i not in present]),
    )


# --- rows -------------------------------------------------------------------------------------------------------


def _kept(columns: list[Column], mapping: Mapping, path: Path) -> tuple[list[Column], dict[str, int]]:
    """The columns with the rows that the mapping keeps, and how many it does not."""
    left_out: dict[str, int] = {}
    first = len(columns) - len(mapping.topics) - len(mapping.keep)
    for place, values in enumerate(mapping.keep.values(), start=first):
        known = {_key(v) for v in values}
        right = np.array([_key(v) in known for v in columns[place].values])[columns[place].index]
        if not right.all():
            left_out[f"{columns[place].name} is another than the mapping keeps"] = int(np.count_nonzero(~right))
            columns = [column.only(right) for column in columns]
        if not right.any():
            raise _nothing_left(path, left_out)
    return columns, left_out


def _usable(place: NDArray[np.int64], weight: NDArray[np.float64], left_out: dict[str, int]) -> NDArray[np.bool_]:
    """Rows that can be used; the others are counted in `left_out` by the first reason that each has."""
    usable = np.ones(weight.size, bool)
    reasons = {"no country": place < 0, "no weight": np.isnan(weight), "weight of zero": weight == 0}
    for reason, mask in reasons.items():
        count = int(np.count_nonzero(mask & usable))
        if count:
            left_out[reason] = count
        usable &= ~mask
    return usable


def _nothing_left(path: Path, left_out: dict[str, int]) -> ImportFileError:
    reasons = ", ".join(f"{reason} ({count} rows)" for reason, count in left_out.items())
    return ImportFileError(f"{path}: not one row can be used: {reasons}.", "Is it the right file and mapping?")


def _key(value: Value) -> Value:
    """The number in a text, so that `6`, `6.0` and `"6"` are one value."""
    number = _number(value)
    return value if number is None else number


def _number(value: Value) -> float | None:
    if value is None:
        return None
    try:
        # Files that separate by semicolons write decimal commas.
        number = float(value.replace(",", ".") if isinstance(value, str) else value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _weights(column: Column, path: Path) -> NDArray[np.float64]:
    numbers = [_number(value) for value in column.values]
    for place, (value, number) in enumerate(zip(column.values, numbers, strict=True)):
        if value is not None and (number is None or number < 0):
            problem = "is no number" if number is None else "is negative"
            raise ImportFileError(
                f"{path}: row {column.first_row(place)}, column '{column.name}': the weight {value} {problem}.",
                "Mend it, or name another weight column in the mapping.",
            )
    return np.array([math.nan if n is None else n for n in numbers])[column.index]


def _rescaled(
    weight: NDArray[np.float64], starts: NDArray[np.intp], countries: Sequence[str]
) -> tuple[NDArray[np.float64], list[str]]:
    """Weights that add up to a population are brought to mean 1, since standard errors take their sum as the sample."""
    weight, notes = weight.copy(), []
    for name, start, end in zip(countries, starts[:-1], starts[1:], strict=True):
        mean = float(weight[start:end].mean())
        if not 1 / EXPANSION <= mean <= EXPANSION:
            weight[start:end] /= mean
            notes.append(f"the weights of {name} have mean {mean:g}, not about 1, and were divided by it")
    return weight, notes


def _countries(column: Column, path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Country names in the order of the file, and each row's place among them, -1 where it has none."""
    names: list[str] = []
    spelling: dict[str, Value] = {}
    places = np.full(len(column.values), -1, np.int64)
    _, first = np.unique(column.index, return_index=True)
    for i in np.argsort(first):
        value = column.values[i]
        number = _number(value)
        if value is None or (number is not None and number < 0):
            continue
        name = _country(value, number, column.labels.get(value))
        where = f"{path}: row {column.first_row(i)}, column '{column.name}'"
        if name is None:
            raise ImportFileError(f"{where}: {value} is no country of ISO 3166.", "Give a file with country names.")
        code = country_code(name) or name
        if code in spelling:
            raise ImportFileError(f"{where}: '{value}' is there as '{spelling[code]}' too.", "Use one spelling for it.")
        spelling[code] = value
        places[i] = len(names)
        names.append(name)
    return names, places[column.index]


def _country(value: Value, number: float | None, label: str | None) -> str | None:
    if label:
        return label
    if number is not None:
        return country_name(f"{number:.0f}")
    return country_name(str(value)) or str(value)


# --- codes ------------------------------------------------------------------------------------------------------


def _decode(
    column: Column, mapping: Mapping, kinds: Sequence[str], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Each row's score, nan where it has none, and kind of nonresponse, ANSWERED where it has none."""
    scale = _oriented(mapping.answers, column) if mapping.answers else None
    score = np.full(len(column.values), math.nan)
    kind = np.full(len(column.values), ANSWERED, np.int8)
    for i, value in enumerate(column.values):
        meaning = _meaning(value, column.labels.get(value), mapping, scale)
        if meaning is None:
            raise ImportFileError(*_unknown_code(column, i, scale, path))
        if isinstance(meaning, str):
            kind[i] = kinds.index(meaning)
        else:
            score[i] = meaning
    return score[column.index], kind[column.index]


def _meaning(value: Value, label: str | None, mapping: Mapping, scale: Scale | None) -> str | float | None:
    """A score, the name of a kind of nonresponse, or None where the value means nothing. Labels come first."""
    number = _number(value)
    text = label or (value if isinstance(value, str) and number is None else None)
    if value is None:
        return BLANK
    if text is not None:
        for name, kind in mapping.kinds.items():
            if kind.has_label(text):
                return name
        for choice in (mapping.choices or {}).values():
            if choice.has_label(text):
                return choice.score
        if scale is not None and number is None:
            ends = ((scale.low_label, -1.0), (scale.high_label, 1.0))
            return next((s for prefix, s in ends if prefix and begins(text, prefix)), None)
    for name, kind in mapping.kinds.items():
        if number in kind.codes:
            return name
    if scale is not None:
        return _on_scale(number, scale)
    # A label that is none of the choices would make the code a guess.
    codes = {} if label else {float(code): c.score for c in (mapping.choices or {}).values() for code in c.codes}
    return None if number is None else codes.get(number)


def _on_scale(number: float | None, scale: Scale) -> float | None:
    low, high = sorted((scale.low, scale.high))
    if number is None or not low <= number <= high or not number.is_integer():
        return None
    return 2 * (number - scale.low) / (scale.high - scale.low) - 1


def _oriented(scale: Scale, column: Column) -> Scale:
    """The scale as the file's own labels of its ends have it, or as the mapping has it where there are none."""
    ends: dict[str, int] = {}
    for value, label in column.labels.items():
        for end, prefix in (("low", scale.low_label), ("high", scale.high_label)):
            if prefix and begins(label, prefix) and isinstance(value, (int, float)):
                ends[end] = int(value)
    return scale.model_copy(update=ends) if len(ends) == 2 else scale


def _unknown_code(column: Column, place: int, scale: Scale | None, path: Path) -> tuple[str, str]:
    value, count = column.values[place], column.count(place)
    label = column.labels.get(value)
    code = f"{value:g}" if isinstance(value, float) else f"'{value}'"
    named = f" ('{label}')" if label else ""
    known = f"on the scale {scale.low} to {scale.high}" if scale else "one of the choices"
    rows = f"; {count} rows have it" if count > 1 else ""
    return (
        f"{path}: row {column.first_row(place)}, column '{column.name}': {code}{named} is neither {known} nor a known "
        f"kind of nonresponse{rows}.",
        "Mend the file, or say what it means under [nonresponse] in a mapping of your own.",
    )
