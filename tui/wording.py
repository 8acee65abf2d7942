"""Describe decisions and log entries in words, for the screen and the plain-text interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from auditor.domain import Decision, RatingAction
from auditor.domain.labels import LabelUnit
from auditor.domain.review_aspects import REVIEW_ASPECTS
from auditor.reports.number_format import pluralize
from auditor.review.item import ReviewItem
from auditor.storage.conflict_effect import ConflictEffect
from auditor.storage.rating_log import RatingEntry
from auditor.tui.formatting import format_cell, format_score, to_single_line

if TYPE_CHECKING:  # they load numpy (0.1 s)
    from auditor.review.label_queue import OpenUnit
    from auditor.review.rater_agreement import PairAgreement

NOTHING_LEFT_TO_LABEL = "You have labelled every text of the sample that is left to you."


def describe_decision(decision: Decision, score: float | None = None) -> str:
    """Describe a decision about the sides as shown, with its custom score if it has one."""
    score_note = f" {format_score(score)}" if decision.needs_score and score is not None else ""
    return decision.spec.phrase + score_note


def explain_missing_scores(item: ReviewItem) -> str:
    """Say what a rater can do instead of giving a score, for sides that have none."""
    *first, last = [decision.value for decision in item.possible_decisions if decision.resolves_conflict]
    return f"choose {', '.join(first)} or {last}, or write a note."


def describe_undo(act: RatingAction, entry: RatingEntry | None) -> str:
    """Describe the state after an undo or redo; `entry` is None if there was nothing to undo or redo."""
    if entry is None:
        return f"There is nothing to {act}."
    rating = entry.rating
    verb = "Undone" if act is RatingAction.UNDO else "Redone"
    state_parts = [describe_decision(rating.decision, rating.score)]
    state_parts += ["flagged"] * rating.flagged + ["with a note"] * bool(rating.note)
    following_note = (
        f" This includes {pluralize(entry.n_following, 'other conflict')} of the cell." if entry.n_following else ""
    )
    return f"{verb}. {format_cell(*rating.cell)} is now: {', '.join(state_parts)}.{following_note}"


EFFECT_LABELS = {
    ConflictEffect.HIGH: "can change who is ahead",
    ConflictEffect.SOME: "may change who is ahead",
    ConflictEffect.NONE: "cannot change who is ahead",
}
EFFECT_REASONS = {
    ConflictEffect.HIGH: "Both sides have been right about equally often. This decision can change which is ahead.",
    ConflictEffect.SOME: "One side has been right more often. The open conflicts can still change which is ahead.",
    ConflictEffect.NONE: "One side has been right so often that the open conflicts cannot change which is ahead.",
}


def describe_open_next(is_on: bool) -> str:
    """Describe what happens after a decision, for the setting `open_next`."""
    if is_on:
        return "After a decision, the next conflict opens. Authors, verdicts and survey stay hidden."
    return "After a decision, this conflict stays open and shows authors, verdicts and survey."


def describe_open_next_unit(is_on: bool) -> str:
    """Describe what happens after a label, for the setting `open_next`."""
    return "After a label, the next text opens." if is_on else "After a label, this text stays open."


def describe_label(opened: OpenUnit) -> str:
    """Describe a rater's label on a unit: the choice, and the answers on aspects if any."""
    label = opened.choice.label if opened.choice is not None else "no label"
    answers = opened.draft.aspects
    aspects = [
        f"{aspect.label} {'yes' if answers[aspect.name] else 'no'}"
        for aspect in REVIEW_ASPECTS
        if aspect.name in answers
    ]
    return f"{label} ({', '.join(aspects)})" if aspects else label


def describe_missing(missing: Mapping[LabelUnit, str]) -> str:
    """Say how many units cannot be shown and why; without their names, which are hidden from raters."""
    reasons = " ".join(dict.fromkeys(missing.values()))
    return f"{pluralize(len(missing), 'text')} of the sample cannot be shown, and stay unlabelled. {reasons}"


def describe_own_agreement(agreement: PairAgreement, rater: str) -> str:
    """Describe a rater's agreement with another one, with its interval for these units if there is no other."""
    share = agreement.raw_agreement
    other = agreement.rater_b if agreement.rater_a == rater else agreement.rater_a
    if share.value is None:
        return ""
    low, high = (share.ci_low, share.ci_high) if share.ci_low is not None else (share.cells_ci_low, share.cells_ci_high)
    interval = "" if low is None or high is None else f"95% CI {low:.0%} to {high:.0%}, "
    return f"you agree with {to_single_line(other)} on {share.value:.0%} ({interval}{pluralize(share.n, 'text')})"


def describe_log_entry(entry: RatingEntry) -> str:
    """Describe a row of the rating log: time, action, duration, and whether it was blind."""
    rating = entry.rating
    action_text = {
        RatingAction.DECIDE: describe_decision(rating.decision, rating.score)
        if rating.decision.resolves_conflict
        else rating.decision.spec.label,
        RatingAction.NOTE: f"note: {to_single_line(rating.note)}" if rating.note else "note removed",
        RatingAction.FLAG: "flagged" if rating.flagged else "flag removed",
        RatingAction.REVEAL: "hidden evidence shown",
        RatingAction.FOLLOW: f"settled with another conflict of this cell: "
        f"{describe_decision(rating.decision, rating.score)}",
        RatingAction.UNDO: f"undone; now: {describe_decision(rating.decision, rating.score)}",
        RatingAction.REDO: f"redone; now: {describe_decision(rating.decision, rating.score)}",
    }[rating.act]
    blind_note = "" if not rating.shown else " (not blind)"
    duration_note = "" if rating.duration_s is None or rating.duration_s < 1 else f" after {rating.duration_s:.0f} s"
    return f"{rating.decided_at:%Y-%m-%d %H:%M:%S} {action_text}{duration_note}{blind_note}"
