"""The maps show each model's difference from people by country, and the errors of all."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, FigureGrid, Table
from auditor.reports.sections.cells import build_group_errors_section, build_map_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


def test_each_model_has_a_map_described_with_interval_and_n(report: Report) -> None:
    section = build_map_section(report)
    assert section is not None
    errors, *differences = blocks_of(section, Figure)
    assert errors.id == "map"
    assert [figure.id for figure in differences] == ["map-alder", "map-birch", "map-cedar"]
    [grid] = blocks_of(section, FigureGrid)
    assert (list(grid.figures), grid.size) == (differences, "medium")
    row = next(row for row in report.countries if row.model == "alder")
    assert row.bias.value is not None
    assert f"{row.name} = {row.bias.value:+.2f}, 95% CI ".replace("-", "−") in differences[0].description
    assert f"{row.bias.n} cells" in differences[0].description


def test_the_maps_name_the_table_with_the_difference_of_each_model_and_country(report: Report) -> None:
    maps, profiles = build_map_section(report), build_group_errors_section(report)
    assert maps is not None
    assert profiles is not None
    table = next(table for table in blocks_of(profiles, Table) if table.id == "difference-by-country")
    assert {figure.table_id for figure in blocks_of(maps, Figure)[1:]} == {table.id}
    expected: dict[str, list[Estimate]] = {}
    for row in report.countries:
        expected.setdefault(row.name, []).append(row.bias)
    assert {str(country): estimates for country, *estimates in cells_of(table)} == expected


def test_names_that_are_not_on_the_map_are_listed(db: Database) -> None:
    truth = {(country, str(i)): i / 10 for country in ("Germany", "Middle-earth") for i in range(5)}
    section = build_map_section(import_scores(db, truth, {("m", *cell): score for cell, score in truth.items()}))
    assert section is not None
    assert "Not on the map: Middle-earth." in text_of(section)
    assert "averaged" not in text_of(section)


def test_without_a_country_on_the_map_there_is_no_section(db: Database) -> None:
    truth = {("Middle-earth", str(i)): i / 10 for i in range(5)}
    assert build_map_section(import_scores(db, truth, {("m", *cell): 0.1 for cell in truth})) is None
