"""Declarations that answers are invalid, and what is kept of the answers meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from auditor.domain.records import Key, LongText, NotStored, Owners, RowOwner, RowPolicy, stored


class ExclusionAct(StrEnum):
    """What a row of the log of exclusions records."""

    EXCLUDE = "exclude"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """Answers that match all of these; None matches any. With a sample's number, only direct answers match.

    Attributes:
        model: who answered; of the probe `logic`, the judge.
        country: of the cell. Of the probe `logic`, the country whose topics are compared. Of a probe of another
            package, a text of its units. Answers of the probe `semantic` are about no country.
        topic: of the cell, or an item of a task. Of the probe `semantic`, a question's id. Of the probe `logic`, an
            item or a set of items. Of a probe of another package, as `country`.
        probe: name of the probe; `direct` for direct answers.
    """

    model: str | None = None
    country: str | None = None
    topic: str | None = None
    sample: int | None = None
    probe: str | None = None


@stored(
    "exclusion",
    RowPolicy.APPEND_ONLY,
    RowOwner.AUDIT_LOG,
    indexes={"ix_exclusion_audit_id": ("audit_id",)},
    first_columns=("id", "audit_id", "act", "of", "model", "country", "topic", "sample", "reason", "excluded_at"),
)
@dataclass(frozen=True, slots=True)
class Exclusion:
    """A declaration that answers of an audit are invalid, or the undo of an earlier one (`of`).

    The answers are those that match all of `model`, `country`, `topic`, `sample` and `probe` that are not NULL.

    Attributes:
        id: 0 if it is not stored yet.
        excluded_at: ISO 8601 in UTC.
        n_answers: number of recorded answers that match; counted for a declaration in force.
    """

    id: Owners[int]
    selection: AnswerSelection
    reason: LongText[str]
    excluded_at: str
    n_answers: NotStored[int] = 0
    act: ExclusionAct = ExclusionAct.EXCLUDE
    of: int | None = None


@stored("excluded_content")
@dataclass(frozen=True, slots=True)
class ExcludedContent:
    """A row of another table as it was before its answer was excluded; it is restored when the exclusion is undone.

    `row` is its primary key as a JSON list, `content` all of its columns as JSON.
    """

    source: Key[str]
    row: Key[LongText[str]]
    content: LongText[str]
