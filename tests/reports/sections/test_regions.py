"""The section on regions has every figure by region, and the gaps with their bounds."""

from __future__ import annotations

from typing import cast

import pytest

from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate, Tested
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseDifferences
from auditor.reports.data.measurement_schema import RegionGapRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import CountShare, Name, Table, Text
from auditor.reports.sections.regions import build_regions_section
from tests.reports.sections.node_text import blocks_of, cells_of, text_of

LOST = LostSamples(planned=100, lost=3, share=0.03)
GAP = RegionGapRow(
    model="alder", method="direct", first="Western", second="Other",
    mae_gap=Tested(0.1, 40, 0.02, 0.2, p_value=0.002, adjusted_p_value=0.004),
    bias_gap=Tested(0.1, 40, -0.1, 0.3, p_value=0.3, adjusted_p_value=0.6),
    r_gap=Estimate(-0.2, 40, -0.3, -0.1), first_lost_samples=LOST.model_copy(update={"lost": 2}),
    second_lost_samples=LOST, compared=2, left_out=[],
)  # fmt: skip
WORST_CASE = WorstCaseDifferences(
    mae=BoundedEstimate(0.1, 40, -0.05, 0.4, resampled=("country", "topic"), bound_low=0.01, bound_high=0.3),
    pearson_r=BoundedEstimate(-0.2, 40, reason="too few", bound_low=-0.4, bound_high=0.1),
)


def with_regions(report: Report, **changes: object) -> Report:
    """The report with changes to its regions."""
    return report.model_copy(update={"regions": report.regions.model_copy(update=changes)})


def gap_table(report: Report, *gaps: RegionGapRow, table_id: str = "region-gaps") -> Table:
    """The table of these gaps, or of their bounds."""
    section = build_regions_section(with_regions(report, gaps=list(gaps)))
    assert section is not None
    return next(table for table in blocks_of(section, Table) if table.id == table_id)


def test_a_gap_is_the_second_region_minus_the_first(report: Report) -> None:
    table = gap_table(report, GAP)
    assert cells_of(table)[0][:2] == ["alder", (Name("Other"), " minus ", Name("Western"))]
    assert cells_of(table)[0][2:] == [
        GAP.mae_gap, 0.004, GAP.bias_gap, 0.6, GAP.r_gap, CountShare(3, 100), CountShare(2, 100),
    ]  # fmt: skip
    titles = [column.title for column in table.columns[7:]]
    assert titles == ["Samples lost in Other", "Samples lost in Western"]
    caption = text_of(table.caption)
    assert "Other minus Western. A positive gap in MAE means larger errors in the first, one in bias" in caption
    assert "P-values test the gaps in MAE and in bias, and are adjusted for the number of models (Holm)." in caption
    assert len(table.columns) == 9


def test_bounds_are_shown_where_samples_are_lost(report: Report) -> None:
    bounded = GAP.model_copy(update={"worst_case": WORST_CASE})
    gaps = gap_table(report, bounded, GAP)
    assert [row[2] for row in cells_of(gaps)] == [GAP.mae_gap, GAP.mae_gap]
    assert "its sign is not known" in text_of(gaps.caption)
    table = gap_table(report, bounded, GAP, table_id="region-gap-bounds")
    [cells] = cells_of(table)
    assert cells[2:] == [0.01, 0.3, WORST_CASE.mae, -0.4, 0.1, WORST_CASE.pearson_r]
    assert "whatever the lost samples would have scored" in text_of(table.caption)


def test_lost_samples_name_their_regions_where_the_pairs_differ(report: Report) -> None:
    table = gap_table(report, GAP, GAP.model_copy(update={"first": "Asia", "second": "Africa"}))
    assert [text_of(cast(Text, row[7])) for row in cells_of(table)] == ["Other 3%, Western 2%", "Africa 3%, Asia 2%"]


def test_the_caption_says_that_the_largest_of_several_gaps_is_corrected(report: Report) -> None:
    caption = text_of(gap_table(report, GAP.model_copy(update={"compared": 4, "left_out": ["Oceania"]})).caption)
    assert "The largest of several gaps is biased upwards." in caption
    assert "Excluded, with fewer than five countries: Oceania." in caption


@pytest.mark.parametrize(("ungrouped", "is_present"), [(["Atlantis"], True), ([], False)])
def test_countries_in_no_region_are_named(report: Report, ungrouped: list[str], is_present: bool) -> None:
    section = build_regions_section(with_regions(report, rows=[], gaps=[], ungrouped=ungrouped))
    assert (section is not None) == is_present
    if section is not None:
        assert "in no region, which are not in the table: Atlantis." in text_of(section)
