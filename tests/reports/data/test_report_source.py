"""Every record that a report is computed from is loaded, and countries are clustered by zone by a rule."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from auditor.reports.data.build import build_report
from auditor.reports.data.report_source import MIN_ZONES, SOURCE_QUERIES, ReportSource, cluster_countries, load_source
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.surveys.regions import group_countries
from tests.reports.conftest import survey_of

LOADED_IF_NEEDED = {"n_excluded_before_import", "n_shortened_traces", "sample_scores", "scored_traces", "task_answers"}


def test_every_field_is_filled_by_a_query() -> None:
    """A field without a query would keep its default, as if the audit had none of these records."""
    queries = SOURCE_QUERIES.keys()
    assert {"audit", "config", "survey"} | queries | LOADED_IF_NEEDED == {field.name for field in fields(ReportSource)}
    assert not queries & LOADED_IF_NEEDED


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


def test_the_zones_that_an_audit_stored_are_those_of_its_report(db: Database) -> None:
    survey = survey_of({("Japan", "divorce"): 0.1, ("Kenya", "divorce"): -0.3})
    for name, zones in (("earlier", None), ("stored", {"Japan": "Islands"})):
        stored = replace(survey, zones=zones)
        audits.save_audit(db, name=name, config=None, config_hash=None, survey=stored, environment={})
        source = load_source(db, name)
        expected = zones or {"Japan": "Confucian", "Kenya": "African-Islamic"}
        assert source.zone_by_country == expected
        report = build_report(db, name)
        assert report.audit.survey.zones == {zone: [country] for country, zone in expected.items()}
        assert report.audit.survey.clusters == "country"


def test_a_survey_is_put_in_zones_where_its_countries_are_grouped() -> None:
    survey = group_countries(survey_of({("Japan", "divorce"): 0.1, ("Atlantis", "divorce"): -0.3}))
    assert survey.zones == {"Japan": "Confucian"}
