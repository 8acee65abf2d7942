"""Read the respondents of an official data file: their countries, weights and answers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError, pluralize
from auditor.surveys.answer_codes import (
    decode_answers,
    decode_groups,
    describe_scale_ends,
    format_value,
    list_ungrouped_values,
    make_unknown_values_error,
    parse_number,
)
from auditor.surveys.column_reader import (
    ColumnValue,
    DistinctValueColumn,
    blank_missing_na,
    is_missing_marker,
    read_columns,
)
from auditor.surveys.country_columns import CountryValue, decode_countries
from auditor.surveys.estimates import SurveyDesign, build_designs
from auditor.surveys.mapping import SurveyMapping, TopicColumn
from auditor.surveys.table_formats import has_decimal_commas, looks_like_thousands, points_may_separate_thousands

WAVE_COLUMNS = ("wave", "a_wave", "round", "essround", "s002", "s002vs", "year", "survey_year")
"""Usual names of the column of waves: of many surveys, the ESS, the WVS and the GSS."""
MIN_YEAR, MAX_YEAR = 1930, 2100
BALLOT_COLUMNS = ("ballot",)
NOT_ASKED_KIND = "not asked (empty)"
"""The kind of nonresponse of an empty field of a person who was not asked."""


@dataclass(frozen=True, slots=True)
class FileReading:
    """How the columns of a file were read, for the reader of an import.

    Attributes:
        country_values: what each value of the country column means.
        answer_counts: number of fields by kind of nonresponse, over all topics.
        n_blank_asked: empty answers that count as nonresponse.
        n_blank_not_asked: empty answers of people who were not asked.
        weight_range: smallest and largest weight; None without a weight column.
        rows_by_wave: rows by value, for each column of waves.
        ungrouped_values: for each dimension of groups, rows by value that is in no group.
        scale_ends: number of topics by what the file labels the ends of their scale.
    """

    country_values: Sequence[CountryValue]
    answer_counts: Mapping[str, int]
    n_blank_asked: int
    n_blank_not_asked: int
    weight_range: tuple[float, float] | None
    rows_by_wave: Mapping[str, Mapping[str, int]]
    ungrouped_values: Mapping[str, Mapping[str, int]]
    scale_ends: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The reading as JSON data; of countries their names, sources and rows."""
        countries = [
            {
                "value": format_value(value.value, value.label),
                "country": value.country,
                "source": value.source,
                "rows": value.n_rows,
            }
            for value in self.country_values
        ]
        return {
            "countries": countries,
            "answers_without_score": dict(self.answer_counts),
            "empty": {"nonresponse": self.n_blank_asked, "not_asked": self.n_blank_not_asked},
            "weights": self.weight_range,
            "waves": self.rows_by_wave,
            "in_no_group": self.ungrouped_values,
            "scale_ends": dict(self.scale_ends),
        }


@dataclass(frozen=True, slots=True)
class Microdata:
    """Respondents, sorted by country.

    Attributes:
        countries: names, in the order of the file.
        topics: names, in the order of the mapping.
        country_offsets: shape (countries + 1,): country i has the rows country_offsets[i] to country_offsets[i + 1].
        weights: shape (respondents,), above 0.
        answers: shape (respondents, topics), in [-1, 1]; nan if the respondent gave no answer.
        kind_index: shape (respondents, topics): position in `kinds`, or ANSWERED.
        kinds: names of the kinds of nonresponse.
        kind_was_asked: for each kind of nonresponse whether the respondent was asked the question.
        excluded_rows: number of unusable rows of the file by reason.
        notes: remarks for users of the estimates, such as strata with one primary sampling unit.
    """

    countries: tuple[str, ...]
    topics: tuple[str, ...]
    country_offsets: NDArray[np.int64]
    weights: NDArray[np.float64]
    answers: NDArray[np.float64]
    kind_index: NDArray[np.int8]
    kinds: tuple[str, ...]
    kind_was_asked: tuple[bool, ...]
    excluded_rows: dict[str, int]
    notes: tuple[str, ...] = ()
    groups: Mapping[str, NDArray[np.int16]] = field(default_factory=dict)
    """For each dimension that the file has, shape (respondents,): position in the mapping's groups, or NO_GROUP."""
    reading: FileReading | None = None
    designs: Mapping[str, SurveyDesign] = field(default_factory=dict)
    """By country, how its respondents were drawn; a country without strata and sampling units is not in it."""


def read_microdata(path: Path, mapping: SurveyMapping) -> Microdata:
    """Read the respondents' answers from the columns that a mapping names; other columns are not read.

    Raises:
        ImportFileError: the file cannot be used, or its meaning is not certain; the message names column and row.
    """
    columns = _read_mapped_columns(path, mapping)
    weights = _parse_weights(columns.weight, path) if columns.weight else np.ones(columns.country.value_index.size)
    country_names, country_index, country_values = decode_countries(columns.country, mapping, path)
    usable = _find_usable_rows(country_index, weights, columns.excluded_rows)
    if not usable.any():
        raise _make_no_rows_error(path, columns.excluded_rows)
    weight_range = (float(weights[usable].min()), float(weights[usable].max())) if columns.weight else None
    row_order = np.argsort(country_index[usable], kind="stable")
    used_countries, offsets = np.unique(country_index[usable][row_order], return_index=True)
    offsets = np.append(offsets, row_order.size)
    countries = tuple(country_names[i] for i in used_countries)
    sorted_rows = np.flatnonzero(usable)[row_order]
    strata, psu = (column.select_rows(sorted_rows) if column else None for column in (columns.strata, columns.psu))
    rows_by_country = dict(zip(countries, itertools.pairwise(offsets.tolist()), strict=True))
    designs, notes = build_designs(strata, psu, rows_by_country, path)
    waves = [column.select_rows(usable) for column in columns.waves]
    require_one_wave(waves, mapping, path)
    ballots = [column.select_rows(usable) for column in columns.ballots]
    answers = _decode_topics(
        [column.select_rows(usable) for column in columns.topics],
        mapping,
        _combine_blocks(country_index[usable], [column.value_index for column in (*waves, *ballots)]),
        path,
    )
    groups = [column.select_rows(usable) for column in columns.groups]
    kinds = answers.kinds
    return Microdata(
        countries=countries,
        topics=tuple(mapping.topic_by_column.values()),
        country_offsets=offsets.astype(np.int64),
        weights=weights[usable][row_order],
        answers=answers.scores[row_order],
        kind_index=answers.kind_index[row_order],
        kinds=tuple(kinds),
        kind_was_asked=tuple(kinds.values()),
        excluded_rows=columns.excluded_rows,
        notes=tuple(
            notes
            + [f"no row of {country} can be used" for i, country in enumerate(country_names) if i not in used_countries]
        ),
        groups={name: index[row_order] for name, index in decode_groups(groups, mapping).items()},
        reading=FileReading(
            country_values=country_values,
            answer_counts=answers.count_by_kind(),
            n_blank_asked=answers.n_blank_asked,
            n_blank_not_asked=answers.n_blank_not_asked,
            weight_range=weight_range,
            rows_by_wave={wave.name: count_values(wave) for wave in waves},
            ungrouped_values=list_ungrouped_values(groups, mapping),
            scale_ends=_count_scale_ends(columns.topics, mapping),
        ),
        designs=designs,
    )


class _MappedColumns(NamedTuple):
    """The columns of a file that a mapping names, with the rows that it keeps."""

    country: DistinctValueColumn
    weight: DistinctValueColumn | None
    strata: DistinctValueColumn | None
    psu: DistinctValueColumn | None
    topics: list[DistinctValueColumn]
    waves: list[DistinctValueColumn]
    ballots: list[DistinctValueColumn]
    groups: list[DistinctValueColumn]
    excluded_rows: dict[str, int]


def _read_mapped_columns(path: Path, mapping: SurveyMapping) -> _MappedColumns:
    """Read the columns that a mapping names, and those of waves and ballots; errors as for `read_microdata`."""
    wave, ballot = mapping.columns.wave, mapping.columns.ballot
    single_columns = {name: getattr(mapping.columns, name) for name in ("weight", "strata", "psu")}
    required = {
        **{name: [column] if column else [] for name, column in single_columns.items()},
        "filters": [*mapping.keep],
        "wave": [wave] if wave else [],
        "ballot": [ballot] if ballot else [],
        "topics": [*mapping.topics],
    }
    countries = [] if mapping.country else [mapping.columns.country]
    candidate_names = [*countries, *([name] for names in required.values() for name in names)]
    group_names = {dimension.column.casefold(): dimension.column for dimension in mapping.groups.values()}
    optional = {
        "groups": [*group_names.values()],
        "wave": [] if wave else list(WAVE_COLUMNS),
        "ballot": [] if ballot else list(BALLOT_COLUMNS),
    }
    columns = read_columns(path, candidate_names, [name for names in optional.values() for name in names])
    others = columns[: len(candidate_names)]
    country = _make_constant_column(mapping.country, others[0]) if mapping.country else others.pop(0)
    required_columns = {key: [others.pop(0) for _ in names] for key, names in required.items()}
    present = {column.name.casefold(): column for column in columns[len(candidate_names) :]}
    present_columns = {
        key: [present[name.casefold()] for name in names if name.casefold() in present]
        for key, names in optional.items()
    }
    is_kept, excluded_rows = _select_mapped_rows(required_columns["filters"], mapping, country.value_index.size, path)

    def select(selected_columns: Iterable[DistinctValueColumn]) -> list[DistinctValueColumn]:
        """Return columns with the rows that the mapping keeps."""
        return [column if is_kept.all() else column.select_rows(is_kept) for column in selected_columns]

    waves = [column for column in present_columns["wave"] if looks_like_wave(column)]
    return _MappedColumns(
        country=select([country])[0],
        **{name: next(iter(select(required_columns[name])), None) for name in single_columns},
        topics=[blank_missing_na(column, path) for column in select(required_columns["topics"])],
        waves=select([*required_columns["wave"], *waves]),
        ballots=select([*required_columns["ballot"], *present_columns["ballot"]]),
        groups=select(present_columns["groups"]),
        excluded_rows=excluded_rows,
    )


def _make_constant_column(value: str, column: DistinctValueColumn) -> DistinctValueColumn:
    """A column that has one value in all rows of another column."""
    return DistinctValueColumn("country", (value,), {}, np.zeros_like(column.value_index), column.row_numbers)


# --- answers ----------------------------------------------------------------------------------------------------


class _TopicAnswers(NamedTuple):
    """The answers of all topics.

    Attributes:
        scores, kind_index: shape (rows, topics).
        kinds: for each kind of nonresponse whether the respondent was asked.
    """

    scores: NDArray[np.float64]
    kind_index: NDArray[np.int8]
    kinds: dict[str, bool]
    n_blank_asked: int
    n_blank_not_asked: int

    def count_by_kind(self) -> dict[str, int]:
        """Number of fields by kind of nonresponse."""
        return {kind: int(np.count_nonzero(self.kind_index == i)) for i, kind in enumerate(self.kinds)}


def _decode_topics(
    columns: list[DistinctValueColumn], mapping: SurveyMapping, block_index: NDArray[np.intp], path: Path
) -> _TopicAnswers:
    """Decode the answers of all topics; an empty answer is nonresponse, or was not asked.

    Args:
        block_index: shape (rows,), the block of country, wave and ballot of each row.

    Raises:
        ImportFileError: a value has no meaning, or the mapping does not say what empty answers mean.
    """
    kinds = mapping.asked_by_kind
    column_mappings = [mapping.for_column(name) for name in mapping.topics]
    decoded = [
        decode_answers(column, column_mapping, tuple(kinds), path)
        for column, column_mapping in zip(columns, column_mappings, strict=True)
    ]
    unknown_values = [(column, answers.unknown_values) for column, answers in zip(columns, decoded, strict=True)]
    if any(positions for _, positions in unknown_values):
        raise make_unknown_values_error(unknown_values, column_mappings, path)
    kind_index = np.column_stack([answers.kind_index for answers in decoded])
    is_blank = np.column_stack([answers.is_blank for answers in decoded])
    not_asked = np.zeros_like(is_blank)
    block_sizes = np.bincount(block_index)
    for topic_index in np.flatnonzero(is_blank.any(axis=0)):
        blanks = np.bincount(block_index, weights=is_blank[:, topic_index])
        not_asked[:, topic_index] = (blanks == block_sizes)[block_index]
    scattered = is_blank & ~not_asked
    if mapping.blank is None and scattered.any():
        raise _make_blank_error(columns, scattered, path)
    if mapping.blank == "not asked":
        not_asked = is_blank
    if not_asked.any():
        kinds[NOT_ASKED_KIND] = False
        kind_index[not_asked] = list(kinds).index(NOT_ASKED_KIND)
    n_not_asked = int(np.count_nonzero(not_asked))
    n_blank_asked = int(np.count_nonzero(is_blank)) - n_not_asked
    scores = np.column_stack([answers.scores for answers in decoded])
    return _TopicAnswers(scores, kind_index, kinds, n_blank_asked, n_not_asked)


def _count_scale_ends(columns: Sequence[DistinctValueColumn], mapping: SurveyMapping) -> Counter[str]:
    """Number of topics by what the file labels the ends of their scale, so that users see a reversed scale."""
    counts: Counter[str] = Counter()
    for column, (name, entry) in zip(columns, mapping.topics.items(), strict=True):
        scale_words = entry.scale if isinstance(entry, TopicColumn) and entry.scale else mapping.scale
        if description := describe_scale_ends(column, mapping.for_column(name), scale_words):
            counts[description] += 1
    return counts


def _combine_blocks(country_index: NDArray[np.int64], others: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Number each combination of country, waves and ballots that occurs, shape (rows,)."""
    block_index = country_index
    for index in others:
        block_index = np.unique(block_index * (int(index.max()) + 1) + index, return_inverse=True)[1].astype(np.int64)
    return block_index


def _make_blank_error(
    columns: Sequence[DistinctValueColumn], scattered: NDArray[np.bool_], path: Path
) -> ImportFileError:
    """Return the error that some people have no answer, and the mapping does not say why; it lists rows and counts."""
    descriptions = []
    for column, is_blank in zip(columns, scattered.T, strict=True):
        if is_blank.any():
            row, count = int(column.row_numbers[is_blank.argmax()]), int(np.count_nonzero(is_blank))
            descriptions.append(f"row {row}, column '{column.name}' ({count} row{'s' if count > 1 else ''})")
    return ImportFileError(
        f"{path}: empty answers beside answers of the same country: {'; '.join(descriptions)}.",
        'Add blank = "nonresponse" above the first table of the mapping if these people gave no answer, or '
        'blank = "not asked" if they were not asked.',
    )


# --- waves ------------------------------------------------------------------------------------------------------


def looks_like_wave(column: DistinctValueColumn) -> bool:
    """Whether a column with the usual name of a wave has waves; a column of years must have years of surveys."""
    if column.name.casefold() not in ("year", "survey_year"):
        return True
    numbers = [parse_number(value) for value in column.values if value is not None]
    return all(number is not None and MIN_YEAR <= number <= MAX_YEAR for number in numbers)


def count_values(column: DistinctValueColumn) -> dict[str, int]:
    """Number of rows by value, as text."""
    counts = np.bincount(column.value_index, minlength=len(column.values))
    return {
        format_value(value, column.labels.get(value)): int(count)
        for value, count in zip(column.values, counts, strict=True)
        if count
    }


def find_newest_wave(column: DistinctValueColumn) -> ColumnValue:
    """The largest number in a column of waves, or its last text."""
    values = [value for value in column.values if value is not None]
    return max(values, key=lambda value: (parse_number(value) or 0, str(value)))


def require_one_wave(waves: Sequence[DistinctValueColumn], mapping: SurveyMapping, path: Path) -> None:
    """Raise ImportFileError if the file has several waves, and the mapping neither selects nor pools them."""
    selected_columns = {name.casefold() for name in mapping.keep}
    for column in waves:
        rows_by_wave = count_values(column)
        n_waves = sum(value is not None for value in column.values)
        if n_waves > 1 and not mapping.pool and column.name.casefold() not in selected_columns:
            counts = ", ".join(f"{wave} ({pluralize(count, 'row')})" for wave, count in rows_by_wave.items())
            newest = format_value(find_newest_wave(column))
            raise ImportFileError(
                f"{path}: column '{column.name}' has {n_waves} waves: {counts}.",
                f"Select one in the mapping, such as [keep] {column.name} = [{newest}], or take them together with "
                "pool = true above the first table.",
            )


# --- rows -------------------------------------------------------------------------------------------------------


def _select_mapped_rows(
    filters: Sequence[DistinctValueColumn], mapping: SurveyMapping, n_rows: int, path: Path
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return a mask of the rows that pass the mapping's `keep` filters, and the number of other rows by reason."""
    excluded_rows: dict[str, int] = {}
    selected_rows = np.ones(n_rows, bool)
    for column, listed_values in zip(filters, mapping.keep.values(), strict=True):
        kept_values = {_to_comparable_value(value) for value in listed_values}
        is_kept = np.array([_to_comparable_value(value) in kept_values for value in column.values])[column.value_index]
        n_excluded = int(np.count_nonzero(selected_rows & ~is_kept))
        if n_excluded:
            excluded_rows[f"{column.name} has a value that the mapping excludes"] = n_excluded
        selected_rows &= is_kept
        if not selected_rows.any():
            raise _make_no_rows_error(path, excluded_rows)
    return selected_rows, excluded_rows


def _find_usable_rows(
    country_index: NDArray[np.int64], weights: NDArray[np.float64], excluded_rows: dict[str, int]
) -> NDArray[np.bool_]:
    """Return a mask of usable rows, shape (rows,); count each other row in `excluded_rows` under its first reason."""
    usable = np.ones(weights.size, bool)
    reasons = {"no country": country_index < 0, "no weight": np.isnan(weights), "weight of zero": weights == 0}
    for reason, is_excluded in reasons.items():
        count = int(np.count_nonzero(is_excluded & usable))
        if count:
            excluded_rows[reason] = count
        usable &= ~is_excluded
    return usable


def _make_no_rows_error(path: Path, excluded_rows: dict[str, int]) -> ImportFileError:
    """Return the error that no row can be used, with the number of excluded rows by reason."""
    reasons = ", ".join(f"{reason} ({pluralize(count, 'row')})" for reason, count in excluded_rows.items())
    return ImportFileError(f"{path}: no row can be used: {reasons}.", "Check that it is the right file and mapping.")


def _to_comparable_value(value: ColumnValue) -> ColumnValue:
    """Convert a numeric text to a number, so that `6`, `6.0` and `"6"` compare as equal; keep other values."""
    number = parse_number(value)
    return value if number is None else number


def _parse_weights(column: DistinctValueColumn, path: Path) -> NDArray[np.float64]:
    """Weight of each row, shape (rows,), nan if empty; raise ImportFileError for a negative or non-numeric one."""
    column = column.blank_missing()
    numbers = [parse_number(value) for value in column.values]
    for value_position, (value, number) in enumerate(zip(column.values, numbers, strict=True)):
        if not is_missing_marker(value) and (number is None or number < 0):
            problem = "is not a number" if number is None else "is negative"
            raise ImportFileError(
                f"{path}: row {column.first_row_number(value_position)}, column '{column.name}': "
                f"the weight {value} {problem}.",
                "Correct it, or name another weight column in the mapping.",
            )
    texts = [value for value in column.values if isinstance(value, str)]
    unclear = [text for text in texts if looks_like_thousands(text)] if points_may_separate_thousands(texts) else []
    if unclear and not column.has_commas and has_decimal_commas(path):
        row = column.first_row_number(column.values.index(unclear[0]))
        raise ImportFileError(
            f"{path}: row {row}, column '{column.name}': the weight {unclear[0]} can be read in two ways, since "
            "decimals have commas in this file.",
            "Write 1234 or 1,234, not 1.234.",
        )
    return np.array([math.nan if number is None else number for number in numbers])[column.value_index]
