"""The report warns of lost samples on its first page, and shows worst-case bounds."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import BoundedEstimate
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseFigures
from auditor.reports.data.measurement_schema import RegionGapRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import CountShare, Table
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.coverage import build_lost_samples_section, list_lost_sample_cautions
from auditor.reports.sections.report import build_report_document
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of

UNITS = ("country", "topic")
R = BoundedEstimate(0.6, 40, 0.25, 0.8, resampled=UNITS, bound_low=0.4, bound_high=0.7)
MAE = BoundedEstimate(0.2, 40, 0.1, 0.5, resampled=UNITS, bound_low=0.15, bound_high=0.4)
BIAS = BoundedEstimate(0.0, 40, -0.3, 0.2, resampled=UNITS, bound_low=-0.2, bound_high=0.1)
WORST_CASE = WorstCaseFigures(pearson_r=R, mae=MAE, bias=BIAS)


def with_losses(report: Report, *shares: float, worst_case: WorstCaseFigures = WORST_CASE) -> Report:
    """The report with one series for each share of lost samples; bounds above 5%."""
    rows = [
        report.alignment[0].model_copy(
            update={
                "model": f"model {i}",
                "lost_samples": LostSamples(planned=100, lost=round(100 * share), share=share),
                "worst_case": worst_case if share > 0.05 else None,
            }
        )
        for i, share in enumerate(shares)
    ]
    regions = report.regions.model_copy(update={"rows": [], "gaps": []})
    return report.model_copy(update={"alignment": rows, "regions": regions})


def test_a_warning_is_on_the_first_page_and_names_the_range(report: Report) -> None:
    lossy = with_losses(report, 0.02, 0.12)
    [warning] = list_lost_sample_cautions(lossy)
    assert warning == (
        "12% of the planned samples of model 1 have no usable score, and may differ from the others. Whatever the "
        "missing scores are, the correlation (r) lies between 0.25 and 0.80 and the mean absolute error between 0.10 "
        "and 0.50 (ends of the 95% CIs)."
    )
    assert warning in list_cautions(lossy)
    assert warning in text_of(build_report_document(lossy).sections[0])


def test_a_few_lost_samples_give_no_warning_and_no_section(report: Report) -> None:
    small = with_losses(report, 0.02, 0.05)
    assert list(list_lost_sample_cautions(small)) == []
    assert build_lost_samples_section(small) is None


def test_bounds_without_an_interval_are_named_as_such(report: Report) -> None:
    r = BoundedEstimate(0.6, 40, reason="too few topics", bound_low=0.4, bound_high=0.7)
    mae = BoundedEstimate(0.2, 40, reason="too few topics", bound_low=0.15, bound_high=0.4)
    worst_case = WorstCaseFigures(pearson_r=r, mae=mae, bias=BIAS)
    [warning] = list_lost_sample_cautions(with_losses(report, 0.3, worst_case=worst_case))
    assert warning.endswith(
        "the correlation (r) lies between 0.40 and 0.70 and the mean absolute error between 0.15 and 0.40 "
        "(without sampling error)."
    )
    unbounded = BoundedEstimate(None, 40, reason="nothing is known")
    worst_case = WorstCaseFigures(pearson_r=unbounded, mae=unbounded, bias=unbounded)
    [warning] = list_lost_sample_cautions(with_losses(report, 1.0, worst_case=worst_case))
    assert warning.endswith("no bounds are available: nothing is known.")


def test_several_models_share_one_warning(report: Report) -> None:
    lossy = with_losses(report, 0.06, 0.4, 0.1, 0.2, 0.3, 0.08, 0.01)
    other = BoundedEstimate(0.6, 40, -0.1, 0.7, resampled=UNITS, bound_low=0.0, bound_high=0.6)
    rows = list(lossy.alignment)
    rows[2] = rows[2].model_copy(update={"worst_case": WorstCaseFigures(pearson_r=other, mae=MAE, bias=BIAS)})
    [warning] = list_lost_sample_cautions(lossy.model_copy(update={"alignment": rows}))
    assert warning == (
        "6% to 40% of the planned samples of model 1, model 4, model 3, model 2 and 2 more models have no usable "
        "score, and may differ from the others. Whatever the missing scores are, each correlation (r) lies between "
        "\N{MINUS SIGN}0.10 and 0.80 and each mean absolute error between 0.10 and 0.50 (ends of the 95% CIs). “What "
        "if the lost samples differ?” has each model."
    )


def test_models_without_bounds_or_an_interval_are_named_as_such(report: Report) -> None:
    lossy = with_losses(report, 0.2, 0.3)
    unbounded = BoundedEstimate(None, 40, reason="a lost comparison may have any value")
    bounded_only = BoundedEstimate(0.2, 40, reason="too few topics", bound_low=0.15, bound_high=0.6)
    for figure, text in (
        (
            unbounded,
            "each correlation (r) lies between 0.25 and 0.80 and each mean absolute error between 0.10 and 0.50 (ends "
            "of the 95% CIs). For 1 of these models, bounds are not available: a lost comparison may have any value.",
        ),
        (
            bounded_only,
            "each correlation (r) lies between 0.15 and 0.80 and each mean absolute error between 0.10 and 0.60 (ends "
            "of the 95% CIs where available",
        ),
    ):
        worst_case = WorstCaseFigures(pearson_r=figure, mae=figure, bias=figure)
        rows = [lossy.alignment[0], lossy.alignment[1].model_copy(update={"worst_case": worst_case})]
        [warning] = list_lost_sample_cautions(lossy.model_copy(update={"alignment": rows}))
        assert text in warning


def test_the_table_has_the_bounds_of_all_series_and_regions(report: Report) -> None:
    lossy = with_losses(report, 0.12, 0.01)
    region = report.regions.rows[0].model_copy(
        update={"lost_samples": LostSamples(planned=10, lost=4, share=0.4), "worst_case": WORST_CASE}
    )
    section = build_lost_samples_section(
        lossy.model_copy(update={"regions": lossy.regions.model_copy(update={"rows": [region]})})
    )
    assert section is not None
    tables = blocks_of(section, Table)
    assert [table.id for table in tables] == ["lost-samples-r", "lost-samples-mae", "lost-samples-bias"]
    for table, figure in zip(tables, (R, MAE, BIAS), strict=True):
        figures = [figure.value, figure.bound_low, figure.bound_high, figure]
        assert cells_of(table) == [
            [region.model, region.region, CountShare(4, 10), *figures],
            ["model 0", "all countries", CountShare(12, 100), *figures],
        ]
        interval_column = table.columns[-1]
        assert (interval_column.title, interval_column.kind) == ("95% CI over all planned samples", "interval")


def test_a_gap_of_unknown_sign_is_named(report: Report) -> None:
    gap = report.regions.gaps[0]
    assert gap.worst_case is not None
    bounds = BoundedEstimate(0.1, 40, -0.3, 0.4, resampled=("country", "topic"), bound_low=-0.2, bound_high=0.3)
    unknown = gap.model_copy(update={"worst_case": gap.worst_case.model_copy(update={"mae": bounds})})
    gaps = with_losses(report).regions.model_copy(update={"gaps": [unknown]})
    [warning] = list_lost_sample_cautions(report.model_copy(update={"alignment": [], "regions": gaps}))
    assert warning == (
        f"Because of lost samples, it is not known in which of two regions, {gap.first} or {gap.second}, the mean "
        f"absolute error of {gap.model} is larger: the difference lies between −0.20 and +0.30."
    )

    rows = [row.model_copy(update={"countries": 4}) for row in report.regions.rows if row.region == gap.second]
    assert rows
    too_small = gaps.model_copy(update={"rows": rows})
    lossless = report.model_copy(update={"alignment": [], "regions": too_small})
    assert not list(list_lost_sample_cautions(lossless)), "regions below five countries are not compared at all"


def test_gaps_between_the_same_regions_are_one_warning(report: Report) -> None:
    gap = report.regions.gaps[0]
    assert gap.worst_case is not None

    def unknown_gap(model: str, low: float, high: float) -> RegionGapRow:
        bounds = BoundedEstimate(0.1, 40, -0.5, 0.5, resampled=("country", "topic"), bound_low=low, bound_high=high)
        return gap.model_copy(
            update={"model": model, "worst_case": gap.worst_case and gap.worst_case.model_copy(update={"mae": bounds})}
        )

    gaps = [unknown_gap("a", -0.2, 0.3), unknown_gap("b", -0.4, 0.1)]
    regions = with_losses(report).regions.model_copy(update={"gaps": gaps})
    [warning] = list_lost_sample_cautions(report.model_copy(update={"alignment": [], "regions": regions}))
    assert warning == (
        f"Because of lost samples, it is not known in which of two regions, {gap.first} or {gap.second}, the mean "
        "absolute error of a, b is larger: the difference lies between −0.40 and +0.30."
    )
