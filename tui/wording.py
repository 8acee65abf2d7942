"""Decisions in words, the same on the screen and in plain text."""

from __future__ import annotations

from auditor.domain import Act, Decision
from auditor.storage.rating_log import Entry
from auditor.tui.formatting import line, signed

SENTENCES = {
    Decision.LEFT: "left is right",
    Decision.RIGHT: "right is right",
    Decision.BOTH: "both are right",
    Decision.NEITHER: "neither is right",
    Decision.SCORE: "a score of your own",
    Decision.SKIP: "undecided",
}


def said(decision: Decision, score: float | None = None) -> str:
    """A decision about the sides shown, as a sentence."""
    own = f": {signed(score)}" if decision is Decision.SCORE and score is not None else ""
    return SENTENCES[decision] + own


def taken_back(act: Act, entry: Entry | None) -> str:
    """What an undo or a redo did."""
    if entry is None:
        return f"Nothing to {act}."
    rating = entry.rating
    verb = "Undone" if act is Act.UNDO else "Redone"
    now = [said(rating.decision, rating.score)]
    now += ["flagged"] * rating.flagged + ["with a note"] * bool(rating.note)
    return f"{verb}. {line(rating.cell.topic)} in {line(rating.cell.country)} is now: {', '.join(now)}."


def did(entry: Entry) -> str:
    """One row of the log."""
    rating = entry.rating
    what = {
        Act.DECIDE: "skipped" if not rating.decision.settles else said(rating.decision, rating.score),
        Act.NOTE: f"note: {line(rating.note)}" if rating.note else "note taken off",
        Act.FLAG: "flagged" if rating.flagged else "flag taken off",
        Act.REVEAL: "asked to see what is hidden",
        Act.UNDO: f"undone; now: {said(rating.decision, rating.score)}",
        Act.REDO: f"redone; now: {said(rating.decision, rating.score)}",
    }[rating.act]
    seen = "" if not rating.shown else " (not blind)"
    took = "" if rating.duration_s is None or rating.duration_s < 1 else f" after {rating.duration_s:.0f} s"
    return f"{rating.decided_at:%Y-%m-%d %H:%M:%S} {what}{took}{seen}"
