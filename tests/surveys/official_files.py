"""Small files in the official formats, with weights and every code, written by the tests themselves."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat

WVS_COUNTRIES = {"DEU": 276, "NGA": 566, "TWN": 158, "NIR": 909}
WVS_QUESTIONS = [f"Q{i}" for i in range(177, 196)]
WVS_LABELS: Labels = {
    -5: "Missing; Not available", -4: "Not asked", -2: "No answer", -1: "Don´t know",
    1: "Never justifiable", **{i: str(i) for i in range(2, 10)}, 10: "Always justifiable",
}  # fmt: skip
PEW_QUESTIONS = [f"Q84{letter}" for letter in "ABCDEFGH"]
PEW_LABELS: Labels = {
    1: "Morally acceptable", 2: "Morally unacceptable", 3: "Not a moral issue",
    4: "Depends on the situation (Volunteered)", 8: "Don’t know", 9: "Refused",
}  # fmt: skip
PEW_COUNTRIES: Labels = {7: "Britain", 21: "Palestinian territories", 30: "South Korea"}

Columns = dict[str, list[Any]]
Labels = dict[int | float, str]


def wvs_columns(rows: int = 400, seed: int = 1) -> Columns:
    """Answers on 1 to 10 and every code of nonresponse; Q195 was not asked in the first country."""
    rng = np.random.default_rng(seed)
    country = rng.integers(0, len(WVS_COUNTRIES), rows)
    columns: Columns = {
        "version": ["5-0-0"] * rows,
        "B_COUNTRY": [list(WVS_COUNTRIES.values())[c] for c in country],
        "B_COUNTRY_ALPHA": [list(WVS_COUNTRIES)[c] for c in country],
        "W_WEIGHT": [round(w, 6) for w in rng.gamma(6, 1 / 6, rows) + 0.01],
    }
    codes = [*range(1, 11), -1, -2, -4, -5]
    for place, question in enumerate(WVS_QUESTIONS):
        odds = np.array([1 + (place + i) % 5 for i in range(10)] + [1, 1, 0.5, 0.5])
        drawn = rng.choice(codes, rows, p=odds / odds.sum())
        columns[question] = [int(c) for c in np.where((question == "Q195") & (country == 0), -4, drawn)]
    return columns


def pew_columns(rows: int = 300, seed: int = 2) -> Columns:
    """Every answer and kind of nonresponse, and a few empty fields."""
    rng = np.random.default_rng(seed)
    columns: Columns = {
        "country": [float(c) for c in rng.choice(list(PEW_COUNTRIES), rows)],
        "weight": [round(w, 6) for w in rng.gamma(6, 1 / 6, rows) + 0.01],
    }
    for question in PEW_QUESTIONS:
        drawn = rng.choice([1.0, 2, 3, 4, 8, 9, np.nan], rows, p=[0.3, 0.3, 0.2, 0.07, 0.06, 0.05, 0.02])
        columns[question] = list(drawn)
    return columns


def write_csv(path: Path, columns: Mapping[str, Sequence[object]], delimiter: str = ",") -> Path:
    """All text in quotes, as the official CSV has it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_sav(path: Path, columns: Mapping[str, Sequence[object]], labels: dict[str, Labels]) -> Path:
    """With value labels, and the negative codes declared missing."""
    missing: Any = {name: [{"lo": -99, "hi": -1}] for name in labels if name.startswith("Q1")}
    pyreadstat.write_sav(pd.DataFrame(columns), str(path), variable_value_labels=labels, missing_ranges=missing)
    return path


def wvs_sav(path: Path, columns: Columns) -> Path:
    return write_sav(path, columns, dict.fromkeys(WVS_QUESTIONS, WVS_LABELS))


def pew_sav(path: Path, columns: Columns) -> Path:
    """The Pew file, which comes in SPSS alone."""
    return write_sav(path, columns, {"country": PEW_COUNTRIES, **dict.fromkeys(PEW_QUESTIONS, PEW_LABELS)})
