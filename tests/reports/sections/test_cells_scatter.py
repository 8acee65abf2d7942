"""The scatter plots show every cell that has both scores."""

from __future__ import annotations

import pytest

from auditor.reports.charts import scatter_plots
from auditor.reports.charts.scatter_plots import ScorePair
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure
from auditor.reports.sections import cells as cell_sections
from auditor.reports.sections.cells import build_scatter_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.block_access import blocks_of


def test_each_series_has_a_plot_with_its_r_and_number_of_cells(report: Report) -> None:
    section = build_scatter_section(report)
    assert section is not None
    figures = blocks_of(section, Figure)
    assert [figure.id for figure in figures] == ["scatter-alder", "scatter-birch", "scatter-cedar"]
    for figure, row in zip(figures, report.alignment, strict=True):
        assert figure.caption == f"r = {row.pearson_r.value:.2f}, {row.n} cells"


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
    section = build_scatter_section(import_scores(db, truth, scores))
    assert section is not None
    assert plotted == [ScorePair(0.0, 0.34, tooltip)]
    assert blocks_of(section, Figure)[0].caption == "r not available, 1 cell"
    assert scatter_plots.MAX_TOOLTIPS_PER_PAGE == 4000
