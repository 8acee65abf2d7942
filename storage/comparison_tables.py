"""Row classes of the probe `logic`: sets of items, their items, and comparisons of pairs."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlmodel import Field

from auditor.domain import Purpose
from auditor.storage.row_classes import DerivedRow, audit_id_column, call_key_column


class ComparisonSetRow(DerivedRow, table=True):
    """Items that are compared with each other; `text` is what judges are told of them."""

    __tablename__ = "comparison_set"
    audit_id: int = Field(sa_column=audit_id_column())
    context: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    criterion: str
    language: str


class ComparisonItemRow(DerivedRow, table=True):
    """One item of a set; `human` is people's score of it."""

    __tablename__ = "comparison_item"
    audit_id: int = Field(sa_column=audit_id_column())
    context: str = Field(primary_key=True)
    item: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    human: float | None = None


class ComparisonRow(DerivedRow, table=True):
    """One judge's answer to one question that shows `item_a` first; `decision` is A, B or TIE.

    `position` is its row in the imported file, from 0; null for answers that the audit asked for.
    """

    __tablename__ = "comparison"
    audit_id: int = Field(sa_column=audit_id_column())
    judge: str = Field(primary_key=True)
    context: str = Field(primary_key=True)
    item_a: str = Field(primary_key=True)
    item_b: str = Field(primary_key=True)
    relation: str = Field(primary_key=True)
    paraphrase: int = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    decision: str | None = None
    probability: float | None = None
    people: str | None = None
    key: str | None = call_key_column(Purpose.LOGIC, "judge")
    position: int | None = None
