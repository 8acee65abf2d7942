"""Sentences on what a panel's verdicts can be relied on for, no stronger than the intervals allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Tested
from auditor.metrics.judges.accuracy import JudgeDifference
from auditor.metrics.judges.copying import LABELS_FOR_SHARED_ERRORS, MIN_LABELS, MIN_SHARED_TRACES
from auditor.reports.data.judge_quality.schema import JudgeAccuracyRow, JudgeQualityReport
from auditor.reports.data.panel.schema import CopyingReport, JudgePairRow, JudgeRow, PanelReport
from auditor.reports.number_format import (
    describe_adjusted_p_value,
    describe_estimate,
    describe_interval,
    describe_model_correlation,
    describe_p_value,
    describe_points,
    format_number,
    format_percent,
    format_share,
    pluralize,
)

LENIENT, OFTEN, LENGTH = ("more lenient", "stricter"), ("more", "less"), ("longer", "shorter")
PHRASES = {
    ("padding", "experiment"): ("says VALID {} often when the same trace is padded", OFTEN),
    ("leniency", "truth"): ("says VALID {} often than the known truth of the same answers", OFTEN),
    ("leniency", "panel"): ("is {} than the median judge on the same traces", LENIENT),
    ("verbosity_against_truth", "truth"): ("favours {} traces beyond what the truth of the answers explains", LENGTH),
    ("verbosity", "association"): ("says VALID {} often for longer traces", OFTEN),
    ("own_family", "association"): ("is {} with its own model family", LENIENT),
    ("order", "association"): ("is {} in the later half of its verdicts", LENIENT),
}
"""By field of `JudgeRow` and kind of evidence: a phrase, and its words for differences above and below 0."""
ASSOCIATED = {"verbosity": "length", "own_family": "model family", "order": "order"}
"""By field of `JudgeRow` whose evidence is an association: what verdicts may be associated with."""
Finding = tuple[str, str, JudgeDifference]
"""A judge, a field of `JudgeRow`, and its difference."""


def _describe_biases(judges: Sequence[JudgeRow]) -> Iterator[str]:
    """Yield sentences on tests of biases and on associations, which are no biases.

    They name the judges whose p-value, adjusted for the number of all tests, is below 0.05.
    """
    if not judges:
        return
    fields = dict.fromkeys(field for field, _ in PHRASES)
    differences = [(row.judge, field, getattr(row, field)) for field in fields for row in judges]
    tested = [item for item in differences if item[2].adjusted_p_value is not None]
    associations = [item for item in tested if item[2].evidence == "association"]
    bias_tests = [item for item in tested if item[2].evidence != "association"]
    adjustment = describe_adjustment(len(tested))
    yield _describe_bias_tests(bias_tests, adjustment)
    if named := _select_significant(associations):
        yield (
            f"Associations: {_join(named)}. They do not show a bias, since traces differ in other ways too, such as "
            f"quality. {adjustment}"
        )
    elif associations:
        *others, last = [name for field, name in ASSOCIATED.items() if any(item[1] == field for item in associations)]
        properties = f"{', '.join(others)} or {last}" if others else last
        yield (
            f"No association of verdicts with {properties} is statistically distinguishable from zero "
            f"(none of {pluralize(len(associations), 'test')}). {adjustment}"
        )


def _describe_bias_tests(bias_tests: Sequence[Finding], adjustment: str) -> str:
    """State which biases are shown, that none is, or that none was tested."""
    if not bias_tests:
        return "No bias of the judges was tested."
    named = _select_significant(bias_tests)
    if not named:
        return f"No judge is shown to have a bias (none of {pluralize(len(bias_tests), 'test')}). {adjustment}"
    assumption = (
        " A difference from the median judge is a bias if more than half of the judges have none."
        if any(difference.evidence == "panel" for *_, difference in named)
        else ""
    )
    return f"Biases beyond chance: {_join(named)}.{assumption} {adjustment}"


def _select_significant(tested: Sequence[Finding]) -> list[Finding]:
    """Those that are significant given the number of tests."""
    return [item for item in tested if item[2].is_significant]


def _join(named: Sequence[Finding]) -> str:
    """The findings with their figures, separated by semicolons."""
    return "; ".join(f"{judge} {_describe_difference(field, difference)}" for judge, field, difference in named)


def _describe_difference(field: str, difference: JudgeDifference) -> str:
    """Describe a difference in words, with its figures in percentage points."""
    value, low, high = (100 * (figure or 0.0) for figure in (difference.value, difference.ci_low, difference.ci_high))
    phrase, (above, below) = PHRASES[field, difference.evidence]
    points = replace(difference, value=value, ci_low=low, ci_high=high)
    p_text = describe_adjusted_p_value(difference)
    return (
        f"{phrase.format(above if value > 0 else below)} ({describe_points(difference.value)}, "
        f"{describe_interval(points, 0, 'signed')}, {p_text})"
    )


def describe_adjustment(n_tests: int) -> str:
    """Say what the p-values are adjusted for."""
    return f"P-values are adjusted for {pluralize(n_tests, 'test')} (Holm)."


MAX_NAMED_PAIRS = 6
"""Pairs that a sentence names; more would be unreadable."""


def _describe_copying(copying: CopyingReport, *, is_task: bool) -> Iterator[str]:
    """Yield sentences on pairs whose errors are alike, on copies, and on the effective number of judges.

    Args:
        is_task: whether the audit is of a task, into whose answers no faults are planted.
    """
    alike = [pair for pair in copying.pairs if pair.verdict == "errors more alike"]
    if alike:
        labels = pluralize(copying.labels, "labelled trace")
        yield (
            "The errors of some judges are more alike than those of other pairs: "
            f"{_join_pairs(alike, with_excess=True)}. This was tested on {labels} ({copying.label_source}); the 95% "
            "CIs hold for all pairs jointly. Partial copying cannot be distinguished from shared training. Each judge "
            "keeps its vote."
        )
    copies = [pair for pair in copying.pairs if pair.verdict == "copies"]
    if copies:
        yield (
            f"Copies: {_join_pairs(copies, with_excess=False)} give equal verdicts on at least 99% of "
            f"{MIN_SHARED_TRACES} or more traces. Judges that are both always right look the same."
        )
    if (alpha := copying.alpha_without_alike) is not None:
        yield (
            f"With only one judge of each such group, the panel’s {describe_estimate('Krippendorff’s alpha', alpha)}: "
            "judges that depend on each other agree without being independent evidence."
        )
    if copying.groups:
        groups = "; ".join(_join_names(group) for group in copying.groups)
        yield (
            f"Judges that share one vote: {groups}. This applies to all voting rules except the majority and "
            "configured weights. Stored outcomes of conflicts are not changed."
        )
    yield _describe_effective_number(copying, is_task)
    shared_models = [pair for pair in copying.pairs if pair.same_model and pair.verdict != "copies"]
    if shared_models:
        yield (
            f"{_join_pairs(shared_models, with_excess=False)} are the same model. Only labelled traces can show "
            "whether their errors are independent."
        )


def _describe_copied_outcomes(copying: CopyingReport) -> Iterator[str]:
    """Yield a sentence on majorities and conflicts that copies settle alone; nothing where there is none."""
    n_traces, n_conflicts = copying.traces_settled_by_copies, copying.conflicts_settled_by_copies
    if n_traces or n_conflicts:
        conflicts = "" if n_conflicts is None else f" and {pluralize(n_conflicts, 'conflict')}"
        yield (
            f"Copies outvote the other judges on {pluralize(n_traces, 'trace')}{conflicts}. With one vote for each "
            "group, the outcome would be open or the opposite."
        )


def _describe_effective_number(copying: CopyingReport, is_task: bool) -> str:
    """Write the effective number of judges, or why it is not known."""
    number = copying.effective_judges
    if number.value is None:
        advice = (
            ""
            if is_task
            else f" `auditor experiment planted --sample {LABELS_FOR_SHARED_ERRORS // 4}` makes labelled traces."
        )
        cause = f": {number.reason}" if copying.label_source else " without labelled traces"
        return (
            f"The effective number of judges, and whether their errors are alike, are not known{cause}. Verdicts alone "
            f"cannot show this.{advice}"
        )
    few = (
        f" With fewer than {LABELS_FOR_SHARED_ERRORS} labels, a judge that shares 30% of its verdicts may be missed."
        if MIN_LABELS <= number.n < LABELS_FOR_SHARED_ERRORS
        else ""
    )
    return (
        f"As votes are counted, {pluralize(len(copying.effective_of), 'judge')} of the panel are worth "
        f"{format_number(number.value, 1)} judges with independent errors ({describe_interval(number, 1)}). This was "
        f"estimated on {pluralize(number.n, 'labelled trace')} ({copying.label_source}).{few}"
    )


def _join_pairs(pairs: list[JudgePairRow], *, with_excess: bool) -> str:
    """Name pairs, with the excess of their error correlation where asked for."""
    texts = [
        f"{pair.first} and {pair.second}"
        + (f" ({describe_estimate('excess correlation', pair.excess)})" if with_excess else "")
        for pair in pairs[:MAX_NAMED_PAIRS]
    ]
    if len(pairs) > MAX_NAMED_PAIRS:
        texts.append(pluralize(len(pairs) - MAX_NAMED_PAIRS, "more pair"))
    return "; ".join(texts)


def _join_names(names: list[str]) -> str:
    """Join names, such as "a, b and c"."""
    return f"{', '.join(names[:-1])} and {names[-1]}"


FIRM_ALPHA, TENTATIVE_ALPHA = 0.8, 0.667
"""Smallest alpha for firm and for tentative conclusions: Krippendorff, Content Analysis, 4th ed. 2019, ch. 12."""
VOTING_RULE_NOTES = {
    "copies split": "copies share one vote",
    "weighted by agreement with the rest": "a judge that agrees with the others more often counts more",
    "weighted as configured": "with the weights of the configuration",
    "dawid-skene": "a judge counts by its error rates, estimated from all verdicts",
}
"""What each voting rule does, by its name in the report."""
HIGH_PREVALENCE = 0.85
"""Share of one ruling from which kappa and alpha are low although judges hardly differ."""


class JudgeEvidence(NamedTuple):
    """What a certificate rests on.

    Attributes:
        quality: what people's labels show of the judges; None without verdicts.
        is_task: whether the audit is of a task, whose known truth shows what judges notice: nothing is said of fault
            detection and blinding that were not tested.
        is_complete: whether all calls were made: before that, calls that are still to come are no calls saved.
    """

    panel: PanelReport
    quality: JudgeQualityReport | None = None
    is_task: bool = False
    is_complete: bool = True


def write_certificate(evidence: JudgeEvidence) -> list[str]:
    """Write the sentences of `CERTIFICATE`, most important first; empty without judges."""
    if not evidence.panel.judges:
        return []
    return [sentence for describe in CERTIFICATE.values() for sentence in describe(evidence)]


def describe_accuracy(quality: JudgeQualityReport | None) -> Iterator[str]:
    """Yield which judges' verdicts are reliable, as far as people's labels show; nothing without enough labels.

    A judge is reliable if its balanced accuracy is shown to be above 0.5, corrected for all judges.
    """
    rows = [] if quality is None else [row for row in quality.judges if row.balanced_accuracy.value is not None]
    if not rows:
        return
    better, others = ([row for row in rows if row.is_better_than_chance is is_better] for is_better in (True, False))
    sentences = []
    if better:
        sentences.append(
            f"By people’s labels, verdicts on single traces are reliable beyond chance from {_list_accuracies(better)}."
        )
    if others:
        sentences.append(
            f"Labels do not show that verdicts are better than chance from {_list_accuracies(others)}: do not rely on "
            "these, however well the judges agree."
        )
    yield (
        f"{' '.join(sentences)} Balanced accuracy is the mean of sensitivity and specificity, 0.5 by chance; p-values "
        f"are corrected for {pluralize(len(rows), 'judge')}."
    )


def _list_accuracies(rows: Sequence[JudgeAccuracyRow]) -> str:
    """Name judges with their balanced accuracy."""
    return "; ".join(f"{row.judge} ({describe_estimate('balanced accuracy', row.balanced_accuracy)})" for row in rows)


def _describe_agreement(panel: PanelReport) -> str:
    """Write a sentence on Krippendorff's alpha; the lower end of its interval decides how consistent verdicts are.

    Agreement is no accuracy: five judges with one wrong rule agree.
    """
    alpha = panel.krippendorff_alpha
    if alpha.value is None:
        return f"The judges’ agreement is not available: {alpha.reason}. This panel therefore supports no conclusion."
    figures = describe_estimate("Krippendorff’s alpha", alpha, "trace")
    if alpha.ci_low is None:
        return (
            f"How consistent the verdicts are is not known: Krippendorff’s alpha is {format_number(alpha.value)} for "
            f"{pluralize(alpha.n, 'trace')}, without a 95% CI ({alpha.reason})."
        )
    population = f" The interval is for {alpha.generalizes_to}." if alpha.generalizes_to else ""
    if alpha.ci_low >= FIRM_ALPHA:
        conclusion = (
            f"The judges agree well ({figures}): verdicts on single traces are consistent. Only labels by people show "
            "whether they are right."
        )
    elif alpha.ci_low >= TENTATIVE_ALPHA:
        conclusion = (
            f"The judges agree ({figures}): verdicts on single traces are consistent enough for tentative conclusions. "
            "Only labels by people show whether they are right."
        )
    elif alpha.ci_low > 0:
        is_low = alpha.ci_high is not None and alpha.ci_high < TENTATIVE_ALPHA
        doubt = "too little" if is_low else "are not shown to agree well enough"
        conclusion = (
            f"The judges agree beyond chance, but {doubt} to rely on verdicts on single traces ({figures}). Use "
            "averages over many traces, and leave single traces to human reviewers."
        )
    else:
        conclusion = (
            f"The judges are not shown to agree beyond chance ({figures}). Do not rely on their verdicts: human "
            "reviewers should check the conflicts that the judges settled."
        )
    return conclusion + population


def _describe_disagreeing_judges(judges: Sequence[JudgeRow]) -> Iterator[str]:
    """Yield a sentence on each judge that disagrees more with the others than they do, after correction."""
    n_tested = sum(row.alpha_change.p_value is not None for row in judges)
    for row in judges:
        change = row.alpha_change
        if change.is_significant and change.value is not None and change.value > 0:
            yield (
                f"{row.judge} disagrees more with the other judges than they do with each other. Without it, "
                f"Krippendorff’s alpha is higher by {format_number(change.value)} ({describe_interval(change)}; "
                f"{describe_p_value(change.adjusted_p_value)}, corrected for {pluralize(n_tested, 'judge')})."
            )


def _describe_prevalence(panel: PanelReport) -> Iterator[str]:
    """Warn that kappa and alpha say little because nearly all verdicts are the same; nothing where they are not.

    They are low then though judges rarely differ; and undefined, if all verdicts are the same.
    """
    valid_share, ac1 = panel.prevalence.value, panel.gwet_ac1
    if valid_share is not None and max(valid_share, 1 - valid_share) >= HIGH_PREVALENCE and ac1.value is not None:
        ruling = "VALID" if valid_share > 0.5 else "INVALID"
        are_same = valid_share in (0, 1)
        share = "All" if are_same else f"{format_share(max(valid_share, 1 - valid_share))} of the"
        consequence = "cannot be computed" if are_same else "are low even if judges rarely differ"
        yield (
            f"{share} verdicts are {ruling}, so kappa and alpha {consequence}. Gwet’s AC1 is not affected "
            f"({describe_estimate('AC1', ac1, 'trace')}). Judges that nearly always give the same verdict hardly "
            "distinguish between traces."
        )


def _describe_majority(panel: PanelReport) -> str:
    """Write a sentence on the shares of traces that a majority of the assigned judges finds VALID or INVALID."""
    if not panel.votes:
        return "No verdict is available, so all traces are left to human reviewers."
    majority = panel.votes[0]  # the plain majority is the first voting rule
    n_open = majority.open + panel.unjudged
    total = majority.valid + majority.invalid + n_open
    return (
        f"A strict majority of the assigned judges finds {format_percent(majority.valid, total)} of "
        f"{pluralize(total, 'trace')} VALID and {format_percent(majority.invalid, total)} INVALID. "
        f"{format_percent(n_open, total)} have no majority and are left to human reviewers. A judge that failed "
        "or abstained still counts as assigned."
    )


def _describe_assignment(panel: PanelReport) -> Iterator[str]:
    """Yield a sentence on the number of judges per trace; nothing where all judges get every trace."""
    if panel.judges_per_trace is not None:
        yield (
            f"Each trace was assigned to {pluralize(panel.judges_per_trace, 'judge')}, and each judge to equally many "
            "traces of each model. Verdicts that were not planned do not count as missing, and shares of VALID are "
            "unbiased. The verdict on a single trace is based on fewer judges."
        )


def _describe_adaptive_savings(panel: PanelReport) -> Iterator[str]:
    """Yield a sentence on the calls that adaptive panels saved; nothing for other panels."""
    if panel.adaptive:
        n_saved = panel.seats - panel.asked  # verdicts if every assigned judge were asked, minus those asked for
        yield (
            f"The adaptive panel saved {pluralize(n_saved, 'call')} out of {pluralize(panel.seats, 'assignment')} "
            f"({format_percent(n_saved, panel.seats)}). The majorities are the same as with all assigned judges. "
            "Agreement and biases use only judges that were asked regardless of the other verdicts."
        )


def describe_fault_detection(panel: PanelReport) -> str:
    """Write which injected faults no judge, or not every judge, detects beyond its false alarms."""
    if not panel.faults:
        return (
            "Detection of errors was not tested, and a majority cannot correct an error that its judges share. "
            "`auditor experiment planted` injects known faults and counts which judges detect them."
        )
    undetected = [
        fault_row
        for fault_row in panel.faults
        if not fault_row.difference.is_significant or (fault_row.difference.value or 0.0) < 0
    ]
    detection_summary = (
        f"Detection beyond false alarms is shown for {len(panel.faults) - len(undetected)} of "
        f"{pluralize(len(panel.faults), 'pair')} of a judge and an injected fault."
    )
    adjustment = _describe_tests([row.difference for row in panel.faults])
    if not undetected:
        return f"{detection_summary} The panel detects each kind of injected fault.{adjustment}"
    undetected_faults = ", ".join(
        dict.fromkeys(
            f"{fault_row.fault} ({', '.join(row.judge for row in undetected if row.fault == fault_row.fault)})"
            for fault_row in undetected
        )
    )
    return (
        f"{detection_summary} Not shown to be detected: {undetected_faults}. The panel may repeat such a bias instead "
        f"of detecting it.{adjustment}"
    )


def _describe_blinding(panel: PanelReport) -> str:
    """Write which masked attributes judges guess beyond chance, or that guesses were not asked for."""
    if not panel.guesses:
        return (
            "Blinding was not tested. `guess = true` under [probes.review] tests whether judges recognize the "
            "country, topic or author of a blinded trace."
        )
    adjustment = _describe_tests([row.hits for row in panel.guesses])
    leaking_rows = [row for row in panel.guesses if row.hits.is_significant and (row.hits.value or 0.0) > row.chance]
    if not leaking_rows:
        tested = {row.what for row in panel.guesses}
        guessed = "author" if tested == {"author"} else "country, topic or author"
        return (
            f"Blinding holds as far as tested: no judge is shown to guess the {guessed} better than chance.{adjustment}"
        )
    leak_list = "; ".join(
        # `what` is the attribute guessed: country, topic or author.
        (
            f"{row.judge}, the {row.what} ({describe_estimate('', row.hits, digits=0, style='percent')}, chance "
            f"{format_number(100 * row.chance, 0)}%)"
        )
        for row in leaking_rows
    )
    return f"Blinding is incomplete. Guesses better than chance: {leak_list}.{adjustment}"


def _describe_tests(tests: Sequence[Tested]) -> str:
    """Say how many tests these p-values are adjusted for; empty for less than two."""
    n_tests = sum(test.adjusted_p_value is not None for test in tests)
    return f" {describe_adjustment(n_tests)}" if n_tests > 1 else ""


def _describe_voting_rules(panel: PanelReport) -> Iterator[str]:
    """Yield one sentence per voting rule other than the majority, on where it decides otherwise."""
    for row in panel.votes[1:]:  # the first is the plain majority
        if row.reason is not None:
            yield f"The result of the voting rule “{row.rule}” is not available: {row.reason}."
        elif row.differs.value is not None:
            n_opposed = round(row.differs.value * row.differs.n)
            yield (
                f"The voting rule “{row.rule}” ({VOTING_RULE_NOTES[row.rule]}) contradicts the plain majority on "
                f"{n_opposed} of {pluralize(row.differs.n, 'trace')}, and leaves {row.open} without a verdict."
            )


def _describe_peer_alignment(panel: PanelReport) -> Iterator[str]:
    """Yield one sentence per method on whether models that judges find VALID agree more with people."""
    for row in panel.peer_alignment:
        r, method_phrase = row.r, f" (by {row.method})" if len(panel.peer_alignment) > 1 else ""
        figures = describe_model_correlation(r)
        if r.value is None or r.p_value is None:
            yield f"It is not known whether judges prefer models that agree with people{method_phrase} ({figures})."
        elif r.p_value >= SIGNIFICANCE_LEVEL:
            yield (
                f"No relation between the share of VALID and agreement with people{method_phrase} is shown "
                f"({figures}). "
                "Verdicts cannot replace a survey."
            )
        else:
            verb = "agree" if r.value > 0 else "disagree"
            yield f"Judges prefer models that {verb} with people{method_phrase} ({figures})."


CERTIFICATE: Mapping[str, Callable[[JudgeEvidence], Iterable[str]]] = {
    "accuracy": lambda evidence: describe_accuracy(evidence.quality),
    "agreement": lambda evidence: [_describe_agreement(evidence.panel)],
    "disagreeing judges": lambda evidence: _describe_disagreeing_judges(evidence.panel.judges),
    "prevalence": lambda evidence: _describe_prevalence(evidence.panel),
    "majority": lambda evidence: [_describe_majority(evidence.panel)],
    "copied outcomes": lambda evidence: _describe_copied_outcomes(evidence.panel.copying),
    "copying": lambda evidence: _describe_copying(evidence.panel.copying, is_task=evidence.is_task),
    "assignment": lambda evidence: _describe_assignment(evidence.panel),
    "adaptive panel": lambda evidence: _describe_adaptive_savings(evidence.panel) if evidence.is_complete else (),
    "faults": lambda evidence: (
        [describe_fault_detection(evidence.panel)] if evidence.panel.faults or not evidence.is_task else []
    ),
    "blinding": lambda evidence: (
        [_describe_blinding(evidence.panel)] if evidence.panel.guesses or not evidence.is_task else []
    ),
    "biases": lambda evidence: _describe_biases(evidence.panel.judges),
    "voting rules": lambda evidence: _describe_voting_rules(evidence.panel),
    "peer alignment": lambda evidence: _describe_peer_alignment(evidence.panel),
}
"""By kind of sentence: a function that yields the sentences which the evidence calls for; most important first."""
