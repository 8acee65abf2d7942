"""What scripted judges answer about the review aspects."""

from __future__ import annotations

from auditor.domain.decisions import aspect_questions


def rate_aspects(default: bool = True, *, for_task: bool = False, **ratings: bool) -> dict[str, bool]:
    """Ratings of all aspects by key of the judge's JSON: `default`, or what `ratings` says of a key."""
    return {
        question.key: ratings.get(question.key, default) for question in aspect_questions(for_task=for_task).values()
    }
