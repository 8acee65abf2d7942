"""Heat maps, maps and plots of cells, and errors by topic and country, the largest first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.charts import scatter_plots
from auditor.reports.charts.scatter_plots import ScorePair
from auditor.reports.data.agreement.over_models import EqualSeries
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, FigureGrid, HeatMap, HeatMapCell, List, Table
from auditor.reports.sections import cells as cell_sections
from auditor.reports.sections.cells import (
    SHADE_BOUNDS,
    build_differences_section,
    build_group_errors_section,
    build_map_section,
    build_profile,
    build_scatter_section,
    sort_by_size,
)
from auditor.reports.sections.page_one import build_summary_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.node_text import blocks_of, text_of, titled_cells_of
from tests.support.known import known
from tests.support.report_changes import change


def test_cells_distinguish_unasked_people_from_failed_models(db: Database) -> None:
    truth = {("Egypt", "a"): None, ("Egypt", "b"): 0.2, ("Egypt", "c"): 0.0, ("Egypt", "d"): 1.0}
    scores = {("m", "Egypt", "a"): 0.5, ("m", "Egypt", "b"): None, ("m", "Egypt", "c"): 0.34, ("m", "Egypt", "d"): -0.5}
    section = known(build_differences_section(import_scores(db, truth, scores)))
    [heat_map] = blocks_of(section, HeatMap)
    assert [cell for _, cells in heat_map.rows for cell in cells] == [
        HeatMapCell(None, "", "people were not asked", "not_asked"),
        HeatMapCell(None, "×", "no usable answer of the model", "no_answer"),
        HeatMapCell(0.34, "+.34", "people 0.00, model 0.34"),
        HeatMapCell(-1.5, "−1.50", "people 1.00, model −0.50"),
    ]
    assert set(heat_map.state_labels) == {"not_asked", "no_answer"}
    assert heat_map.bounds == SHADE_BOUNDS


def error_row(name: str, model: str, value: float | None) -> GroupErrorRow:
    """A row with this MAE, missing if None."""
    mae = Estimate(value, 3, reason="no answer")
    return GroupErrorRow(
        name=name, model=model, method="direct", n=3, n_dropped=0, mae=mae, mae_simultaneous=mae, bias=mae,
        mae_ratio=Tested(None, 3, reason="no answer"), pearson_r=mae,
        lost_samples=LostSamples(planned=3, lost=0, share=0.0),
    )  # fmt: skip


def test_groups_are_sorted_by_their_mean_error_with_missing_ones_last(report: Report) -> None:
    values = {"a": (None, None, None), "b": (0.1, 0.2, None), "c": (0.3, None, 0.5), "d": (0.2, 0.2, 0.2)}
    rows = [
        error_row(name, alignment.model, value)
        for name, errors in values.items()
        for alignment, value in zip(report.alignment, errors, strict=True)
    ]
    section = known(build_group_errors_section(change(report, topics=rows, countries=[])))
    [_, table] = blocks_of(section, Table)
    assert [row["Topic"] for row in titled_cells_of(table)] == list("cdba")


def test_a_place_is_named_only_if_its_error_differs_from_that_of_the_others(report: Report) -> None:
    mae, name = Estimate(0.45, 9, 0.3, 0.6), report.topics[0].name
    far = Tested(3.0, 9, 2.0, 4.5, p_value=1e-4, adjusted_p_value=0.004)
    unclear = [change(row, mae_ratio=replace(far, adjusted_p_value=0.02)) for row in report.topics]
    none = known(build_group_errors_section(change(report, topics=unclear, countries=[])))
    assert "No model is shown to be further from people in one country" in text_of(none)
    assert not blocks_of(none, List)
    topics = [change(unclear[0], mae=mae, mae_ratio=far), *unclear[1:]]
    section = known(build_group_errors_section(change(report, topics=topics, countries=[])))
    [findings] = blocks_of(section, List)
    assert [text_of(item) for item in findings.items] == [
        f"{topics[0].model} is further from people on {name} than on its other topics (mean absolute error = 0.45, 95% "
        "CI 0.30 to 0.60; 3.00 times that of the others, 95% CI 2.00 to 4.50).neutral"
    ]


def test_a_long_profile_has_the_twelve_largest_differences(report: Report) -> None:
    bias = {
        f"topic {i}": {m: Estimate(s * i / 100, 5, reason="few") for m, s in (("m", 1), ("n", -1))} for i in range(30)
    }
    profile = build_profile("topic", sort_by_size(bias), ["m", "n"], show_legend=True)
    assert isinstance(profile, HeatMap)
    assert [name for name, _ in profile.rows] == [f"topic {i}" for i in range(29, 17, -1)]


def test_each_model_has_a_map_described_with_interval_and_n(report: Report) -> None:
    section = known(build_map_section(report))
    errors, *differences = blocks_of(section, Figure)
    assert errors.id == "map"
    assert [figure.id for figure in differences] == ["map-alder", "map-birch", "map-cedar"]
    [grid] = blocks_of(section, FigureGrid)
    assert (list(grid.figures), grid.size) == (differences, "medium")
    row = next(row for row in report.countries if row.model == "alder")
    assert f"{row.name} = {known(row.bias.value):+.2f}, 95% CI ".replace("-", "−") in differences[0].description
    assert f"{row.bias.n} cells" in differences[0].description


@pytest.mark.parametrize(("method", "n_models"), [("direct", 2), ("logprob", 3)])
def test_models_with_equal_scores_by_another_method_are_both_in_the_mean_of_the_map(
    method: str, n_models: int, report: Report
) -> None:
    changed = change(report, equal_series=[EqualSeries(method=method, models=["alder", "birch"])])
    assert f"averaged over {n_models} models" in text_of(known(build_map_section(changed)))


def test_names_that_are_not_on_the_map_are_listed(db: Database) -> None:
    truth = {(country, str(i)): i / 10 for country in ("Germany", "Middle-earth") for i in range(5)}
    section = known(build_map_section(import_scores(db, truth, {("m", *cell): score for cell, score in truth.items()})))
    assert "Not on the map: Middle-earth." in text_of(section)
    assert "averaged" not in text_of(section)


def test_only_countries_with_scores_of_all_models_have_the_smallest_or_largest_error(db: Database) -> None:
    """The bad model has no score in Egypt, where the mean over models is that of the good one."""
    truth = {(country, "a"): 0.0 for country in ("Germany", "Japan", "Egypt")}
    scores = {("good", *cell): 0.1 for cell in truth} | {("bad", "Germany", "a"): 0.5, ("bad", "Japan", "a"): 0.7}
    text = text_of(known(build_map_section(import_scores(db, truth, scores))))
    assert "The mean absolute error ranges from 0.30 in Germany to 0.40 in Japan." in text
    assert "averaged over 1 to 2 models with scores there." in text


def test_countries_with_scores_of_different_models_are_not_compared(db: Database) -> None:
    truth = {(country, "a"): 0.0 for country in ("Germany", "Egypt")}
    text = text_of(
        known(build_map_section(import_scores(db, truth, {("m", "Germany", "a"): 0.5, ("n", "Egypt", "a"): 0.1})))
    )
    assert "The countries have scores of different models, so that their errors cannot be compared." in text


@pytest.mark.parametrize(("max_tooltips", "tooltip"), [(3, "Egypt, c"), (2, "")])
def test_points_are_the_cells_with_both_scores(
    db: Database, monkeypatch: pytest.MonkeyPatch, max_tooltips: int, tooltip: str
) -> None:
    plotted: list[ScorePair] = []

    def record_pairs(pairs: list[ScorePair]) -> dict[str, object]:
        plotted.extend(pairs)
        return {}

    monkeypatch.setattr(cell_sections, "scatter_plot", record_pairs)
    monkeypatch.setattr(cell_sections, "MAX_TOOLTIPS_PER_PAGE", max_tooltips)
    truth = {("Egypt", "a"): None, ("Egypt", "b"): 0.2, ("Egypt", "c"): 0.0}
    scores = {("m", "Egypt", "a"): 0.5, ("m", "Egypt", "b"): None, ("m", "Egypt", "c"): 0.34}
    section = known(build_scatter_section(import_scores(db, truth, scores)))
    assert plotted == [ScorePair(0.0, 0.34, tooltip)]
    assert blocks_of(section, Figure)[0].caption == "r not available, 1 cell"
    assert scatter_plots.MAX_TOOLTIPS_PER_PAGE == 4000


def test_scores_that_only_rounding_separates_from_peoples_are_equal(db: Database) -> None:
    """The mean of 0.1, 0.2 and 0.3 is 0.2; the page said “more permissive in 10 of 36” and “stricter by 0.00”."""
    truth: dict[tuple[str, str], float | None] = {("Egypt", f"t{i}"): i / 10 for i in range(6)}
    rounded = {("m", *cell): float(np.nextafter(score, 1)) for cell, score in truth.items() if score is not None}
    report = import_scores(db, truth, rounded)
    assert "more permissive than people in 0 of 6 comparisons" in text_of(build_scatter_section(report))
    assert "All 6 scores are equal to people’s." in text_of(build_differences_section(report))
    assert report.examples == []
    assert "has people’s score in every cell" in text_of(build_summary_section(report))
