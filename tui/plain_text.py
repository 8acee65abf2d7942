"""Audits, conflicts and what is hidden of them as sentences, with no sign that a screen reader would stumble on."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.domain import Outcome, Ruling, Verdict
from auditor.review.item import Item, Side
from auditor.storage.conflict_status import QueueRow, Standing
from auditor.storage.overview import Overview
from auditor.tui.formatting import STANDING_WORDS, line, prose, whereabouts
from auditor.tui.wording import said


def tell_audit(number: int, overview: Overview) -> str:
    """One line about an audit."""
    waiting = overview.conflicts[Standing.OPEN] + overview.conflicts[Standing.DISPUTED]
    going = "stopped" if overview.runner is None else "running"
    state = "done" if overview.is_done else f"{going} at stage {line(overview.audit.stage)}"
    progress = "" if overview.progress is None else f", {overview.progress:.0%} of the samples in"
    progress += f", {overview.answers:,} moral answers" if overview.answers else ""
    progress += f", {overview.comparisons:,} comparisons" if overview.comparisons else ""
    usable = "" if overview.coverage is None else f", {overview.coverage:.0%} of them usable"
    cost = "cost unknown" if overview.cost_usd is None else f"cost {overview.cost_usd:.2f} dollars"
    name = line(overview.audit.name)
    return f"{number}. {name}: {state}{progress}{usable}, {cost}, {waiting} of {overview.total} conflicts waiting."


def tell_row(place: int, row: QueueRow) -> str:
    """One line of the queue."""
    yours = "undecided" if row.decision is None or not row.decision.settles else said(row.decision, row.score)
    flag = ", flagged" if row.flagged else ""
    scores = f"left {_stands(row.score_left, row.answer_left)}, right {_stands(row.score_right, row.answer_right)}"
    cell = whereabouts(row.key.country, row.key.topic)
    return f"{place}. {cell}: {row.kind}, {scores}, {STANDING_WORDS[row.standing]}, yours: {yours}{flag}."


def tell_item(item: Item) -> Iterator[str]:
    """A conflict, as far as the rater may see it."""
    yield f"{whereabouts(item.key.country, item.key.topic)}. {line(item.question)}"
    second = " A second opinion is wanted." if item.wants_second else ""
    yield f"Kind: {item.row.kind}. State: {STANDING_WORDS[item.row.standing]}.{second}"
    for name, side in (("Left", item.left), ("Right", item.right)):
        samples = [s for s in side.samples if s.score is not None or s.answer is not None]
        scores = ", ".join(_stands(s.score, s.answer) for s in samples) or "none"
        verb = "scores" if side.answer is None else "answers"
        yield f"{name} {verb} {_stands(side.score, side.answer)}; its samples: {scores}."
    yield from tell_samples(item, 0)
    if item.row.note:
        yield f"Your note: {line(item.row.note)}"
    if item.row.flagged:
        yield "You flagged it."
    if item.revealed:
        yield from tell_hidden(item)
    else:
        truth, score = ("survey", " score,") if item.key.country else ("the right answer", "")
        yield f"Authors, verdicts and {truth} are hidden until you decide: left, right, both, neither,{score} or skip."
        if item.known:
            yield "You have seen this cell in another conflict, so your decision settles this one but is not blind."


def tell_samples(item: Item, number: int) -> Iterator[str]:
    """Both sides' reasoning in one sample; past the last it begins anew."""
    for name, side in (("Left", item.left), ("Right", item.right)):
        if not side.samples:
            yield f"{name} has no sample."
            continue
        sample = side.samples[number % len(side.samples)]
        is_usable = sample.score is not None or sample.answer is not None
        score = _stands(sample.score, sample.answer) if is_usable else sample.outcome.value
        yield f"{name}, sample {sample.number + 1} of {len(side.samples)}, {score}:"
        yield "  " + prose(sample.text or "no text came back").replace("\n", "\n  ")


def tell_hidden(item: Item) -> Iterator[str]:
    """Authors, survey and verdicts."""
    if item.decision is not None and item.decision.settles:
        yield f"You said: {said(item.decision, item.row.score)}."
    if item.first is not None:
        yield f"You first said: {said(item.first)}. Both decisions are kept."
    yield f"Left is by {line(item.left.author or 'unknown')}, right by {line(item.right.author or 'unknown')}."
    if not item.key.country:
        yield f"The right answer is {line(item.truth)}." if item.truth is not None else "The right answer is not known."
    elif item.survey is None or item.survey.score is None:
        yield "The survey did not ask this here."
    else:
        truth = item.survey.score
        left, right = (abs((side.score or 0.0) - truth) for side in (item.left, item.right))
        away = f"left is {left:.2f} away, right {right:.2f}"
        asked = "" if item.survey.n is None else f" ({item.survey.n} asked)"
        yield f"The survey says {truth:+.2f}{asked}: {away}."
    for name, side in (("left", item.left), ("right", item.right)):
        yield from _verdicts(name, side)


def _stands(score: float | None, answer: str | None) -> str:
    return line(answer) if answer is not None else "no score" if score is None else f"{score:+.2f}"


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
