"""Errors by topic and country are listed worst first."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, HeatMap, List, Name, Table
from auditor.reports.sections.cells import build_group_errors_section, build_profile, sort_by_size
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


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
    section = build_group_errors_section(report.model_copy(update={"topics": rows, "countries": []}))
    assert section is not None
    [_, table] = blocks_of(section, Table)
    assert [row[0] for row in cells_of(table)] == list("cdba")
    assert cells_of(table)[2][1:] == [row.mae for row in rows if row.name == "b"]


def test_every_topic_and_country_has_a_row(report: Report) -> None:
    section = build_group_errors_section(report)
    assert section is not None
    topic_differences, topics, country_differences, countries = blocks_of(section, Table)
    assert (topic_differences.id, country_differences.id) == ("difference-by-topic", "difference-by-country")
    assert len(country_differences.rows) == len(countries.rows)
    assert (topics.id, countries.id) == ("error-by-topic", "error-by-country")
    assert len(topics.rows) == len({row.name for row in report.topics})
    assert len(countries.rows) == len({row.name for row in report.countries})
    assert [column.title for column in topics.columns[1:]] == [Name(row.model) for row in report.alignment]


def test_a_place_is_named_only_if_its_error_differs_from_that_of_the_others(report: Report) -> None:
    mae, name = Estimate(0.45, 9, 0.3, 0.6), report.topics[0].name
    far = Tested(3.0, 9, 2.0, 4.5, p_value=1e-4, adjusted_p_value=0.004)
    unclear = [row.model_copy(update={"mae_ratio": replace(far, adjusted_p_value=0.02)}) for row in report.topics]
    none = build_group_errors_section(report.model_copy(update={"topics": unclear, "countries": []}))
    assert none is not None
    assert "No model is shown to be further from people in one country" in text_of(none)
    assert not blocks_of(none, List)
    topics = [unclear[0].model_copy(update={"mae": mae, "mae_ratio": far}), *unclear[1:]]
    section = build_group_errors_section(report.model_copy(update={"topics": topics, "countries": []}))
    assert section is not None
    [findings] = blocks_of(section, List)
    assert [text_of(item) for item in findings.items] == [
        f"{topics[0].model} is further from people on {name} than on its other topics (mean absolute error = 0.45, 95% "
        "CI 0.30 to 0.60; 3.00 times that of the others, 95% CI 2.00 to 4.50).neutral"
    ]


def test_rescaled_scores_have_no_errors(report: Report) -> None:
    rows = [row.model_copy(update={"method": "logprob"}) for row in report.alignment]
    assert build_group_errors_section(report.model_copy(update={"alignment": rows})) is None


def test_several_models_have_a_profile_by_topic_and_country_with_the_direction_in_each_cell(report: Report) -> None:
    section = build_group_errors_section(report)
    assert section is not None
    topics, countries = blocks_of(section, HeatMap)
    assert list(topics.columns) == [row.model for row in report.alignment]
    bias = {(row.name, row.model): row.bias.value for row in report.topics}
    for name, cells in topics.rows:
        assert [cell.value for cell in cells] == [bias[name, model] for model in topics.columns]
    sizes = [fmean(abs(cell.value or 0.0) for cell in cells) for _, cells in countries.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert "95% CI" in topics.rows[0][1][0].tooltip


def test_one_model_has_a_profile_with_intervals(report: Report) -> None:
    [row, *_] = report.alignment
    section = build_group_errors_section(report.model_copy(update={"alignment": [row]}))
    assert section is not None
    assert not blocks_of(section, HeatMap)
    topics, countries = blocks_of(section, Figure)
    assert (topics.id, countries.id) == ("profile-topic", "profile-country")
    assert {topics.table_id, countries.table_id} <= {table.id for table in blocks_of(section, Table)}
    assert topics.narrow_spec is not None


def test_a_long_profile_has_the_twelve_largest_differences(report: Report) -> None:
    bias = {
        f"topic {i}": {m: Estimate(s * i / 100, 5, reason="few") for m, s in (("m", 1), ("n", -1))} for i in range(30)
    }
    profile = build_profile("topic", sort_by_size(bias), ["m", "n"], show_legend=True)
    assert isinstance(profile, HeatMap)
    assert [name for name, _ in profile.rows] == [f"topic {i}" for i in range(29, 17, -1)]
