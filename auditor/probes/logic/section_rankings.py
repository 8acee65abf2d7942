"""The subsections on rankings from few comparisons, and on the effect of ranking on a judge's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.metrics.estimate import Estimate
from auditor.metrics.logic import LogicEstimate
from auditor.metrics.ranking_methods import PAIRS_CALIBRATED, PAIRS_GREEDY
from auditor.probes.logic.figures.ranking import MAX_RANKED_ITEMS, MIN_RANKED_ITEMS
from auditor.probes.logic.figures.schema import LogicReport, LogicRow, RankingRepairRow, RankingRow, TransitivityRow
from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.document import Column, Figure, Name, Paragraph, Section, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.tables import tabulate

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
