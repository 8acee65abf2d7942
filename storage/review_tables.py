"""Row classes of conflicts and of people's decisions on them."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Text
from sqlmodel import Field

from auditor.storage.row_types import AppendOnlyRow, DerivedRow, audit_id_column


class ClaimRow(DerivedRow, table=True):
    """What one side of a conflict between claims says, in words; `model` is the side's name."""

    __tablename__ = "claim"
    audit_id: int = Field(sa_column=audit_id_column())
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    text: str = Field(sa_column=Column(Text, nullable=False))


class ConflictRow(DerivedRow, table=True):
    """Two models that differ on a cell, and how the judges voted."""

    __tablename__ = "conflict"
    audit_id: int = Field(sa_column=audit_id_column())
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    left: str = Field(primary_key=True)
    right: str = Field(primary_key=True)
    score_left: float | None = None
    score_right: float | None = None
    kind: str
    state: str
    seats: int
    votes_left: int
    votes_right: int
    winner: str | None = None
    within_noise: bool | None = None
    answer_left: str | None = Field(default=None, sa_column=Column(Text))
    answer_right: str | None = Field(default=None, sa_column=Column(Text))


class RatingRow(AppendOnlyRow, table=True):
    """What a person says of a conflict, with the scores it was about; appended, never changed."""

    __tablename__ = "rating"
    __table_args__ = (
        Index("ix_rating_last", "audit_id", "country", "topic", "left", "right", "rater", "score_left", "score_right"),
    )
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id"), nullable=False))
    country: str
    topic: str
    left: str
    right: str
    score_left: float | None = None
    score_right: float | None = None
    rater: str
    decision: str
    note: str = ""
    decided_at: str
    score: float | None = None
    flagged: bool = False
    act: str = "decide"
    of: int | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None
    answer_left: str | None = Field(default=None, sa_column=Column(Text))
    answer_right: str | None = Field(default=None, sa_column=Column(Text))
    withheld: bool | None = None
    follows: int | None = None
