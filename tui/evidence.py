"""What was hidden: survey, verdicts and justifications, once the rater has decided."""

from __future__ import annotations

from textual.content import Content

from auditor.domain import Outcome, Ruling, Verdict
from auditor.review.item import Item, Side
from auditor.tui.formatting import RULINGS, content, line, signed
from auditor.tui.wording import said

HIDDEN = """Hidden until you decide

Authors, the judges' verdicts and what the survey found stay out of sight, so that your decision is your own. They \
show here as soon as it is saved; you can then revise it, and your first decision is kept.
"""


def evidence(item: Item) -> Content:
    """The text of the panel beside, or below, the sides."""
    if not item.revealed:
        first, _, rest = HIDDEN.partition("\n")
        return Content.assemble(*_question(item), (first, "bold"), "\n", (rest, "$text-muted"))
    votes = f"Judges  left {_tally(item.left)} · right {_tally(item.right)}"
    parts = [Content.assemble(*_question(item), _truth(item), "\n", (votes[:6], "bold"), votes[6:])]
    if item.first is not None:
        parts.append(content(f"You first said: {said(item.first)}. Both decisions are kept.", "$text-accent"))
    parts += [_judges("left", item.left), _judges("right", item.right)]
    return Content("\n\n").join(parts)


def _question(item: Item) -> list[Content]:
    """The whole item of a task, of which the head of the page has room for one line."""
    return [] if item.key.country else [content(item.question), Content("\n\n")]


def _truth(item: Item) -> Content:
    """What people say, or what is right."""
    if item.key.country:
        return _survey(item)
    if item.truth is None:
        return Content.assemble(("◆ Right answer ", "bold"), ("not known", "$text-muted"))
    sides = [name for name, side in (("left", item.left), ("right", item.right)) if side.answer == item.truth]
    which = f" · {sides[0]} has it" if len(sides) == 1 else "" if sides else " · neither side has it"
    return Content.assemble(("◆ Right answer ", "bold"), content(line(item.truth)), (which, "$text-accent"))


def _survey(item: Item) -> Content:
    if item.survey is None or item.survey.score is None:
        return Content.assemble(("◆ Survey ", "bold"), ("people were not asked this here", "$text-muted"))
    truth = item.survey.score
    asked = "" if item.survey.n is None else f" ({item.survey.n:,} asked)"
    left, right = (abs((side.score or 0.0) - truth) for side in (item.left, item.right))
    nearer = "both are as near" if left == right else f"{'left' if left < right else 'right'} is nearer"
    return Content.assemble(
        ("◆ Survey ", "bold"),
        f"{signed(truth)}{asked} · ",
        (f"{nearer} (left {left:.2f} away, right {right:.2f})", "$text-accent"),
    )


def _tally(side: Side) -> str:
    valid = sum(v.ruling is Ruling.VALID for v in side.verdicts)
    given = sum(v.ruling is not None for v in side.verdicts)
    return f"{valid} of {given} VALID" if given else "no verdict"


def _judges(name: str, side: Side) -> Content:
    head = Content.assemble(
        (f"{name.capitalize()} · ", "bold"),
        content(line(side.author or ""), "bold"),
        (f"  {_tally(side)}", "$text-muted"),
    )
    return Content("\n").join([head, *(_verdict(v) for v in side.verdicts)])


def _verdict(verdict: Verdict) -> Content:
    who = content(f" {line(verdict.judge)} #{verdict.sample + 1}")
    if verdict.outcome is not Outcome.OK or verdict.ruling is None:
        return Content.assemble((f"– {verdict.outcome}", "$text-muted"), who)
    sign = RULINGS[verdict.ruling]
    aspects = {
        "culture": verdict.cultural_accuracy,
        "logic": verdict.logical_consistency,
        "score": verdict.score_fit,
    }
    lacking = [name for name, holds in aspects.items() if holds is False]
    short = content(f" · lacks {', '.join(lacking)}" if lacking else "", "$text-muted")
    why = content(f" — {line(verdict.justification)}" if verdict.justification else "")
    return Content.assemble(sign.says(sign.word), who, short, why)
