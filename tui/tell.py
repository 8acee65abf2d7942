"""Audits, conflicts and what is hidden of them as sentences, with no sign that a screen reader would stumble on."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.domain import Outcome, Ruling, Verdict
from auditor.review.item import Item, Side
from auditor.storage.overview import Overview
from auditor.storage.standing import QueueRow, Standing
from auditor.tui.paint import STANDING_WORDS, line, prose
from auditor.tui.words import said


def tell_audit(number: int, overview: Overview) -> str:
    """One line about an audit."""
    waiting = overview.conflicts[Standing.OPEN] + overview.conflicts[Standing.DISPUTED]
    going = "stopped" if overview.runner is None else "running"
    state = "done" if overview.is_done else f"{going} at stage {line(overview.audit.stage)}"
    progress = "" if overview.progress is None else f", {overview.progress:.0%} of the samples in"
    usable = "" if overview.coverage is None else f", {overview.coverage:.0%} of them usable"
    cost = "cost unknown" if overview.cost_usd is None else f"cost {overview.cost_usd:.2f} dollars"
    name = line(overview.audit.name)
    return f"{number}. {name}: {state}{progress}{usable}, {cost}, {waiting} of {overview.total} conflicts waiting."


def tell_row(place: int, row: QueueRow) -> str:
    """One line of the queue."""
    yours = "undecided" if row.decision is None or not row.decision.settles else said(row.decision, row.score)
    flag = ", flagged" if row.flagged else ""
    scores = f"left {row.score_left:+.2f}, right {row.score_right:+.2f}"
    cell = f"{line(row.key.topic)} in {line(row.key.country)}"
    return f"{place}. {cell}: {row.kind}, {scores}, {STANDING_WORDS[row.standing]}, yours: {yours}{flag}."


def tell_item(item: Item) -> Iterator[str]:
    """A conflict, as far as the rater may see it."""
    yield f"{line(item.key.topic)} in {line(item.key.country)}. {line(item.question)}"
    second = " A second opinion is wanted." if item.wants_second else ""
    yield f"Kind: {item.row.kind}. State: {STANDING_WORDS[item.row.standing]}.{second}"
    for name, side in (("Left", item.left), ("Right", item.right)):
        scores = ", ".join(f"{s.score:+.2f}" for s in side.samples if s.score is not None) or "none"
        yield f"{name} scores {side.score:+.2f}; its samples: {scores}."
    yield from tell_samples(item, 0)
    if item.row.note:
        yield f"Your note: {line(item.row.note)}"
    if item.row.flagged:
        yield "You flagged it."
    if item.revealed:
        yield from tell_hidden(item)
    else:
        yield "Authors, verdicts and survey are hidden until you decide: left, right, both, neither, score, or skip."


def tell_samples(item: Item, number: int) -> Iterator[str]:
    """Both sides' reasoning in one sample; past the last it begins anew."""
    for name, side in (("Left", item.left), ("Right", item.right)):
        if not side.samples:
            yield f"{name} has no sample."
            continue
        sample = side.samples[number % len(side.samples)]
        score = sample.outcome.value if sample.score is None else f"{sample.score:+.2f}"
        yield f"{name}, sample {sample.number + 1} of {len(side.samples)}, {score}:"
        yield "  " + prose(sample.text or "no text came back").replace("\n", "\n  ")


def tell_hidden(item: Item) -> Iterator[str]:
    """Authors, survey and verdicts."""
    if item.decision is not None and item.decision.settles:
        yield f"You said: {said(item.decision, item.row.score)}."
    if item.first is not None:
        yield f"You first said: {said(item.first)}. Both decisions are kept."
    yield f"Left is by {line(item.left.author or 'unknown')}, right by {line(item.right.author or 'unknown')}."
    if item.survey is None or item.survey.score is None:
        yield "The survey did not ask this here."
    else:
        truth = item.survey.score
        away = f"left is {abs(item.left.score - truth):.2f} away, right {abs(item.right.score - truth):.2f}"
        asked = "" if item.survey.n is None else f" ({item.survey.n} asked)"
        yield f"The survey says {truth:+.2f}{asked}: {away}."
    for name, side in (("left", item.left), ("right", item.right)):
        yield from _verdicts(name, side)


def _verdicts(name: str, side: Side) -> Iterator[str]:
    valid = sum(v.ruling is Ruling.VALID for v in side.verdicts)
    given = sum(v.ruling is not None for v in side.verdicts)
    yield f"Judges on the {name}: {valid} of {given} VALID." if given else f"Judges on the {name}: no verdict."
    for verdict in side.verdicts:
        yield f"  {line(verdict.judge)}, sample {verdict.sample + 1}: {_ruling(verdict)}"


def _ruling(verdict: Verdict) -> str:
    if verdict.outcome is not Outcome.OK or verdict.ruling is None:
        return f"{verdict.outcome}."
    return f"{verdict.ruling}. {line(verdict.justification or '')}".rstrip()
