"""Schema of the part of the panel section on judges that depend on each other, or copy."""

from __future__ import annotations

from typing import Annotated, Literal

from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.reports.data.report_model import JudgeName, ReportModel
from auditor.reports.document import Column

PairVerdict = Literal["copies", "errors more alike", "cannot be told from verdicts", "independent as far as shown"]
LabelSource = Literal["planted faults", "truth of the task"]


class JudgePairRow(ReportModel):
    """Two judges: whether their errors are more alike than those of other pairs, or all their verdicts are."""

    first: JudgeName
    second: Annotated[str, Column("Other judge", "name")]
    agreement: Annotated[ShareEstimate, Column("Agreement")]
    """Share of equal verdicts on the traces that both have a verdict on."""
    error_correlation: float | None
    """Correlation (phi) of their errors on labelled traces, within topics and within the truth or the kind of fault."""
    excess: Annotated[Estimate, Column("Excess error correlation", style="signed", emphasis=True)]
    """The error correlation in excess of the other pairs': of their median, or of the correlation at these shares of
    errors and the other pairs' median odds ratio, whichever is larger. n counts labelled traces. The 95% interval holds
    for all pairs together."""
    verdict: Annotated[PairVerdict, Column("Finding")]
    """`copies` with equal verdicts on at least 99% of at least 200 traces, which share one vote; else
    `errors more alike` where the interval of the excess is above 0; else `independent as far as shown` where the excess
    has an interval."""
    same_model: Annotated[bool | None, Column("In the configuration", "text", "metadata")]
    """Whether both name the same model; null for imported verdicts."""
    same_family: bool | None
    same_prompt: bool | None
    """Whether both have the same review prompt and the same text before it."""


class CopyingReport(ReportModel):
    """Judges that depend on each other, and the number of independent judges that the panel is worth."""

    label_source: LabelSource | None
    """Where the truth of the labelled traces is known from; null without labelled traces. Decisions of people on
    conflicts do not count: conflicts are not drawn at random."""
    labels: int
    """Number of labelled traces with a verdict."""
    pairs: list[JudgePairRow]
    groups: list[list[str]]
    """Judges that share one vote, since they are connected by copies; groups of one are left out."""
    alike: list[list[str]]
    """Judges that are connected by copies, or by errors that are more alike than those of other pairs."""
    alpha_without_alike: Estimate | None
    """Krippendorff's alpha of the panel with only the first judge of each group in `alike`; null without a group."""
    effective_judges: Estimate
    """Effective number of judges: how many with independent errors are worth as much as the equal votes of these. It is
    n² / 1ᵀR1 for the matrix R of their error correlations."""
    effective_of: list[str]
    """The judges in this number: those with enough errors on labelled traces."""
    traces_settled_by_copies: int
    """Traces whose majority disappears or changes sides if each group has one vote."""
    conflicts_settled_by_copies: int | None
    """Conflicts that the judges settled, and that they would leave open or settle for the other side if each group had
    one vote; null where the configured rule is Dawid and Skene's model. Stored outcomes are not changed."""
