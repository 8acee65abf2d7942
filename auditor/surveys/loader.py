"""Load a survey by name or path from a tidy file: one row per cell, an empty score if the question was not asked."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from auditor.domain import SCORE_MAX, SCORE_MIN, Cell, Survey, SurveyCell
from auditor.errors import ImportFileError, SurveyError, did_you_mean
from auditor.surveys.countries import COUNTRY_NAME_ADVICE, country_code, is_country_number
from auditor.surveys.description import (
    DATA_FOLDER,
    DESCRIPTION_SUFFIX,
    find_topic_families,
    make_questions,
    read_description,
    topic_words,
)
from auditor.surveys.row_reader import TextRow, read_column_names, read_rows
from auditor.surveys.table_formats import FORMATS_TEXT, NA
from auditor.text_safety import fold_name, truncate_text

REQUIRED_COLUMNS = ("country", "topic", "score")
SHARE_COLUMNS = ("nonresponse", "acceptable", "not_a_moral_issue", "unacceptable")
OPTIONAL_COLUMNS = ("n", "standard_error", *SHARE_COLUMNS)
MAX_CELLS = 100_000
OFFICIAL_FILE_HINT = "Use one row per country and topic. `auditor surveys import` converts an official data file."
SHARE_TABLE_HINT = (
    "A score is a mean from -1 to +1. If the columns are shares of answers, name them p1 (never acceptable) to pK "
    "(always acceptable), and convert the table: auditor surveys import FILE --shares --low 1 --high K -o OUT.csv"
)


def builtin_surveys() -> tuple[str, ...]:
    """Names of the surveys that come with the package; `load_survey` takes each."""
    return tuple(
        sorted(path.name.removesuffix(DESCRIPTION_SUFFIX) for path in DATA_FOLDER.glob(f"*{DESCRIPTION_SUFFIX}"))
    )


def load_survey(source: str | Path) -> Survey:
    """Read a survey.

    Args:
        source: name of a built-in survey, or path of a table (`table_formats.TABLE_SUFFIXES`) with the columns
            `country,topic,score[,n,standard_error,nonresponse,acceptable,not_a_moral_issue,unacceptable]`: score in
            [-1, 1] or empty if the question was not asked, shares in [0, 1]. A file `NAME.survey.toml` next to
            `NAME.csv` may set title, source, wording, scale, questions, words and
            topic_families.

    Returns:
        The survey, its cells in the order of the file.

    Raises:
        SurveyError: the survey does not exist, is empty, has no score, or has an invalid description.
        ImportFileError: the file is invalid; the message names line and column.
    """
    path = locate_survey(str(source))
    return _read_built_in(path) if path.parent == DATA_FOLDER else _read_survey(path)


@cache
def _read_built_in(path: Path) -> Survey:
    """A survey of the package, read once per process: its file does not change, and a survey is not changed."""
    return _read_survey(path)


def _read_survey(path: Path) -> Survey:
    """Read and check a table and its description."""
    description = read_description(path)
    _refuse_share_table(path)
    cells = [
        _parse_cell(row)
        for row in itertools.islice(
            read_rows(path, REQUIRED_COLUMNS, OPTIONAL_COLUMNS, OFFICIAL_FILE_HINT), MAX_CELLS + 1
        )
    ]
    if len(cells) > MAX_CELLS:
        raise SurveyError(f"{path}: the survey has more than {MAX_CELLS:,} rows, the maximum.", OFFICIAL_FILE_HINT)
    if not cells:
        raise SurveyError(
            f"{path}: the survey is empty: there are no rows below the header.", "Add a row for each cell."
        )
    if all(cell.score is None for cell in cells):
        raise SurveyError(f"{path}: no cell has a score.", "Fill the column 'score'.")
    survey = Survey(
        name=path.stem,
        title=description.title,
        source=description.source,
        wording=description.wording,
        scale=description.scale,
        cells=tuple(cells),
        topic_questions=make_questions(description, description.questions),
    )
    _require_unique_cells(path, survey)
    _require_country_names(path, survey)
    _require_certain_na(path, survey)
    _require_known_topics(path, survey, description.topic_families)
    _require_known_topics(path, survey, {"questions": tuple(description.questions)})
    return dataclasses.replace(
        survey,
        words={topic: topic_words(topic, description) for topic in survey.topics},
        topic_families=find_topic_families(survey.topics, description),
    )


def _refuse_share_table(path: Path) -> None:
    """Raise ImportFileError if a table has no scores, but two or more other columns, as one of shares of answers."""
    names = {name.casefold() for name in read_column_names(path)}
    others = names.difference(("country", "topic", "n", "standard_error", "nonresponse"))
    has_score = bool(difflib.get_close_matches("score", names, n=1, cutoff=0.8))
    if {"country", "topic"} <= names and not has_score and len(others) >= 2:
        columns = ", ".join(sorted(others)[:10])
        problem = f"{path}: the column 'score' is missing; the file has country, topic and: {truncate_text(columns)}."
        raise ImportFileError(problem, SHARE_TABLE_HINT)


def locate_survey(source: str) -> Path:
    """Return the data file of a built-in survey, or the given path.

    Raises:
        SurveyError: there is neither such a built-in survey nor such a file.
    """
    names = builtin_surveys()
    if source in names:
        return DATA_FOLDER / f"{source}.csv"
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir():
        raise SurveyError(f"the survey '{source}' is a folder.", "Name a file in it.")
    similar_names = difflib.get_close_matches(source, names, n=1, cutoff=0.5)
    if similar_names:
        how_to_fix = f"Did you mean '{similar_names[0]}'? Or use the path of a file: {FORMATS_TEXT}."
    else:
        how_to_fix = f"Built-in surveys: {', '.join(names)}. Or use the path of a file: {FORMATS_TEXT}."
    raise SurveyError(f"'{source}' is neither a built-in survey nor an existing file.", how_to_fix)


# --- rows into cells --------------------------------------------------------------------------------------------


def _parse_cell(row: TextRow) -> SurveyCell:
    """Convert a row of the file to a cell; raise ImportFileError for an invalid field."""
    column = "n"
    number = _parse_bounded_number(row, column, 0.0, 1e12)  # 1e12 is more than there are people
    if number is not None and not number.is_integer():
        raise row.make_cell_error(column, f"{row.cells[column]} is not a whole number", "Write a whole number.")
    return SurveyCell(
        cell=Cell(row.required_text("country"), row.required_text("topic")),
        score=_parse_bounded_number(row, "score", SCORE_MIN, SCORE_MAX),
        n=None if number is None else int(number),
        standard_error=_parse_bounded_number(row, "standard_error", 0.0, math.inf),
        **{share: _parse_bounded_number(row, share, 0.0, 1.0) for share in SHARE_COLUMNS},
    )


def _parse_bounded_number(row: TextRow, column: str, low: float, high: float) -> float | None:
    """Return a cell as a number in [low, high], None if it is empty; raise ImportFileError for any other content."""
    number = row.number(column)
    if number is not None and not low <= number <= high:
        correction = "Rescale it" if column == "score" else "Write a number from 0"
        if column in SHARE_COLUMNS:
            correction = "Write a share such as 0.25, not a percentage"
        how_to_fix = f"{correction}, or leave it empty if the question was not asked."
        raise row.make_cell_error(column, f"{row.cells[column]} is outside [{low:g}, {high:g}]", how_to_fix)
    return number


def _require_known_topics(path: Path, survey: Survey, topic_families: Mapping[str, Sequence[str]]) -> None:
    """Raise SurveyError if a family of the description misspells a topic of the survey.

    Other topics that the survey does not have are ignored, as in a description of more topics than the file has.
    """
    for family, members in topic_families.items():
        for topic in members:
            if topic not in survey.topics and get_close_matches(topic, survey.topics, 1):
                raise SurveyError(
                    f"{path}: the family '{family}' lists the topic '{topic}', which is not in the survey.",
                    did_you_mean(topic, survey.topics, "Spell it as in the column 'topic'."),
                )


def _require_country_names(path: Path, survey: Survey) -> None:
    """Raise ImportFileError for a country that is a number: models would be asked about the number."""
    if number := next(filter(is_country_number, survey.countries), None):
        problem = f"{path}, column 'country': '{number}' is a number without a meaning."
        raise ImportFileError(problem, COUNTRY_NAME_ADVICE)


def _require_certain_na(path: Path, survey: Survey) -> None:
    """Raise ImportFileError for a country NA, unless the survey has two-letter codes: R so writes a missing value."""
    others = [country for country in survey.countries if country != NA]
    has_codes = bool(others) and all(len(country) == 2 and country.isupper() for country in others)
    if len(others) < len(survey.countries) and not has_codes:
        problem = f"{path}, column 'country': 'NA' may be Namibia or a missing value."
        raise ImportFileError(problem, "Write Namibia, or remove the rows.")


def _require_unique_cells(path: Path, survey: Survey) -> None:
    """Raise ImportFileError if a cell occurs twice, or a country or a topic in two spellings.

    A topic in two spellings would be asked twice, and count as two in all intervals.
    """
    seen_cells: set[Cell] = set()
    for cell in (survey_cell.cell for survey_cell in survey.cells):
        if cell in seen_cells:
            raise ImportFileError(
                f"{path}: the cell {cell.country} × {cell.topic} occurs twice.", "Keep one of the rows."
            )
        seen_cells.add(cell)
    for kind, names in (("country", survey.countries), ("topic", survey.topics)):
        name_by_folded: dict[str, str] = {}
        for name in names:
            first = name_by_folded.setdefault(fold_name(name), name)
            if first != name:
                raise ImportFileError(
                    f"{path}: '{first}' and '{name}' are the same {kind}, but for capital letters, spaces or the form "
                    "of characters.",
                    f"Use one spelling for the {kind}.",
                )
    country_by_code: dict[str, str] = {}
    for country in survey.countries:
        code = country_code(country)
        if code is not None and country_by_code.setdefault(code, country) != country:
            raise ImportFileError(
                f"{path}: '{country_by_code[code]}' and '{country}' are the same country.",
                "Use one spelling for the country.",
            )
