"""Schema of the section on logic: consistency of each judge's comparisons, and contradictions among them."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_model import ReportModel


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicEstimate(Estimate):
    """An estimate with the number of cases `lost`: asked, but without a usable answer."""

    lost: int
    over: str
    """Units that the interval is over."""


class TransitivityRow(ReportModel):
    """Share of the subsets of `k` items whose preferences have no cycle (s_tran of Aligning with Logic)."""

    k: int
    calibrated: bool
    """Whether the answers to both orders were averaged first."""
    share: LogicEstimate
    """n counts subsets in which every pair has an answer; lost counts pairs without one."""
    decided: int
    """Pairs with a preference. The other answered pairs are ties, which cannot close a cycle."""
    margin: float
    """Half-width of the 95% interval due to sampling subsets; 0 where all subsets were checked."""


class LogicRow(ReportModel):
    """One judge over all item sets, in one wording of the question or in all."""

    judge: str
    wording: int | None
    """From 0; null for all wordings together."""
    questions: int
    ok: int
    losses: dict[str, int]
    """Questions without a valid answer, by outcome."""
    ties: int
    first: Estimate
    """Of pairs answered in both orders, the share of the decided answers that name the item shown first; 1/2 without
    position bias."""
    transitivity: list[TransitivityRow]
    commutativity: LogicEstimate
    """Share of pairs whose decision is the same when the order shown is swapped."""
    negation: LogicEstimate
    """Share of questions whose negated form is answered with the other item."""
    negation_calibrated: LogicEstimate
    self_agreement: LogicEstimate
    """Mean share of repeated answers that agree with the most frequent one."""
    human_agreement: LogicEstimate
    """Among pairs that people decide, the share of questions that the judge answers as they do."""
    human_agreement_calibrated: LogicEstimate


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

    judge: str
    questions: int
    flipped: int
    """Answers to the standard question that the ranking reverses."""
    human_agreement: LogicEstimate
    """Agreement of the original answers with people, on the questions that people, answers and ranking all decide."""
    repaired_agreement: LogicEstimate
    """Agreement of the answers implied by the ranking, on the same questions."""
    gain: Estimate
    """`repaired_agreement` minus `human_agreement`, paired by question."""
    left_out: int
    """Questions that people decide and the judge answered, but with a tie in its answer or in the ranking."""


class JudgeConsistencyRow(ReportModel):
    """Consistency of a panel judge's own comparisons, each figure in [0, 1]; null where it was not measured."""

    judge: str
    transitivity: float | None
    commutativity: float | None
    negation: float | None
    self_agreement: float | None
    value: float | None
    """Mean of the figures that exist for every judge with enough answers."""
    weight: float | None
    """Weight of its vote; null where votes are not weighted by consistency."""
    benched: bool
    reason: str | None
    """Why these figures give its vote the weight 0; null where they do not."""


class LogicCorrelationRow(ReportModel):
    """A correlation between two figures over judges or wordings, as in figures 4 and 5 of the paper."""

    over: str
    x: str
    y: str
    r: Estimate


class RankingRow(ReportModel):
    """One ranking method applied to one judge's recorded answers; means over item sets."""

    judge: str
    method: str
    calls: float
    """Questions asked for one set."""
    failed: float
    """Questions without an answer, of `calls`."""
    all_pairs: Estimate
    """Spearman's rho against the ranking from all pairs in both orders; n counts sets."""
    people: Estimate
    """Spearman's rho against people's scores of the items; n counts sets."""


class LogicReport(ReportModel):
    """Logical consistency of judges' preferences."""

    criterion: list[str]
    """Criteria that items were compared by."""
    sets: int
    items: int
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
