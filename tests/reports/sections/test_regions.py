"""The section on regions has every figure by region, and the gaps with their bounds."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.measurement_schema import RegionGapRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Table
from auditor.reports.sections.regions import build_regions_section
from tests.reports.sections.node_text import tables_of, text_of, titled_cells_of
from tests.support.report_changes import change

LOST = LostSamples(planned=100, lost=3, share=0.03)
GAP = RegionGapRow(
    model="alder", method="direct", first="Western", second="Other",
    mae_gap=Tested(0.1, 40, 0.02, 0.2, p_value=0.002, adjusted_p_value=0.004),
    bias_gap=Tested(0.1, 40, -0.1, 0.3, p_value=0.3, adjusted_p_value=0.6),
    r_gap=Estimate(-0.2, 40, -0.3, -0.1), first_lost_samples=change(LOST, lost=2),
    second_lost_samples=LOST, compared=2, left_out=[],
)  # fmt: skip


def gap_table(report: Report, *gaps: RegionGapRow) -> Table:
    """The table of these gaps."""
    return tables_of(build_regions_section(change(report, regions__gaps=list(gaps))))["region-gaps"]


def test_lost_samples_name_their_regions_where_the_pairs_differ(report: Report) -> None:
    table = gap_table(report, GAP, GAP.model_copy(update={"first": "Asia", "second": "Africa"}))
    lost = [text_of(row["Samples lost"]) for row in titled_cells_of(table)]
    assert lost == ["Other 3%, Western 2%", "Africa 3%, Asia 2%"]


def test_the_caption_says_that_the_largest_of_several_gaps_is_corrected(report: Report) -> None:
    caption = text_of(gap_table(report, GAP.model_copy(update={"compared": 4, "left_out": ["Oceania"]})).caption)
    assert "The largest of several gaps is biased upwards." in caption
    assert "Excluded, with fewer than five countries: Oceania." in caption


@pytest.mark.parametrize(("ungrouped", "is_present"), [(["Atlantis"], True), ([], False)])
def test_countries_in_no_region_are_named(report: Report, ungrouped: list[str], is_present: bool) -> None:
    section = build_regions_section(change(report, regions__rows=[], regions__gaps=[], regions__ungrouped=ungrouped))
    assert (section is not None) == is_present
    if section is not None:
        assert "in no region, which are not in the table: Atlantis." in text_of(section)
