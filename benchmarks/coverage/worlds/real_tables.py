"""Worlds in which the survey's scores are resampled from a real table: World Values Survey 7, and Pew 2013.

The population is the table: an audit draws countries and topics from it with replacement, so the truth is the figure of
the full table. The models' errors are drawn once, with effects of country, topic and cell, and belong to the
population. The tables may not be passed on: they are read from a folder beside the project, and worlds whose file is
absent are skipped.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.coverage.worlds.design import Design, Floats
from benchmarks.coverage.worlds.score_worlds import ScoreSample, build_sample, summarize_population

DATA_FOLDERS = tuple(parent / "shared" / "data" for parent in Path(__file__).resolve().parents)
"""Where the tables are looked for: `../shared/data` seen from the project, or further up."""
ERROR_SDS = (0.12, 0.20, 0.12)
SHRINKAGE = 0.4
"""Share of the way from people's score to the mean of the topic: models exaggerate what all countries share."""


@dataclass(frozen=True, slots=True)
class ResampledTable:
    """A world whose population is a real table.

    Attributes:
        file_name: in one of `DATA_FOLDERS`, with the columns country, topic and score.
    """

    name: str
    file_name: str

    @property
    def path(self) -> Path | None:
        """The file; None where it is absent."""
        paths = (folder / self.file_name for folder in DATA_FOLDERS)
        return next((path for path in paths if path.exists()), None)

    def draw(self, design: Design, rng: np.random.Generator) -> ScoreSample:
        """Simulate one audit; cells that the survey did not ask are missing."""
        if self.path is None:
            raise FileNotFoundError(f"{self.file_name} is in none of the folders {[str(f) for f in DATA_FOLDERS]}")
        survey, first, second = _load_population(self.path)
        country, topic = design.draw_cells(rng)
        row = rng.integers(0, survey.shape[0], design.n_countries)[country]
        column = rng.integers(0, survey.shape[1], design.n_topics)[topic]
        is_asked = ~np.isnan(survey[row, column])
        country, topic, row, column = (index[is_asked] for index in (country, topic, row, column))
        scores = [matrix[row, column] for matrix in (survey, first, second)]
        return build_sample(design, rng, country, topic, scores, _measure_truths(self.path))


@cache
def _load_population(path: Path) -> tuple[Floats, Floats, Floats]:
    """People's scores, shape (countries, topics) with nan where not asked, and the scores of two models."""
    with path.open(encoding="utf-8") as file:
        rows = [(row["country"], row["topic"], float(row["score"] or "nan")) for row in csv.DictReader(file)]
    countries, topics = (sorted({row[side] for row in rows}) for side in (0, 1))
    survey = np.full((len(countries), len(topics)), np.nan)
    for country, topic, score in rows:
        survey[countries.index(country), topics.index(topic)] = score
    rng = np.random.default_rng(23)
    topic_means = np.nanmean(survey, axis=0)
    first, second = (_draw_model(survey, topic_means, rng) for _ in range(2))
    return survey, first, second


def _draw_model(survey: Floats, topic_means: Floats, rng: np.random.Generator) -> Floats:
    """Scores of a model that knows the topics better than the countries."""
    n_countries, n_topics = survey.shape
    part_shapes = ((n_countries, 1), (1, n_topics), (n_countries, n_topics))
    parts = [sd * rng.normal(size=shape) for sd, shape in zip(ERROR_SDS, part_shapes, strict=True)]
    scores = survey + SHRINKAGE * (topic_means - survey) + parts[0] + parts[1] + parts[2]
    return np.asarray(np.clip(scores, -1, 1))


@cache
def _measure_truths(path: Path) -> dict[str, float]:
    """Each figure over the full table; the gaps are left out, since the table's groups differ in more than errors."""
    matrices = _load_population(path)
    is_asked = ~np.isnan(matrices[0])
    truths = summarize_population(*(matrix[is_asked] for matrix in matrices))
    deviations = [
        (matrix - np.where(is_asked, matrix, np.nan).mean(axis=0, where=is_asked))[is_asked] for matrix in matrices[:2]
    ]
    truths["within-topic r"] = float(np.corrcoef(deviations[1], deviations[0])[0, 1])
    return {name: value for name, value in truths.items() if not name.endswith("gap")}


WVS7 = ResampledTable("WVS-7", "wvs7_country_topic.csv")
PEW = ResampledTable("Pew 2013", "pew2013_country_topic.csv")
REAL_WORLDS = (WVS7, PEW)
