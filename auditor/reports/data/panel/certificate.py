"""Sentences on what a panel's verdicts can be relied on for, no stronger than the intervals allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.panel.schema import JudgeRow, PanelReport
from auditor.reports.number_format import format_interval, format_number, format_percent, format_signed, pluralize

FIRM_ALPHA, TENTATIVE_ALPHA = 0.8, 0.667
"""Smallest alpha for firm and for tentative conclusions: Krippendorff, Content Analysis, 4th ed. 2019, ch. 12."""
HIGH_PREVALENCE = 0.85
"""Share of one ruling from which kappa and alpha are low although judges hardly differ."""
BIAS_PHRASES = {
    "leniency": "is {} than the others on the same traces",
    "verbosity": "says VALID {} often of longer traces",
    "own_family": "is {} with its own family",
    "order": "is {} in the later half of its verdicts",
}


def write_certificate(panel: PanelReport, *, is_task: bool = False) -> list[str]:
    """Write the sentences, most important first; empty without judges.

    Args:
        is_task: leaves out fault detection and blinding, since a task's known truth shows what judges notice.
    """
    if not panel.judges:
        return []
    about_survey = [] if is_task else [_describe_fault_detection(panel), _describe_blinding(panel)]
    return [
        _describe_agreement(panel),
        *_describe_prevalence(panel),
        _describe_majority(panel),
        *_describe_assignment(panel),
        *_describe_adaptive_savings(panel),
        *about_survey,
        *_describe_biases(panel.judges),
        *_describe_voting_rules(panel),
        *_describe_peer_alignment(panel),
    ]


def _format_estimate(estimate: Estimate, unit: str = "trace", digits: int = 2) -> str:
    """Format a value with its 95% interval, or the reason why there is none, and n in units of `unit`."""
    interval = (
        f"95% interval {format_interval(estimate.ci_low, estimate.ci_high, digits)}"
        if estimate.ci_low is not None
        else f"no interval: {estimate.reason}"
    )
    return f"{format_number(estimate.value, digits)}, {interval}, {pluralize(estimate.n, unit)}"


def _describe_agreement(panel: PanelReport) -> str:
    """Write a sentence on Krippendorff's alpha; the lower end of its interval decides how firm the conclusion is."""
    alpha = panel.krippendorff_alpha
    if alpha.value is None:
        return f"How far the judges agree cannot be measured ({alpha.reason}), so this panel vouches for nothing."
    figures = f"Krippendorff’s alpha {_format_estimate(alpha)}"
    if alpha.ci_low is None:
        return f"{figures}: with no interval, nothing can be said of how firm the verdicts are."
    if alpha.ci_low >= FIRM_ALPHA:
        return f"The judges agree well ({figures}): the verdict on a single trace can be relied on."
    if alpha.ci_low >= TENTATIVE_ALPHA:
        return f"The judges agree ({figures}): the verdict on a single trace is good enough for tentative conclusions."
    if alpha.ci_low > 0:
        return (
            f"The judges agree beyond chance, but not enough to rely on the verdict on a single trace ({figures}): use "
            "averages over many traces, and let people settle single ones."
        )
    return (
        f"The judges’ agreement cannot be told from chance ({figures}): their verdicts settle nothing, and conflicts "
        "that they closed should be looked at by people."
    )


def _describe_prevalence(panel: PanelReport) -> Iterator[str]:
    """Warn that kappa and alpha are low because nearly all verdicts are the same; nothing where they are not."""
    valid_share, ac1 = panel.prevalence.value, panel.gwet_ac1
    if valid_share is not None and max(valid_share, 1 - valid_share) >= HIGH_PREVALENCE and ac1.value is not None:
        ruling = "VALID" if valid_share > 0.5 else "INVALID"
        yield (
            f"{format_number(100 * max(valid_share, 1 - valid_share), 0)}% of the verdicts say {ruling}. "
            f"Kappa and alpha fall then although judges hardly differ; Gwet’s AC1, which does not, is "
            f"{_format_estimate(ac1)}. Judges who nearly always say the same "
            "tell little apart, however much they agree."
        )


def _describe_majority(panel: PanelReport) -> str:
    """Write a sentence on the shares of traces that a majority of the assigned judges finds VALID or INVALID."""
    if not panel.votes:
        return "No verdict was given, so no trace is upheld or refused; all are for people."
    majority = panel.votes[0]  # the plain majority is the first voting rule
    total = majority.valid + majority.invalid + majority.open
    return (
        "A strict majority of the assigned seats, failures and abstentions counted, upholds "
        f"{format_percent(majority.valid, total)} of {pluralize(total, 'trace')} as VALID and "
        f"{format_percent(majority.invalid, total)} as INVALID; {format_percent(majority.open, total)} "
        "have no majority and are for people."
    )


def _describe_assignment(panel: PanelReport) -> Iterator[str]:
    """Yield a sentence on the number of judges per trace; nothing where all judges get every trace."""
    if panel.judges_per_trace is not None:
        yield (
            f"Each trace went to {pluralize(panel.judges_per_trace, 'judge')}, dealt so that every judge has equally "
            "many of each model: what was not asked by design is no loss, shares of VALID are unbiased, and the "
            "verdict on a single trace rests on fewer judges."
        )


def _describe_adaptive_savings(panel: PanelReport) -> Iterator[str]:
    """Yield a sentence on the calls that adaptive panels saved; nothing for other panels."""
    if panel.adaptive:
        n_saved = panel.seats - panel.asked  # verdicts if every assigned judge were asked, minus those asked for
        yield (
            f"Panels were adaptive: {pluralize(n_saved, 'call')} of {pluralize(panel.seats, 'seat')} were saved "
            f"({format_percent(n_saved, panel.seats)}), with the majorities that asking all would have. Agreement and "
            "leanings rest on the judges that were asked whatever the others said."
        )


def _describe_fault_detection(panel: PanelReport) -> str:
    """Write which injected faults no judge, or not every judge, detects beyond its false alarms."""
    if not panel.faults:
        return (
            "No majority corrects an error that its judges share. Whether these would notice one is not tested: "
            "`auditor experiment planted` plants known faults and counts who does."
        )
    undetected = [
        fault_row
        for fault_row in panel.faults
        if fault_row.difference.ci_low is None or fault_row.difference.ci_low <= 0
    ]
    detection_summary = (
        f"Of {pluralize(len(panel.faults), 'pair')} of a judge and a planted fault, "
        f"{len(panel.faults) - len(undetected)} show detection beyond the judge’s false alarms"
    )
    if not undetected:
        return f"{detection_summary}: the panel notices each kind of fault that was planted."
    undetected_faults = ", ".join(
        dict.fromkeys(
            f"{fault_row.fault} ({', '.join(row.judge for row in undetected if row.fault == fault_row.fault)})"
            for fault_row in undetected
        )
    )
    return (
        f"{detection_summary}. Not shown to be noticed: {undetected_faults}. "
        "A bias of that kind the panel would only repeat."
    )


def _describe_blinding(panel: PanelReport) -> str:
    """Write which masked attributes judges guess beyond chance, or that guesses were not asked for."""
    if not panel.guesses:
        return (
            "Whether the judges could tell country, topic or author from a blinded trace is not measured: set "
            "`guess = true` under [probes.review]."
        )
    leaking_rows = [row for row in panel.guesses if row.hits.ci_low is not None and row.hits.ci_low > row.chance]
    if not leaking_rows:
        return "No judge guesses country, topic or author beyond chance: blinding holds as far as these samples show."
    leak_list = "; ".join(
        # `what` is the attribute guessed: country, topic or author.
        f"{row.judge} the {row.what} ({format_number(100 * (row.hits.value or 0), 0)}%, "
        f"{format_interval(100 * (row.hits.ci_low or 0), 100 * (row.hits.ci_high or 0), 0)}%, chance "
        f"{format_number(100 * row.chance, 0)}%)"
        for row in leaking_rows
    )
    return f"Blinding leaks: beyond chance guess {leak_list}."


def _describe_biases(judges: Sequence[JudgeRow]) -> Iterator[str]:
    """Yield sentences on biases whose 95% interval excludes 0, with the number of such findings to expect by chance."""
    sentences, n_tests = [], 0
    for name, phrase in BIAS_PHRASES.items():
        biased_judges = []
        for judge in judges:
            estimate: Estimate = getattr(judge, name)
            if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
                continue
            n_tests += 1
            if estimate.ci_low <= 0 <= estimate.ci_high:
                continue
            positive_word = "more" if name == "verbosity" else "milder"
            negative_word = "less" if name == "verbosity" else "stricter"
            direction = phrase.format(positive_word if estimate.value > 0 else negative_word)
            size = (
                f"{format_signed(100 * estimate.value, 0)} points, "
                f"{format_interval(100 * estimate.ci_low, 100 * estimate.ci_high, 0)}"
            )
            biased_judges.append(f"{judge.judge} {direction} ({size})")
        if biased_judges:
            sentences.append(f"Beyond chance, {'; '.join(biased_judges)}.")
    if sentences:
        yield from sentences[:-1]
        # A 95% interval excludes 0 by chance in one test of twenty.
        false_positives = (
            f"about {format_number(n_tests / 20, 1)} would show" if n_tests > 1 else "one in twenty such tests shows"
        )
        yield (
            f"{sentences[-1]} Of {pluralize(n_tests, 'leaning')} tested, {false_positives} "
            "this much where there is nothing."
        )


def _describe_voting_rules(panel: PanelReport) -> Iterator[str]:
    """Yield one sentence per voting rule other than the majority, on where it decides otherwise."""
    for row in panel.votes[1:]:  # the first is the plain majority
        if row.reason is not None:
            yield f"Votes counted otherwise ({row.rule}) say nothing: {row.reason}."
        elif row.differs.value is not None:
            n_opposed = round(row.differs.value * row.differs.n)
            yield (
                f"Votes counted otherwise ({row.rule}) say the opposite of the plain majority on {n_opposed} of "
                f"{pluralize(row.differs.n, 'trace')} that both settle, and leave {row.open} open."
            )


def _describe_peer_alignment(panel: PanelReport) -> Iterator[str]:
    """Yield one sentence per method on whether models that peers find VALID agree more with people."""
    for row in panel.peer_alignment:
        r, method_phrase = row.r, f" (by {row.method})" if len(panel.peer_alignment) > 1 else ""
        if r.value is None or r.ci_low is None or r.ci_high is None:
            missing_reason = r.reason or ""
            value_phrase = f"r = {format_number(r.value)}, " if r.value is not None else ""
            yield (
                f"Whether peers prefer models that agree with people{method_phrase} cannot be told "
                f"({value_phrase}{missing_reason}; n = {r.n} models)."
            )
            continue
        figures = f"r = {format_number(r.value)}, 95% interval {format_interval(r.ci_low, r.ci_high)}, n = {r.n} models"
        if r.ci_low > 0:
            yield f"Peers prefer models that agree with people{method_phrase} ({figures})."
        elif r.ci_high < 0:
            yield f"Peers prefer models that disagree with people{method_phrase} ({figures})."
        else:
            yield (
                f"Over these models, peer agreement says nothing firm of agreement with people{method_phrase} "
                f"({figures}): it is no stand-in for a survey."
            )
