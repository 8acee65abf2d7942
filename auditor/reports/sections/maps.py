"""Section with world maps: the mean error of all models, and each model's signed difference from people."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.world_map import CountryEstimate, WorldMap, difference_map, error_map
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, Disclosure, Figure, FigureGrid, Name, Paragraph, Section, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.phrasing import describe_estimate, join_names
from auditor.reports.sections.score_series import ScoreSeries, list_series_with_errors

BIAS_TABLE_ID = "difference-by-country"

CountryEstimates = dict[str, Estimate]
"""Estimates by country, in the order of the survey."""


def build_map_section(report: Report) -> Section | None:
    """Build the section with the maps; None if no country with a score is on the map."""
    all_series = list_series_with_errors(report)
    errors, bias = _collect(report, all_series, "mae"), _collect(report, all_series, "bias")
    mean_errors = _average_errors(errors)
    world_map = error_map(mean_errors)
    if world_map.spec is None:
        return None
    n_series = sum(any(estimate.value is not None for estimate in row.values()) for row in errors)
    average_text = f", averaged over {n_series} series of scores" if n_series > 1 else ""
    blocks: list[Block] = [
        Paragraph(
            "The stronger a country’s colour on this map, the further the models are from its people: mean absolute "
            f"difference over its topics{average_text}, from 0 to 2 (lower is better)."
        ),
        Figure(
            "map",
            world_map.spec,
            "Mean absolute error by country",
            "; ".join(f"{entry.country} {format_number(entry.value)}" for entry in mean_errors),
            table_id="error-by-country",
        ),
        Paragraph(
            "The next maps show each model’s mean score minus people’s. Positive: the model is more permissive than "
            "the country’s people. Negative: it is stricter."
        ),
        FigureGrid(
            [figure for series, row in zip(all_series, bias, strict=True) for figure in _map_bias(series, row)],
            "medium",
        ),
    ]
    if world_map.unplaced:
        blocks.append(Paragraph(["Not on the map: ", *join_names(world_map.unplaced), "."], role="note"))
    blocks.append(Disclosure("Differences by country", [_build_bias_table(all_series, bias)], in_print="closed"))
    return Section("map", "Where in the world do they differ from people?", blocks, contents_title="Map")


def _collect(report: Report, all_series: Sequence[ScoreSeries], field: str) -> list[CountryEstimates]:
    """For each series, its estimates by country; `field` is `mae` or `bias`."""
    estimates: dict[tuple[str, str], CountryEstimates] = {series.key: {} for series in all_series}
    for row in report.countries:
        if (row.method, row.model) in estimates:
            estimates[row.method, row.model][row.name] = getattr(row, field)
    return list(estimates.values())


def _average_errors(errors: Sequence[CountryEstimates]) -> list[CountryEstimate]:
    """Mean over series of the errors in each country; with the interval and n if there is a single series."""
    if len(errors) == 1:
        return _to_country_estimates(errors[0])
    values: dict[str, list[float]] = {}
    for by_country in errors:
        for country, estimate in by_country.items():
            if estimate.value is not None:
                values.setdefault(country, []).append(estimate.value)
    return [CountryEstimate(country, fmean(country_values)) for country, country_values in values.items()]


def _to_country_estimates(estimates: CountryEstimates) -> list[CountryEstimate]:
    """The estimates that have a value, for a map."""
    return [
        CountryEstimate(country, estimate.value, estimate.ci_low, estimate.ci_high, estimate.n)
        for country, estimate in estimates.items()
        if estimate.value is not None
    ]


def _map_bias(series: ScoreSeries, bias: CountryEstimates) -> list[Figure]:
    """Map one series' signed difference from people; empty if none of its countries is on the map."""
    world_map: WorldMap = difference_map(_to_country_estimates(bias))
    if world_map.spec is None:
        return []
    ranked = sorted(bias.items(), key=lambda item: item[1].value or 0.0)
    description = "; ".join(
        describe_estimate(country, estimate, "cell", style="signed")
        for country, estimate in ranked
        if estimate.value is not None
    )
    return [
        Figure(
            f"map-{series.slug}",
            world_map.spec,
            f"{series.label}: difference from people",
            f"From strictest to most permissive: {description}.",
            table_id=BIAS_TABLE_ID,
        )
    ]


def _build_bias_table(all_series: Sequence[ScoreSeries], bias: Sequence[CountryEstimates]) -> Table:
    """Build the table with the figures of the maps of differences."""
    countries = list(dict.fromkeys(country for by_country in bias for country in by_country))
    return Table(
        BIAS_TABLE_ID,
        "Difference from people by country",
        "Mean of the model’s score minus people’s over the topics of each country, from −2 (stricter) to +2 (more "
        "permissive), with its 95% CI. n is the number of cells.",
        [Column("Country", "name"), *(Column(Name(entry.label), "estimate", style="signed") for entry in all_series)],
        [[Name(country), *(by_country.get(country) for by_country in bias)] for country in countries],
    )
