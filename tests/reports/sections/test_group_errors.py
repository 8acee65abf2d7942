"""Errors by topic and country are listed worst first."""

from __future__ import annotations

from statistics import fmean

from auditor.metrics.estimate import Estimate
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, HeatMap, List, Name, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.group_errors import build_group_errors_section
from auditor.reports.sections.profiles import build_profile, sort_by_size
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


def error_row(name: str, model: str, value: float | None) -> GroupErrorRow:
    """A row with this MAE, missing if None."""
    mae = Estimate(value, 3, reason="no answer")
    return GroupErrorRow(
        name=name, model=model, method="direct", n=3, n_dropped=0, mae=mae, mae_simultaneous=mae, bias=mae,
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


def test_the_largest_error_is_given_with_the_interval_corrected_for_the_choice(report: Report) -> None:
    section = build_group_errors_section(report)
    assert section is not None
    [findings] = blocks_of(section, List)
    assert len(findings.items) == len(report.alignment)
    model = report.alignment[0].model
    rows = [row for row in report.topics if row.model == model]
    worst = max(rows, key=lambda row: row.mae.value or 0.0)
    text = text_of(findings.items[0])
    assert text.startswith(f"{model} is furthest from people on the topic {worst.name} (MAE = ")
    assert f"{format_number(worst.mae_simultaneous.ci_low)} to {format_number(worst.mae_simultaneous.ci_high)}" in text
    assert f"the largest of {len(rows)}) and in " in text


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
