"""Sections on cells, countries and topics: heat maps, scatter plots, world maps, and profiles of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log
from statistics import fmean

from auditor.metrics.intervals.estimate import SHARED_LEVEL, Estimate
from auditor.reports.charts.scatter_plots import MAX_TOOLTIPS_PER_PAGE, ScorePair, scatter_plot
from auditor.reports.charts.world_map import SMALL_MAP_WIDTH_PX, CountryEstimate, difference_map, error_map
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.over_models import drop_repeated
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_model import ROUNDING_ERROR
from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.document import (
    Block,
    Column,
    Disclosure,
    Figure,
    FigureGrid,
    HeatMap,
    HeatMapCell,
    Link,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import (
    describe_estimate,
    format_count,
    format_number,
    format_signed,
    format_span,
    pluralize,
)
from auditor.reports.sections.phrasing import (
    MAX_LONG_TABLE_ROWS,
    SeriesLabels,
    build_finding,
    build_interval_figure,
    join_names,
    list_series_with_errors,
    slugify_unique,
    tabulate_matrix,
)
from auditor.reports.sections.weaknesses import describe_distance

SHADE_BOUNDS = (0.1, 0.3, 0.5, 0.7)
"""Absolute differences of scores at which the shade of a cell changes."""
LOW_LABEL, HIGH_LABEL = "stricter than people", "more permissive than people"
MAX_ROWS = 12
"""Rows of a profile; the table has all."""
NO_SCORE = HeatMapCell(None, "×", "no score of the model or of people", "no_answer")

EstimatesBySeries = Mapping[str, Estimate]
"""Estimates by the label of their series."""


def build_profile(
    noun: str, bias: Mapping[str, EstimatesBySeries], labels: Sequence[str], *, show_legend: bool
) -> Figure | HeatMap:
    """Show the signed difference from people by country or topic, largest first: of one model as a plot with intervals.

    Args:
        noun: `country` or `topic`.
        bias: mean signed differences by country or topic, largest first.
        labels: the series of scores; several are shown as the columns of a heat map.
    """
    title = f"Difference from people by {noun}"
    shown = [*bias][:MAX_ROWS]
    if len(labels) == 1:
        estimates = [(name, bias[name][labels[0]]) for name in shown if labels[0] in bias[name]]
        axis = "← stricter than people · more permissive →"
        return build_interval_figure(f"profile-{noun}", title, estimates, axis, table_id=f"difference-by-{noun}")
    rows = [(name, [_build_cell(bias[name].get(label)) for label in labels]) for name in shown]
    states: dict[str, str] = {NO_SCORE.state: NO_SCORE.tooltip} if any(NO_SCORE in cells for _, cells in rows) else {}
    return HeatMap(
        label=f"{title}: each model’s mean score minus people’s",
        columns=labels,
        rows=rows,
        bounds=SHADE_BOUNDS,
        low_label=LOW_LABEL,
        high_label=HIGH_LABEL,
        state_labels=states,
        show_legend=show_legend,
    )


def sort_by_size(estimates: Mapping[str, EstimatesBySeries]) -> dict[str, EstimatesBySeries]:
    """Countries or topics by the mean absolute value of their estimates, largest first; those without any are last."""
    return dict(sorted(estimates.items(), key=lambda item: -_mean_size(item[1])))


def format_short_difference(difference: float) -> str:
    """Format a difference with two decimals and no leading zero; empty for one that has no colour."""
    return format_signed(difference).replace("0.", ".") if abs(difference) >= SHADE_BOUNDS[0] else ""


def _mean_size(estimates: EstimatesBySeries) -> float:
    """Mean absolute value of the estimates; -1 without one."""
    return fmean([abs(estimate.value) for estimate in estimates.values() if estimate.value is not None] or [-1.0])


def _build_cell(estimate: Estimate | None) -> HeatMapCell:
    """The heat map's cell of one estimate."""
    if estimate is None or estimate.value is None:
        return NO_SCORE
    tooltip = describe_estimate("", estimate, "cell", style="signed")
    return HeatMapCell(estimate.value, format_short_difference(estimate.value), tooltip)


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
            shown = [
                row for row in rows if labels.label(row) == label and row.mae_ratio.is_significant_at(SHARED_LEVEL)
            ]
            if shown:
                row = max(shown, key=lambda row: abs(log(row.mae_ratio.value or 1.0)))
                findings.append(build_finding(label, describe_distance(noun, row.name, row.mae, row.mae_ratio)))
    return findings


def build_map_section(report: Report) -> Section | None:
    """Build the section with the maps; None if no country with a score is on the map."""
    labels = _label_series_with_errors(report)
    errors, bias = (_collect(report, report.countries, field) for field in ("mae", "bias"))
    counted = [SeriesLabels.of(report).label(row) for row in drop_repeated(report.alignment, report.equal_series)]
    mean_errors = _average_errors(errors, [label for label in labels if label in counted])
    world_map = error_map(mean_errors)
    if world_map.spec is None:
        return None
    averaged = {
        country: {label for label, error in row.items() if error.value is not None and label in counted}
        for country, row in errors.items()
    }
    series = set().union(*averaged.values())
    noun = "series of scores (a model and a method each)" if SeriesLabels.of(report).shows_method else "models"
    comparable = [entry for entry in mean_errors if averaged[entry.country] == series]
    n_averaged = format_span(min(len(averaged[entry.country]) for entry in mean_errors), len(series))
    with_scores = "" if len(comparable) == len(mean_errors) else " with scores there"
    average_text = f", averaged over {n_averaged} {noun}{with_scores}" if len(series) > 1 else ""
    figure = Figure(
        "map",
        world_map.spec,
        "Mean absolute error by country",
        "; ".join(f"{entry.country} {format_number(entry.value)}" for entry in mean_errors),
        table_id="error-by-country",
        narrow_spec=error_map(mean_errors, SMALL_MAP_WIDTH_PX).spec,
    )
    blocks: list[Block] = [
        Paragraph(_describe_extremes(comparable, len(mean_errors)), "finding"),
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


def _describe_extremes(errors: Sequence[CountryEstimate], n_countries: int) -> str:
    """Name the countries with the smallest and the largest error.

    Args:
        errors: of the countries with scores of all series, of `n_countries`.
    """
    if len(errors) < min(2, n_countries):
        return "The countries have scores of different models, so that their errors cannot be compared."
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


MAX_OPEN_HEAT_MAPS = 1
"""With more heat maps than this, only the first is open."""
MAX_PORTRAIT_COLUMNS = 15
"""Columns of a heat map that fit a page in portrait orientation."""
NOT_ASKED = HeatMapCell(None, "", "people were not asked", "not_asked")
NO_ANSWER = HeatMapCell(None, "×", "no usable answer of the model", "no_answer")


# --- heat maps --------------------------------------------------------------------------------------------------


def build_differences_section(report: Report) -> Section | None:
    """Build the section with a heat map for each series of scores; None without a series that has errors."""
    series, labels = list_series_with_errors(report), SeriesLabels.of(report)
    if not series:
        return None
    heat_maps = [_build_heat_map(report, row, labels.label(row), show_legend=i == 0) for i, row in enumerate(series)]
    explanation = (
        "The model’s score minus people’s, from −2 to +2. Positive: the model is more permissive. Negative: it is "
        f"stricter. Differences below {SHADE_BOUNDS[0]} have no colour."
    )
    return Section(
        "where",
        "Where do the models differ from people?",
        [
            Paragraph(_describe_largest_difference(report), "finding"),
            Paragraph(explanation, "note"),
            *_link_answers(report),
            *(
                Disclosure(Name(labels.label(row)), [heat_map], is_open=i == 0 or len(series) <= MAX_OPEN_HEAT_MAPS)
                for i, (row, heat_map) in enumerate(zip(series, heat_maps, strict=True))
            ),
        ],
        contents_title="Differences",
        is_landscape=len(heat_maps[0].columns) > MAX_PORTRAIT_COLUMNS,
    )


def _link_answers(report: Report) -> list[Paragraph]:
    """Say that cells link to their answers; empty if no pages of answers were written."""
    index = report.trace_pages.index
    if not index:
        return []
    link = Link("the list of all answers", page=index)
    return [Paragraph(["Select a cell to read what was asked and answered, or see ", link, "."], "note")]


def _describe_largest_difference(report: Report) -> Text:
    """Name the cell in which a series differs most from people."""
    labels = SeriesLabels.of(report)
    differences = [
        (score - cell.survey, labels.label(series), cell)
        for series in list_series_with_errors(report)
        for cell in report.audit.cells
        if cell.survey is not None and (score := cell.scores[series.method].get(series.model)) is not None
    ]
    if not differences:
        return "No cell has a score of a model and of people."
    difference, label, cell = max(differences, key=lambda item: abs(item[0]))
    if abs(difference) < ROUNDING_ERROR:
        return f"All {format_count(len(differences))} scores are equal to people’s."
    return [
        "The largest of ",
        pluralize(len(differences), "difference"),
        f" is {format_signed(difference)}: ",
        Name(label),
        " on ",
        Name(cell.topic),
        " in ",
        Name(cell.country),
        ".",
    ]


def _build_heat_map(report: Report, series: AlignmentRow, label: str, *, show_legend: bool) -> HeatMap:
    """Build the heat map of one series; the longer of countries and topics is shown as rows."""
    cells = {(cell.country, cell.topic): _build_difference_cell(report, cell, series) for cell in report.audit.cells}
    row_names, column_names = (list(dict.fromkeys(names[i] for names in cells)) for i in (0, 1))
    if len(column_names) >= len(row_names):
        row_names, column_names = column_names, row_names
        cells = {(topic, country): cell for (country, topic), cell in cells.items()}
    return HeatMap(
        label=f"{label}: score minus people’s score, by country and topic",
        columns=column_names,
        rows=[(name, [cells.get((name, column), NOT_ASKED) for column in column_names]) for name in row_names],
        bounds=SHADE_BOUNDS,
        low_label=LOW_LABEL,
        high_label=HIGH_LABEL,
        state_labels={cell.state: cell.tooltip for cell in (NOT_ASKED, NO_ANSWER)},
        show_legend=show_legend,
    )


def _build_difference_cell(report: Report, cell: CellReport, series: AlignmentRow) -> HeatMapCell:
    """Build the heat map's cell for one country and topic; it links to the page with the answers, if there is one."""
    score, page = cell.scores[series.method].get(series.model), report.trace_pages.find(cell.country, cell.topic)
    if cell.survey is None or score is None:
        return replace(NOT_ASKED if cell.survey is None else NO_ANSWER, page=page)
    difference = score - cell.survey
    tooltip = f"people {format_number(cell.survey)}, model {format_number(score)}"
    text = format_short_difference(difference) or (format_signed(difference) if page else "")
    return HeatMapCell(difference, text, tooltip, page=page)


# --- scatter plots ----------------------------------------------------------------------------------------------


def build_scatter_section(report: Report) -> Section | None:
    """Build the section with one scatter plot for each series of scores; None without scores."""
    if not report.alignment:
        return None
    labels = [*map(SeriesLabels.of(report).label, report.alignment)]
    explanation = (
        "Each point is one cell. On the dashed line, both scores are equal; above it, the model is more permissive "
        "than people."
    )
    figures = [
        _build_figure(row, label, slug, report.audit.cells, len(labels))
        for row, label, slug in zip(report.alignment, labels, slugify_unique(labels), strict=True)
    ]
    blocks: list[Block] = [
        Paragraph(_describe_directions(report), "finding"),
        Paragraph(explanation, "note"),
        FigureGrid(figures),
    ]
    return Section("scatter", "Model against people, cell by cell", blocks, "Cell by cell")


def _describe_directions(report: Report) -> str:
    """Count the cells in which the models are more permissive than people."""
    pairs = [
        (score, cell.survey)
        for series in report.alignment
        for cell in report.audit.cells
        if cell.survey is not None and (score := cell.scores[series.method].get(series.model)) is not None
    ]
    n_above = sum(score > survey + ROUNDING_ERROR for score, survey in pairs)
    subject = "The model is" if len(report.alignment) == 1 else "The models are"
    return f"{subject} more permissive than people in {format_count(n_above)} of {pluralize(len(pairs), 'comparison')}."


def _build_figure(row: AlignmentRow, label: str, slug: str, cells: Sequence[CellReport], n_figures: int) -> Figure:
    """Plot one series on the cells that have both scores."""
    with_tooltips = len(cells) * n_figures <= MAX_TOOLTIPS_PER_PAGE
    pairs = [
        ScorePair(cell.survey, score, f"{cell.country}, {cell.topic}" if with_tooltips else "")
        for cell in cells
        if cell.survey is not None and (score := cell.scores[row.method].get(row.model)) is not None
    ]
    r_text = "r not available" if row.pearson_r.value is None else f"r = {format_number(row.pearson_r.value)}"
    figures_text = f"{r_text}, {pluralize(row.n, 'cell')}"
    description = f"Scores of {label} (vertical) against people’s scores (horizontal): {figures_text}."
    return Figure(
        f"scatter-{slug}", scatter_plot(pairs), f"{label} against people", description, figures_text, "alignment"
    )
