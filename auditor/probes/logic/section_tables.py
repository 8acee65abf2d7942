"""The tables of judges' answers, shares and transitivity, with the definitions of the papers beside the pooled ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.metrics.logic import LogicEstimate
from auditor.probes.logic.figures.schema import LogicReport, LogicRow, TransitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, Column, CountShare, Paragraph, Table
from auditor.reports.sections.phrasing import list_counts
from auditor.reports.sections.summary_columns import build_summary_columns
from auditor.reports.sections.tables import DerivedCells, make_columns, tabulate

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
