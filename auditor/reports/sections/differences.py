"""Differences between two series of scores, overall and by region, country and topic, and between verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from auditor.reports.data.coverage.lost_samples import has_unknown_sign
from auditor.reports.data.differences.schema import (
    DifferenceReport,
    JudgeDriftRow,
    NonInferiorityReport,
    RegionMarginRow,
    ResolutionDifferences,
    SeriesDifference,
    SeriesPairDifferences,
    VerdictDifferences,
)
from auditor.reports.document import (
    Block,
    Cell,
    Code,
    Column,
    Inline,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Status,
    Strong,
    Table,
)
from auditor.reports.number_format import (
    describe_adjusted_p_value,
    describe_interval,
    describe_p_value,
    describe_populations,
    format_count,
    format_number,
    format_percent,
    format_share,
    format_signed,
    format_styled,
    pluralize,
)
from auditor.reports.sections.experiments import plot_estimates
from auditor.reports.sections.phrasing import LabelledEstimate, join_texts, tabulate

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


def is_reversible(pair: SeriesPairDifferences) -> bool:
    """Whether lost samples could reverse the difference in mean absolute error that is shown on the shared cells."""
    is_shown = pair.mae.change in ("better", "worse")
    return is_shown and pair.worst_case is not None and has_unknown_sign(pair.worst_case.mae)


def describe_pair(pair: SeriesPairDifferences) -> str:
    """State whether the second series of a pair is closer to people than the first, by MAE or, without it, by r."""
    mae, r = pair.mae, pair.pearson_r
    if mae.difference.value is not None:
        limit = ", on the cells that both answered; lost samples could reverse this" if is_reversible(pair) else ""
        return (
            f"{pair.second} {CHANGE_PHRASES[classify_change(mae)]} {pair.first}{limit}: its mean absolute error "
            f"differs by {_describe_difference(mae, pair.shared)}."
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


def build_corrected_section(differences: DifferenceReport) -> Iterator[Section]:
    """Yield the section; none without a pair of models with enough labels."""
    pairs = [pair for pair in differences.pairs if pair.corrected_shares is not None]
    if not pairs:
        return
    caption: list[Inline] = [
        "Share of VALID of both models after correction by people’s labels, and its difference, second minus first, by "
        "the judges alone and corrected. 95% CIs are for these traces. P-values are adjusted for all pairs (Holm). ",
        Code("--uncorrected"),
        " leaves this table out.",
    ]
    table = tabulate("corrected-shares", "Corrected shares of VALID", caption, pairs, SeriesPairDifferences)
    title = "Is the share of VALID different, after correction?"
    yield Section("corrected-shares", title, [table], contents_title="Corrected shares")


FIGURE_TITLES = {"accuracy": "agreement with people", "excess": "excess of VALID over people"}


def build_judge_drift_section(differences: DifferenceReport) -> Iterator[Section]:
    """Yield the section; none unless people labelled random samples of two audits with the same judges."""
    rows = differences.judge_drift
    if not rows:
        return
    caption = (
        "Agreement with people: share of the traces on which the judge agrees with a random rater. Excess: the judge’s "
        "share of VALID minus people’s; above 0 the judge is lenient. Change: second audit minus first. 95% CIs are "
        "over other random samples of the traces of both audits. Different raters also change these figures. P-values "
        "are adjusted for all rows (Holm)."
    )
    derived = {"title": _find_title}
    table = tabulate("judge-drift", "Judges and people in both audits", caption, rows, JudgeDriftRow, derived)
    findings = List([_describe_change(row) for row in rows], is_findings=True)
    yield Section("judge-drift", "Have the judges drifted?", [findings, table], contents_title="Drift of judges")


def _find_title(row: JudgeDriftRow) -> str:
    return FIGURE_TITLES[row.figure]


def _describe_change(row: JudgeDriftRow) -> ListItem:
    """One sentence on one figure of a judge; a change counts only if it is significant."""
    title = FIGURE_TITLES[row.figure]
    if row.change.value is None or row.first.value is None or row.second.value is None:
        return ListItem(f"{row.judge}: its {title} cannot be compared: {row.change.reason}.", "unclear")
    format_value = format_share if row.figure == "accuracy" else format_signed
    values = f"{format_value(row.first.value)} to {format_value(row.second.value)}"
    interval = describe_interval(row.change, style="signed")
    if not row.change.is_significant:
        text = f"{row.judge}: no change of its {title} is shown ({values}; change {interval})."
        return ListItem(text, "unclear")
    is_better = row.change.value > 0 if row.figure == "accuracy" else abs(row.second.value) < abs(row.first.value)
    text = f"{row.judge}: its {title} changed from {values} (change {interval})."
    return ListItem(text, "positive" if is_better else "negative")


def build_non_inferiority_section(differences: DifferenceReport) -> Iterator[Section]:
    """Yield the section; none unless a margin was given or registered."""
    if not differences.non_inferiority:
        return
    blocks: list[Block] = [List([_describe_outcome(row) for row in differences.non_inferiority], is_findings=True)]
    for i, report in enumerate(differences.non_inferiority, start=1):
        if not report.rows:
            continue
        blocks += [Paragraph(describe_registration(report)), _tabulate_regions(report, f"non-inferiority-{i}")]
    yield Section("non-inferiority", "Non-inferiority by region", blocks, contents_title="Non-inferiority")


def _describe_outcome(report: NonInferiorityReport) -> ListItem:
    """State in how many regions the second series is not inferior, or why none is tested."""
    is_tested_overall = report.overall is not None and report.overall.passes is not None
    if report.reason and report.overall and is_tested_overall:
        passes = report.overall.passes
        text = (
            f"{report.second} {'passes' if passes else 'does not pass'} over all countries together: its mean absolute "
            f"error is {'' if passes else 'not '}shown to be less than {format_number(report.margin, 3)} above that of "
            f"{report.first}. No region is tested: {report.reason}."
        )
        return ListItem(text, "positive" if passes else "negative")
    if report.reason:
        return ListItem(f"{report.second} is not tested for non-inferiority: {report.reason}.", "unclear")
    n_regions, n_passed = len(report.regions), sum(row.passes is True for row in report.regions)
    n_hidden = sum(row.is_hidden for row in report.regions)
    n_untested = sum(row.passes is None for row in report.regions) - n_hidden
    if report.passes:
        regions = "all regions"
    else:
        regions = f"{n_passed or 'none'} of {pluralize(n_regions, 'region')}"
        open_parts = [f"{n_untested} not tested"] if n_untested else []
        open_parts += [f"{n_hidden} open, since lost samples could hide a larger change"] if n_hidden else []
        regions += f" ({', '.join(open_parts)})" if open_parts else ""
    text = (
        f"{report.second} passes in {regions}. A region passes if its mean absolute error is shown to be less than "
        f"{format_number(report.margin, 3)} above that of {report.first}."
    )
    return ListItem(text, "positive" if report.passes else "negative")


def describe_registration(report: NonInferiorityReport) -> str:
    """Say whether the margin was chosen before the answers."""
    claim = f"The margin of {format_number(report.margin, 3)} for {report.second}"
    match report.registration:
        case "registered":
            return f"{claim} was registered in the hash chain at {report.registered_at}, before its first answer."
        case "registered late":
            return f"{claim} was registered at {report.registered_at}, when answers were already recorded."
        case "other margin":
            return (
                f"{claim} is not registered: the margin that was registered first, at {report.registered_at}, is "
                f"{format_number(report.registered_margin, 3)}."
            )
        case _:
            return (
                f"{claim} is not registered. To register one, add non_inferiority to [compare] of the configuration "
                "before the audit runs."
            )


def _describe_pass(row: RegionMarginRow) -> str:
    """Whether a region passes, or why this is open."""
    if row.is_hidden:
        return "open: samples lost"
    return {True: "yes", False: "no", None: "not tested"}[row.passes]


def _tabulate_regions(report: NonInferiorityReport, table_id: str) -> Block:
    """The change in each region, and whether it passes."""
    return tabulate(
        table_id,
        f"{report.second} against {report.first}, margin {format_number(report.margin, 3)}",
        "Change in MAE: second minus first; above 0 the second is farther from people. A region passes if the 95% CI "
        "of its change ends below the margin, after correction for the regions (Holm); all countries together are a "
        "test of their own. n counts cells; CIs are over countries and topics.",
        report.rows,
        RegionMarginRow,
        {"passes": _describe_pass},
    )


RESOLVER_LABELS = {"majority": "judges", "person": "people"}
SAME_ANSWER_LABELS = {True: "the same", False: "another", None: "not recorded"}


def describe_verdicts(differences: VerdictDifferences) -> str:
    """Describe how often two sides' verdicts agree, and in which direction they changed."""
    n_same = differences.both_valid + differences.both_invalid
    population = f" for {differences.change.generalizes_to}" if differences.change.generalizes_to else ""
    p_value = differences.change.p_value
    p_text = "" if p_value is None else f" ({describe_p_value(p_value)}{population})"
    shared_unit = "the same answer" if differences.about == "answers" else "the same cell"
    n_pairs, n_traces = pluralize(differences.n, "pair"), pluralize(differences.traces, "trace")
    sentences = (
        f"{differences.first} and {differences.second} give the same verdict in "
        f"{format_percent(n_same, differences.n)} of {n_pairs} of verdicts on {shared_unit}, on {n_traces}. "
        f"{format_count(differences.to_valid)} changed from INVALID to VALID and "
        f"{format_count(differences.to_invalid)} from VALID to INVALID{p_text}."
    )
    if differences.about == "answers":
        return sentences
    return f"{sentences} No answer is the same in both, so differences are not due to the judges alone."


def build_verdict_section(differences: VerdictDifferences, section_id: str) -> Section:
    """Build the section on the verdicts of two sides: agreement, change, and the verdicts that differ."""
    agreement_table = Table(
        f"{section_id}-agreement",
        "Agreement of verdicts",
        "Agreement of both sides beyond chance (1 is complete agreement, 0 is chance), and share of VALID, second "
        f"minus first. {describe_populations([differences.kappa, differences.change])}n counts pairs of verdicts.",
        [Column("Measure", "name"), Column("Value", "estimate")],
        [["Agreement (Scott’s pi)", differences.kappa], ["Difference in the share of VALID", differences.change]],
    )
    blocks: list[Block] = [Paragraph(describe_verdicts(differences)), agreement_table]
    if differences.other_answers:
        remark = f"A further {pluralize(differences.other_answers, 'verdict is', 'verdicts are')} on other answers and "
        blocks.append(Paragraph(f"{remark}excluded from all figures."))
    if differences.flips:
        blocks.append(_build_flip_table(differences, f"{section_id}-flips"))
    blocks += _note_unlisted(differences.not_listed, "verdict")
    title = f"Verdicts that differ: {differences.first} and {differences.second}"
    return Section(section_id, title, blocks, contents_title="Verdicts that differ")


def _build_flip_table(differences: VerdictDifferences, table_id: str) -> Table:
    """Build the table of the verdicts that differ."""
    columns = [
        *(Column(title, "name") for title in ("Country", "Topic", "Model", "Judge", "Other judge")),
        Column("Sample", "number"),
        Column(Name(differences.first), "text", "first"),
        Column(Name(differences.second), "text", "second"),
        Column("Answer", "text", "same_answer"),
    ]
    caption = "Verdicts that differ, and whether both are on the same answer."
    derived = {"same_answer": lambda flip: SAME_ANSWER_LABELS[flip.same_answer]}
    return tabulate(table_id, "Verdicts that differ", caption, differences.flips, columns, derived)


def describe_resolutions(differences: ResolutionDifferences) -> str:
    """State how many conflicts two audits settled for different sides."""
    opening = f"{differences.first} and {differences.second} have {pluralize(differences.shared, 'conflict')} in common"
    if differences.n == 0:
        return f"{opening}, none of which both audits settled for one side."
    share = format_styled(differences.share.value, "percent", 0)
    return (
        f"{opening}. The outcome differs in {format_count(differences.flipped)} of {format_count(differences.n)} that "
        f"both settled for one side ({share}, {describe_interval(differences.share, 0, 'percent')})."
    )


def build_resolution_section(differences: ResolutionDifferences, section_id: str) -> Section:
    """Build the section on the conflicts of two audits, with a table of those settled for different sides."""
    title = "Conflicts settled differently"
    blocks: list[Block] = [
        Paragraph(describe_resolutions(differences)),
        Paragraph(
            f"Of the conflicts in common, {format_count(differences.only_first)} are settled only in "
            f"{differences.first}, {format_count(differences.only_second)} only in {differences.second}, and "
            f"{format_count(differences.neither)} in neither."
        ),
    ]
    if differences.flips:
        columns = [
            Column("Country", "name"),
            Column("Topic", "name"),
            Column(f"Upheld in {differences.first}", "name", "first_winner"),
            Column("Settled by", "text", "first_by"),
            Column(f"Upheld in {differences.second}", "name", "second_winner"),
            Column("Settled by", "text", "second_by"),
        ]
        caption = "Conflicts that the two audits settled for different sides."
        derived = {
            "first_by": lambda flip: RESOLVER_LABELS[flip.first_by],
            "second_by": lambda flip: RESOLVER_LABELS[flip.second_by],
        }
        blocks.append(tabulate(f"{section_id}-flips", title, caption, differences.flips, columns, derived))
    blocks += _note_unlisted(differences.not_listed, "conflict")
    return Section(section_id, f"{title}: {differences.first} and {differences.second}", blocks, contents_title=title)


def _note_unlisted(n: int, noun: str) -> list[Block]:
    """Say how many more differences there are than a table lists; an empty list for none."""
    text = f"{pluralize(n, f'further {noun} is', f'further {noun}s are')} not listed; "
    return [Paragraph([text, Code("--flips N"), " lists more."], role="note")] if n else []
