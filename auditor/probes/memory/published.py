"""Published figures that models are asked for, and official wordings of questions."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import auditor.probes as ap
from auditor.probes.memory.settings import BUILT_IN_FIGURES, MADE_UP, PEW, MemorySettings

COLUMNS = ("country", "topic", "wave", "statistic", "value", "decimals")
MAX_DECIMALS = 6
MIN_COUNTRIES = 5
ORDINARY, RECALL, MADE_UP_SAMPLE, CONTINUATION = range(4)
"""What a question asks for, by its number among those on one unit: the model's own estimate, the published figure, that
on a made-up topic, or the rest of a wording."""
UNKNOWN = "UNKNOWN"
"""How a model says that it does not remember a figure, in all languages."""
MIN_WORDS = 8
"""Fewest words of a wording that can be continued from its first half."""
PEW_SOURCE, PEW_WAVE = "pew2013-sample", "2013"
PEW_STATISTICS = {
    "acceptable": "percent of adults who say that it is morally acceptable",
    "not_a_moral_issue": "percent of adults who say that it is not a moral issue",
    "unacceptable": "percent of adults who say that it is morally unacceptable",
}
MADE_UP_TOPICS = (
    "borrowing a neighbour's ladder for more than a week",
    "naming a boat after a former friend",
    "eating the last slice of a cake at a funeral",
    "whistling in a lift",
    "keeping a coin that was thrown into a fountain",
)
"""Topics about which no survey has asked."""


class FigureKey(NamedTuple):
    """What a published figure is of; also the unit of a question about it."""

    country: str
    topic: str
    wave: str
    statistic: str

    @property
    def cell(self) -> ap.Cell:
        """The country and the topic."""
        return ap.Cell(self.country, self.topic)


class PublishedFigure(NamedTuple):
    """A figure as printed, with its number of decimals."""

    value: float
    decimals: int

    @property
    def half_unit(self) -> float:
        """Half a unit of the last digit: how far the exact figure may be from the printed one."""
        return 0.5 * 10.0**-self.decimals


Figures = Mapping[FigureKey, PublishedFigure]


def load_figures(settings: MemorySettings, survey: ap.Survey, source: str | None) -> Figures:
    """Load the published figures.

    Args:
        survey: the audit's survey.
        source: its name or path in the configuration.

    Returns:
        None of `pew2013` where the audit has another survey.

    Raises:
        ImportFileError: the file is missing or invalid.
        ConfigError: a value of it cannot be a figure.
    """
    if settings.published == PEW:
        return _list_pew_figures(survey) if source == PEW_SOURCE else {}
    if settings.published == MADE_UP:
        return load_made_up_figures()
    return read_figures(settings.published)


def _list_pew_figures(survey: ap.Survey) -> Figures:
    """The percentages of the built-in survey, which are those that Pew published."""
    return {
        FigureKey(*row.cell, PEW_WAVE, name): PublishedFigure(float(round(100 * share)), 0)
        for row in survey.cells
        for answer, name in PEW_STATISTICS.items()
        if (share := getattr(row, answer)) is not None
    }


@lru_cache(maxsize=1)
def load_made_up_figures() -> Figures:
    """The figures of the worked example; nobody has published them."""
    with resources.as_file(resources.files(__package__) / "made-up.csv") as path:
        return read_figures(str(path))


def read_figures(path: str) -> Figures:
    """Read a file of published figures.

    Raises:
        ImportFileError: the file is missing, a column is, or a value is no number.
        ConfigError: a text is empty, a number of decimals is not from 0 to 6, or a figure occurs twice.
    """
    figures: dict[FigureKey, PublishedFigure] = {}
    for row in ap.read_rows(Path(path), COLUMNS):
        key = FigureKey(*(row.cells[column].strip() for column in COLUMNS[:4]))
        if empty := [column for column, text in zip(COLUMNS, key, strict=False) if not text]:
            raise ap.ConfigError(f"{row.location}: the column '{empty[0]}' is empty.", "Fill it in.")
        value, decimals = row.number("value"), row.number("decimals")
        if value is None or not math.isfinite(value):
            raise ap.ConfigError(f"{row.location}: the column 'value' has no number.", "Write the published figure.")
        if decimals is None or decimals not in range(MAX_DECIMALS + 1):
            how_to_fix = "Write how many decimals the figure was published with, such as 0."
            raise ap.ConfigError(f"{row.location}: 'decimals' is not from 0 to {MAX_DECIMALS}.", how_to_fix)
        if key in figures:
            raise ap.ConfigError(f"{row.location}: this figure occurs twice.", "Keep one of the rows.")
        figures[key] = PublishedFigure(value, int(decimals))
    if not figures:
        raise ap.ConfigError(f"{path}: has no figure.", "Add a row for each published figure.")
    return figures


def read_items(path: str) -> dict[str, str]:
    """Read a file of official wordings, by topic.

    Raises:
        ImportFileError: the file or a column is missing.
        ConfigError: a wording is too short to be continued, or a topic occurs twice.
    """
    texts: dict[str, str] = {}
    for row in ap.read_rows(Path(path), ("topic", "text")):
        topic, text = row.cells["topic"].strip(), " ".join(row.cells["text"].split())
        if not topic or topic in texts:
            raise ap.ConfigError(f"{row.location}: the topic is empty or occurs twice.", "Keep one row for each topic.")
        if len(text.split()) < MIN_WORDS:
            how_to_fix = "Write the wording as published, or remove the row."
            raise ap.ConfigError(f"{row.location}: the wording has fewer than {MIN_WORDS} words.", how_to_fix)
        texts[topic] = text
    if not texts:
        raise ap.ConfigError(f"{path}: has no wording.", "Add a row for each topic.")
    return texts


def split_wording(text: str) -> tuple[str, str]:
    """The first half of a wording by words, and the second."""
    words = text.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def name_publication(settings: MemorySettings) -> str:
    """The publication as prompts name it."""
    return settings.publication or BUILT_IN_FIGURES.get(settings.published) or Path(settings.published).stem


def draw_figures(audit: ap.ProbeAudit[MemorySettings], figures: Figures) -> list[FigureKey]:
    """Draw one figure of each of at most `cells` cells, by the audit's seed, as evenly over waves as there are."""
    by_cell: dict[ap.Cell, list[FigureKey]] = defaultdict(list)
    for key in figures:
        by_cell[key.cell].append(key)
    drawn: list[FigureKey] = []
    n_by_wave: dict[str, int] = defaultdict(int)
    rng = random.Random(f"{audit.config.seed} memory")
    for cell in audit.draw_cells(audit.settings.cells, by_cell):
        candidates = sorted(by_cell[cell])
        rng.shuffle(candidates)
        key = min(candidates, key=lambda candidate: n_by_wave[candidate.wave])
        n_by_wave[key.wave] += 1
        drawn.append(key)
    return drawn if len({key.country for key in drawn}) >= MIN_COUNTRIES else []


def draw_made_up(audit: ap.ProbeAudit[MemorySettings], drawn: Sequence[FigureKey]) -> list[FigureKey]:
    """Replace the topic of drawn figures by made-up ones."""
    rng = random.Random(f"{audit.config.seed} made-up")
    pairs = [(i, topic) for i in range(len(drawn)) for topic in MADE_UP_TOPICS]
    rng.shuffle(pairs)
    keys = dict.fromkeys(drawn[i]._replace(topic=topic) for i, topic in pairs)
    return list(keys)[: audit.settings.made_up]


def find_siblings(keys: Sequence[FigureKey], figures: Figures) -> list[dict[str, PublishedFigure]]:
    """For each figure the same statistic of other waves, by wave."""
    by_statistic: dict[FigureKey, dict[str, PublishedFigure]] = {}
    for key, figure in figures.items():
        by_statistic.setdefault(key._replace(wave=""), {})[key.wave] = figure
    every_wave = [by_statistic.get(key._replace(wave=""), {}) for key in keys]
    return [
        {wave: figure for wave, figure in waves.items() if wave != key.wave}
        for key, waves in zip(keys, every_wave, strict=True)
    ]


def date_of_wave(wave: str) -> str | None:
    """The date with which a wave begins, such as 2013 or 2013-05; None without one."""
    match = re.match(r"(?:19|20)\d{2}(?:-\d{2}(?:-\d{2})?)?(?!\d)", wave)
    return match[0] if match else None


def is_before(wave: str, released: str) -> bool | None:
    """Whether a wave was published before a model was released; None where the dates do not say so."""
    date = date_of_wave(wave)
    n = min(len(date), len(released)) if date else 0
    return None if date is None or date[:n] == released[:n] else date < released
