"""Schema of the conflicts of a report."""

from __future__ import annotations

from typing import Annotated, Literal

from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.document import Column


class ConflictSideReport(ReportModel):
    """One side of a conflict."""

    model: str
    score: float | None
    """Null for answers that are not scores."""
    answer: str | None = None
    """Answer to an item of a task; null for a survey."""
    votes: int
    reasoning: str | None
    """Reasoning of the sample whose score is nearest to this side's score; null where none is stored."""
    shortened: bool = False


class ListedConflictReport(ReportModel):
    """One conflict between two sides, in full."""

    id: str
    country: str
    topic: str
    kind: str
    state: str
    survey: float | None
    truth: str | None = None
    """The right answer to an item of a task, where it is known."""
    difference: float | None
    """Score of the left side minus that of the right; null where the sides have no scores."""
    left: ConflictSideReport
    right: ConflictSideReport
    seats: int
    winner: str | None
    """The model whose side the judges or people chose; null if neither."""
    decision: str | None
    """The decision of human reviewers; null if there is none."""
    raters: list[str]
    notes: list[str]
    within_noise: bool | None
    """Whether the difference is no larger than the sampling noise; null where that is not known."""


class ConflictKindRow(ReportModel):
    """Number of conflicts of one kind, by state."""

    kind: str
    total: int
    states: dict[str, int]


class ConflictPairRow(ReportModel):
    """Number of conflicts between two models, by kind."""

    left: str
    right: str
    total: int
    kinds: dict[str, int]


class VotingReport(ReportModel):
    """Conflicts settled by the configured voting rule, compared with those settled by a strict majority. Decisions of
    human reviewers are not counted."""

    rule: Literal["majority", "weighted", "dawid_skene"]
    weights: dict[str, float]
    """Weight of each judge's vote; empty where all votes count equally."""
    by_majority: int | None
    """Conflicts settled by a strict majority of the assigned judges; null where an adaptive panel stopped early by
    weight, so that not all judges have voted."""
    by_weight: int | None
    """Conflicts settled by the configured rule; null if that rule is the majority."""
    same_side: int | None
    """Conflicts that both rules settle, for the same side."""
    other_side: int | None
    """Conflicts that both rules settle, for opposite sides."""


class MethodConflictRow(ReportModel):
    """Conflicts between the two methods of scoring one model."""

    model: ModelName
    first: Annotated[str, Column("First method")]
    second: Annotated[str, Column("Second method")]
    conflicts: Annotated[ShareEstimate, Column("Cells in conflict", digits=0, style="percent")]
    """Share of the cells with both scores in which the scores differ by at least the threshold."""
    opposite: Annotated[int, Column("Opposite signs")]
    """Conflicts with the scores on opposite sides of zero (binary); the others differ in strength (gradient)."""
    difference: Estimate
    """Mean over cells of the first score minus the second."""
    largest: list[tuple[str, str, float, float]]
    """Country, topic and both scores of the conflicts with the largest difference."""


class ConflictCellsReport(ReportModel):
    """Conflicts between models counted by cell. The pair with the largest difference stands for its cell."""

    cells: int
    """Cells with a conflict."""
    compared: int
    """Cells with scores of at least two models."""
    kinds: dict[str, int]
    """Cells by the kind of the pair; they add up to `cells`."""
    kind_shares: dict[str, float]
    """`kinds` as shares of `cells`; empty without conflicts."""
    settled: int
    """Cells in which the judges settled the conflict of the pair."""
    settled_share: float | None
    """`settled` as a share of `cells`; null without conflicts."""
    pairs: int
    """Conflicts, each of one pair of models in one cell."""
    pair_kind_shares: dict[str, float]
    """Kinds as shares of `pairs`; empty without conflicts."""


class ConflictsReport(ReportModel):
    """Conflicts: cells on which two models differ by at least the threshold."""

    threshold: float | Literal["auto"] | None
    """Configured threshold; `auto` is the third quartile of the audit's differences; null where there is no config."""
    third_quartile: Estimate
    """Third quartile of all absolute differences between two models on a cell, which `auto` uses; n counts
    differences."""
    settled: ShareEstimate
    """Share of the score conflicts that the judges settle."""
    within_noise: ShareEstimate
    """Share of score conflicts within the sampling noise, of those for which that is known."""
    between_methods: list[MethodConflictRow]
    """Conflicts between the two methods of one model; empty where only one method was used."""
    looked_for: bool = True
    """Whether the audit looked for conflicts. One of imported scores did not: its counts are 0 for no other reason."""
    total: int
    """Conflicts of all kinds. Judges vote only on score conflicts, which `settled` counts."""
    states: dict[str, int]
    by_cell: ConflictCellsReport | None = None
    """Null where there is no config, as for imported scores, and for a task."""
    voting: VotingReport | None
    """Null where there is no config, as for imported scores."""
    kinds: list[ConflictKindRow]
    pairs: list[ConflictPairRow]
    largest: list[ListedConflictReport]
    """Conflicts with the largest differences, in descending order."""
    not_listed: int
