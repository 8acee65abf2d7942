"""Shares of answers of a survey on its own scale, by cell and by group of respondents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self, TypeVar

import pydantic
from pydantic import ConfigDict, Field, field_validator, model_validator

from auditor.config.base import DocumentedModel
from auditor.config.validation_messages import explain_validation_error
from auditor.domain import Cell, Survey
from auditor.errors import SurveyError
from auditor.input_files import read_json
from auditor.surveys.loader import load_survey, locate_survey
from auditor.surveys.row_reader import TextRow

E = TypeVar("E", bound=StrEnum)


def parse_enum_cell(row: TextRow, column: str, enum_class: type[E], normalize: Callable[[str], str]) -> E | None:
    """Parse a cell as a member of an enum, after `normalize` has adjusted its case; None if the cell is empty.

    Raises:
        ImportFileError: the cell holds none of the enum's values.
    """
    text = row.cells[column]
    if not text:
        return None
    try:
        return enum_class(normalize(text))
    except ValueError:
        choices = ", ".join(enum_class)
        raise row.make_cell_error(column, f"'{text}' is not one of {choices}", "Correct it.") from None


DISTRIBUTIONS_SUFFIX = ".distributions.json"
MIN_GROUP_SIZE = 30
"""Groups with fewer respondents who answered are not written: their shares could be traced to persons."""
EVERYONE = ""
"""Dimension and group of all respondents of a cell."""
SUM_TOLERANCE = 1e-4


class _SharesModel(DocumentedModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class AnswerPoint(_SharesModel):
    """One answer of the scale."""

    name: str
    """The answer as people were given it, such as `1`."""
    score: Annotated[float, Field(ge=-1, le=1)]


class CellShares(_SharesModel):
    """Shares of the answers of one cell, of everyone or of one group."""

    country: str
    topic: str
    dimension: str = EVERYONE
    """Name of the dimension, such as `sex`; empty for everyone."""
    group: str = EVERYONE
    shares: tuple[Annotated[float, Field(ge=0, le=1)], ...]
    """One for each point, adding up to 1; of all respondents in the group who answered."""
    n: Annotated[int, Field(ge=1)] | None
    """Respondents who answered; null if unknown."""
    n_effective: Annotated[float, Field(ge=1)] | None
    """Kish's effective number of them; null if unknown."""
    cut_variances: tuple[Annotated[float, Field(ge=0)], ...] | None
    """Variance of the cumulative share at each cut between two points, by Taylor linearisation; null if unknown."""
    split_half_distance: Annotated[float, Field(ge=0, le=1)] | None = None
    """Mean Wasserstein distance of random halves of the respondents, as a share of the scale; null if unknown."""

    def is_large_enough(self, min_respondents: int) -> bool:
        """Whether at least so many respondents answered, and half of that effectively; or their number is unknown."""
        return self.n is None or (self.n >= min_respondents and (self.n_effective or self.n) >= min_respondents / 2)


class AnswerScale(_SharesModel):
    """The answers to a question."""

    points: Annotated[tuple[AnswerPoint, ...], Field(min_length=2)]
    """From the lowest score to the highest."""
    is_ordered: bool
    """Whether the answers are steps of one scale; otherwise they are choices."""

    @field_validator("points")
    @classmethod
    def _require_increasing_scores(cls, points: tuple[AnswerPoint, ...]) -> tuple[AnswerPoint, ...]:
        """Return the answers; raise ValueError if their scores do not increase."""
        scores = [point.score for point in points]
        if scores != sorted(set(scores)):
            raise ValueError("the scores of 'points' must increase. How to fix: Sort them, and list each once")
        return points


class SurveyDistributions(AnswerScale):
    """Shares of answers of a survey, on the scale of most topics or on that of one topic."""

    scales: Mapping[str, AnswerScale] = Field(default_factory=dict)
    """Scales by topic, of topics that have another one."""
    groups: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    """For each dimension its groups, in words."""
    without_group: Mapping[str, int] = Field(default_factory=dict)
    """Respondents in no group of a dimension, by dimension."""
    cells: tuple[CellShares, ...] = Field(repr=False)

    @model_validator(mode="after")
    def _require_consistency(self) -> Self:
        """Return the distributions; raise ValueError for shares that do not fit the scale, or for a repeated cell."""
        keys: set[tuple[str, str, str, str]] = set()
        for cell in self.cells:
            name, n_points = describe_cell(cell), len(self.scale_of(cell.topic).points)
            if len(cell.shares) != n_points:
                raise ValueError(
                    f"{name} has {len(cell.shares)} shares, but the scale has {n_points} "
                    "points. How to fix: Give one share for each point"
                )
            if abs(sum(cell.shares) - 1) > SUM_TOLERANCE:
                raise ValueError(
                    f"the shares of {name} add up to {sum(cell.shares):g}, not to 1. How to fix: Correct the shares"
                )
            if cell.cut_variances is not None and len(cell.cut_variances) != n_points - 1:
                raise ValueError(
                    f"{name} does not have {n_points - 1} cut_variances. How to fix: Give one "
                    "for each two neighbouring points"
                )
            key = (cell.country, cell.topic, cell.dimension, cell.group)
            if key in keys:
                raise ValueError(f"{name} occurs twice. How to fix: Keep one")
            keys.add(key)
        return self

    def scale_of(self, topic: str) -> AnswerScale:
        """The answers to the question about a topic."""
        return self.scales.get(topic, self)

    def by_cell(self, dimension: str = EVERYONE, group: str = EVERYONE) -> dict[Cell, CellShares]:
        """Shares by cell of everyone, or of one group."""
        return {
            Cell(cell.country, cell.topic): cell
            for cell in self.cells
            if (cell.dimension, cell.group) == (dimension, group)
        }


def format_distributions(distributions: SurveyDistributions) -> str:
    """The distributions as JSON, with one line a cell."""
    head = distributions.model_dump(mode="json", exclude={"cells"} if distributions.scales else {"cells", "scales"})
    cells = ",\n  ".join(cell.model_dump_json() for cell in distributions.cells)
    return f'{json.dumps(head, ensure_ascii=False)[:-1]},\n "cells": [\n  {cells}\n ]}}\n'


def describe_cell(cell: CellShares) -> str:
    """A cell in words, such as `Japan × abortion (sex: women)`."""
    group = f" ({cell.dimension}: {cell.group})" if cell.dimension else ""
    return f"{cell.country} × {cell.topic}{group}"


def load_distributions(source: str | Path) -> SurveyDistributions:
    """Load the shares of answers of a survey by the name or path that `load_survey` takes.

    A survey with shares of three choices in its data file, as Pew's, needs no further file.

    Raises:
        SurveyError: the survey does not exist, has no shares, or their file is invalid.
    """
    data_file = locate_survey(str(source))
    path = data_file.with_name(data_file.stem + DISTRIBUTIONS_SUFFIX)
    if not path.exists():
        distributions = shares_of_choices(load_survey(source))
        if distributions is None:
            raise SurveyError(
                f"the survey '{source}' has no shares of answers: there is no file {path.name}.",
                "Import it again: auditor surveys import OFFICIAL_FILE -o OUT.csv --force. Or import a table of "
                "shares: auditor surveys import FILE --shares --low 1 --high 10 -o OUT.csv",
            )
        return distributions
    content = read_json(path, SurveyError)
    try:
        return SurveyDistributions.model_validate(content)
    except pydantic.ValidationError as error:
        problem = explain_validation_error(error, content, SurveyDistributions)
        raise SurveyError(f"{path}: {problem}", "Correct the file, or import the survey again.") from None


def shares_of_choices(survey: Survey) -> SurveyDistributions | None:
    """The distributions of a survey whose cells have the shares of three choices; None without such a cell.

    The shares are divided by their sum, since those of the survey are of all who were asked.
    """
    points = (
        AnswerPoint(name="unacceptable", score=-1),
        AnswerPoint(name="not_a_moral_issue", score=0),
        AnswerPoint(name="acceptable", score=1),
    )
    cells = []
    for cell in survey.cells:
        shares = (cell.unacceptable, cell.not_a_moral_issue, cell.acceptable)
        present = [share for share in shares if share is not None]
        if len(present) < len(points) or sum(present) <= 0:
            continue
        divided = tuple(share / sum(present) for share in present)
        cells.append(
            CellShares(
                country=cell.cell.country,
                topic=cell.cell.topic,
                shares=divided,
                n=cell.n or None,
                n_effective=cell.n or None,
                cut_variances=binomial_cut_variances(divided, cell.n),
            )
        )
    return SurveyDistributions(points=points, is_ordered=False, cells=tuple(cells)) if cells else None


def binomial_cut_variances(shares: tuple[float, ...], n: float | None) -> tuple[float, ...] | None:
    """Variances of the cumulative shares of a simple random sample; None if its size is unknown or below 2."""
    if n is None or n < 2:
        return None
    cumulative = [min(1.0, sum(shares[: cut + 1])) for cut in range(len(shares) - 1)]
    return tuple(share * (1 - share) / (n - 1) for share in cumulative)
