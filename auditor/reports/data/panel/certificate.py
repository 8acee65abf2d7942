"""Sentences on what a panel's verdicts can be relied on for, no stronger than the intervals allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.metrics.estimate import Tested
from auditor.reports.data.judge_quality.schema import JudgeAccuracyRow, JudgeQualityReport
from auditor.reports.data.panel.bias_sentences import describe_adjustment, describe_biases
from auditor.reports.data.panel.copying_sentences import describe_copied_outcomes, describe_copying
from auditor.reports.data.panel.schema import JudgeRow, PanelReport
from auditor.reports.number_format import (
    describe_estimate,
    describe_interval,
    describe_model_correlation,
    describe_p_value,
    format_number,
    format_percent,
    pluralize,
)

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


def write_certificate(
    panel: PanelReport, quality: JudgeQualityReport | None = None, *, is_task: bool = False
) -> list[str]:
    """Write the sentences, most important first; empty without judges.

    Args:
        quality: what people's labels show of the judges; None without verdicts.
        is_task: says nothing of fault detection and blinding that were not tested, since a task's known truth shows
            what judges notice.
    """
    if not panel.judges:
        return []
    about_tests = [
        *([describe_fault_detection(panel)] if panel.faults or not is_task else []),
        *([_describe_blinding(panel)] if panel.guesses or not is_task else []),
    ]
    return [
        *describe_accuracy(quality),
        _describe_agreement(panel),
        *_describe_disagreeing_judges(panel.judges),
        *_describe_prevalence(panel),
        _describe_majority(panel),
        *describe_copied_outcomes(panel.copying),
        *describe_copying(panel.copying, is_task=is_task),
        *_describe_assignment(panel),
        *_describe_adaptive_savings(panel),
        *about_tests,
        *describe_biases(panel.judges),
        *_describe_voting_rules(panel),
        *_describe_peer_alignment(panel),
    ]


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
        conclusion = (
            f"The judges agree beyond chance, but too little to rely on verdicts on single traces ({figures}). Use "
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
    """Warn that kappa and alpha are low because nearly all verdicts are the same; nothing where they are not."""
    valid_share, ac1 = panel.prevalence.value, panel.gwet_ac1
    if valid_share is not None and max(valid_share, 1 - valid_share) >= HIGH_PREVALENCE and ac1.value is not None:
        ruling = "VALID" if valid_share > 0.5 else "INVALID"
        yield (
            f"{format_number(100 * max(valid_share, 1 - valid_share), 0)}% of the verdicts are {ruling}, so kappa and "
            "alpha are low even if judges rarely differ. Gwet’s AC1 is not affected "
            f"({describe_estimate('AC1', ac1, 'trace')}). Judges that nearly always give the same verdict hardly "
            "distinguish between traces."
        )


def _describe_majority(panel: PanelReport) -> str:
    """Write a sentence on the shares of traces that a majority of the assigned judges finds VALID or INVALID."""
    if not panel.votes:
        return "No verdict is available, so all traces are left to human reviewers."
    majority = panel.votes[0]  # the plain majority is the first voting rule
    total = majority.valid + majority.invalid + majority.open
    return (
        f"A strict majority of the assigned judges finds {format_percent(majority.valid, total)} of "
        f"{pluralize(total, 'trace')} VALID and {format_percent(majority.invalid, total)} INVALID. "
        f"{format_percent(majority.open, total)} have no majority and are left to human reviewers. A judge that failed "
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
