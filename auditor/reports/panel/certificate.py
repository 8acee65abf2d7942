"""What a panel can and cannot settle, in plain words that are no stronger than the intervals behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import interval, number, plural, share, signed
from auditor.reports.panel.schema import JudgeRow, PanelPart

FIRM, TENTATIVE = 0.8, 0.667
"""Alpha from which conclusions are firm, or tentative: Krippendorff, Content Analysis, 4th ed. 2019, ch. 12."""
LOPSIDED = 0.85
"""Share of one ruling from which kappa and alpha fall although judges hardly differ."""
LEANINGS = {
    "leniency": "is {} than the others on the same traces",
    "verbosity": "says VALID {} often of longer traces",
    "own_family": "is {} with its own family",
    "order": "is {} in the later half of its verdicts",
}


def certificate(panel: PanelPart, *, of_task: bool = False) -> list[str]:
    """The sentences, most important first; empty where nobody judged. Of a task the truth says what judges notice."""
    if not panel.judges:
        return []
    about_survey = [] if of_task else [_shared(panel), _blinding(panel)]
    return [
        _agreement(panel),
        *_lopsided(panel),
        _majority(panel),
        *_incomplete(panel),
        *_savings(panel),
        *about_survey,
        *_leanings(panel.judges),
        *_rules(panel),
        *_peers(panel),
    ]


def _told(e: Estimate, what: str = "trace", digits: int = 2) -> str:
    between = (
        f"95% interval {interval(e.ci_low, e.ci_high, digits)}" if e.ci_low is not None else f"no interval: {e.reason}"
    )
    return f"{number(e.value, digits)}, {between}, {plural(e.n, what)}"


def _agreement(panel: PanelPart) -> str:
    alpha = panel.krippendorff_alpha
    if alpha.value is None:
        return f"How far the judges agree cannot be measured ({alpha.reason}), so this panel vouches for nothing."
    figures = f"Krippendorff’s alpha {_told(alpha)}"
    if alpha.ci_low is None:
        return f"{figures}: with no interval, nothing can be said of how firm the verdicts are."
    if alpha.ci_low >= FIRM:
        return f"The judges agree well ({figures}): the verdict on a single trace can be relied on."
    if alpha.ci_low >= TENTATIVE:
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


def _lopsided(panel: PanelPart) -> Iterator[str]:
    valid, ac1 = panel.prevalence.value, panel.gwet_ac1
    if valid is not None and max(valid, 1 - valid) >= LOPSIDED and ac1.value is not None:
        what = "VALID" if valid > 0.5 else "INVALID"
        yield (
            f"{number(100 * max(valid, 1 - valid), 0)}% of the verdicts say {what}. Kappa and alpha fall then although "
            f"judges hardly differ; Gwet’s AC1, which does not, is {_told(ac1)}. Judges who nearly always say the same "
            "tell little apart, however much they agree."
        )


def _majority(panel: PanelPart) -> str:
    if not panel.votes:
        return "No verdict was given, so no trace is upheld or refused; all are for people."
    row = panel.votes[0]
    total = row.valid + row.invalid + row.open
    return (
        f"A strict majority of the assigned seats, failures and abstentions counted, upholds {share(row.valid, total)} "
        f"of {plural(total, 'trace')} as VALID and {share(row.invalid, total)} as INVALID; {share(row.open, total)} "
        "have no majority and are for people."
    )


def _incomplete(panel: PanelPart) -> Iterator[str]:
    if panel.judges_per_trace is not None:
        yield (
            f"Each trace went to {plural(panel.judges_per_trace, 'judge')}, dealt so that every judge has equally many "
            "of each model: what was not asked by design is no loss, shares of VALID are unbiased, and the verdict on "
            "a single trace rests on fewer judges."
        )


def _savings(panel: PanelPart) -> Iterator[str]:
    if panel.adaptive:
        saved = panel.seats - panel.asked
        yield (
            f"Panels were adaptive: {plural(saved, 'call')} of {plural(panel.seats, 'seat')} were saved "
            f"({share(saved, panel.seats)}), with the majorities that asking all would have. Agreement and leanings "
            "rest on the judges that were asked whatever the others said."
        )


def _shared(panel: PanelPart) -> str:
    if not panel.faults:
        return (
            "No majority corrects an error that its judges share. Whether these would notice one is not tested: "
            "`auditor experiment planted` plants known faults and counts who does."
        )
    blind = [f for f in panel.faults if f.difference.ci_low is None or f.difference.ci_low <= 0]
    told = (
        f"Of {plural(len(panel.faults), 'pair')} of a judge and a planted fault, {len(panel.faults) - len(blind)} show "
    )
    told += "detection beyond the judge’s false alarms"
    if not blind:
        return f"{told}: the panel notices each kind of fault that was planted."
    kinds = ", ".join(
        dict.fromkeys(f"{f.fault} ({', '.join(b.judge for b in blind if b.fault == f.fault)})" for f in blind)
    )
    return f"{told}. Not shown to be noticed: {kinds}. A bias of that kind the panel would only repeat."


def _blinding(panel: PanelPart) -> str:
    if not panel.guesses:
        return (
            "Whether the judges could tell country, topic or author from a blinded trace is not measured: set "
            "`guess = true` under [probes.review]."
        )
    leaks = [g for g in panel.guesses if g.hits.ci_low is not None and g.hits.ci_low > g.chance]
    if not leaks:
        return "No judge guesses country, topic or author beyond chance: blinding holds as far as these samples show."
    told = "; ".join(
        f"{g.judge} the {g.what} ({number(100 * (g.hits.value or 0), 0)}%, "
        f"{interval(100 * (g.hits.ci_low or 0), 100 * (g.hits.ci_high or 0), 0)}%, chance {number(100 * g.chance, 0)}%)"
        for g in leaks
    )
    return f"Blinding leaks: beyond chance guess {told}."


def _leanings(judges: Sequence[JudgeRow]) -> Iterator[str]:
    told, tests = [], 0
    for name, words in LEANINGS.items():
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
            points = f"{signed(100 * e.value, 0)} points, {interval(100 * e.ci_low, 100 * e.ci_high, 0)}"
            found.append(f"{judge.judge} {how} ({points})")
        if found:
            told.append(f"Beyond chance, {'; '.join(found)}.")
    if told:
        yield from told[:-1]
        expected = f"about {number(tests / 20, 1)} would show" if tests > 1 else "one in twenty such tests shows"
        yield f"{told[-1]} Of {plural(tests, 'leaning')} tested, {expected} this much where there is nothing."


def _rules(panel: PanelPart) -> Iterator[str]:
    for row in panel.votes[1:]:
        if row.reason is not None:
            yield f"Votes counted otherwise ({row.rule}) say nothing: {row.reason}."
        elif row.differs.value is not None:
            opposed = round(row.differs.value * row.differs.n)
            yield (
                f"Votes counted otherwise ({row.rule}) say the opposite of the plain majority on {opposed} of "
                f"{plural(row.differs.n, 'trace')} that both settle, and leave {row.open} open."
            )


def _peers(panel: PanelPart) -> Iterator[str]:
    for row in panel.peer_alignment:
        r, by = row.r, f" (by {row.method})" if len(panel.peer_alignment) > 1 else ""
        if r.value is None or r.ci_low is None or r.ci_high is None:
            why = r.reason or ""
            value = f"r = {number(r.value)}, " if r.value is not None else ""
            yield (
                f"Whether peers prefer models that agree with people{by} cannot be told ({value}{why}; "
                f"n = {r.n} models)."
            )
            continue
        figures = f"r = {number(r.value)}, 95% interval {interval(r.ci_low, r.ci_high)}, n = {r.n} models"
        if r.ci_low > 0:
            yield f"Peers prefer models that agree with people{by} ({figures})."
        elif r.ci_high < 0:
            yield f"Peers prefer models that disagree with people{by} ({figures})."
        else:
            yield (
                f"Over these models, peer agreement says nothing firm of agreement with people{by} ({figures}): it is "
                "no stand-in for a survey."
            )
