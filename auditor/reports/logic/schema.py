"""The report's section on logic, as data: how consistent each judge's comparisons are, and where they contradict."""

from __future__ import annotations

from auditor.reports.measurement_schema import Estimate, ReportModel


class LogicEstimate(Estimate):
    """An estimate; `lost` cases were asked about but not answered."""

    lost: int
    over: str
    """What the interval is over."""


class TransitivityRow(ReportModel):
    """Share of the subsets of `k` items whose preferences have no cycle (s_tran of Aligning with Logic)."""

    k: int
    calibrated: bool
    """Whether the answers to both orders were averaged first."""
    share: LogicEstimate
    """n counts subsets of which every pair has an answer; lost counts pairs without one."""
    decided: int
    """Pairs with a preference; ties can close no cycle either."""
    margin: float
    """Half the width of the 95% interval for having looked at drawn subsets only; 0 where all were looked at."""


class LogicRow(ReportModel):
    """One judge, over all sets, in one wording of the question or in all."""

    judge: str
    wording: int | None
    """From 0; null for all wordings together."""
    questions: int
    ok: int
    losses: dict[str, int]
    """Questions without a valid answer, by outcome."""
    ties: int
    first: Estimate
    """Of pairs answered in both orders, the share of the decided answers that name the item shown first; without a bias
    for a place it is 1/2."""
    transitivity: list[TransitivityRow]
    commutativity: LogicEstimate
    """Share of pairs whose decision stays when the order shown is swapped."""
    negation: LogicEstimate
    """Share of questions whose negated form is answered with the other item."""
    negation_calibrated: LogicEstimate
    self_agreement: LogicEstimate
    """Mean share of repeated answers that agree with the most frequent one."""
    human_agreement: LogicEstimate
    """Share of the questions about pairs that people decide which the judge answers as they do."""
    human_agreement_calibrated: LogicEstimate


class CycleRow(ReportModel):
    """Items each preferred to the next, and the last to the first."""

    items: list[str]


class ArcRow(ReportModel):
    """A preference that stands against the others."""

    winner: str
    loser: str


class ContradictionRow(ReportModel):
    """Where one judge's preferences on one set, both orders averaged, contradict each other."""

    judge: str
    context: str
    items: int
    decided: int
    """Pairs with a preference; ties and pairs without an answer have none."""
    reversals: int
    """Preferences to reverse so that no cycle is left; the fewest possible where `exact`."""
    least: int
    """No fewer reversals can do it."""
    exact: bool
    arcs: list[ArcRow]
    """The preferences to reverse."""
    cycles: list[CycleRow]
    """The shortest cycles through an item."""
    not_listed: int
    """Further cycles of that kind."""


class RankingRepairRow(ReportModel):
    """What ranking the items by win-loss rate changes in one judge's answers (REPAIR)."""

    judge: str
    questions: int
    flipped: int
    """Answers to the standard question that the ranking reverses."""
    human_agreement: LogicEstimate
    """Of the answers as given, on the questions that people, answers and ranking all decide."""
    repaired_agreement: LogicEstimate
    """Of what follows from the ranking, on the same questions."""
    gain: Estimate
    """The second less the first, question by question."""
    left_out: int
    """Questions that people decide and the judge answered, but that its answer or the ranking leaves tied."""


class JudgeConsistencyRow(ReportModel):
    """How consistent a judge of the panel is in its own comparisons, in [0, 1]; null where it was not measured."""

    judge: str
    transitivity: float | None
    commutativity: float | None
    negation: float | None
    self_agreement: float | None
    value: float | None
    """Mean of the figures that all judges have which answered enough."""
    weight: float | None
    """Of its vote; null where votes are not weighed by this."""
    benched: bool
    reason: str | None
    """Why its vote would weigh nothing by these figures; null where it would not."""


class LogicCorrelationRow(ReportModel):
    """A correlation between two figures over judges or wordings, as in figures 4 and 5 of the paper."""

    over: str
    x: str
    y: str
    r: Estimate


class RankingRow(ReportModel):
    """One way to rank the items of a set by one judge's recorded answers; means over sets."""

    judge: str
    method: str
    calls: float
    """Questions for a set."""
    failed: float
    """Of these, questions without an answer."""
    all_pairs: Estimate
    """Spearman's rho against the ranking from all pairs in both orders; n counts sets."""
    people: Estimate
    """Spearman's rho against people's scores of the items; n counts sets."""


class LogicReport(ReportModel):
    """Consistency of preferences."""

    criterion: list[str]
    """What items were compared by."""
    sets: int
    items: int
    contexts: list[str]
    judges: list[LogicRow]
    wordings: list[LogicRow]
    """Each wording apart; empty where there is one."""
    contradictions: list[ContradictionRow]
    repairs: list[RankingRepairRow]
    links: list[LogicCorrelationRow]
    ledger: list[JudgeConsistencyRow]
    """The judges of the panel; empty where there is none."""
    rankings: list[RankingRow]
    """PairS and its alternatives, where all pairs were asked in both orders."""
