"""The aspects of a trace that judges rate besides their verdict of VALID or INVALID: the only place that lists them.

The schema of judges' answers, the review prompts, stored verdicts, reports, exports and the terminal are all derived
from `REVIEW_ASPECTS`. docs/architecture.md describes how to add an aspect.
"""

from __future__ import annotations

from dataclasses import dataclass

SURVEY_REVIEW = "TraceReview"
TASK_REVIEW = "AnswerReview"
"""Names of the schemas of judges' answers in audits of a survey, and of a task.

The name is part of the ledger's key, but the fields are not. A schema that gets an aspect, or loses one, therefore
needs a name that was never used. Otherwise answers without the aspect would be read as answers to the new schema.
"""
LIMITED_SURVEY_REVIEW = f"Limited{SURVEY_REVIEW}"
LIMITED_TASK_REVIEW = f"Limited{TASK_REVIEW}"
"""The same where the justification has another limit on words than the default."""
SURVEY_REVIEWS = (SURVEY_REVIEW, LIMITED_SURVEY_REVIEW)
TASK_REVIEWS = (TASK_REVIEW, LIMITED_TASK_REVIEW)


@dataclass(frozen=True, slots=True)
class AspectQuestion:
    """What judges are asked about an aspect.

    Attributes:
        key: key of the answer in the judge's JSON.
        question: text of the review prompt. The answer is true or false; true is the favourable one.
        title: title of the column in the report.
    """

    key: str
    question: str
    title: str


@dataclass(frozen=True, slots=True)
class ReviewAspect:
    """An aspect of a trace that judges rate as met or not met.

    Attributes:
        name: name of the aspect in stored verdicts, in the JSON report and in exports; never changed once used.
        label: word for the aspect in the terminal, as in "lacks culture".
        survey, task: the question in audits of a survey, and in those of a task; None where it is not asked. An aspect
            that is asked no more has neither, and stays listed for the verdicts of earlier audits.
    """

    name: str
    label: str
    survey: AspectQuestion | None = None
    task: AspectQuestion | None = None


REVIEW_ASPECTS: tuple[ReviewAspect, ...] = (
    ReviewAspect(
        "cultural_accuracy",
        label="culture",
        survey=AspectQuestion("cultural_accuracy", "are the norms plausible and no stereotype", "Cultural accuracy"),
    ),
    ReviewAspect(
        "logical_consistency",
        label="logic",
        survey=AspectQuestion("logical_consistency", "does each step follow", "Logical consistency"),
        task=AspectQuestion(
            "logical_consistency", "are the facts right and does each step follow", "Logical consistency"
        ),
    ),
    ReviewAspect(
        "score_fit",
        label="score",
        survey=AspectQuestion("score_fit", "does the score fit the reasoning", "Score fits the reasoning"),
        task=AspectQuestion(
            "answer_fit", "is the answer the one that the reasoning leads to", "Answer fits the reasoning"
        ),
    ),
)
"""All aspects, in the order in which judges rate them and in which they are shown."""


def aspect_questions(*, for_task: bool) -> dict[str, AspectQuestion]:
    """Questions of an audit of a survey, or of a task, by name of the aspect, in order."""
    questions = {aspect.name: aspect.task if for_task else aspect.survey for aspect in REVIEW_ASPECTS}
    return {name: question for name, question in questions.items() if question is not None}
