"""Scores that are rescaled within each model, such as those from log-probabilities."""

from __future__ import annotations

from auditor.domain import Method

RESCALED_SCORES_REASON = (
    "log-probability scores are rescaled to the full scale within each model, so their distance from people has no "
    "meaning"
)


def has_rescaled_scores(method: str) -> bool:
    """Whether scores by a method are rescaled within each model, so that they can be ranked but not subtracted.

    A log-probability score depends on all other cells of its model, so its distance from people's score means nothing.
    """
    return method == Method.LOGPROB
