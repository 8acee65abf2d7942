"""Read a file of scores by column, so that a million rows take seconds; each row is a sample of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
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
MEAN_COLUMNS = ("n_ok", "n_planned", "variance")
"""Usable and planned samples of a row that is a mean, and their variance, as `auditor export tables` writes them."""
MAX_SAMPLES = 1_000_000_000
"""Most samples that a mean is believed to have."""
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
        means: shape (rows, 3), `MEAN_COLUMNS` of each row; nan where the row is one sample, or has no variance.
    """

    models: tuple[str, ...]
    countries: tuple[str, ...]
    topics: tuple[str, ...]
    methods: tuple[str, ...]
    group_index: NDArray[np.int32]
    scores: NDArray[np.float64]
    group_starts: NDArray[np.int64]
    means: NDArray[np.float64]

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Number of rows of each combination."""
        return np.diff(self.group_starts, append=self.scores.size)

    def average_samples(self) -> list[CellScore]:
        """Build the score of each cell by each model and method: mean and variance of its usable samples.

        The only row of a cell may be a mean itself, whose counts and variance are kept.
        """
        usable = ~np.isnan(self.scores)
        n_planned = self.group_sizes
        n_ok = np.add.reduceat(usable, self.group_starts, dtype=np.int64)
        means = _sum_exactly(self.scores[usable], n_ok) / np.maximum(n_ok, 1)
        deviations = self.scores[usable] - np.repeat(means, n_ok)
        variances = _sum_exactly(deviations**2, n_ok) / np.maximum(n_ok - 1, 1)
        of_means = self.means[self.group_starts].T
        is_mean = (n_planned == 1) & ~np.isnan(of_means[1])
        n_ok, n_planned = np.where(is_mean, of_means[:2], [n_ok, n_planned]).astype(np.int64)
        variances = np.where(is_mean, of_means[2], variances)
        figures = zip(means.tolist(), variances.tolist(), n_ok.tolist(), n_planned.tolist(), strict=True)
        return [
            CellScore(
                model=self.models[model],
                cell=Cell(self.countries[country], self.topics[topic]),
                method=self.methods[method],
                score=mean if n else None,
                variance=variance if n > 1 and not math.isnan(variance) else None,
                n_ok=n,
                n_planned=planned,
            )
            for (model, country, topic, method), (mean, variance, n, planned) in zip(
                self.group_index[self.group_starts].tolist(), figures, strict=True
            )
        ]


def read_score_table(file: Path, spell_country: Callable[[str], str], spell_topic: Callable[[str], str]) -> ScoreTable:
    """Read a file with the columns `model,country,topic,method,score[,sample][,n_ok,n_planned]`.

    Args:
        spell_country, spell_topic: return a name in the survey's spelling.

    Raises:
        ImportFileError: the file has no rows, a row cannot be used, or two rows are the same sample.
    """
    codes = {column: _Codes() for column in (*GROUP_COLUMNS, "sample")}
    countries, topics, sample_numbers = map(_Spelling, (spell_country, spell_topic, _spell_sample))
    methods_by_folded = {method.value: method.value for method in Method}
    parts: list[tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]] = []
    place = ""
    for batch in read_batches(file, SCORE_COLUMNS, ["sample", *MEAN_COLUMNS]):
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
        scores = _parse_scores(batch)
        parts.append((index, scores, _parse_means(batch, scores), np.asarray(batch.numbers, np.int64)))
        place = batch.place
    if not sum(scores.size for _, scores, *_ in parts):
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    index, scores, means, numbers = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    del parts
    _require_one_spelling(file, codes["method"])
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
    means = means[order]
    if (several := _find_shared_mean(means, is_new)).size:
        raise ImportFileError(
            f"{place} {numbers[order[several]].min()}: this row is a mean of several samples, and its cell has another "
            "row.",
            "Write one mean for each cell, model and method, or all samples.",
        )
    return ScoreTable(
        models=tuple(codes["model"]),
        countries=tuple(codes["country"]),
        topics=tuple(codes["topic"]),
        methods=tuple(codes["method"]),
        group_index=index[:, :4],
        scores=scores[order],
        group_starts=np.concatenate([[0], np.flatnonzero(is_new) + 1]),
        means=means,
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
    is_empty = np.array([not text for text in texts], np.bool_)
    try:
        scores = np.array([float(text or "nan") for text in texts], np.float64)
    except ValueError:
        scores = np.full(len(texts), math.nan)
    if "_" in "".join(texts):  # Python reads 0_1 as 1
        scores[:] = math.nan
    # Unusual spellings, such as 45% or 0,5, and everything that is invalid.
    unusual = ~is_empty & ~((scores >= SCORE_MIN) & (scores <= SCORE_MAX))
    for position in np.flatnonzero(unusual).tolist():
        score = parse_row_score(batch.row(position))
        scores[position] = math.nan if score is None else score
    return scores + 0.0


def _parse_means(batch: ColumnBatch, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """`MEAN_COLUMNS` of each row, shape (rows, 3); nan where the row has no counts, or no variance.

    Raises:
        ImportFileError: they contradict each other or the score.
    """
    means = np.full((scores.size, len(MEAN_COLUMNS)), np.nan)
    texts = zip(*(batch.columns[column] for column in MEAN_COLUMNS[:2]), strict=True)
    for position in [position for position, pair in enumerate(texts) if any(pair)]:
        row = batch.row(position)
        n_ok, n_planned, variance = map(row.number, MEAN_COLUMNS)
        if n_ok is None or n_planned is None:
            name = "n_ok" if n_ok is None else "n_planned"
            raise row.make_cell_error(name, "is empty, and the other count is not", "Write both, or neither.")
        is_possible = n_ok.is_integer() and n_planned.is_integer() and 0 <= n_ok <= n_planned > 0
        is_possible = is_possible and n_planned <= MAX_SAMPLES
        if not is_possible or (n_ok == 0) != math.isnan(scores[position]) or (variance or 0.0) < 0:
            problem = f"{n_ok:g} of {n_planned:g} usable samples are not possible with this score and variance"
            raise row.make_cell_error("n_ok", problem, "Correct the row, or leave the columns out.")
        means[position] = n_ok, n_planned, math.nan if variance is None else variance
    return means


def _require_one_spelling(file: Path, names: Collection[str]) -> None:
    """Raise ImportFileError if two methods differ in capital letters only."""
    methods = {method.casefold(): method for method in names}
    if other := next((method for method in names if methods[method.casefold()] != method), None):
        problem = f"{file}: the methods '{other}' and '{methods[other.casefold()]}' differ in capital letters only."
        raise ImportFileError(problem, "Use one spelling for the method.")


def _find_shared_mean(means: NDArray[np.float64], is_new: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Positions of sorted rows that are means of several samples, though their cell has another row.

    Args:
        is_new: shape (rows - 1,), whether each row but the first begins another cell, model or method.
    """
    has_others = np.concatenate(([False], ~is_new)) | np.concatenate((~is_new, [False]))
    return np.flatnonzero(has_others & (means[:, 1] > 1))


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
