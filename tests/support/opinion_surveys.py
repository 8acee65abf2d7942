"""Surveys of shares of answers on a scale of ten points, of everyone and by sex, drawn from a simulated world."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from auditor.surveys import write_survey
from auditor.surveys.share_tables import import_share_table
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.opinion_worlds import OpinionWorld

COUNTRIES = ("Brazil", "China", "Egypt", "France", "Germany", "India", "Japan", "Kenya")
TOPICS = ("abortion", "divorce", "euthanasia", "prostitution", "suicide", "taxes")
SHARE_COLUMNS = [f"p{position}" for position in range(1, 11)]
N_PEOPLE, N_GROUP = 1000, 500
TILT = 0.05 * np.linspace(-1, 1, 10)


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def draw_cells() -> list[tuple[str, str, np.ndarray]]:
    """Country, topic and true shares of each cell."""
    sample = OpinionWorld("perfect").draw(Design(len(COUNTRIES), len(TOPICS)), np.random.default_rng(4))
    return [(COUNTRIES[c], TOPICS[t], p) for c, t, p in zip(sample.country, sample.topic, sample.people, strict=True)]


def tilt(shares: np.ndarray, amount: float) -> np.ndarray:
    """Shares with more weight on the upper answers, for an amount above 0."""
    tilted: np.ndarray = np.clip(shares + amount * TILT, 0.001, None)
    divided: np.ndarray = tilted / tilted.sum()
    return divided


def write_opinion_survey(folder: Path) -> Path:
    """Write a survey with the shares of everyone, of men and of women; returns the path of its data file."""
    rows: list[list[object]] = []
    for country, topic, shares in draw_cells():
        rows.append([country, topic, N_PEOPLE, "", "", *shares])
        rows += [[country, topic, N_GROUP, "sex", name, *tilt(shares, d)] for name, d in (("men", -1), ("women", 1))]
    path = write_rows(folder / "t.csv", ["country", "topic", "n", "dimension", "group", *SHARE_COLUMNS], rows)
    imported = import_share_table(path, 1, 10)
    write_survey(imported.survey, folder / "survey.csv", shares=imported.distributions)
    return folder / "survey.csv"
