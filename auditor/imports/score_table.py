"""Read a file of scores by column, so that a million rows take seconds; each row is a sample of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.domain import SCORE_MAX, SCORE_MIN, Cell, CellScore, Method
from auditor.errors import ImportFileError
from auditor.surveys.row_reader import ColumnBatch, TextRow, read_batches
from auditor.surveys.table_formats import format_number, parse_number
from auditor.text_safety import clean_name

SCORE_COLUMNS = ("model", "country", "topic", "method", "score")
GROUP_COLUMNS = ("model", "country", "topic", "method")
"""Columns whose values together say what a row is a sample of."""


class _Codes(dict[str, int]):
    """Position of each distinct text; a text that is asked for and not known is added."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code

    def encode(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """Positions of texts."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))


@dataclass(frozen=True)
class ScoreTable:
    """Rows of a file of scores, sorted by model, country, topic, method and sample, in the order of the file each.

    Attributes:
        models, countries, topics, methods: distinct values; countries in the survey's spelling.
        group_index: shape (rows, 4), position of each row's model, country, topic and method.
        scores: shape (rows,), in [-1, 1]; nan for a failed sample.
        group_starts: position of the first row of each combination.
    """

    models: tuple[str, ...]
    countries: tuple[str, ...]
    topics: tuple[str, ...]
    methods: tuple[str, ...]
    group_index: NDArray[np.int32]
    scores: NDArray[np.float64]
    group_starts: NDArray[np.int64]

    def average_samples(self) -> list[CellScore]:
        """Build the score of each cell by each model and method: mean and variance of its usable samples."""
        usable = ~np.isnan(self.scores)
        n_planned = np.diff(self.group_starts, append=self.scores.size)
        n_ok = np.add.reduceat(usable, self.group_starts, dtype=np.int64)
        means = _sum_exactly(self.scores[usable], n_ok) / np.maximum(n_ok, 1)
        deviations = self.scores[usable] - np.repeat(means, n_ok)
        variances = _sum_exactly(deviations**2, n_ok) / np.maximum(n_ok - 1, 1)
        figures = zip(means.tolist(), variances.tolist(), n_ok.tolist(), n_planned.tolist(), strict=True)
        return [
            CellScore(
                model=self.models[model],
                cell=Cell(self.countries[country], self.topics[topic]),
                method=self.methods[method],
                score=mean if n else None,
                variance=variance if n > 1 else None,
                n_ok=n,
                n_planned=planned,
            )
            for (model, country, topic, method), (mean, variance, n, planned) in zip(
                self.group_index[self.group_starts].tolist(), figures, strict=True
            )
        ]


def read_score_table(file: Path, spell_country: Callable[[str], str], spell_topic: Callable[[str], str]) -> ScoreTable:
    """Read a file with the columns `model,country,topic,method,score[,sample]`.

    Args:
        spell_country, spell_topic: return a name in the survey's spelling.

    Raises:
        ImportFileError: the file has no rows, a row cannot be used, or two rows are the same sample.
    """
    codes = {column: _Codes() for column in (*GROUP_COLUMNS, "sample")}
    countries, topics = _Spelling(spell_country), _Spelling(spell_topic)
    sample_numbers = _Spelling(_spell_sample)
    methods_by_folded = {method.value: method.value for method in Method}
    parts: list[tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]] = []
    place = ""
    for batch in read_batches(file, SCORE_COLUMNS, ["sample"]):
        _require_texts(batch)
        columns = {
            **batch.columns,
            "model": [clean_name(name) for name in batch.columns["model"]],
            "country": [countries[name] for name in batch.columns["country"]],
            "topic": [topics[name] for name in batch.columns["topic"]],
            "method": [methods_by_folded.get(name.casefold(), name) for name in batch.columns["method"]],
            "sample": [sample_numbers[sample] for sample in batch.columns["sample"]],
        }
        index = np.stack([codes[name].encode(columns[name]) for name in codes], axis=1)
        parts.append((index, _parse_scores(batch), np.asarray(batch.numbers, np.int64)))
        place = batch.place
    if not sum(scores.size for _, scores, _ in parts):
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    index, scores, numbers = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    del parts
    methods = {method.casefold(): method for method in codes["method"]}
    if other := next((method for method in codes["method"] if methods[method.casefold()] != method), None):
        problem = f"{file}: the methods '{other}' and '{methods[other.casefold()]}' differ in capital letters only."
        raise ImportFileError(problem, "Use one spelling for the method.")
    order = np.lexsort(index.T[::-1])
    index = index[order]
    is_new = np.any(index[1:, :4] != index[:-1, :4], axis=1)
    duplicates = np.flatnonzero(~is_new & (index[1:, 4] == index[:-1, 4]))
    if duplicates.size:
        number = numbers[order[duplicates + 1]].min()
        raise ImportFileError(
            f"{place} {number}: two rows have the same model, country, topic, method and sample.",
            "Give each answer its own number in the column sample, or delete the duplicate row.",
        )
    return ScoreTable(
        models=tuple(codes["model"]),
        countries=tuple(codes["country"]),
        topics=tuple(codes["topic"]),
        methods=tuple(codes["method"]),
        group_index=index[:, :4],
        scores=scores[order],
        group_starts=np.concatenate([[0], np.flatnonzero(is_new) + 1]),
    )


class _Spelling(dict[str, str]):
    """The survey's spelling of each name that was asked for."""

    def __init__(self, spell: Callable[[str], str]) -> None:
        self._spell = spell

    def __missing__(self, name: str) -> str:
        self[name] = spelled = self._spell(name)
        return spelled


def _spell_sample(text: str) -> str:
    """The name of a sample: a number without leading zeros and point, as 1 for 1.0; 0 without one."""
    if text.isascii() and text.isdigit():  # an id of 17 digits is no float
        return text.lstrip("0") or "0"
    number = parse_number(text)
    return format_number(number) if text and number == number else text or "0"


def _require_texts(batch: ColumnBatch) -> None:
    """Raise ImportFileError if a cell that says what the row is about is empty."""
    for column in GROUP_COLUMNS:
        if "" in batch.columns[column]:
            batch.row(batch.columns[column].index("")).required_text(column)


def _parse_scores(batch: ColumnBatch) -> NDArray[np.float64]:
    """Scores of the rows; nan for an empty cell. Raise ImportFileError for a score that is no number from -1 to 1."""
    texts = batch.columns["score"]
    try:
        scores = np.array([float(text) if text else math.nan for text in texts], np.float64)
    except ValueError:
        scores = np.full(len(texts), math.inf)
    if "_" in "".join(texts):  # Python reads 0_1 as 1
        scores[:] = math.inf
    is_empty = np.array([not text for text in texts], np.bool_)
    # Unusual spellings, such as 45% or 0,5, and everything that is invalid.
    unusual = ~is_empty & ~((scores >= SCORE_MIN) & (scores <= SCORE_MAX))
    for position in np.flatnonzero(unusual).tolist():
        score = parse_row_score(batch.row(position))
        scores[position] = math.nan if score is None else score
    return scores + 0.0


def parse_row_score(row: TextRow) -> float | None:
    """Score of a row in [-1, 1]; None if the cell is empty.

    Raises:
        ImportFileError: the cell holds no number in that range.
    """
    value = row.number("score")
    if value is not None and not SCORE_MIN <= value <= SCORE_MAX:
        problem = f"'{row.cells['score']}' is not a number from -1 to 1"
        raise row.make_cell_error("score", problem, "Rescale it, or leave it empty.")
    return value


def _sum_exactly(values: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of consecutive groups of the given sizes, rounded once, so that the order of the rows does not matter."""
    ends = np.cumsum(sizes).tolist()
    numbers = values.tolist()
    return np.array([math.fsum(numbers[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)])
