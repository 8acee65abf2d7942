"""The heat maps show each model's score minus people's, and why a cell has none."""

from __future__ import annotations

import pytest

from auditor.reports.data.report_schema import Report
from auditor.reports.document import Disclosure, HeatMap, HeatMapCell
from auditor.reports.sections.cells import MAX_OPEN_HEAT_MAPS, SHADE_BOUNDS, build_differences_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.block_access import blocks_of


def test_cells_distinguish_unasked_people_from_failed_models(db: Database) -> None:
    truth = {("Egypt", "a"): None, ("Egypt", "b"): 0.2, ("Egypt", "c"): 0.0, ("Egypt", "d"): 1.0}
    scores = {("m", "Egypt", "a"): 0.5, ("m", "Egypt", "b"): None, ("m", "Egypt", "c"): 0.34, ("m", "Egypt", "d"): -0.5}
    section = build_differences_section(import_scores(db, truth, scores))
    assert section is not None
    [heat_map] = blocks_of(section, HeatMap)
    assert [cell for _, cells in heat_map.rows for cell in cells] == [
        HeatMapCell(None, "", "people were not asked", "not_asked"),
        HeatMapCell(None, "×", "no usable answer of the model", "no_answer"),
        HeatMapCell(0.34, "+.34", "people 0.00, model 0.34"),
        HeatMapCell(-1.5, "−1.50", "people 1.00, model −0.50"),
    ]
    assert set(heat_map.state_labels) == {"not_asked", "no_answer"}
    assert heat_map.bounds == SHADE_BOUNDS


def test_every_model_has_a_map_and_the_first_one_a_legend(report: Report) -> None:
    section = build_differences_section(report)
    assert section is not None
    maps, disclosures = blocks_of(section, HeatMap), blocks_of(section, Disclosure)
    assert [heat_map.show_legend for heat_map in maps] == [True, False, False]
    assert [disclosure.is_open for disclosure in disclosures] == [True, False, False]
    countries = list(dict.fromkeys(cell.country for cell in report.audit.cells))
    assert [name for name, _ in maps[0].rows] == countries
    assert sum(cell.value is not None for _, cells in maps[0].rows for cell in cells) == report.alignment[0].n


@pytest.mark.parametrize("n_models", [MAX_OPEN_HEAT_MAPS, MAX_OPEN_HEAT_MAPS + 1])
def test_of_many_maps_only_the_first_is_open(db: Database, n_models: int) -> None:
    truth = {("Egypt", str(i)): i / 20 for i in range(16)}
    scores = {(f"m{k}", *cell): score for cell, score in truth.items() for k in range(n_models)}
    section = build_differences_section(import_scores(db, truth, scores))
    assert section is not None
    assert sum(disclosure.is_open for disclosure in blocks_of(section, Disclosure)) == (4 if n_models == 4 else 1)
    assert not section.is_landscape


def test_without_scores_there_is_no_section(report: Report) -> None:
    assert build_differences_section(report.model_copy(update={"alignment": []})) is None
