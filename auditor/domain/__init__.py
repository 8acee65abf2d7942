"""Domain types: cells, calls, answers, traces, verdicts, conflicts, ratings, surveys.

All are immutable data with a few derived properties. Scores are in [-1, 1], from -1 ("never acceptable") to +1
("always acceptable").
"""

from __future__ import annotations

from auditor.domain.attempts import Attempt, ResponseBody
from auditor.domain.audit_records import (
    AlteredTraceVerdict,
    CellScore,
    Claim,
    Conflict,
    Contest,
    Guess,
    Rating,
    Restatement,
    SentencePairScore,
    Trace,
    Verdict,
)
from auditor.domain.calls import Answer, Call, Message, total_cost
from auditor.domain.capabilities import (
    AnswerForm,
    Capability,
    CapabilityKey,
    DeclaredCapabilities,
    ReasoningSettings,
    TokenLimitParam,
)
from auditor.domain.conflict_kinds import ConflictKind, ConflictSides
from auditor.domain.decisions import Decision
from auditor.domain.ground_truth import Grouping, Phrasing, Region, Survey, SurveyCell, TopicQuestion
from auditor.domain.identifiers import (
    canonical_hash,
    canonical_json,
    derive_seed,
    hash_rows,
    method_side_name,
    parse_method_side,
)
from auditor.domain.languages import ENGLISH, LANGUAGES, NATIVE
from auditor.domain.tasks import OPTION_LETTERS, AnswerKind, Task, TaskItem, lettered_options
from auditor.domain.terms import (
    SCORE_MAX,
    SCORE_MIN,
    Cell,
    ComparisonChoice,
    ConflictState,
    HarmlessAlteration,
    LogprobMeasure,
    Method,
    Outcome,
    Purpose,
    RatingAction,
    Ruling,
)

__all__ = [
    "ENGLISH",
    "LANGUAGES",
    "NATIVE",
    "OPTION_LETTERS",
    "SCORE_MAX",
    "SCORE_MIN",
    "AlteredTraceVerdict",
    "Answer",
    "AnswerForm",
    "AnswerKind",
    "Attempt",
    "Call",
    "Capability",
    "CapabilityKey",
    "Cell",
    "CellScore",
    "Claim",
    "ComparisonChoice",
    "Conflict",
    "ConflictKind",
    "ConflictSides",
    "ConflictState",
    "Contest",
    "Decision",
    "DeclaredCapabilities",
    "Grouping",
    "Guess",
    "HarmlessAlteration",
    "LogprobMeasure",
    "Message",
    "Method",
    "Outcome",
    "Phrasing",
    "Purpose",
    "Rating",
    "RatingAction",
    "ReasoningSettings",
    "Region",
    "ResponseBody",
    "Restatement",
    "Ruling",
    "SentencePairScore",
    "Survey",
    "SurveyCell",
    "Task",
    "TaskItem",
    "TokenLimitParam",
    "TopicQuestion",
    "Trace",
    "Verdict",
    "canonical_hash",
    "canonical_json",
    "derive_seed",
    "hash_rows",
    "lettered_options",
    "method_side_name",
    "parse_method_side",
    "total_cost",
]
