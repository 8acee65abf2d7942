"""Every estimate that a report can print is in a simulation, and every interval says what was resampled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.storage.database import open_database
from benchmarks.coverage.paths import iterate_estimates, iterate_schema_paths
from benchmarks.coverage.registry import (
    PATHS_BY_FIGURE,
    PATHS_WITHOUT_SIMULATION,
    find_figures,
    find_reasons,
    iterate_all_paths,
)
from benchmarks.coverage.studies import figures_by_key
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of the synthetic audit, in which every table is filled."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('coverage')}/audit.db") as db:
        return build_report(db, populate(db).name)


@pytest.mark.parametrize("path", list(iterate_all_paths()))
def test_each_estimate_is_in_one_simulation_or_has_a_reason_why_not(path: str) -> None:
    entries = find_figures(path) + find_reasons(path)
    assert len(entries) == 1, f"add {path} to one figure of benchmarks/coverage/registry.py, which has {entries}"


def test_each_entry_of_the_registry_is_a_figure_of_the_study_and_has_a_path() -> None:
    paths = list(iterate_all_paths())
    assert set(PATHS_BY_FIGURE) <= set(figures_by_key())
    for table, find in ((PATHS_BY_FIGURE, find_figures), (PATHS_WITHOUT_SIMULATION, find_reasons)):
        for key in table:
            assert any(key in find(path) for path in paths), f"{key} is the figure of no estimate"


def test_the_estimates_of_a_full_report_are_those_of_its_schema(full_report: Report) -> None:
    paths = {path for path, _ in iterate_estimates(full_report)}
    assert len(paths) > 40
    assert paths <= set(iterate_all_paths())


def test_each_interval_of_a_full_report_says_what_was_resampled(full_report: Report) -> None:
    silent = {
        path
        for path, estimate in iterate_estimates(full_report)
        if estimate.ci_low is not None and not estimate.resampled
    }
    assert silent == set()


def test_a_path_that_is_nowhere_is_noticed() -> None:
    assert find_figures(".panel.new_figure") == []
    assert find_reasons(".panel.new_figure") == []


def test_the_stored_schema_has_the_same_paths() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    assert set(iterate_schema_paths(schema)) <= set(iterate_all_paths())
