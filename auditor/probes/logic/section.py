"""The section on the logical consistency of judges' preferences, with rankings and votes that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.logic.consistency import LogicEstimate
from auditor.metrics.logic.ranking_methods import PAIRS_CALIBRATED, PAIRS_GREEDY
from auditor.probes.logic.figures.build import MAX_RANKED_ITEMS, MIN_RANKED_ITEMS
from auditor.probes.logic.figures.schema import (
    ContradictionRow,
    JudgeConsistencyRow,
    LogicCorrelationRow,
    LogicReport,
    LogicRow,
    RankingRepairRow,
    RankingRow,
    TransitivityRow,
)
from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Cell,
    Column,
    CountShare,
    Disclosure,
    Figure,
    Inline,
    List,
    Name,
    Paragraph,
    Section,
    Table,
)
from auditor.reports.number_format import format_count, format_number, format_share, pluralize
from auditor.reports.sections.phrasing import (
    DerivedCells,
    build_finding,
    describe_interval,
    join_names,
    list_counts,
    make_columns,
    tabulate,
)
from auditor.reports.sections.run_summary import build_summary_columns


def build_votes_section(logic: LogicReport) -> Section | None:
    """Build the subsection on the consistency of the panel's judges and their votes; None without a panel."""
    if not logic.ledger:
        return None
    derived: DerivedCells[JudgeConsistencyRow] = {"weight": lambda row: 0.0 if row.benched else row.weight}
    caption = (
        "Consistency of each judge in its own comparisons, from 0 to 1 (higher is better), pooled over sets. Mean: "
        "over the figures that at least half of the judges have. Above chance: the mean, rescaled to 0 for answers "
        "that ignore the items and 1 for perfect consistency; self-agreement counts at most as much as the other "
        "figures. Decided: answers that are not ties. Same side: decisions for the side, first or second, that the "
        "judge names more often. The tables above have the CIs."
    )
    table = tabulate("logic-votes", "Consistency of the judges", caption, logic.ledger, JudgeConsistencyRow, derived)
    return Section("logic-panel", "Consistency and votes of the judges", [Paragraph(_describe_votes(logic)), table])


def _describe_votes(logic: LogicReport) -> str:
    """Describe whether votes are weighted by consistency, and which judges are excluded from voting."""
    if all(row.weight is None for row in logic.ledger):
        return (
            "Votes are not weighted by these figures: each judge has one vote, or its configured weight. "
            'The setting panel.weights_from = "logic" weights votes by consistency.'
        )
    return (
        "Votes on conflicts are weighted by consistency above chance. The section on conflicts reports the effect. "
        f"{describe_excluded_judges(logic) or 'No judge is excluded from voting.'}"
    )


def describe_excluded_judges(logic: LogicReport | None) -> str:
    """Name the judges that are excluded from voting by their consistency, with the reasons; empty without one."""
    excluded = ", ".join(f"{row.judge} ({row.reason})" for row in logic.ledger if row.benched) if logic else ""
    return f"Excluded from voting: {excluded}." if excluded else ""


SHARE_TITLES = {
    "commutativity": "Commutativity",
    "position_consistency": "Position consistency",
    "negation": "Negation",
    "negation_calibrated": "Negation, calibrated",
    "self_agreement": "Self-agreement",
    "human_agreement": "Agreement with people",
    "human_agreement_calibrated": "Agreement with people, calibrated",
}
"""Titles of the shares in `LogicRow`, by field."""
CHANCE_TRANSITIVITY_K3 = 0.75
"""2 of the 8 tournaments of three items are cycles, so random preferences are transitive in 6 of 8."""
AVERAGING_NOTE = (
    "Mean over sets: each set has equal weight, as in Aligning with Logic; n counts sets. Pooled: each case has equal "
    "weight; n counts cases."
)
TIE_NOTE = (
    "Ties count as neither agreement nor violation: they are excluded, but for position consistency. Decided: share of "
    "cases without a tie."
)


class _ShareRow(NamedTuple):
    """One measure of one judge."""

    judge: str
    measure: str
    instances: LogicEstimate
    pooled: LogicEstimate


def label_judge(row: LogicRow) -> str:
    """Name of the judge, with the wording's number where the row is about one wording."""
    return row.judge if row.wording is None else f"{row.judge}, wording {row.wording + 1}"


def build_answer_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table with the judges' usable answers, ties and position bias."""
    caption = (
        "Names the first: share of decisions for the item shown first, with 95% CI, over pairs answered in both "
        "orders; 0.5 is no position bias."
    )
    derived: DerivedCells[LogicRow] = {
        "judge": label_judge,
        "usable_share": lambda row: CountShare(row.ok, row.questions),
        "excluded": lambda row: list_counts(row.losses) or "none",
    }
    return tabulate("logic-answers", "Answers of each judge", caption, rows, LogicRow, derived)


def build_share_tables(logic: LogicReport) -> Iterator[Table]:
    """Yield the table of commutativity, negation, self-agreement and agreement with people, and that by wording."""
    rows = [
        _ShareRow(label_judge(row), title, getattr(row.instances, key), getattr(row, key))
        for row in logic.judges
        for key, title in SHARE_TITLES.items()
    ]
    definitions = (
        "Commutativity: same decision in both orders. Position consistency: same answer, with ties as answers. "
        "Negation: the negated question is answered with the other item. "
        "Self-agreement: repeated answers equal to the most frequent one; by chance alone well above 0.5. Agreement "
        "with people: same answer as people, where they have a preference. Calibrated: both orders are averaged "
        "first, so a judge that always names the first item ties everywhere."
    )
    caption = f"Shares from 0 to 1 (higher is better), with 95% CI. {definitions} {AVERAGING_NOTE} {TIE_NOTE}"
    columns = [
        Column("Judge", "name"),
        Column("Measure"),
        Column("Mean over sets", "estimate", "instances", emphasis=True),
        Column("Pooled", "estimate"),
        Column("Decided", "share"),
        *make_columns("number", {"pooled.ties": "Ties", "pooled.lost": "Unanswered"}),
    ]
    derived: DerivedCells[_ShareRow] = {
        "decided": lambda row: CountShare(row.pooled.n, row.pooled.n + row.pooled.ties) if row.pooled.n else None
    }
    title = "Commutativity, negation and agreement"
    yield tabulate("logic-shares", title, caption, rows, columns, derived)
    if logic.wordings:
        wording_caption = f"The pooled shares by wording of the question, with 95% CI. {TIE_NOTE.split(':')[0]}."
        derived_label = {"judge": label_judge}
        title = f"{title}, by wording"
        yield tabulate("logic-wordings", title, wording_caption, logic.wordings, LogicRow, derived_label)


def build_complete_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table of transitivity over the subsets of items in which every pair is decided."""
    caption = (
        "Share of subsets of K items without a cycle of preferences (higher is better), with 95% CI, among subsets "
        "with all pairs decided. One order: one of the two answers to each pair, drawn at random for each subset. "
        f"Calibrated: the average of both. {AVERAGING_NOTE} Margin: half-width of the 95% CI of the mean over other "
        "draws of subsets and orders; a 95% CI over other sets includes it. The last three columns count pairs. Random "
        f"preferences reach {CHANCE_TRANSITIVITY_K3} for K = 3."
    )
    columns = [
        Column("Judge", "name"),
        Column("K", "number"),
        Column("Answers"),
        Column("Mean over sets", "estimate", "instances", emphasis=True),
        Column("Pooled", "estimate"),
        Column("Subsets checked"),
        Column("Margin", "number", digits=3),
        *(Column(title, "number") for title in ("Decided pairs", "Tied pairs", "Unanswered pairs")),
    ]
    cells = [_complete_cells(row, entry) for row in rows for entry in sort_by_size(row)]
    return Table("logic-transitivity", "Transitivity", caption, columns, cells)


def sort_by_size(row: LogicRow) -> list[TransitivityRow]:
    """Transitivity of one judge, by the size of the subsets; JSON has the order of the configuration."""
    return sorted(row.transitivity, key=lambda entry: (entry.k, entry.calibrated))


def _complete_cells(row: LogicRow, entry: TransitivityRow) -> list[Cell]:
    """Cells of one judge and size of subsets; without a share there are no subsets to describe."""
    checked = None if entry.share.value is None else "all" if entry.all_subsets else "random sample"
    return [
        *_row_labels(row, entry),
        entry.instances,
        entry.share,
        checked,
        entry.margin_instances or None,
        entry.decided,
        entry.tied,
        entry.unanswered,
    ]


def build_partial_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table of transitivity over all subsets of items, by the comparisons there are."""
    caption = (
        "Share of all subsets of K items without a cycle, with 95% CI. Missing and tied comparisons cannot be part of "
        "a cycle, so the share is higher where fewer pairs are decided. Pairs present: mean share of decided pairs in "
        "a subset. Fully answered: share of subsets with an answer to every pair. Both are means over sets. "
        f"{AVERAGING_NOTE}"
    )
    columns = [
        Column("Judge", "name"),
        Column("K", "number"),
        Column("Answers"),
        Column("Mean over sets", "estimate", "instances", emphasis=True),
        Column("Pooled", "estimate"),
        Column("Pairs present", "number", style="percent", digits=0),
        Column("Fully answered", "number", style="percent", digits=0),
    ]
    cells = [_partial_cells(row, entry) for row in rows for entry in sort_by_size(row)]
    return Table("logic-partial", "Transitivity with missing and tied comparisons", caption, columns, cells)


def _partial_cells(row: LogicRow, entry: TransitivityRow) -> list[Cell]:
    """Cells of one judge and size of subsets."""
    instances = entry.partial_instances
    return [*_row_labels(row, entry), instances, entry.partial, instances.pairs_present, instances.answered_subsets]


def _row_labels(row: LogicRow, entry: TransitivityRow) -> list[Cell]:
    """The judge, the size of the subsets and the treatment of the orders."""
    return [label_judge(row), entry.k, "calibrated" if entry.calibrated else "one order"]


def build_interval_note(rows: Sequence[LogicRow]) -> Paragraph | None:
    """Say what the intervals are statements about; None without an interval."""
    estimates = [
        estimate
        for row in rows
        for estimate in (
            row.first,
            *(getattr(row, key) for key in SHARE_TITLES),
            *(entry.share for entry in row.transitivity),
            *(entry.partial for entry in row.transitivity),
        )
    ]
    populations = dict.fromkeys(estimate.generalizes_to for estimate in estimates if estimate.generalizes_to)
    if not populations:
        return None
    caveat = (
        " With fewer than 5 item sets, they do not generalize to other sets."
        if "other items like these" in populations
        else ""
    )
    return Paragraph(f"The 95% CIs generalize to {' or '.join(populations)}.{caveat}", "note")


def build_summary_tables(report: Report) -> Iterator[Table]:
    """Yield the logical consistency of preferences; one row for each judge."""
    logic = report.find(LogicReport)
    if logic is None:
        return
    rows: list[list[Cell]] = [
        [
            row.judge,
            row.transitivity[0].share.value,
            row.commutativity.value,
            row.negation.value,
            row.self_agreement.value,
            row.human_agreement.value,
            CountShare(row.ok, row.questions),
        ]
        for row in logic.judges
    ]
    titles = ("transitivity", "commutativity", "negation", "self-agr.", "people")
    yield Table("logic", "Logical consistency", "", build_summary_columns(*titles, row_noun="judge"), rows)


RANKING_TABLE_ID = "rankings"
PAPER_K = 5
"""Items in the subsets of table 4 of Aligning with Logic."""


def build_rankings_section(logic: LogicReport) -> Section | None:
    """Build the subsection on ranking methods; None where nothing was ranked."""
    if not logic.rankings:
        return None
    rows_by_judge: dict[str, list[RankingRow]] = {}
    for row in logic.rankings:
        rows_by_judge.setdefault(row.judge, []).append(row)
    explanation = (
        "Recorded answers are replayed. PairS ranks by merge sort and asks about N log N pairs. The Bradley–Terry "
        "model uses all pairs, or a random sample of them. Figures are means over starting orders or samples. Ranked "
        f"are sets of {MIN_RANKED_ITEMS} to {MAX_RANKED_ITEMS} items, with nearly all pairs asked in both orders."
    )
    caption = (
        "Spearman’s ρ (higher is better) of each ranking with the judge’s ranking from all pairs, and with people’s "
        "order. Means over sets, with 95% CI; n counts sets."
    )
    title = "Rankings from few comparisons"
    figures = (plot_rankings(f"rankings-plot-{i}", rows) for i, rows in enumerate(rows_by_judge.values(), 1))
    table = tabulate(RANKING_TABLE_ID, title, caption, logic.rankings, RankingRow)
    blocks = [Paragraph(explanation), _build_pairs_table(logic), *filter(None, figures), table]
    return Section("logic-rankings", title, [block for block in blocks if block is not None])


class _PairsRow(NamedTuple):
    """Means over sets of one judge: its consistency, and the accuracy of PairS."""

    judge: str
    human_agreement: LogicEstimate
    transitivity: LogicEstimate
    commutativity: LogicEstimate
    raw: Estimate
    calibrated: Estimate


def _build_pairs_table(logic: LogicReport) -> Table | None:
    """Build the table like table 4 of Aligning with Logic; None where no ranking has an accuracy."""
    rho = {(row.judge, row.method): row.people for row in logic.rankings}
    rows = [
        _PairsRow(
            row.judge,
            row.instances.human_agreement,
            _find_published_size(row).instances,
            row.instances.commutativity,
            rho[row.judge, PAIRS_GREEDY],
            rho[row.judge, PAIRS_CALIBRATED],
        )
        for row in logic.judges
        if (row.judge, PAIRS_GREEDY) in rho
    ]
    if not any(row.raw.value is not None for row in rows):
        return None
    caption = (
        "Means over sets, with 95% CI; n counts sets. PairS: Spearman’s ρ of greedy rankings with people’s order "
        "(higher is better), as answered, and calibrated by averaging both orders. The rows are like those of table 4 "
        "of Aligning with Logic."
    )
    columns = [
        Column("Judge", "name"),
        Column("Agreement with people", "estimate", "human_agreement"),
        Column(f"Transitivity (K = {_find_published_size(logic.judges[0]).k})", "estimate", "transitivity"),
        Column("Commutativity", "estimate"),
        Column("PairS", "estimate", "raw", emphasis=True),
        Column("PairS, calibrated", "estimate", "calibrated", emphasis=True),
    ]
    return tabulate("rankings-consistency", "Accuracy of rankings and consistency", caption, rows, columns)


def _find_published_size(row: LogicRow) -> TransitivityRow:
    """Transitivity in subsets of the paper's size, or of the largest that was measured, by one order of each pair."""
    return max(
        (entry for entry in row.transitivity if not entry.calibrated), key=lambda entry: (entry.k == PAPER_K, entry.k)
    )


def plot_rankings(figure_id: str, rows: Sequence[RankingRow]) -> Figure | None:
    """Plot one judge's calls against ρ with people's order, or with the ranking from all pairs if that is unknown.

    Methods whose ρ is of fewer sets than that of others are left out. None where no ρ is known.
    """
    by_people = any(row.people.value is not None for row in rows)
    estimates = [row.people if by_people else row.all_pairs for row in rows]
    n_sets = max(estimate.n for estimate in estimates)
    points = [
        TradeoffPoint(row.method, row.calls, estimate.value)
        for row, estimate in zip(rows, estimates, strict=True)
        if estimate.value is not None and estimate.n == n_sets
    ]
    if not points:
        return None
    left_out = [row.method for row, estimate in zip(rows, estimates, strict=True) if 0 < estimate.n < n_sets]
    judge, reference = rows[0].judge, "people’s order" if by_people else "the judge’s ranking from all pairs"
    accuracy_title = f"Spearman’s ρ with {reference}"
    spec = tradeoff_plot(points, cost_title="Calls per set", accuracy_title=accuracy_title)
    description = "; ".join(
        f"{point.label}: {format_number(point.cost, 1)} calls, ρ {format_number(point.accuracy)}" for point in points
    )
    omission = f" Not shown, since ρ is of fewer sets: {'; '.join(left_out)}." if left_out else ""
    caption = (Name(judge), f": calls per set and {accuracy_title}.{omission}")
    title = f"Accuracy of rankings against calls, {judge}"
    return Figure(figure_id, spec, title, description, caption, RANKING_TABLE_ID)


def build_repair_section(rows: Sequence[RankingRepairRow]) -> Section:
    """Build the subsection on how ranking the items changes each judge's answers and their agreement with people."""
    caption = (
        "Ranking items by win-loss rate removes all cycles, and reverses the answers that contradict the ranking. "
        "Agreement with people: share, with 95% CI, of the questions decided by people, answers and ranking (n). "
        "Tied: excluded questions, in which the judge’s answer or the ranking is tied."
    )
    title = "Effect of ranking on the answers"
    return Section("logic-repair", title, [tabulate("ranking-effect", title, caption, rows, RankingRepairRow)])


CRITERION_QUESTIONS = {
    "acceptability": "which is more acceptable to most people of the country",
    "preference": "which is better",
    "relevance": "which is more relevant",
    "coherence": "which is the more coherent summary",
    "temporal": "which is earlier",
    "causal": "which is the cause",
}
AVERAGING_LABELS = {"instances": "mean over sets", "pooled": "pooled"}
MAX_OPEN_ROWS = 3
"""Contradictory sets of preferences that are shown open."""
MAX_LISTED_CONTEXTS = 4
MAX_CONTEXT_CHARS = 40
"""Contexts are named in the text if they are few and each is shorter than this."""


def build_logic_section(report: Report) -> Section | None:
    """Build the section; None where nothing was compared."""
    logic = report.find(LogicReport)
    if logic is None:
        return None
    rows = [*logic.judges, *logic.wordings]
    findings = [
        build_finding(row.judge, "; ".join(_describe_judge(row)) or _describe_unknown_consistency(row))
        for row in logic.judges
    ]
    blocks: list[Block | None] = [
        Paragraph(_describe_comparisons(logic)),
        List(findings, is_findings=True),
        build_answer_table(rows),
        *build_share_tables(logic),
        build_complete_table(rows),
        build_partial_table(rows),
        build_interval_note(rows),
        _build_correlation_table(logic),
        build_rankings_section(logic),
        build_votes_section(logic),
        build_contradictions_section(logic.contradictions),
        build_repair_section(logic.repairs),
    ]
    present = [block for block in blocks if block is not None]
    return Section("logic", "Are the judges’ preferences logically consistent?", present, "Logic")


def group_logic_tables(report: Report) -> Section | None:
    """Build a section with the tables of judges' figures only; None where nothing was compared."""
    logic = report.find(LogicReport)
    if logic is None:
        return None
    rows = [*logic.judges, *logic.wordings]
    blocks = [
        build_answer_table(rows),
        *build_share_tables(logic),
        build_partial_table(rows),
        _build_correlation_table(logic),
    ]
    present = [block for block in blocks if block is not None]
    return Section("logic", "Consistency of preferences", present, "consistency")


def _describe_comparisons(logic: LogicReport) -> str:
    """Describe the item sets, the criteria and the three properties that are measured."""
    criteria = ", ".join(CRITERION_QUESTIONS.get(name, name) for name in logic.criterion)
    is_short = (
        len(logic.contexts) <= MAX_LISTED_CONTEXTS and max(map(len, logic.contexts), default=0) < MAX_CONTEXT_CHARS
    )
    contexts = f": {', '.join(logic.contexts)}" if is_short else ""
    drawn = "" if logic.max_sets is None else f" Sets were drawn at random, at most {format_count(logic.max_sets)}."
    labels = "" if not logic.labelled_pairs else f" People labelled {format_count(logic.labelled_pairs)} of the pairs."
    return (
        f"Each judge compared pairs of items from {pluralize(logic.sets, 'set')} ({pluralize(logic.items, 'item')} in "
        f"total{contexts}).{drawn}{labels} It was asked {criteria}. A consistent judge has three properties. Its "
        "preferences have no cycles (transitivity). Its decisions do not depend on the order of the items "
        "(commutativity). It names the other item if the question is negated (negation)."
    )


def _describe_judge(row: LogicRow) -> Iterator[str]:
    """Yield predicates on position bias, commutativity, negation and transitivity, where they are known."""
    if row.first.value is not None:
        yield (
            f"names the item shown first in {_describe_share(row.first)} of its decisions, where 50% is no position "
            "bias"
        )
    if row.commutativity.value is not None:
        yield (
            f"makes the same decision in both orders for {_describe_share(row.commutativity)} of decided pairs "
            f"(commutativity), and gives the same answer for {_describe_share(row.position_consistency)} of pairs "
            "answered in both orders, ties among them (position consistency)"
        )
    if row.negation.value is not None:
        yield f"reverses its answer to {_describe_share(row.negation)} of decided negated questions"
    measured = (entry for entry in row.transitivity if not entry.calibrated and entry.share.value is not None)
    if (entry := next(measured, None)) is not None:
        yield f"has no cycles in {_describe_share(entry.share)} of fully decided subsets of {entry.k} items"


def _describe_unknown_consistency(row: LogicRow) -> str:
    """Predicate for a judge of whom no property is known."""
    if not row.ok:
        return "gave no usable answer"
    agreement = ""
    if row.human_agreement.value is not None:
        agreement = f"answers {_describe_share(row.human_agreement)} of the questions that people decided as they do; "
    return f"{agreement}decided no pair in both orders or forms, so that its consistency is not known"


def _describe_share(share: Estimate) -> str:
    """Format a share as a percentage with its interval."""
    return f"{format_share(share.value)} ({describe_interval(share, 0, 'percent')})"


def _build_correlation_table(logic: LogicReport) -> Table | None:
    """Build the table of correlations between the figures; None without correlations."""
    caption = (
        "Pearson’s r between figures, over judges or wordings (figures 4 and 5 of Aligning with Logic). 95% CIs and p "
        "generalize to other judges or wordings. p is from a permutation test and needs 5 of them; a CI needs 8. "
        "Judges of one model family are averaged first; n then counts families."
    )
    columns = [
        Column("Over", "name"),
        *make_columns("text", {"x": "Figure", "y": "Correlated with", "averaged": "Averaged"}),
        Column("r", "estimate"),
        Column("p", "number", "r.p_value", style="p_value"),
    ]
    derived: DerivedCells[LogicCorrelationRow] = {"averaged": lambda row: AVERAGING_LABELS[row.averaged]}
    table = tabulate("logic-correlations", "Correlations between the figures", caption, logic.links, columns, derived)
    return table if table.rows else None


def build_contradictions_section(rows: Sequence[ContradictionRow]) -> Section:
    """Build the subsection: first the sets of preferences with contradictions, then a list of those without."""
    contradictory = [row for row in rows if row.reversals]
    consistent = [[*_describe_contradiction(row), "."] for row in rows if not row.reversals]
    blocks: list[Block] = [
        Paragraph(
            "The answered orders of each pair are averaged. Shown are the shortest cycles, and the smallest set of "
            "preferences found whose reversal removes all cycles."
        ),
        *(_build_cycles(row, is_open=i < MAX_OPEN_ROWS) for i, row in enumerate(contradictory)),
    ]
    if consistent:
        summary = f"{pluralize(len(consistent), 'set')} of preferences without a contradiction"
        blocks.append(Disclosure(summary, [List(consistent)], is_open=not contradictory))
    return Section("logic-contradictions", "Contradictory preferences", blocks)


def _describe_contradiction(row: ContradictionRow) -> list[Inline]:
    """Describe how many of one judge's preferences on one set must be reversed to remove all cycles."""
    items = pluralize(row.items, "item")
    preferences = f"{pluralize(row.decided, 'preference')} among {items}"
    if not row.decided:
        text = f"no preference among {items} once both orders are averaged, so no contradiction"
    elif not row.reversals:
        text = f"no contradiction: {preferences}, none of them in a cycle"
    else:
        reversals = f"at least {row.reversals}" if row.exact else f"between {row.least} and {row.reversals}"
        text = f"contradictions: of {preferences}, {reversals} must be reversed to remove all cycles"
    return [Name(row.judge), ", ", Name(row.context), f": {text}"]


def _build_cycles(row: ContradictionRow, *, is_open: bool) -> Disclosure:
    """Build one set of preferences with its shortest cycles and the preferences to reverse."""
    unlisted = f" ({format_count(row.not_listed)} more are not listed)" if row.not_listed else ""
    blocks: list[Block] = [
        Paragraph(f"Cycles: each item is preferred to the next, and the last to the first{unlisted}.", "note"),
        List([join_names(cycle.items, " › ") for cycle in row.cycles]),
        Paragraph("Preferences to reverse:", "note"),
        List([join_names((arc.winner, arc.loser), " › ") for arc in row.arcs]),
    ]
    return Disclosure(_describe_contradiction(row), blocks, is_open=is_open)
