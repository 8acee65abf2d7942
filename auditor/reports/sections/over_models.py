"""Section on figures over models, as papers on several models report them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.domain import Method
from auditor.reports.data.agreement.over_models import (
    ERROR_BIN_WIDTH,
    CutOffTierRow,
    OverModelsReport,
    OverModelsRow,
)
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Column, Disclosure, HeatMap, HeatMapCell, Paragraph, Section, Table
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_with_and
from auditor.reports.sections.tables import tabulate

TITLES = {
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
    derived = {"figure": lambda row: TITLES[row.figure]}
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
