"""What a panel can and cannot settle, in plain words that are no stronger than the intervals behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import format_interval, format_number, format_percent, format_signed, pluralize
from auditor.reports.panel.schema import JudgeRow, PanelReport

FIRM_ALPHA, TENTATIVE_ALPHA = 0.8, 0.667
"""Alpha from which conclusions are firm, or tentative: Krippendorff, Content Analysis, 4th ed. 2019, ch. 12."""
HIGH_PREVALENCE = 0.85
"""Share of one ruling from which kappa and alpha fall although judges hardly differ."""
BIAS_PHRASES = {
    "leniency": "is {} than the others on the same traces",
    "verbosity": "says VALID {} often of longer traces",
    "own_family": "is {} with its own family",
    "order": "is {} in the later half of its verdicts",
}


def write_certificate(panel: PanelReport, *, is_task: bool = False) -> list[str]:
    """The sentences, most important first; empty where nobody judged. Of a task the truth says what judges notice."""
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
    between = (
        f"95% interval {format_interval(estimate.ci_low, estimate.ci_high, digits)}"
        if estimate.ci_low is not None
        else f"no interval: {estimate.reason}"
    )
    return f"{format_number(estimate.value, digits)}, {between}, {pluralize(estimate.n, unit)}"


def _describe_agreement(panel: PanelReport) -> str:
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
    valid, ac1 = panel.prevalence.value, panel.gwet_ac1
    if valid is not None and max(valid, 1 - valid) >= HIGH_PREVALENCE and ac1.value is not None:
        what = "VALID" if valid > 0.5 else "INVALID"
        yield (
            f"{format_number(100 * max(valid, 1 - valid), 0)}% of the verdicts say {what}. Kappa and alpha fall then "
            f"although judges hardly differ; Gwet’s AC1, which does not, is {_format_estimate(ac1)}. Judges who nearly "
            "always say the same tell little apart, however much they agree."
        )


def _describe_majority(panel: PanelReport) -> str:
    if not panel.votes:
        return "No verdict was given, so no trace is upheld or refused; all are for people."
    row = panel.votes[0]
    total = row.valid + row.invalid + row.open
    return (
        "A strict majority of the assigned seats, failures and abstentions counted, upholds "
        f"{format_percent(row.valid, total)} of {pluralize(total, 'trace')} as VALID and "
        f"{format_percent(row.invalid, total)} as INVALID; {format_percent(row.open, total)} have no majority and are "
        "for people."
    )


def _describe_assignment(panel: PanelReport) -> Iterator[str]:
    if panel.judges_per_trace is not None:
        yield (
            f"Each trace went to {pluralize(panel.judges_per_trace, 'judge')}, dealt so that every judge has equally "
            "many of each model: what was not asked by design is no loss, shares of VALID are unbiased, and the "
            "verdict on a single trace rests on fewer judges."
        )


def _describe_adaptive_savings(panel: PanelReport) -> Iterator[str]:
    if panel.adaptive:
        saved = panel.seats - panel.asked
        yield (
            f"Panels were adaptive: {pluralize(saved, 'call')} of {pluralize(panel.seats, 'seat')} were saved "
            f"({format_percent(saved, panel.seats)}), with the majorities that asking all would have. Agreement and "
            "leanings rest on the judges that were asked whatever the others said."
        )


def _describe_fault_detection(panel: PanelReport) -> str:
    if not panel.faults:
        return (
            "No majority corrects an error that its judges share. Whether these would notice one is not tested: "
            "`auditor experiment planted` plants known faults and counts who does."
        )
    blind = [f for f in panel.faults if f.difference.ci_low is None or f.difference.ci_low <= 0]
    told = (
        f"Of {pluralize(len(panel.faults), 'pair')} of a judge and a planted fault, {len(panel.faults) - len(blind)} "
        "show detection beyond the judge’s false alarms"
    )
    if not blind:
        return f"{told}: the panel notices each kind of fault that was planted."
    kinds = ", ".join(
        dict.fromkeys(f"{f.fault} ({', '.join(b.judge for b in blind if b.fault == f.fault)})" for f in blind)
    )
    return f"{told}. Not shown to be noticed: {kinds}. A bias of that kind the panel would only repeat."


def _describe_blinding(panel: PanelReport) -> str:
    if not panel.guesses:
        return (
            "Whether the judges could tell country, topic or author from a blinded trace is not measured: set "
            "`guess = true` under [probes.review]."
        )
    leaks = [g for g in panel.guesses if g.hits.ci_low is not None and g.hits.ci_low > g.chance]
    if not leaks:
        return "No judge guesses country, topic or author beyond chance: blinding holds as far as these samples show."
    told = "; ".join(
        f"{g.judge} the {g.what} ({format_number(100 * (g.hits.value or 0), 0)}%, "
        f"{format_interval(100 * (g.hits.ci_low or 0), 100 * (g.hits.ci_high or 0), 0)}%, chance "
        f"{format_number(100 * g.chance, 0)}%)"
        for g in leaks
    )
    return f"Blinding leaks: beyond chance guess {told}."


def _describe_biases(judges: Sequence[JudgeRow]) -> Iterator[str]:
    told, tests = [], 0
    for name, words in BIAS_PHRASES.items():
        found = []
        for judge in judges:
            e: Estimate = getattr(judge, name)
            if e.value is None or e.ci_low is None or e.ci_high is None:
                continue
            tests += 1
            if e.ci_low <= 0 <= e.ci_high:
                continue
            more = "more" if name == "verbosity" else "milder"
            less = "less" if name == "verbosity" else "stricter"
            how = words.format(more if e.value > 0 else less)
            points = f"{format_signed(100 * e.value, 0)} points, {format_interval(100 * e.ci_low, 100 * e.ci_high, 0)}"
            found.append(f"{judge.judge} {how} ({points})")
        if found:
            told.append(f"Beyond chance, {'; '.join(found)}.")
    if told:
        yield from told[:-1]
        expected = f"about {format_number(tests / 20, 1)} would show" if tests > 1 else "one in twenty such tests shows"
        yield f"{told[-1]} Of {pluralize(tests, 'leaning')} tested, {expected} this much where there is nothing."


def _describe_voting_rules(panel: PanelReport) -> Iterator[str]:
    for row in panel.votes[1:]:
        if row.reason is not None:
            yield f"Votes counted otherwise ({row.rule}) say nothing: {row.reason}."
        elif row.differs.value is not None:
            opposed = round(row.differs.value * row.differs.n)
            yield (
                f"Votes counted otherwise ({row.rule}) say the opposite of the plain majority on {opposed} of "
                f"{pluralize(row.differs.n, 'trace')} that both settle, and leave {row.open} open."
            )


def _describe_peer_alignment(panel: PanelReport) -> Iterator[str]:
    for row in panel.peer_alignment:
        r, by = row.r, f" (by {row.method})" if len(panel.peer_alignment) > 1 else ""
        if r.value is None or r.ci_low is None or r.ci_high is None:
            why = r.reason or ""
            value = f"r = {format_number(r.value)}, " if r.value is not None else ""
            yield (
                f"Whether peers prefer models that agree with people{by} cannot be told ({value}{why}; "
                f"n = {r.n} models)."
            )
            continue
        figures = f"r = {format_number(r.value)}, 95% interval {format_interval(r.ci_low, r.ci_high)}, n = {r.n} models"
        if r.ci_low > 0:
            yield f"Peers prefer models that agree with people{by} ({figures})."
        elif r.ci_high < 0:
            yield f"Peers prefer models that disagree with people{by} ({figures})."
        else:
            yield (
                f"Over these models, peer agreement says nothing firm of agreement with people{by} ({figures}): it is "
                "no stand-in for a survey."
            )
