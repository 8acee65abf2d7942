"""Convert a published table of shares of answers to a survey, for those who have no respondents' file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import ImportFileError, UsageError, pluralize
from auditor.surveys.countries import (
    COUNTRY_CODES_ADVICE,
    CountryCodes,
    country_codes as find_codes,
    country_key,
    country_name,
    is_country_number,
)
from auditor.surveys.country_columns import UNKNOWN_NAME, CountryValue, describe_unknown_names
from auditor.surveys.description import SurveyDescription, find_topic_families, topic_words
from auditor.surveys.distributions import (
    EVERYONE,
    MIN_GROUP_SIZE,
    AnswerPoint,
    AnswerScale,
    CellShares,
    SurveyDistributions,
    binomial_cut_variances,
    describe_cell,
)
from auditor.surveys.row_reader import TextRow, read_column_names, read_rows
from auditor.surveys.table_formats import NA
from auditor.text_safety import fold_name

SHARE_COLUMN = re.compile(r"p([1-9][0-9]*)")
SUM_TOLERANCE = 0.02
"""By how much rounded shares of a row may differ from 1 in total; they are then divided by their sum."""
ROUNDING = 0.001
"""By how much shares with a few decimals may differ from 1 without a note."""
MAX_REMAINDER = 0.5
"""Largest part of a row that no column has; a larger one means that the shares have another unit."""
MAX_POINTS = 101
ROW_COLUMNS = ("n", "dimension", "group", "low", "high", "answers")
NONRESPONSE_COLUMN = re.compile(r"(dontknow|dk|refused|refusal|noanswer|noopinion|nonresponse)+")
"""Columns of people who gave no answer, such as `DK/Refused`, without case, spaces and punctuation."""


@dataclass(frozen=True, slots=True)
class ShareTableSurvey:
    """A survey made from a table of shares.

    Attributes:
        notes: remarks for users, such as how many groups were left out.
    """

    survey: Survey
    distributions: SurveyDistributions
    notes: tuple[str, ...]


def import_share_table(
    path: str | Path,
    low: int | None = None,
    high: int | None = None,
    name: str | None = None,
    country_codes: CountryCodes | None = None,
) -> ShareTableSurvey:
    """Convert a table of shares to a survey: scores are means of the shares on the scale from -1 to +1.

    Args:
        path: a table with the columns `country,topic[,n][,dimension,group][,low,high][,answers][,don't know][,refused],
            p1,...,pK`. Shares are from 0 to 1 or in percent; rows without a dimension are of everyone. `low` and `high`
            are the scale of a row's topic, `answers` its answers in words, with `|` between them; columns of shares
            beyond a topic's answers are empty. `n` is the number of people that the shares are of. A row without any
            share is of a question that was not asked.
        low, high: the answers that p1 and pK are the shares of, for a table whose rows have no scale; the first means
            never acceptable.
        name: the survey's name; by default the file's name without its suffix.
        country_codes: what numbers mean in the column `country`.

    Raises:
        UsageError: the scale has another number of answers than the file.
        ImportFileError: the file is invalid; the message names row and column.
    """
    path = Path(path)
    columns = _find_columns(path, low, high)
    rows = read_rows(path, ("country", "topic", *columns.shares), (*ROW_COLUMNS, *columns.nonresponse))
    by_key: dict[tuple[str, str, str, str], _ShareRow] = {}
    scales: dict[str, AnswerScale] = {}
    country_by_code: dict[str, str] = {}
    topic_by_folded: dict[str, str] = {}
    n_not_asked = 0
    for row in rows:
        if not any(row.cells[column] for column in (*columns.shares, *columns.nonresponse)):
            n_not_asked += 1
            continue
        parsed = _parse_row(row, columns, country_codes)
        cell = parsed.cell
        key = (cell.country, cell.topic, cell.dimension, cell.group)
        if key in by_key:
            raise ImportFileError(f"{row.location}: {describe_cell(cell)} occurs twice.", "Keep one row.")
        if scales.setdefault(cell.topic, parsed.scale) != parsed.scale:
            raise ImportFileError(
                f"{row.location}: the topic '{cell.topic}' has another scale than in an earlier row.",
                "Give a topic one scale in all rows.",
            )
        code = country_key(cell.country)
        if country_by_code.setdefault(code, cell.country) != cell.country:
            raise row.make_cell_error(
                "country",
                f"'{cell.country}' and '{country_by_code[code]}' are the same country",
                "Use one spelling for the country.",
            )
        if (topic := topic_by_folded.setdefault(fold_name(cell.topic), cell.topic)) != cell.topic:
            problem = f"'{cell.topic}' and '{topic}' are the same topic, but for capital letters, spaces or the form of"
            raise row.make_cell_error("topic", f"{problem} characters", "Use one spelling for the topic.")
        by_key[key] = parsed
    cells = [row.cell for row in by_key.values() if not _is_too_small(row.cell)]
    if not any(cell.dimension == EVERYONE for cell in cells):
        raise ImportFileError(
            f"{path}: no row has the shares of all respondents.",
            "Add a row for each country and topic with an empty dimension and group.",
        )
    default = next(iter(scales.values()))
    distributions = SurveyDistributions(
        points=default.points,
        is_ordered=True,
        scales={topic: scale for topic, scale in scales.items() if scale != default},
        groups=_list_groups(cells),
        cells=tuple(cells),
    )
    nonresponse = {
        Cell(row.cell.country, row.cell.topic): row.nonresponse
        for row in by_key.values()
        if row.cell.dimension == EVERYONE
    }
    notes = _describe_rows(list(by_key.values()), n_small=len(by_key) - len(cells), n_not_asked=n_not_asked)
    return ShareTableSurvey(_build_survey(name or path.stem, distributions, nonresponse), distributions, notes)


class _ShareColumns(NamedTuple):
    """The columns of a table of shares.

    Attributes:
        shares: p1 to pK.
        nonresponse: shares of people who gave no answer, as spelled in the file.
        scale: of all rows; None if each row has its own.
    """

    shares: list[str]
    nonresponse: list[str]
    scale: AnswerScale | None


class _ShareRow(NamedTuple):
    """One row of a table of shares.

    Attributes:
        cell: shares of those who answered.
        scale: of the row's topic.
        nonresponse: share of the people who gave no answer, in [0, 1]; None if the table does not say.
        remainder: the part of it that no column has.
        is_rescaled: whether rounded shares were divided by their sum.
    """

    cell: CellShares
    scale: AnswerScale
    nonresponse: float | None
    remainder: float
    is_rescaled: bool


def _describe_rows(rows: Sequence[_ShareRow], n_small: int, n_not_asked: int) -> tuple[str, ...]:
    """Remarks on how rows were read."""
    n_by_country = Counter(row.cell.country for row in rows)
    unknown_names = describe_unknown_names(
        [CountryValue(name, None, n, name, UNKNOWN_NAME) for name, n in n_by_country.items() if not find_codes(name)]
    )
    notes = [unknown_names] if unknown_names else []
    if n_not_asked:
        notes.append(f"left out {pluralize(n_not_asked, 'row')} without any share: people were not asked")
    if n_rescaled := sum(row.is_rescaled for row in rows):
        notes.append(f"{pluralize(n_rescaled, 'row')} did not add up to 1: shares divided by their sum")
    if remainders := [row for row in rows if row.remainder]:
        largest = max(remainders, key=lambda row: row.remainder)
        notes.append(
            f"shares of {pluralize(len(remainders), 'row')} add up to less than 1; the remainder, up to "
            f"{largest.remainder:.0%} ({describe_cell(largest.cell)}), counts as people who gave no answer"
        )
    if n_small:
        notes.append(f"left out {pluralize(n_small, 'row')} of groups with fewer than {MIN_GROUP_SIZE} respondents")
    if any(row.cell.n is None for row in rows if not _is_too_small(row.cell)):
        notes.append("rows without 'n' have no sampling error: their distances have no floor")
    return tuple(notes)


def _find_columns(path: Path, low: int | None, high: int | None) -> _ShareColumns:
    """The columns of a file; UsageError if the scale is not known, or does not have as many answers as the file."""
    names = read_column_names(path)
    require_first_share(path, names)
    share_names = {name.casefold() for name in names if SHARE_COLUMN.fullmatch(name.casefold())}
    nonresponse = [name for name in names if NONRESPONSE_COLUMN.fullmatch(re.sub(r"[\W_]", "", name.casefold()))]
    has_own_scales = bool({"low", "high", "answers"} & {name.casefold() for name in names})
    if has_own_scales and not (low is None and high is None):
        raise UsageError(
            f"{path} has a scale in each row (low and high, or answers).", "Remove --low and --high, or these columns."
        )
    if has_own_scales:
        n_points = max((int(name[1:]) for name in share_names), default=2)
        return _ShareColumns([f"p{position}" for position in range(1, n_points + 1)], nonresponse, None)
    if low is None or high is None:
        raise UsageError(
            "--shares needs the scale of the answers.",
            "Add --low and --high, such as --low 1 --high 10, or columns 'low' and 'high', or 'answers'.",
        )
    scale = _make_scale(low, high)
    if scale is None:
        raise UsageError(
            f"a scale from {low} to {high} has {abs(high - low) + 1} answers.",
            f"Use --low and --high with 2 to {MAX_POINTS} answers.",
        )
    n_points = len(scale.points)
    if share_names and len(share_names) != n_points:
        raise UsageError(
            f"{path} has {len(share_names)} columns of shares (p1, p2, …), but a scale from {low} to {high} has "
            f"{n_points} answers.",
            "Correct --low and --high, or the columns.",
        )
    # Missing columns are reported by the reader, with the columns that the file has.
    return _ShareColumns([f"p{position}" for position in range(1, n_points + 1)], nonresponse, scale)


def require_first_share(path: Path, names: Iterable[str]) -> None:
    """Raise ImportFileError if columns of shares are numbered from 0: p0 would be left out, and p1 be the low end."""
    if "p0" in {name.casefold() for name in names}:
        raise ImportFileError(
            f"{path}: the file has the column 'p0', but the first column of shares is p1.",
            "Number the columns from p1, the low end of the scale.",
        )


def _make_scale(low: int, high: int) -> AnswerScale | None:
    """The scale of whole numbers from `low`, which means never acceptable, to `high`; None as for `_name_points`."""
    step = 1 if high > low else -1
    return _name_points([str(code) for code in range(low, high + step, step)])


def _name_points(names: Sequence[str]) -> AnswerScale | None:
    """The scale of evenly spaced answers; None for too few or too many."""
    if not 2 <= len(names) <= MAX_POINTS:
        return None
    points = tuple(
        AnswerPoint(name=name, score=2 * position / (len(names) - 1) - 1) for position, name in enumerate(names)
    )
    return AnswerScale(points=points, is_ordered=True)


def _parse_scale(row: TextRow) -> AnswerScale:
    """The scale of a row's topic; raise ImportFileError if it has none, or two."""
    answers = row.cells["answers"]
    if bool(answers) == bool(row.cells["low"] or row.cells["high"]):
        problem = "both answers and a scale" if answers else "neither 'low' and 'high' nor 'answers'"
        raise ImportFileError(f"{row.location}: the row has {problem}.", "Fill either 'low' and 'high', or 'answers'.")
    if answers:
        names = [name.strip() for name in answers.split("|")]
        scale = _name_points(names)
        if scale is None or not all(names) or len(set(names)) < len(names):
            raise row.make_cell_error(
                "answers", f"'{answers}' is no list of answers", 'Write 2 or more different answers, such as "no|yes".'
            )
        return scale
    low, high = (row.number(column) for column in ("low", "high"))
    scale = None
    if low is not None and high is not None and low == int(low) and high == int(high):
        scale = _make_scale(int(low), int(high))
    if scale is None:
        raise row.make_cell_error(
            "low", "with 'high' is no scale", f"Write two whole numbers with 2 to {MAX_POINTS} answers between them."
        )
    return scale


def _parse_row(row: TextRow, columns: _ShareColumns, country_codes: CountryCodes | None) -> _ShareRow:
    """The shares of a row; raise ImportFileError for invalid ones."""
    dimension, group = row.cells["dimension"], row.cells["group"]
    if bool(dimension) != bool(group):
        empty = "dimension" if group else "group"
        raise row.make_cell_error(empty, "is empty", "Fill both columns 'dimension' and 'group', or leave both empty.")
    scale = columns.scale or _parse_scale(row)
    n_points = len(scale.points)
    _require_columns_of_scale(row, columns.shares, n_points)
    shares = [_parse_share(row, column) for column in columns.shares[:n_points]]
    missing = [_parse_share(row, column) for column in columns.nonresponse if row.cells[column]]
    unit = 100 if sum(shares) + sum(missing) > 2 else 1
    answered, total = sum(shares) / unit, (sum(shares) + sum(missing)) / unit
    if not 1 - MAX_REMAINDER <= total <= 1 + SUM_TOLERANCE or answered <= 0:
        raise ImportFileError(
            f"{row.location}: the shares add up to {total * unit:g}, not to 1 (or to 100 in percent).",
            "Give the shares of all answers; those of people who gave none in columns 'don't know' and 'refused'.",
        )
    remainder = 1 - total if total < 1 - SUM_TOLERANCE else 0.0
    n = row.integer("n") if row.cells["n"] else None
    if n == 0:
        raise row.make_cell_error("n", "is 0", "Leave out rows without respondents, or leave n empty if it is unknown.")
    nonresponse = (
        1 - answered / (answered + sum(missing) / unit + remainder) if columns.nonresponse or remainder else None
    )
    n_answered = n if n is None or nonresponse is None else max(1, round(n * (1 - nonresponse)))
    divided = tuple(share / sum(shares) for share in shares)
    cell = CellShares(
        country=_parse_country(row, country_codes),
        topic=row.required_text("topic"),
        dimension=dimension,
        group=group,
        shares=divided,
        n=n_answered,
        n_effective=n_answered,
        cut_variances=binomial_cut_variances(divided, n_answered),
    )
    return _ShareRow(cell, scale, nonresponse, remainder, ROUNDING < abs(total - 1) <= SUM_TOLERANCE)


def _parse_country(row: TextRow, country_codes: CountryCodes | None) -> str:
    """The country of a row; a code of ISO 3166 becomes its name. Raise ImportFileError where it is not certain."""
    text = row.required_text("country")
    if text == NA:
        raise row.make_cell_error(
            "country", "'NA' may be Namibia or a missing value", "Write Namibia, or remove the row."
        )
    is_number = is_country_number(text)
    if is_number and country_codes is None:
        raise row.make_cell_error("country", f"{text} is a number without a meaning", COUNTRY_CODES_ADVICE)
    if len(codes := find_codes(text)) > 1:
        candidates = " or ".join(country_name(code) or code for code in codes)
        raise row.make_cell_error("country", f"'{text}' may be {candidates}", "Write one of these names.")
    name = country_name(text)
    if name is None and is_number:
        raise row.make_cell_error("country", f"{text} is not a country in ISO 3166", "Write the country's name.")
    return name or text


def _require_columns_of_scale(row: TextRow, share_columns: Sequence[str], n_points: int) -> None:
    """Raise ImportFileError if a row lacks columns for its answers, or has shares beyond them."""
    if n_points > len(share_columns):
        raise ImportFileError(
            f"{row.location}: the scale has {n_points} answers, but the file has {len(share_columns)} columns of "
            "shares.",
            f"Add the columns up to p{n_points}, or correct the scale.",
        )
    for column in share_columns[n_points:]:
        if row.cells[column]:
            raise row.make_cell_error(
                column,
                f"is filled, but the topic's scale has {n_points} answers",
                "Leave it empty, or correct the scale.",
            )


def _parse_share(row: TextRow, column: str) -> float:
    """A share, from 0; raise ImportFileError for an empty or negative one."""
    share = row.number(column)
    if share is None or share < 0:
        problem = "is empty" if share is None else f"{row.cells[column]} is below 0"
        how_to_fix = "Write a share such as 0.25; 0 only if nobody gave this answer."
        if share is None:
            how_to_fix += " If people were not asked, leave all shares of the row empty, or leave out the row."
        raise row.make_cell_error(column, problem, how_to_fix)
    return share


def _is_too_small(cell: CellShares) -> bool:
    """Whether a group is too small to be kept."""
    return bool(cell.dimension) and cell.n is not None and cell.n < MIN_GROUP_SIZE


def _list_groups(cells: Iterable[CellShares]) -> dict[str, dict[str, str]]:
    """For each dimension its groups; their names are their words."""
    groups: dict[str, dict[str, str]] = {}
    for cell in cells:
        if cell.dimension:
            groups.setdefault(cell.dimension, {})[cell.group] = cell.group
    return groups


def _build_survey(name: str, distributions: SurveyDistributions, nonresponse: Mapping[Cell, float | None]) -> Survey:
    """The survey of the means of everyone's shares, with the default question."""
    description = SurveyDescription(title=name, source=name)
    cells = tuple(
        _make_survey_cell(shares, distributions.scale_of(cell.topic).points, nonresponse[cell])
        for cell, shares in distributions.by_cell().items()
    )
    topics = list(dict.fromkeys(cell.cell.topic for cell in cells))
    return Survey(
        name=name,
        title=description.title,
        source=description.source,
        wording=description.wording,
        scale=description.scale,
        cells=cells,
        words={topic: topic_words(topic, description) for topic in topics},
        topic_families=find_topic_families(topics, description),
    )


def _make_survey_cell(cell: CellShares, points: tuple[AnswerPoint, ...], nonresponse: float | None) -> SurveyCell:
    """The mean of a cell, with the standard error of a simple random sample."""
    mean = sum(share * point.score for share, point in zip(cell.shares, points, strict=True))
    variance = max(0.0, sum(s * p.score**2 for s, p in zip(cell.shares, points, strict=True)) - mean**2)
    error = sqrt(variance / (cell.n - 1)) if cell.n is not None and cell.n > 1 else None
    score = min(1.0, max(-1.0, mean))
    return SurveyCell(Cell(cell.country, cell.topic), score, n=cell.n, standard_error=error, nonresponse=nonresponse)
