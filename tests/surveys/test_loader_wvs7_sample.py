"""The built-in sample of the World Values Survey, against the tables that it was taken from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from auditor.domain import Cell
from auditor.surveys import get_grouping, load_survey

SAMPLE = load_survey("wvs7-sample")
FILE_NAME = "wvs7_country_topic.csv"
PATHS = [folder / "shared" / "data" / FILE_NAME for folder in Path(__file__).resolve().parents]
FILE = next((path for path in PATHS if path.exists()), None)
NAMES = {"United States of America": "United States"}
"""Country names of that table that the sample spells differently."""

SOURCE_MEANS = {
    Cell("Greece", "homosexuality"): -0.163354,
    Cell("Greece", "divorce"): 0.303591,
    Cell("Greece", "abortion"): -0.205541,
    Cell("Greece", "death penalty"): -0.681456,
    Cell("New Zealand", "homosexuality"): 0.406205,
    Cell("New Zealand", "divorce"): 0.508961,
    Cell("New Zealand", "abortion"): 0.291059,
    Cell("New Zealand", "death penalty"): -0.273267,
}
"""Rescaled country means of wave 7, from the data of Ramezani & Xu (ACL 2023), cultural_inference, commit dc4e854."""


def test_seven_western_countries_are_in_the_sample() -> None:
    western = next(region for region in get_grouping(SAMPLE).regions if region.name == "Western")
    assert set(western.countries) == {
        *("Australia", "Canada", "Germany", "Greece", "Netherlands", "New Zealand", "United States"),
    }


@pytest.mark.parametrize(("cell", "mean"), SOURCE_MEANS.items())
def test_greece_and_new_zealand_have_the_figures_of_the_source(cell: Cell, mean: float) -> None:
    assert SAMPLE.scores[cell] == round(mean, 2)


@pytest.mark.skipif(FILE is None, reason=f"needs ../shared/data/{FILE_NAME}, which may not be passed on")
def test_every_figure_is_the_rounded_country_mean_of_wave_7() -> None:
    assert FILE is not None
    with FILE.open(encoding="utf-8") as file:
        means = {
            Cell(NAMES.get(row["country"], row["country"]), row["topic"]): float(row["score"])
            for row in csv.DictReader(file)
            if row["score"]
        }
    differences = {cell: abs(score - means[cell]) for cell, score in SAMPLE.scores.items()}
    assert len(differences) == 17 * 19 - 6
    assert max(differences.values()) <= 0.005  # rounded to two decimals
