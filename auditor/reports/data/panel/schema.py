"""Schema of the panel section: judges, agreement, biases, voting rules and tests of the judges."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.judge_difference import JudgeDifference
from auditor.metrics.model_correlation import ModelCorrelation
from auditor.reports.data.panel.copying_schema import CopyingReport
from auditor.reports.data.report_model import ReportModel


class JudgeRow(ReportModel):
    """One judge. Differences are between shares of VALID: 0.1 is ten percentage points.

    Each says in `evidence` whether it may be called a bias. P-values are adjusted for all judges and differences.
    """

    judge: str
    family: str | None
    assigned: int
    given: int
    losses: dict[str, int]
    shortened: int
    """Justifications that were cut, since they were still too long when asked for again."""
    valid: ShareEstimate
    """Share of VALID among its verdicts."""
    confidence: Estimate
    """Mean stated confidence, in [0, 1]."""
    agreement: ShareEstimate
    """Share of traces on which it agrees with more than half of the other judges."""
    alpha_without: Estimate
    """Krippendorff's alpha of the other judges. It shares verdicts with the panel's alpha, so its interval does not say
    whether the two differ: see `alpha_change`."""
    alpha_change: Estimate
    """`alpha_without` minus the panel's alpha, with the interval of this difference; above 0 the other judges agree
    better without this judge."""
    alpha_change_p_holm: float | None
    """p-value of no such difference, after Holm's correction for the number of judges; below 0.05 and with a positive
    `alpha_change` the judge disagrees more with the others than they do with each other."""
    padding: JudgeDifference
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

    rule: str
    valid: int
    """Traces upheld as VALID."""
    invalid: int
    open: int
    """Traces without a majority, left for a person."""
    differs: ShareEstimate
    """Among traces that both rules settle, the share decided opposite to the plain majority; missing for the
    majority itself."""
    weights: dict[str, float]
    """Weights of the judges, 1 on average, or for `copies split` each judge's share of its group's vote; for
    `dawid-skene` their estimated accuracy; empty for equal votes."""
    reason: str | None = None
    """Why the rule could not be applied."""


class PeerAlignmentRow(ReportModel):
    """Whether models that peers find VALID agree more with people: a correlation over models, by method."""

    method: str
    r: ModelCorrelation
    """Correlation of peer agreement with r against people."""


class BlindingCheckRow(ReportModel):
    """How often one judge guesses a masked attribute, against chance."""

    judge: str
    what: str
    """`country`, `topic` or `author`."""
    hits: ShareEstimate
    chance: float
    """Expected share of hits by random guessing from the same lists of options."""
    p_value: float | None = None
    """Two-sided, of hits by chance, below 0.05 if the interval excludes chance; null without an interval."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all judges and attributes (Holm); null without a test."""


class RestatementShiftRow(ReportModel):
    """Effect of restating traces in neutral words on one judge's verdicts."""

    judge: str
    valid: ShareEstimate
    """Share of VALID on the traces as they were."""
    restated: ShareEstimate
    """Share of VALID on the same traces restated."""
    shift: Estimate
    """`restated` minus `valid`, paired by trace."""
    changed: ShareEstimate
    """Share of traces on which the verdict changed."""
    p_value: float | None = None
    """Two-sided, of no shift; null without an interval."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all judges (Holm); null without a test."""


class FaultDetectionRow(ReportModel):
    """How often one judge detects an injected fault, and how often it objects to the same traces without it."""

    judge: str
    fault: str
    detected: ShareEstimate
    """Share of traces with the fault that it calls INVALID."""
    false_alarms: ShareEstimate
    """Share of the same traces without the injected fault that it calls INVALID; they may have other faults."""
    difference: Estimate
    """Detected minus false alarms: 0 means that the judge does not detect the fault."""
    p_value: float | None = None
    """Two-sided, of a difference of 0; null without an interval."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all judges and faults (Holm); null without a test."""


class PositionBiasRow(ReportModel):
    """Preference of one judge for the side shown first."""

    judge: str
    first: ShareEstimate
    """Share of answers for the side shown first, with each side first equally often; 0.5 is no bias."""
    stable: ShareEstimate
    """Share of pairs in which it prefers the same side in both orders."""
    p_value: float | None = None
    """Two-sided, of a share of 0.5 in `first`, below 0.05 if the interval excludes 0.5; null without an interval."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all judges (Holm); null without a test."""


class SelfReviewRow(ReportModel):
    """Verdicts of a judge on its own traces. They are not votes: no outcome depends on them."""

    judge: str
    valid: ShareEstimate
    """Share of VALID on its own traces."""
    preference: JudgeDifference
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
    krippendorff_alpha: Estimate
    gwet_ac1: Estimate
    prevalence: ShareEstimate
    """Share of VALID among the verdicts behind agreement."""
    votes: list[VotingRuleRow]
    """Voting rules, the plain majority first. Judges that copy share one vote in the others, but for configured
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
    positions: list[PositionBiasRow]
    own_traces: list[SelfReviewRow]
    certificate: list[str]
    """Sentences on what the panel's verdicts can be relied on for."""
