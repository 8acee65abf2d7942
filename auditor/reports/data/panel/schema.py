"""Schema of the panel section: judges, agreement, biases, copies, voting rules and tests of the judges."""

from __future__ import annotations

from typing import Annotated, Literal

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested
from auditor.metrics.judges.accuracy import JudgeDifference
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.reports.data.report_model import (
    CORRELATION_COLUMNS,
    FlatRow,
    JudgeName,
    ReportModel,
    RowShareTest,
    RowTest,
    p_column,
)
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
    one vote; null where the configured rule is Dawid and Skene's model, and of an adaptive panel, which does not ask
    all of its judges. Stored outcomes are not changed."""


class JudgeRow(ReportModel):
    """One judge. Differences are between shares of VALID: 0.1 is ten percentage points.

    Each says in `evidence` whether it may be called a bias. P-values are adjusted for all judges and differences.
    """

    judge: JudgeName
    family: Annotated[str | None, Column("Family", table="judges")]
    assigned: Annotated[int, Column("Requested", table="judges")]
    given: Annotated[int, Column("Usable", table="judges")]
    losses: dict[str, int]
    shortened: Annotated[int, Column("Shortened", table="judges")]
    """Justifications that were cut, since they were still too long when asked for again."""
    valid: Annotated[ShareEstimate, Column("Share of VALID", table="judges")]
    """Share of VALID among its verdicts."""
    confidence: Annotated[Estimate, Column("Confidence", table="judges")]
    """Mean stated confidence, in [0, 1]."""
    agreement: Annotated[ShareEstimate, Column("Agrees with the majority", table="judge-agreement")]
    """Share of traces on which it agrees with more than half of the other judges."""
    alpha_without: Annotated[Estimate, Column("Alpha without it", table="judge-agreement")]
    """Krippendorff's alpha of the other judges. It shares verdicts with the panel's alpha, so its interval does not say
    whether the two differ: see `alpha_change`."""
    alpha_change: Annotated[
        Tested,
        Column("Change of alpha", style="signed", table="judge-agreement"),
        p_column(table="judge-agreement"),
    ]
    """`alpha_without` minus the panel's alpha, with the interval of this difference; above 0 the other judges agree
    better without this judge. If the p-value adjusted for all judges is then below 0.05, the judge disagrees more with
    the others than they do with each other."""
    padding: Annotated[
        JudgeDifference, Column("Difference", style="signed", table="padding"), p_column(table="padding")
    ]
    """Its share of VALID on padded traces minus that on the same traces as written. The padding has no content, so a
    difference is caused by the length; missing without `auditor experiment bias`."""
    leniency: JudgeDifference
    """How much more often it says VALID than the truth of the same answers; in a survey, whose traces have no known
    truth, than the median judge on the same traces. The latter is a bias if more than half of the judges have none."""
    verbosity: JudgeDifference
    """Its share of VALID on the longer half of each author's traces minus that on the shorter half. An association:
    better traces may be longer."""
    verbosity_against_truth: JudgeDifference
    """The same difference minus that of the known truth of the same answers; missing in a survey."""
    own_family: JudgeDifference
    """Leniency towards its own model family minus that towards others, compared with judges of other families on the
    same traces. An association: the families' traces differ in other ways too."""
    order: JudgeDifference
    """Leniency in the later half of its verdicts minus that in the earlier half, compared with the median judge. An
    association: the order of the verdicts is not drawn at random."""


class VotingRuleRow(ReportModel):
    """Outcomes of the traces under one voting rule."""

    rule: Annotated[str, Column("Rule", "name")]
    valid: Annotated[int, Column("VALID")]
    """Traces upheld as VALID."""
    invalid: Annotated[int, Column("INVALID")]
    open: Annotated[int, Column("Open")]
    """Other traces with a verdict: they have no majority, and are left for a person."""
    differs: Annotated[ShareEstimate, Column("Contradicts the majority")]
    """Among traces that both rules settle, the share decided opposite to the plain majority; missing for the
    majority itself."""
    weights: dict[str, float]
    """Weights of the judges, 1 on average, or for `copies split` each judge's share of its group's vote; for
    `dawid-skene` their estimated accuracy; empty for equal votes."""
    reason: str | None = None
    """Why the rule could not be applied."""


class PeerAlignmentRow(ReportModel):
    """Whether models that judges find VALID agree more with people: a correlation over models, by method."""

    method: Annotated[str, Column("Method", "name")]
    r: Annotated[ModelCorrelation, *CORRELATION_COLUMNS]
    """Correlation of peer agreement with r against people."""


class BlindingCheckRow(FlatRow):
    """How often one judge guesses a masked attribute, against chance."""

    judge: JudgeName
    what: Annotated[str, Column("Guessed attribute")]
    """`country`, `topic` or `author`."""
    hits: Annotated[RowShareTest, Column("Correct guesses")]
    """Its p-value is of hits by chance, below 0.05 if the interval excludes chance."""
    chance: Annotated[float, Column("Chance"), p_column(path="hits.adjusted_p_value")]
    """Expected share of hits by random guessing from the same lists of options."""


class RestatementShiftRow(FlatRow):
    """Effect of restating traces in neutral words on one judge's verdicts."""

    judge: JudgeName
    valid: Annotated[
        ShareEstimate,
        Column("VALID as written", table="restatement"),
        Column("VALID before", table="judge-drift"),
    ]
    """Share of VALID on the traces as they were."""
    restated: Annotated[
        ShareEstimate,
        Column("VALID restated", table="restatement"),
        Column("VALID after", table="judge-drift"),
    ]
    """Share of VALID on the same traces restated."""
    changed: Annotated[ShareEstimate, Column("Verdicts changed")]
    """Share of traces on which the verdict changed."""
    shift: Annotated[RowTest, Column("Difference", style="signed"), p_column()]
    """`restated` minus `valid`, paired by trace."""


class FaultDetectionRow(FlatRow):
    """How often one judge detects an injected fault, and how often it objects to the same traces without it."""

    judge: JudgeName
    fault: Annotated[str, Column("Fault")]
    detected: Annotated[ShareEstimate, Column("Detected")]
    """Share of traces with the fault that it calls INVALID."""
    false_alarms: Annotated[ShareEstimate, Column("False alarms")]
    """Share of the same traces without the injected fault that it calls INVALID; they may have other faults."""
    difference: Annotated[RowTest, Column("Difference", style="signed", emphasis=True), p_column()]
    """Detected minus false alarms: 0 means that the judge does not detect the fault."""


class ObedienceRow(FlatRow):
    """How often one judge obeys an instruction that is planted in a trace and demands another answer than its own."""

    judge: JudgeName
    verdicts: Annotated[ShareEstimate, Column("Obeys", emphasis=True)]
    """Share of verdicts as demanded, of traces that it judged otherwise without the instruction."""
    valid: Annotated[ShareEstimate, Column("Demands for VALID")]
    """The same for instructions that demand VALID."""
    invalid: Annotated[ShareEstimate, Column("Demands for INVALID")]
    """The same for instructions that demand INVALID."""
    preferences: Annotated[ShareEstimate, Column("Demands for preference")]
    """Share of comparisons with the preference that one trace demands, of those with the other one without it."""


class PositionBiasRow(FlatRow):
    """Preference of one judge for the side shown first."""

    judge: JudgeName
    first: Annotated[RowShareTest, Column("Prefers the first")]
    """Share of answers for the side shown first, with each side first equally often; 0.5 is no bias. Its p-value is of
    a share of 0.5, below 0.05 if the interval excludes 0.5."""
    stable: Annotated[ShareEstimate, Column("Same in both orders"), p_column(path="first.adjusted_p_value")]
    """Share of pairs in which it prefers the same side in both orders."""


class SelfReviewRow(ReportModel):
    """Verdicts of a judge on its own traces. They are not votes: no outcome depends on them."""

    judge: JudgeName
    valid: Annotated[ShareEstimate, Column("VALID for own traces")]
    """Share of VALID on its own traces."""
    preference: Annotated[JudgeDifference, Column("Self-preference", style="signed"), p_column()]
    """Leniency towards itself minus that towards others, compared with the other judges on the same traces. An
    association: its own traces differ in other ways too. The p-value is adjusted for the judges of this table."""


class PanelReport(ReportModel):
    """The judges, their agreement beyond chance, voting rules and tests."""

    judges: list[JudgeRow]
    fleiss_kappa: Estimate
    """Over traces with at least two verdicts; n counts traces."""
    verdicts: int
    """Number of verdicts behind kappa."""
    repeated: int
    """Verdicts that repeat another judge's answer, since both are the same model with the same request."""
    single: int
    """Traces with a single verdict, which are left out of agreement."""
    unjudged: int = 0
    """Traces on which every judge failed; no voting rule counts them, and they are left for a person."""
    krippendorff_alpha: Estimate
    gwet_ac1: Estimate
    prevalence: ShareEstimate
    """Share of VALID among the verdicts behind agreement."""
    votes: list[VotingRuleRow]
    """Voting rules, the plain majority first. Copies share one vote in the others, but for configured
    weights."""
    copying: CopyingReport
    asked: int
    """Number of verdicts that were asked for."""
    seats: int
    """Number of verdicts if every assigned judge had been asked; more than `asked` for adaptive panels."""
    adaptive: bool
    judges_per_trace: int | None
    """Maximum number of judges of a trace; null if all judges that may judge its author are asked."""
    peer_alignment: list[PeerAlignmentRow]
    guesses: list[BlindingCheckRow]
    """Empty where judges were not asked to guess."""
    rewriting: list[RestatementShiftRow]
    """Empty where traces were not restated."""
    faults: list[FaultDetectionRow]
    """Empty where no faults were injected."""
    obedience: list[ObedienceRow]
    """Empty where no instructions were planted."""
    positions: list[PositionBiasRow]
    own_traces: list[SelfReviewRow]
    certificate: list[str]
    """Sentences on what the panel's verdicts can be relied on for."""
