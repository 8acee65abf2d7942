"""Sections on each model's differences from people by topic and country: world maps, profiles and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from statistics import fmean

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.world_map import SMALL_MAP_WIDTH_PX, CountryEstimate, difference_map, error_map
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Column,
    Disclosure,
    Figure,
    FigureGrid,
    List,
    ListItem,
    Paragraph,
    Section,
    Table,
)
from auditor.reports.number_format import format_number
from auditor.reports.sections.cultural_findings import describe_distance
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    build_finding,
    describe_estimate,
    join_names,
    list_series_with_errors,
    slugify_unique,
)
from auditor.reports.sections.profiles import EstimatesBySeries, build_profile, sort_by_size
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, tabulate_matrix

BIAS_TABLE_ID = "difference-by-country"
MAX_PORTRAIT_SERIES = 6
"""Series of scores whose errors fit a page in portrait orientation."""


def build_group_errors_section(report: Report) -> Section | None:
    """Build the section with profiles and tables by topic and country; None without a series that has errors."""
    labels = _label_series_with_errors(report)
    if not labels:
        return None
    findings = _list_distances(report)
    tested = [row for row in (*report.topics, *report.countries) if row.mae_ratio.p_value is not None]
    no_finding = (
        "No model is shown to be further from people in one country than in its others, or on one topic than on its "
        "others."
        if tested
        else "The audit is too small to show that a model is further from people in one country, or on one topic."
    )
    note = (
        "Positive: the model is more permissive than people. Negative: it is stricter. Sentences name a country or "
        "topic only where the error differs from that of the model’s others, given the number of models and of "
        "countries, or topics (Holm). 95% CIs are of one country or topic alone."
    )
    blocks: list[Block] = [
        List(findings, is_findings=True) if findings else Paragraph(no_finding, "finding"),
        Paragraph(note, "note"),
    ]
    for i, (noun, other_nouns, rows) in enumerate(
        (("topic", "countries", report.topics), ("country", "topics", report.countries))
    ):
        bias = sort_by_size(_collect(report, rows, "bias"))
        if not bias:
            continue
        tables = [_build_bias_table(bias, labels, noun, other_nouns), _build_mae_table(report, rows, noun, other_nouns)]
        profile = build_profile(noun, bias, labels, show_legend=i == 0)
        details = Disclosure(f"Figures by {noun}", tables, in_print="closed")
        blocks.append(Section(f"profile-by-{noun}", f"By {noun}", [profile, details]))
    title = "Where is each model wrong, and in which direction?"
    return Section("places", title, blocks, "Countries and topics", is_landscape=len(labels) > MAX_PORTRAIT_SERIES)


def _build_mae_table(report: Report, rows: Sequence[GroupErrorRow], noun: str, other_nouns: str) -> Table:
    """Build the table of mean absolute errors by topic or country, largest first."""
    errors = sorted(_collect(report, rows, "mae").items(), key=lambda item: -_mean_value(item[1].values()))
    return tabulate_matrix(
        f"error-by-{noun}",
        f"Mean absolute error by {noun}",
        f"MAE by {noun}, from 0 to 2 (lower is better). 95% CIs are for other {other_nouns} like these.",
        Column(noun.capitalize(), "name"),
        dict(errors),
        _label_series_with_errors(report),
        max_rows=MAX_LONG_TABLE_ROWS,
    )


def _list_distances(report: Report) -> list[ListItem]:
    """State for each series in which country, and on which topic, its error differs most from that in the others."""
    labels = SeriesLabels.of(report)
    findings: list[ListItem] = []
    for label in _label_series_with_errors(report):
        for noun, rows in (("topic", report.topics), ("country", report.countries)):
            shown = [row for row in rows if labels.label(row) == label and row.mae_ratio.is_significant]
            if shown:
                row = max(shown, key=lambda row: abs(log(row.mae_ratio.value or 1.0)))
                findings.append(build_finding(label, describe_distance(noun, row.name, row.mae, row.mae_ratio)))
    return findings


def build_map_section(report: Report) -> Section | None:
    """Build the section with the maps; None if no country with a score is on the map."""
    labels = _label_series_with_errors(report)
    errors, bias = (_collect(report, report.countries, field) for field in ("mae", "bias"))
    repeated = {model for group in report.equal_series for model in group.models[1:]}
    counted = [SeriesLabels.of(report).label(row) for row in report.alignment if row.model not in repeated]
    mean_errors = _average_errors(errors, [label for label in labels if label in counted])
    world_map = error_map(mean_errors)
    if world_map.spec is None:
        return None
    n_series = len(
        {
            label
            for row in errors.values()
            for label, error in row.items()
            if error.value is not None and label in counted
        }
    )
    noun = "series of scores (a model and a method each)" if SeriesLabels.of(report).shows_method else "models"
    average_text = f", averaged over {n_series} {noun}" if n_series > 1 else ""
    figure = Figure(
        "map",
        world_map.spec,
        "Mean absolute error by country",
        "; ".join(f"{entry.country} {format_number(entry.value)}" for entry in mean_errors),
        table_id="error-by-country",
        narrow_spec=error_map(mean_errors, SMALL_MAP_WIDTH_PX).spec,
    )
    blocks: list[Block] = [
        Paragraph(_describe_extremes(mean_errors), "finding"),
        Paragraph(
            f"Mean absolute error in each country, over its topics{average_text}.",
            "note",
        ),
        figure,
        Paragraph(
            "Each model’s mean score minus people’s. Positive: the model is more permissive. Negative: it is stricter.",
            "note",
        ),
        FigureGrid(_map_differences(bias, labels), "medium"),
    ]
    if world_map.unplaced:
        blocks.append(Paragraph(["Not on the map: ", *join_names(world_map.unplaced), "."], role="note"))
    return Section("map", "Where in the world do the models differ from people?", blocks, "Map")


def _describe_extremes(errors: Sequence[CountryEstimate]) -> str:
    """Name the countries with the smallest and the largest error."""
    ranked = sorted(errors, key=lambda entry: entry.value)
    nearest, farthest = ranked[0], ranked[-1]
    if len(ranked) == 1:
        return f"The mean absolute error in {nearest.country} is {format_number(nearest.value)}."
    return (
        f"The mean absolute error ranges from {format_number(nearest.value)} in {nearest.country} to "
        f"{format_number(farthest.value)} in {farthest.country}."
    )


def _label_series_with_errors(report: Report) -> list[str]:
    """Labels of the series whose distance from people is known."""
    return [*map(SeriesLabels.of(report).label, list_series_with_errors(report))]


def _collect(report: Report, rows: Iterable[GroupErrorRow], field: str) -> dict[str, dict[str, Estimate]]:
    """The estimates of each topic or country by series; `field` is that of the row, such as `mae`."""
    labels, shown_labels = SeriesLabels.of(report), _label_series_with_errors(report)
    estimates: dict[str, dict[str, Estimate]] = {}
    for row in rows:
        if (label := labels.label(row)) in shown_labels:
            estimates.setdefault(row.name, {})[label] = getattr(row, field)
    return estimates


def _mean_value(estimates: Iterable[Estimate]) -> float:
    """Mean of the values; -1, below any error, without one."""
    return fmean([estimate.value for estimate in estimates if estimate.value is not None] or [-1.0])


def _average_errors(errors: Mapping[str, EstimatesBySeries], labels: Sequence[str]) -> list[CountryEstimate]:
    """Mean over series of the errors in each country; with the interval and n if there is a single series."""
    if len(labels) == 1:
        return _to_country_estimates({country: row[labels[0]] for country, row in errors.items()})
    means = {
        country: _mean_value(error for label, error in row.items() if label in labels)
        for country, row in errors.items()
    }
    return [CountryEstimate(country, mean) for country, mean in means.items() if mean >= 0]


def _to_country_estimates(estimates: Mapping[str, Estimate]) -> list[CountryEstimate]:
    """The estimates by country that have a value, for a map."""
    return [
        CountryEstimate(country, estimate.value, estimate.ci_low, estimate.ci_high, estimate.n)
        for country, estimate in estimates.items()
        if estimate.value is not None
    ]


def _map_differences(bias: Mapping[str, EstimatesBySeries], labels: Sequence[str]) -> list[Figure]:
    """Map each series' signed difference from people, unless none of its countries is on the map."""
    figures = []
    for label, slug in zip(labels, slugify_unique(labels), strict=True):
        by_country = {country: row[label] for country, row in bias.items() if label in row}
        entries = _to_country_estimates(by_country)
        ranked = [entry.country for entry in sorted(entries, key=lambda entry: entry.value)]
        differences = "; ".join(describe_estimate(name, by_country[name], "cell", style="signed") for name in ranked)
        description = f"From strictest to most permissive: {differences}."
        world_map, title = difference_map(entries), f"{label}: difference from people"
        if world_map.spec is not None:
            figures.append(Figure(f"map-{slug}", world_map.spec, title, description, table_id=BIAS_TABLE_ID))
    return figures


def _build_bias_table(
    bias: Mapping[str, EstimatesBySeries], labels: Sequence[str], noun: str, other_nouns: str
) -> Table:
    """Build the table of signed differences by topic or country, which has the figures of the profiles and maps."""
    return tabulate_matrix(
        f"difference-by-{noun}",
        f"Difference from people by {noun}",
        f"Mean of the model’s score minus people’s by {noun}, from −2 (stricter) to +2 (more permissive). 95% CIs are "
        f"for other {other_nouns} like these.",
        Column(noun.capitalize(), "name"),
        bias,
        labels,
        "signed",
        MAX_LONG_TABLE_ROWS,
    )
