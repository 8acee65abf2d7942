"""Convert a published table of shares of answers to a survey, for those who have no respondents' file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import ImportFileError, UsageError
from auditor.surveys.description import SurveyDescription, find_topic_families, topic_words
from auditor.surveys.distributions import (
    EVERYONE,
    MIN_GROUP_SIZE,
    AnswerPoint,
    CellShares,
    SurveyDistributions,
    binomial_cut_variances,
    describe_cell,
)
from auditor.surveys.row_reader import TextRow, read_column_names, read_rows

SHARE_COLUMN = re.compile(r"p([1-9][0-9]*)")
SUM_TOLERANCE = 0.02
"""By how much rounded shares of a row may differ from 1 in total; they are then divided by their sum."""
ROUNDING = 0.001
"""By how much shares with a few decimals may differ from 1 without a note."""
MAX_POINTS = 101


@dataclass(frozen=True, slots=True)
class ShareTableSurvey:
    """A survey made from a table of shares.

    Attributes:
        notes: remarks for users, such as how many groups were left out.
    """

    survey: Survey
    distributions: SurveyDistributions
    notes: tuple[str, ...]


def import_share_table(path: str | Path, low: int, high: int, name: str | None = None) -> ShareTableSurvey:
    """Convert a table of shares to a survey: scores are means of the shares on the scale from -1 to +1.

    Args:
        path: a `.csv`, `.jsonl` or `.parquet` file with the columns `country,topic[,n][,dimension,group],p1,...,pK`.
            Shares are those of respondents who answered, from 0 to 1 or in percent; `n` is their number. Rows without a
            dimension are of everyone.
        low, high: the answers that p1 and pK are the shares of; the first means never acceptable.
        name: the survey's name; by default the file's name without its suffix.

    Raises:
        UsageError: the scale has another number of answers than the file.
        ImportFileError: the file is invalid; the message names row and column.
    """
    path = Path(path)
    columns = _find_share_columns(path, low, high)
    points = tuple(
        AnswerPoint(
            name=str(low + (position if high > low else -position)), score=2 * position / (len(columns) - 1) - 1
        )
        for position in range(len(columns))
    )
    rows = read_rows(path, ("country", "topic", *columns), ("n", "dimension", "group"))
    by_key: dict[tuple[str, str, str, str], CellShares] = {}
    notes: list[str] = []
    n_small = n_rescaled = 0
    for row in rows:
        cell, is_rescaled = _parse_row(row, columns)
        key = (cell.country, cell.topic, cell.dimension, cell.group)
        if key in by_key:
            raise ImportFileError(f"{row.location}: {describe_cell(cell)} occurs twice.", "Keep one row.")
        n_rescaled += is_rescaled
        by_key[key] = cell
    cells = [cell for cell in by_key.values() if not _is_too_small(cell)]
    n_small = len(by_key) - len(cells)
    if not any(cell.dimension == EVERYONE for cell in cells):
        raise ImportFileError(
            f"{path}: no row has the shares of all respondents.",
            "Add a row for each country and topic with an empty dimension and group.",
        )
    if n_rescaled:
        notes.append(f"{n_rescaled} rows did not add up to 1 and were divided by their sum")
    if n_small:
        notes.append(f"{n_small} rows of groups with fewer than {MIN_GROUP_SIZE} respondents were left out")
    if any(cell.n is None for cell in cells):
        notes.append("rows without 'n' have no sampling error: their distances have no floor")
    distributions = SurveyDistributions(points=points, is_ordered=True, groups=_list_groups(cells), cells=tuple(cells))
    return ShareTableSurvey(_build_survey(name or path.stem, distributions), distributions, tuple(notes))


def _find_share_columns(path: Path, low: int, high: int) -> list[str]:
    """The columns p1 to pK; UsageError if the scale does not have K answers."""
    names = {name for name in read_column_names(path) if SHARE_COLUMN.fullmatch(name)}
    n_points = abs(high - low) + 1
    if not 2 <= n_points <= MAX_POINTS:
        raise UsageError(
            f"a scale from {low} to {high} has {n_points} answers.",
            f"Use --low and --high with 2 to {MAX_POINTS} answers.",
        )
    if names and len(names) != n_points:
        raise UsageError(
            f"{path} has {len(names)} columns of shares (p1, p2, …), but a scale from {low} to {high} has "
            f"{n_points} answers.",
            "Correct --low and --high, or the columns.",
        )
    # Missing columns are reported by the reader, with the columns that the file has.
    return [f"p{position}" for position in range(1, n_points + 1)]


def _parse_row(row: TextRow, columns: list[str]) -> tuple[CellShares, bool]:
    """The shares of a row, and whether they had to be divided by their sum; raise ImportFileError for invalid ones."""
    dimension, group = row.cells["dimension"], row.cells["group"]
    if bool(dimension) != bool(group):
        empty = "dimension" if group else "group"
        raise row.make_cell_error(empty, "is empty", "Fill both columns 'dimension' and 'group', or leave both empty.")
    shares = [_parse_share(row, column) for column in columns]
    total = sum(shares)
    is_percent = total > 2
    if abs(total / (100 if is_percent else 1) - 1) > SUM_TOLERANCE:
        raise ImportFileError(
            f"{row.location}: the shares add up to {total:g}, not to 1 (or to 100 in percent).",
            "Give the shares among the respondents who answered.",
        )
    n = row.integer("n") if row.cells["n"] else None
    if n == 0:
        raise row.make_cell_error("n", "is 0", "Leave out rows without respondents, or leave n empty if it is unknown.")
    divided = tuple(share / total for share in shares)
    cell = CellShares(
        country=row.required_text("country"),
        topic=row.required_text("topic"),
        dimension=dimension,
        group=group,
        shares=divided,
        n=n,
        n_effective=n,
        cut_variances=binomial_cut_variances(divided, n),
    )
    return cell, abs(total / (100 if is_percent else 1) - 1) > ROUNDING


def _parse_share(row: TextRow, column: str) -> float:
    """A share, from 0; raise ImportFileError for an empty or negative one."""
    share = row.number(column)
    if share is None or share < 0:
        problem = "is empty" if share is None else f"{row.cells[column]} is below 0"
        raise row.make_cell_error(column, problem, "Write a share such as 0.25; 0 if nobody gave this answer.")
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


def _build_survey(name: str, distributions: SurveyDistributions) -> Survey:
    """The survey of the means of everyone's shares, with the default question."""
    description = SurveyDescription(title=name, source=name)
    cells = tuple(_make_survey_cell(cell, distributions.points) for cell in distributions.by_cell().values())
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


def _make_survey_cell(cell: CellShares, points: tuple[AnswerPoint, ...]) -> SurveyCell:
    """The mean of a cell, with the standard error of a simple random sample."""
    mean = sum(share * point.score for share, point in zip(cell.shares, points, strict=True))
    variance = max(0.0, sum(s * p.score**2 for s, p in zip(cell.shares, points, strict=True)) - mean**2)
    error = sqrt(variance / (cell.n - 1)) if cell.n is not None and cell.n > 1 else None
    return SurveyCell(Cell(cell.country, cell.topic), min(1.0, max(-1.0, mean)), n=cell.n, standard_error=error)
