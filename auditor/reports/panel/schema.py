"""The panel in a report: its judges, how far they agree, what they lean to, and what experiments on them found."""

from __future__ import annotations

from auditor.reports.measurement_schema import Estimate, ReportModel


class JudgeRow(ReportModel):
    """One judge. Leanings are differences of shares of VALID, so 0 is none and 0.1 is ten points."""

    judge: str
    family: str | None
    assigned: int
    given: int
    losses: dict[str, int]
    shortened: int
    """Justifications that stayed too long when asked for once more, and were cut."""
    valid: Estimate
    """Share of its verdicts that say VALID."""
    confidence: Estimate
    """How sure it says it is, on average, in [0, 1]."""
    agreement: Estimate
    """Share of traces on which it says what more than half of the others say."""
    alpha_without: Estimate
    """Krippendorff's alpha of the others: a rise over that of all names a judge who stands apart."""
    leniency: Estimate
    """Its verdict less the mean of the others' on the same trace."""
    verbosity: Estimate
    """Its share of VALID on the longer half of each author's traces less that on the shorter half."""
    own_family: Estimate
    """How much milder it is with its own family than with others, beside judges of other families."""
    order: Estimate
    """How much milder it is in the later half of its verdicts than in the earlier, beside the others."""


class VotingRuleRow(ReportModel):
    """What one way of counting votes makes of the traces."""

    rule: str
    valid: int
    """Traces upheld as VALID."""
    invalid: int
    open: int
    """Traces on which nothing holds a majority; for a person."""
    differs: Estimate
    """Share of the traces that both settle on which it says the opposite of the plain majority."""
    weights: dict[str, float]
    """Of the judges, 1 on average; for `dawid-skene` its estimate of how often each is right; empty for equal votes."""
    reason: str | None = None
    """Why there is nothing."""


class PeerAlignmentRow(ReportModel):
    """Whether models that peers find VALID agree more with people: a correlation over models, by method."""

    method: str
    r: Estimate
    """Of peer agreement with r against people; n counts models."""


class BlindingCheckRow(ReportModel):
    """How often one judge guesses what blinding hides, against chance."""

    judge: str
    what: str
    """`country`, `topic` or `author`."""
    hits: Estimate
    chance: float
    """What guessing at random would give, over the same lists."""


class RestatementShiftRow(ReportModel):
    """What restating traces in neutral words does to one judge's verdicts."""

    judge: str
    valid: Estimate
    """Share of VALID on the traces as they were."""
    restated: Estimate
    """Share of VALID on the same traces restated."""
    shift: Estimate
    """Second less first, paired by trace."""
    changed: Estimate
    """Share of traces on which the verdict changed."""


class FaultDetectionRow(ReportModel):
    """How often one judge notices a planted fault, and how often it objects to the same traces without it."""

    judge: str
    fault: str
    detected: Estimate
    """Share of traces with the fault that it calls INVALID."""
    false_alarms: Estimate
    """Share of the same traces without the fault that it calls INVALID; they may have faults of their own."""
    difference: Estimate
    """Detected less false alarms: 0 is a judge that cannot see the fault."""


class PositionBiasRow(ReportModel):
    """Whether one judge prefers what is shown first."""

    judge: str
    first: Estimate
    """Share of answers for the side shown first, either side being first equally often; 0.5 is none."""
    stable: Estimate
    """Share of pairs of which it prefers the same side in both orders."""


class SelfReviewRow(ReportModel):
    """How a judge rules on its own traces; never part of any vote."""

    judge: str
    valid: Estimate
    """Share of VALID on its own traces."""
    preference: Estimate
    """How much milder it is with itself than with others, beside the other judges."""


class PanelReport(ReportModel):
    """The judges, and how far they agree beyond chance."""

    judges: list[JudgeRow]
    fleiss_kappa: Estimate
    """Over traces with at least two verdicts; n counts traces."""
    verdicts: int
    """Verdicts that kappa rests on."""
    repeated: int
    """Verdicts that are another judge's very answer, since both are one model, asked the same."""
    single: int
    """Traces with one verdict only, which say nothing on agreement."""
    krippendorff_alpha: Estimate
    gwet_ac1: Estimate
    prevalence: Estimate
    """Share of VALID in the verdicts that agreement rests on; interval over traces."""
    votes: list[VotingRuleRow]
    """Plain majority first."""
    asked: int
    """Verdicts that were asked for."""
    seats: int
    """Verdicts that whole panels would have been asked for; more than `asked` where panels are adaptive."""
    adaptive: bool
    judges_per_trace: int | None
    """Judges that a trace goes to at most; null where it goes to all that may judge its author."""
    peer_alignment: list[PeerAlignmentRow]
    guesses: list[BlindingCheckRow]
    """Empty where judges were not asked to guess."""
    rewriting: list[RestatementShiftRow]
    """Empty where traces were not restated."""
    faults: list[FaultDetectionRow]
    """Empty where no faults were planted."""
    positions: list[PositionBiasRow]
    own_traces: list[SelfReviewRow]
    certificate: list[str]
    """What this panel can and cannot settle, in plain words."""
