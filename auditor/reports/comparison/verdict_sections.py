"""What judges and people ruled on either side of a comparison, in words and tables."""

from __future__ import annotations

from auditor.reports.comparison.schema import FlipPart, SettlementsPart, VerdictsPart
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count, interval, p_value, plural, share, signed
from auditor.reports.pages.report_page import Chapter, Grid

SETTLED_BY = {"majority": "judges", "person": "people"}
SAME = {True: "the same", False: "another", None: "not recorded"}


def verdict_sentence(v: VerdictsPart) -> str:
    """How far two sides' verdicts agree, in one sentence or two."""
    same = v.both_valid + v.both_invalid
    p = "" if v.p_value is None else f" ({p_text(v.p_value)} by a sign-flip test over cells)"
    on = "the same answer" if v.about == "answers" else "the same cell"
    told = (
        f"{v.first} and {v.second} rule alike in {share(same, v.n)} of {plural(v.n, 'verdict')} on {on}, of "
        f"{plural(v.traces, 'trace')}; {count(v.to_valid)} went from INVALID to VALID and {count(v.to_invalid)} from "
        f"VALID to INVALID{p}."
    )
    return told if v.about == "answers" else f"{told} No answer is the same in both, so not only the judges changed."


def verdicts_chapter(v: VerdictsPart) -> Chapter:
    """Verdicts of two sides, and those that differ."""
    columns = ["Country", "Topic", "Model", "Judge", "Other judge", "Sample", v.first, v.second, "Answer"]
    text = [verdict_sentence(v), f"Agreement of the two beyond chance (Scott’s pi): {with_interval(v.kappa)}."]
    text.append(f"Share of VALID, second less first: {with_interval(v.change)}. Intervals are over cells.")
    if v.other_answers:
        text.append(f"{plural(v.other_answers, 'verdict')} more are on other answers, and in none of these figures.")
    if v.not_listed:
        text.append(f"{plural(v.not_listed, 'flip')} more are not listed; --flips N lists more.")
    grids = [Grid("Verdicts that differ.", columns, [_flip(f) for f in v.flips])] if v.flips else []
    return Chapter(f"Verdict flips: {v.first} and {v.second}", text, grids=grids)


def _flip(f: FlipPart) -> list[str]:
    told = [f.country, f.topic, f.model, f.judge, f.other_judge, count(f.sample), f.first, f.second]
    return [*told, SAME[f.same_answer]]


def settled_sentence(s: SettlementsPart) -> str:
    """How many conflicts were settled otherwise, in one sentence."""
    found = f"{s.first} and {s.second} have {plural(s.shared, 'conflict')} in common"
    if s.n == 0:
        return f"{found}, none of which both settled for a side."
    return (
        f"{found}; of {count(s.n)} that both settled for a side, {count(s.flipped)} ({_percent(s.share)}) went the "
        "other way."
    )


def settled_chapter(s: SettlementsPart) -> Chapter:
    """Conflicts that two audits share, and those that they settled for different sides."""
    text = [settled_sentence(s)]
    rest = [f"only {s.first} settled {count(s.only_first)}", f"only {s.second} {count(s.only_second)}"]
    text.append(f"Of the conflicts in common {', '.join(rest)}, and neither {count(s.neither)}.")
    if s.not_listed:
        text.append(f"{plural(s.not_listed, 'conflict')} more are not listed; --flips N lists more.")
    columns = ["Country", "Topic", f"Upheld in {s.first}", "By", f"Upheld in {s.second}", "By"]
    rows = [
        [f.country, f.topic, f.first_winner, SETTLED_BY[f.first_by], f.second_winner, SETTLED_BY[f.second_by]]
        for f in s.flips
    ]
    grids = [Grid("Conflicts settled for one side and for the other.", columns, rows)] if rows else []
    return Chapter(f"Settlement flips: {s.first} and {s.second}", text, grids=grids)


def _percent(e: Estimate) -> str:
    value, low, high = (f"{100 * (v or 0.0):.0f}%" for v in (e.value, e.ci_low, e.ci_high))
    return f"{value}, 95% interval {low} to {high}"


def with_interval(e: Estimate) -> str:
    """A signed figure with its interval, or why there is none."""
    if e.value is None:
        return f"not measurable: {e.reason}"
    return f"{signed(e.value)} ({interval(e.ci_low, e.ci_high) if e.ci_low is not None else e.reason})"


def p_text(value: float | None) -> str:
    """A p-value as it stands in a sentence."""
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
