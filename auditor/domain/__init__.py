"""The words of the field as types: cells, calls, answers, traces, verdicts, conflicts, ratings, surveys.

Everything here is frozen data without behaviour beyond small derivations; scores are in [-1, 1], where +1 is
"always acceptable" and -1 "never acceptable".
"""

from __future__ import annotations

from auditor.domain.audit_records import (
    CellScore,
    Conflict,
    Contest,
    Contrast,
    Guess,
    Rating,
    Restatement,
    Trace,
    Trial,
    Verdict,
)
from auditor.domain.calls import Answer, Attempt, Body, Call, Message, total_cost
from auditor.domain.comparisons import Choice, Comparison, Item, ItemSet, Relation
from auditor.domain.ground_truth import Grouping, Phrasing, Region, Survey, SurveyCell
from auditor.domain.identifiers import canonical_hash, canonical_json, derive_seed, model_of_side, side_by_method
from auditor.domain.tasks import LETTERS, AnswerKind, Task, TaskItem, lettered
from auditor.domain.terms import (
    ENGLISH,
    LANGUAGES,
    NATIVE,
    SCORE_MAX,
    SCORE_MIN,
    Act,
    Cell,
    ConflictKind,
    ConflictState,
    Decision,
    Measure,
    Method,
    Outcome,
    Purpose,
    Ruling,
)

__all__ = [
    "ENGLISH",
    "LANGUAGES",
    "LETTERS",
    "NATIVE",
    "SCORE_MAX",
    "SCORE_MIN",
    "Act",
    "Answer",
    "AnswerKind",
    "Attempt",
    "Body",
    "Call",
    "Cell",
    "CellScore",
    "Choice",
    "Comparison",
    "Conflict",
    "ConflictKind",
    "ConflictState",
    "Contest",
    "Contrast",
    "Decision",
    "Grouping",
    "Guess",
    "Item",
    "ItemSet",
    "Measure",
    "Message",
    "Method",
    "Outcome",
    "Phrasing",
    "Purpose",
    "Rating",
    "Region",
    "Relation",
    "Restatement",
    "Ruling",
    "Survey",
    "SurveyCell",
    "Task",
    "TaskItem",
    "Trace",
    "Trial",
    "Verdict",
    "canonical_hash",
    "canonical_json",
    "derive_seed",
    "lettered",
    "model_of_side",
    "side_by_method",
    "total_cost",
]
