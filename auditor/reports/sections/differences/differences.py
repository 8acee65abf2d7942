"""Differences between two series of scores, overall and by region, country and topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from auditor.reports.data.differences.schema import DifferenceReport, SeriesDifference, SeriesPairDifferences
from auditor.reports.document import (
    Block,
    Cell,
    Column,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Status,
    Strong,
    Table,
)
from auditor.reports.number_format import describe_adjusted_p_value, describe_interval, format_signed, pluralize
from auditor.reports.sections.estimate_plots import LabelledEstimate
from auditor.reports.sections.experiments.common import plot_estimates
from auditor.reports.sections.phrasing import join_texts
from auditor.reports.sections.tables import tabulate

CHANGE_LABELS = {
    "better": "better",
    "worse": "worse",
    "not told apart": "not distinguishable",
    "not tested": "not tested",
    "not measurable": "not available",
}
CHANGE_PHRASES = {
    "better": "is closer to people than",
    "worse": "is further from people than",
    "not told apart": "is not statistically distinguishable from",
    "not tested": "is not tested against",
    "not measurable": "cannot be compared with",
}
GROUPS = (
    ("region", "regions", "over countries and topics"),
    ("country", "by_country", "over the country’s topics, of which at least 5 are needed"),
    ("topic", "by_topic", "over the topic’s countries, of which at least 5 are needed"),
)
"""Noun of each kind of group, its field of `SeriesPairDifferences`, and what its 95% CIs are over."""
ERROR_AXIS_TITLE = "Difference in mean absolute error"


def classify_change(difference: SeriesDifference) -> str:
    """The key of a difference in `CHANGE_LABELS`: its change, or `not tested` where there is no p-value."""
    is_tested = difference.difference.p_value is not None
    return "not tested" if difference.change == "not told apart" and not is_tested else difference.change


def describe_pair(pair: SeriesPairDifferences) -> str:
    """State whether the second series of a pair is closer to people than the first, by MAE or, without it, by r."""
    mae, r = pair.mae, pair.pearson_r
    if mae.difference.value is not None:
        return (
            f"{pair.second} {CHANGE_PHRASES[classify_change(mae)]} {pair.first}: its mean absolute error differs by "
            f"{_describe_difference(mae, pair.shared)}."
        )
    reason = mae.difference.reason
    if r.difference.value is None:
        return f"{pair.second} cannot be compared with {pair.first}: {reason}."
    return (
        f"{pair.second} {CHANGE_PHRASES[classify_change(r)]} {pair.first} by r, which differs by "
        f"{_describe_difference(r, pair.shared)}. Mean absolute errors cannot be compared: {reason}."
    )


def _describe_difference(difference: SeriesDifference, n_cells: int) -> str:
    """Format a difference with its interval, corrected p-value and number of cells, for a sentence."""
    estimate = difference.difference
    p_text = ""
    if estimate.ci_low is not None:
        p_text = f", {describe_adjusted_p_value(estimate)}"
    interval = describe_interval(estimate, style="signed")
    return f"{format_signed(estimate.value)} ({interval}{p_text}, {pluralize(n_cells, 'shared cell')})"


def build_overall_section(differences: DifferenceReport) -> Section:
    """Build the section on the overall differences of MAE and r, with a row for each pair."""
    remark = (
        "Differences are second minus first, over shared cells. The second is closer to people if its mean absolute "
        "error (MAE) is lower or its concordance is higher; r says how it orders countries and topics. 95% CIs are for "
        "other countries and topics like these (two-way jackknife). Lost samples are planned ones without a usable "
        "score, such as refusals. If more than 5% are lost, or the shares differ by more than 5 points, a further 95% "
        "CI covers the difference over all samples, whatever the lost ones would have scored (Imbens & Manski 2004). A "
        "change is reported if p is below 0.05 after Holm’s correction for "
        f"{pluralize(differences.tests, 'pair')}."
    )
    tables = [
        _tabulate_differences(
            table_id,
            f"{label} of both series, on the shared cells",
            f"{label} of both series, on the shared cells ({direction}).",
            differences.pairs,
            [Column("First", "name"), Column("Second", "name")],
            metric,
            path,
            "shared",
            [] if path == "concordance." else _list_loss_columns(differences.pairs, path),
        )
        for table_id, label, metric, direction, path in (
            ("overall-mae", "Mean absolute error", "MAE", "lower is better", "mae."),
            ("overall-concordance", "Concordance with people", "concordance", "higher is better", "concordance."),
            ("overall-r", "Correlation with people", "r", "higher is better", "pearson_r."),
        )
    ]
    maes = [pair.mae.difference for pair in differences.pairs]
    labelled = list(zip(_label_pairs(differences), maes, strict=True))
    figures = _plot_differences("overall-plot", "Difference in mean absolute error", labelled, "overall-mae")
    return Section("overall", "Overall", [Paragraph(remark), *figures, *tables], contents_title="Overall")


def _list_loss_columns(pairs: Sequence[SeriesPairDifferences], path: str) -> list[Column]:
    """Columns with the lost samples of both series, and with worst-case bounds if any pair has them.

    `path` is the figure's attribute of a pair, with a dot at its end.
    """
    columns = [
        Column(f"Samples lost by {side}", "share", f"{side}_lost", path=f"{side}_lost_samples.as_count")
        for side in ("first", "second")
    ]
    if any(pair.worst_case is not None for pair in pairs):
        bounds = f"worst_case.{path}"
        columns += [
            Column("95% CI over all planned samples", "interval", bounds.removesuffix("."), style="signed"),
            Column("Smallest possible", "number", f"{bounds}bound_low", style="signed"),
            Column("Largest possible", "number", f"{bounds}bound_high", style="signed"),
        ]
    return columns


def _label_pairs(differences: DifferenceReport) -> list[str]:
    """Labels of the pairs in plots: only the model, if it is the same on both sides and the labels stay unique."""
    models = {series.label: series.model for series in differences.series}
    full_labels = [f"{pair.second} – {pair.first}" for pair in differences.pairs]
    short_labels = [
        models[pair.second] if models[pair.second] == models[pair.first] else full_label
        for pair, full_label in zip(differences.pairs, full_labels, strict=True)
    ]
    return short_labels if len(set(short_labels)) == len(short_labels) else full_labels


def build_group_sections(pair: SeriesPairDifferences, pair_id: str) -> Iterator[Section]:
    """Build the sections of a pair's differences by region, country and topic; none for a kind without groups."""
    for noun, field, interval_note in GROUPS:
        differences: Sequence[SeriesDifference] = getattr(pair, field)
        if not differences:
            continue
        section_id = f"{pair_id}-{noun}"
        table_id, title = f"{section_id}-mae", f"By {noun}"
        caption = (
            f"Mean absolute error by {noun}, largest deterioration first. 95% CIs are {interval_note}, and each "
            "is for its row alone. p-values are corrected for all differences of this kind in all pairs."
        )
        labelled = [(difference.name, difference.difference) for difference in differences]
        plot_title = f"Difference in mean absolute error by {noun}"
        name_columns = [Column(noun.capitalize(), "name", "name")]
        blocks: list[Block] = [
            _list_changes(differences, noun),
            *_plot_differences(f"{section_id}-plot", plot_title, labelled, table_id),
            _tabulate_differences(table_id, title, caption, differences, name_columns, "MAE", "", "difference.n"),
        ]
        yield Section(section_id, title, blocks, contents_title=title)


def _list_changes(differences: Sequence[SeriesDifference], noun: str) -> Block:
    """List the groups that became better or worse; a paragraph if none did."""
    statuses: tuple[tuple[str, Status], ...] = (("better", "positive"), ("worse", "negative"))
    items = []
    for change, status in statuses:
        changed = [difference for difference in differences if difference.change == change]
        texts = [(Name(row.name), f" ({format_signed(row.difference.value)})") for row in changed]
        if texts:
            items.append(ListItem([Strong(f"{change.capitalize()}:"), " ", *join_texts(texts, ", ")], status))
    if not items:
        n_tested = sum(row.difference.p_value is not None for row in differences)
        if not n_tested:
            return Paragraph(f"Changes by {noun} cannot be tested: none has a 95% CI.")
        remark = "" if n_tested == len(differences) else f" Tested: {n_tested} of {len(differences)}."
        return Paragraph(f"No tested change by {noun} is statistically distinguishable from zero.{remark}")
    return List(items, is_findings=True)


def _tabulate_differences(
    table_id: str,
    label: str,
    caption: str,
    records: Sequence[SeriesDifference] | Sequence[SeriesPairDifferences],
    name_columns: Sequence[Column],
    metric: str,
    path: str,
    n_key: str,
    extra_columns: Sequence[Column] = (),
) -> Table:
    """Tabulate differences between two series.

    Args:
        metric: name of the compared figure.
        path: where records have their difference, with a dot at its end; empty for records that are differences.
        n_key: attribute with the number of cells.
        extra_columns: further columns, of pairs.
    """
    columns = [
        *name_columns,
        Column(f"{metric} of first", "number", f"{path}first"),
        Column(f"{metric} of second", "number", f"{path}second"),
        Column("Difference", "estimate", f"{path}difference", style="signed", show_n=False, emphasis=True),
        Column("p (adjusted)", "number", f"{path}difference.adjusted_p_value", style="p_value"),
        Column("The second is", "text", f"{path}change"),
        Column("Cells", "number", n_key),
        *extra_columns,
    ]
    get_difference: Callable[[Any], SeriesDifference] = (
        (lambda record: record) if not path else attrgetter(path.removesuffix("."))
    )
    derived: Mapping[str, Callable[[Any], Cell]] = {
        f"{path}change": lambda record: CHANGE_LABELS[classify_change(get_difference(record))],
    }
    return tabulate(table_id, label, caption, records, columns, derived)


def _plot_differences(
    figure_id: str, title: str, differences: Sequence[LabelledEstimate], table_id: str
) -> Sequence[Block]:
    """Plot differences in MAE with their uncorrected intervals; an empty list for no values, or too many."""
    caption = f"{title}, second minus first, with 95% CI (not corrected). Below 0, the second is closer to people."
    return plot_estimates(figure_id, title, differences, ERROR_AXIS_TITLE, table_id=table_id, caption=caption)
