"""Countries are clustered by cultural zone if a figure's cells are in at least six, by a rule and not by the data."""

from __future__ import annotations

import numpy as np

from auditor.reports.data.sampling_units import MIN_ZONES, cluster_countries

COUNTRIES = ("Chile", "Peru", "Japan", "Kenya", "Spain", "Norway", "Canada", "Atlantis")
ZONES = {
    "Chile": "Latin America", "Peru": "Latin America", "Japan": "Confucian", "Kenya": "African-Islamic",
    "Spain": "Catholic Europe", "Norway": "Protestant Europe", "Canada": "English-Speaking",
}  # fmt: skip


def test_six_zones_are_clusters_and_an_unplaced_country_is_one_of_its_own() -> None:
    labels = cluster_countries(COUNTRIES, ZONES, np.ones(len(COUNTRIES), dtype=np.bool_))
    assert labels.unit == "zone"
    assert len(set(labels.labels.tolist())) == MIN_ZONES + 1
    assert labels.labels[0] == labels.labels[1]


def test_an_unplaced_country_does_not_count_towards_six() -> None:
    included = np.array([country != "Canada" for country in COUNTRIES])
    labels = cluster_countries(COUNTRIES, ZONES, included)
    assert labels.unit == "country"
    assert labels.labels.tolist() == list(COUNTRIES)


def test_a_country_with_the_name_of_a_zone_is_another_unit() -> None:
    countries = (*COUNTRIES, "Confucian")
    labels = cluster_countries(countries, ZONES, np.ones(len(countries), dtype=np.bool_))
    assert labels.labels[-1] != labels.labels[2]
