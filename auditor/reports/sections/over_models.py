"""Sections on figures over models: their summary, correlations, attributes of models, and trends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.config.installed_probes import list_built_in_probes
from auditor.config.value_checks import PARAMETERS
from auditor.domain import Method
from auditor.metrics.people.over_models import MIN_TREND_MODELS
from auditor.reports.data.agreement.over_models import (
    ERROR_BIN_WIDTH,
    AttributeFigureRow,
    AttributesReport,
    AttributeTrendRow,
    CutOffTierRow,
    ModelAttributesRow,
    OverModelsReport,
    OverModelsRow,
)
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Cell,
    Code,
    Column,
    Disclosure,
    HeatMap,
    HeatMapCell,
    List,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import describe_estimate, format_number, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_with_and, tabulate

CORRELATION_REMARK = (
    "95% CIs (from 8 models) and p (a permutation test, from 5) are for other models. Models of one family are "
    "averaged first, so that n counts families; “r over single models” is without this averaging, as in most papers."
)


SUMMARY_TITLES = {
    "pearson_r": "r",
    "mean_country_r": "r in each country, mean over countries",
    "method_difference": "Difference in r, answers minus log-probabilities",
    "self_consistency": "Self-consistency (cosine)",
    "variance": "Variance of the score",
    "peer_agreement": "Share of VALID",
    "region_gap": "Difference in r, second region minus first",
}
R_BOUNDS = (0.2, 0.4, 0.6, 0.8)
ERROR_BOUNDS = (0.1, 0.2, 0.4, 0.6)
NO_FIGURE = HeatMapCell(None, "×", "fewer than three scores, or constant ones", "no_answer")


def build_over_models_section(report: Report, *, has_details: bool = True) -> Section | None:
    """Build the section on figures over models; None for fewer than two models with scores.

    Args:
        has_details: whether it shows tiers, heat maps and the distribution of errors, too.
    """
    over_models = report.over_models
    if over_models is None or len({row.model for row in report.alignment}) < 2:
        return None
    labels = SeriesLabels.of(report)
    details: list[Block] = [
        _build_tiers_table(over_models.cut_off_tiers),
        *_build_heat_maps(report, labels),
        _build_errors_table(over_models, labels),
    ]
    disclosure = Disclosure("Tiers by cut-off, heat maps, and the distribution of errors", details, in_print="closed")
    blocks: list[Block] = [
        Paragraph(_summarize(over_models), "finding"),
        *[Paragraph(note, "note") for note in describe_equal_series(report)],
        _build_figures_table(over_models.figures),
        *([disclosure] if has_details else []),
    ]
    return Section("over-models", "Figures over all models", blocks, "Figures over models")


def _summarize(over_models: OverModelsReport) -> str:
    """The mean and range of r of the first method."""
    row = over_models.figures[0]
    summary = row.summary
    if summary.lowest is None:
        return "r over models is not available: no model has one."
    return (
        f"Mean r over {pluralize(summary.mean.n, 'model')} by {row.method} scores: "
        f"{format_number(summary.mean.value)}, from {format_number(summary.lowest)} to "
        f"{format_number(summary.highest)}."
    )


def describe_equal_series(report: Report) -> Iterator[str]:
    """Yield a sentence for each group of models with the same scores in all cells: means count them once."""
    for group in report.equal_series:
        scores = "log-probability" if group.method == Method.LOGPROB else group.method
        yield (
            f"{join_with_and(group.models)} have the same {scores} scores in all cells, as one model under "
            "several names has. Means over models count them once."
        )


def _build_figures_table(rows: Sequence[OverModelsRow]) -> Table:
    """Build the table of means, standard deviations and ranges."""
    caption = "Each model counts once. The 95% CI of a mean is for other models like these. n counts models."
    derived = {"figure": lambda row: SUMMARY_TITLES[row.figure]}
    return tabulate("over-models", "Figures over models", caption, rows, OverModelsRow, derived)


def _build_tiers_table(rows: Sequence[CutOffTierRow]) -> Table:
    """Build the table of tiers by fixed cut-offs."""
    caption = (
        "Tiers by fixed cut-offs of r, as EvalMORAAL draws them for its two surveys. Chance may decide near a cut-off."
    )
    derived = {"models": lambda row: ", ".join(row.models) or None}
    return tabulate("cut-off-tiers", "Tiers by cut-off", caption, rows, CutOffTierRow, derived)


def _build_heat_maps(report: Report, labels: SeriesLabels) -> list[Block]:
    """Build the heat maps of r by country and of mean absolute errors by topic."""
    r_by_place = _collect(
        report.countries, labels, {row_key: row.pearson_r.value for row_key, row in _index(report.countries)}
    )
    return [
        Paragraph("r with people by country, over its topics.", "note"),
        build_heat_map("r by country", r_by_place),
    ]


def _index(rows: Sequence[GroupErrorRow]) -> list[tuple[tuple[str, str, str], GroupErrorRow]]:
    """Rows with their key: name, method and model."""
    return [((row.name, row.method, row.model), row) for row in rows]


def _collect(
    rows: Sequence[GroupErrorRow], labels: SeriesLabels, values: Mapping[tuple[str, str, str], float | None]
) -> dict[str, dict[str, float | None]]:
    """A figure by country or topic, then by the label of the series; series without any value are left out."""
    table: dict[str, dict[str, float | None]] = {}
    present = {(row.method, row.model) for row in rows if values[row.name, row.method, row.model] is not None}
    for row in rows:
        if (row.method, row.model) in present:
            table.setdefault(row.name, {})[labels.label(row)] = values[row.name, row.method, row.model]
    return table


def build_heat_map(label: str, table: Mapping[str, Mapping[str, float | None]], *, is_error: bool = False) -> HeatMap:
    """Build a heat map with one row for each country or topic, and one column for each series.

    Args:
        table: correlations by country or topic, then by series.
        is_error: whether the values are errors, which are not negative, instead of correlations.
    """
    bounds, low_label, high_label = (
        (ERROR_BOUNDS, "small error", "large error") if is_error else (R_BOUNDS, "negative r", "positive r")
    )
    columns = list(dict.fromkeys(name for row in table.values() for name in row))
    rows = [
        (place, [_build_cell(row.get(name), f"{place}, {name}") for name in columns]) for place, row in table.items()
    ]
    has_missing = any(NO_FIGURE in cells for _, cells in rows)
    states: dict[str, str] = {NO_FIGURE.state: NO_FIGURE.tooltip} if has_missing else {}
    return HeatMap(label, columns, rows, bounds, low_label, high_label, states, has_negative_values=not is_error)


def _build_cell(value: float | None, name: str) -> HeatMapCell:
    """One cell of a heat map."""
    if value is None:
        return NO_FIGURE
    return HeatMapCell(value, format_number(value), f"{name}: {format_number(value)}")


def _build_errors_table(over_models: OverModelsReport, labels: SeriesLabels) -> Table:
    """Build the table of the numbers of cells by absolute error; columns are the series of scores."""
    caption = (
        "Number of cells by absolute error of answers. Scores by log-probabilities are rescaled and have no errors."
    )
    columns = [
        Column("Absolute error", "text", "error"), *(Column(labels.label(row), "number") for row in over_models.errors)
    ]  # fmt: skip
    n_bins = max((len(row.counts) for row in over_models.errors), default=0)
    rows: list[list[Cell]] = [
        [
            f"{i * ERROR_BIN_WIDTH:.1f}–{(i + 1) * ERROR_BIN_WIDTH:.1f}",
            *(row.counts[i] for row in over_models.errors),
        ]
        for i in range(n_bins)
        if any(any(row.counts[i:]) for row in over_models.errors)
    ]
    return Table("error-distribution", "Distribution of errors", caption, columns, rows)


ATTRIBUTE_TITLES: Mapping[str, str] = {
    "mae": "MAE",
    "concordance": "Concordance",
    "pearson_r": "r",
    "corrected_r": "r without sampling noise",
    "self_consistency": "Self-consistency (cosine)",
    "accuracy": "Share of right answers",
}
NO_TREND = "No figure is shown to change with the number of parameters, after correction for all trends."


def build_model_attributes_section(report: Report) -> Section | None:
    """Build the section of an audit's report; None where no model has attributes."""
    return None if report.attributes is None else build_attributes_section(report.attributes)


def build_attributes_section(attributes: AttributesReport) -> Section:
    """Build the section: what changes with size, the trends, and figures by attribute."""
    blocks: list[Block] = [*_build_trends(attributes)]
    derived = {"figure": lambda row: _name_figure(row.figure)}
    blocks.append(
        tabulate(
            "attribute-figures",
            "Figures by attribute",
            "Each model counts once. The 95% CI of a mean is over other models like these; n counts models. Models "
            "that differ in one attribute may differ in others.",
            attributes.figures,
            AttributeFigureRow,
            derived,
        )
    )
    blocks.append(
        tabulate(
            "model-attributes",
            "Attributes of the models",
            "As configured.",
            attributes.models,
            [Column("Model", "name"), Column("Family", "name"), Column("Attributes")],
            {"attributes": _list_attributes},
        )
    )
    return Section("attributes", "Figures by attributes of models", blocks, "Attributes")


def _build_trends(attributes: AttributesReport) -> Iterator[Block]:
    """Yield the finding and the table of trends; nothing without numbers of parameters."""
    trends = attributes.trends
    if not trends:
        if any(PARAMETERS in row.attributes for row in attributes.models):
            missing_family: Text = [
                "There is no trend over the number of parameters: no family has two of the models. Set ",
                Code("family"),
                " of models that belong together.",
            ]
            yield Paragraph(missing_family, "finding")
        return
    findings: list[Text] = [
        [
            f"{_name_figure(row.figure)} {'rises' if (row.slope.value or 0.0) > 0 else 'falls'} with the number of "
            "parameters within ",
            *(["families"] if row.family is None else ["the family ", Name(row.family)]),
            f" ({describe_estimate('change per tenfold', row.slope, 'model', digits=3, style='signed')}).",
        ]
        for row in trends
        if row.slope.is_significant
    ]
    is_measured = any(row.slope.value is not None for row in trends)
    missing = f"There is no trend over the number of parameters: it needs {MIN_TREND_MODELS} models of a family."
    yield List(findings) if findings else Paragraph(NO_TREND if is_measured else missing, "finding")
    yield tabulate(
        "attribute-trends",
        "Trends over the number of parameters",
        "Change of a figure from a model to one of its family with ten times as many parameters. Without a family: all "
        "families together, each with an intercept of its own. 95% CIs are over other models of these families; n "
        "counts models.",
        trends,
        AttributeTrendRow,
        {"figure": lambda row: _name_figure(row.figure)},
    )


def _name_figure(figure: str) -> str:
    """The title of a figure: of this list, or as a built-in probe declares it."""
    return ATTRIBUTE_TITLES.get(figure) or next(
        probe.attribute_figures[figure] for probe in list_built_in_probes() if figure in probe.attribute_figures
    )


def _list_attributes(row: ModelAttributesRow) -> str:
    """The attributes of a model, such as "parameters 7B, tuning instruct"."""
    return ", ".join(
        f"{key} {_format_parameters(value) if isinstance(value, float) else value}"
        for key, value in row.attributes.items()
    )


def _format_parameters(number: float) -> str:
    """A number of parameters as models are named by it, such as 7B or 125M."""
    size, unit = next(((size, unit) for size, unit in ((1e9, "B"), (1e6, "M")) if number >= size), (1.0, ""))
    return f"{number / size:,.4g}{unit}"
