"""Schema of the section on logic: consistency of each judge's comparisons, and contradictions among them."""

from __future__ import annotations

from typing import Annotated

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import Averaging
from auditor.metrics.logic.consistency import LogicEstimate
from auditor.metrics.logic.transitivity import PartialTransitivity
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.reports.data.report_model import JudgeName, ReportModel
from auditor.reports.document import Column


class TransitivityRow(ReportModel):
    """Share of the subsets of `k` items whose preferences have no cycle (s_tran of Aligning with Logic)."""

    k: int
    calibrated: bool
    """Whether the answers to both orders were averaged first."""
    share: LogicEstimate
    """Of the subsets in which every pair is decided, pooled over sets."""
    instances: LogicEstimate
    """As `share`, as the mean over sets."""
    partial: PartialTransitivity
    """Of all subsets, by the comparisons there are, pooled over sets. Read it with `pairs_present`, since a missing
    comparison cannot be part of a cycle."""
    partial_instances: PartialTransitivity
    """As `partial`, as the mean over sets."""
    decided: int
    """Pairs with a preference."""
    tied: int
    """Answered pairs without a preference."""
    unanswered: int
    """Pairs that were asked about, without an answer."""
    margin: float
    """Half-width of the 95% interval of `share` over other draws of subsets, and of the order of each pair; 0 where all
    subsets were checked and no order matters."""
    margin_instances: float
    """The same of `instances`."""
    all_subsets: bool
    """Whether all subsets of each set were checked, not a random sample."""


class InstanceMeans(ReportModel):
    """The shares of a `LogicRow` as means over sets, as Aligning with Logic reports them."""

    commutativity: LogicEstimate
    position_consistency: LogicEstimate
    negation: LogicEstimate
    negation_calibrated: LogicEstimate
    self_agreement: LogicEstimate
    human_agreement: LogicEstimate
    human_agreement_calibrated: LogicEstimate


class LogicRow(ReportModel):
    """One judge over all item sets, in one wording of the question or in all.

    A tie is neither agreement nor violation: cases with a tie are left out of all shares but the position consistency,
    and counted.
    """

    judge: JudgeName
    wording: int | None
    """From 0; null for all wordings together."""
    questions: Annotated[int, Column("Questions", table="logic-answers")]
    ok: Annotated[
        int,
        Column("Usable answers", table="logic-answers"),
        Column("Usable share", "share", "usable_share", table="logic-answers"),
    ]
    losses: Annotated[dict[str, int], Column("Excluded", key="excluded", table="logic-answers")]
    """Questions without a valid answer, by outcome."""
    ties: Annotated[int, Column("Ties", table="logic-answers")]
    first: Annotated[LogicEstimate, Column("Names the first", emphasis=True, table="logic-answers")]
    """Of pairs answered in both orders, the share of the decided answers that name the item shown first; 1/2 without
    position bias."""
    transitivity: list[TransitivityRow]
    commutativity: Annotated[LogicEstimate, Column("Commutativity", table="logic-wordings")]
    """Share of pairs whose decision is the same when the order shown is swapped, of those decided in both orders."""
    position_consistency: Annotated[LogicEstimate, Column("Position consistency", table="logic-wordings")]
    """Share of pairs whose answer is the same when the order shown is swapped, of those answered in both orders. A tie
    is an answer: two ties are the same, and a tie and a preference are not."""
    negation: Annotated[LogicEstimate, Column("Negation", table="logic-wordings")]
    """Share of questions whose negated form is answered with the other item, of those decided in both forms."""
    negation_calibrated: Annotated[LogicEstimate, Column("Negation, calibrated", table="logic-wordings")]
    self_agreement: Annotated[LogicEstimate, Column("Self-agreement", table="logic-wordings")]
    """Mean share of repeated decisions that agree with the most frequent one."""
    human_agreement: Annotated[LogicEstimate, Column("Agreement with people", table="logic-wordings")]
    """Among pairs that people and the judge decide, the share of questions that the judge answers as they do."""
    human_agreement_calibrated: Annotated[
        LogicEstimate, Column("Agreement with people, calibrated", table="logic-wordings")
    ]
    instances: InstanceMeans
    """The seven shares above, which are pooled over sets, as means over sets."""


class CycleRow(ReportModel):
    """A cycle: each item is preferred to the next, and the last to the first."""

    items: list[str]


class ArcRow(ReportModel):
    """A preference that must be reversed to remove all cycles."""

    winner: str
    loser: str


class ContradictionRow(ReportModel):
    """Contradictions among one judge's preferences on one item set, with both orders averaged."""

    judge: str
    context: str
    items: int
    decided: int
    """Pairs with a preference; ties and pairs without an answer have none."""
    reversals: int
    """Number of preferences to reverse so that no cycle is left; the smallest possible where `exact`."""
    least: int
    """Lower bound of the number of reversals."""
    exact: bool
    arcs: list[ArcRow]
    """The preferences to reverse."""
    cycles: list[CycleRow]
    """Shortest cycles through an item."""
    not_listed: int
    """Shortest cycles that are not listed."""


class RankingRepairRow(ReportModel):
    """Effect of ranking the items by win-loss rate (REPAIR) on one judge's answers."""

    judge: JudgeName
    questions: Annotated[int, Column("Answers")]
    flipped: Annotated[int, Column("Reversed")]
    """Answers to the standard question that the ranking reverses."""
    human_agreement: Annotated[LogicEstimate, Column("Agreement before")]
    """Agreement of the original answers with people, on the questions that people, answers and ranking all decide."""
    repaired_agreement: Annotated[LogicEstimate, Column("Agreement after")]
    """Agreement of the answers implied by the ranking, on the same questions."""
    gain: Annotated[Estimate, Column("Change", style="signed", emphasis=True)]
    """`repaired_agreement` minus `human_agreement` on the same questions."""
    left_out: Annotated[int, Column("Tied")]
    """Questions that people decide and the judge answered, but with a tie in its answer or in the ranking."""


class JudgeConsistencyRow(ReportModel):
    """Consistency of a panel judge's own comparisons, each figure in [0, 1]; null where it was not measured."""

    judge: JudgeName
    transitivity: Annotated[float | None, Column("Transitivity")]
    commutativity: Annotated[float | None, Column("Commutativity")]
    negation: Annotated[float | None, Column("Negation")]
    self_agreement: Annotated[float | None, Column("Self-agreement")]
    value: Annotated[float | None, Column("Mean")]
    """Mean of the figures that at least half of the judges have; null for a judge without a vote."""
    above_chance: Annotated[float | None, Column("Above chance", emphasis=True)]
    """Mean of these figures above chance, from 0 for answers that do not depend on the items to 1; null for a judge
    without a vote."""
    decided_share: Annotated[float | None, Column("Decided", style="percent")]
    """Share of its answers that are not ties, of the form of the question with more ties; null without an answer."""
    side_share: Annotated[float | None, Column("Same side", style="percent")]
    """Share of its decisions for the side, first or second, that it names more often; null without a decision."""
    weight: Annotated[float | None, Column("Weight")]
    """Weight of its vote; null where votes are not weighted by consistency."""
    benched: bool
    reason: Annotated[str | None, Column("Reason for no vote")]
    """Why these figures give its vote the weight 0; null where they do not."""


class LogicCorrelationRow(ReportModel):
    """A correlation between two figures over judges or wordings, as in figures 4 and 5 of the paper."""

    over: str
    averaged: Averaging
    """Whether both figures are means over sets (`instances`), as in the paper, or pooled over their cases."""
    x: str
    y: str
    r: ModelCorrelation


class RankingRow(ReportModel):
    """One ranking method applied to one judge's recorded answers; means over item sets."""

    judge: JudgeName
    method: Annotated[str, Column("Ranking")]
    runs: Annotated[int, Column("Orders or samples")]
    """Initial orders of a merge sort, or draws of pairs, in each set; figures are means over them. 1 for all pairs."""
    calls: Annotated[float, Column("Calls per set", digits=1)]
    """Questions asked for one set."""
    failed: Annotated[float, Column("Unanswered calls", digits=1)]
    """Questions without an answer, of `calls`."""
    all_pairs: Annotated[Estimate, Column("ρ with all pairs")]
    """Spearman's rho against the ranking from all pairs in both orders; n counts sets."""
    people: Annotated[Estimate, Column("ρ with people", emphasis=True)]
    """Spearman's rho against people's scores of the items; n counts sets."""


class LogicReport(ReportModel):
    """Logical consistency of judges' preferences."""

    criterion: list[str]
    """Criteria that items were compared by."""
    sets: int
    max_sets: int | None
    """Most sets that were drawn at random from those that there were (`probes.logic.sets`); null without a maximum."""
    items: int
    labelled_pairs: int
    """Pairs of items with a label by people, imported or from `probes.logic.people`; it counts instead of the items'
    scores."""
    contexts: list[str]
    judges: list[LogicRow]
    wordings: list[LogicRow]
    """One row for each judge and wording; empty with a single wording."""
    contradictions: list[ContradictionRow]
    repairs: list[RankingRepairRow]
    links: list[LogicCorrelationRow]
    ledger: list[JudgeConsistencyRow]
    """Judges of the panel; empty without a panel."""
    rankings: list[RankingRow]
    """PairS and other ranking methods, where all pairs were asked in both orders."""
