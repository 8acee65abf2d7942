"""Row classes of what an audit is about: the audit, its survey and its task."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlmodel import Field

from auditor.storage.row_classes import MutableRow, audit_id_column


class AuditRow(MutableRow, table=True):
    """One audit; `config` and `survey` are canonical JSON."""

    __tablename__ = "audit"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    config: str | None = Field(default=None, sa_column=Column(Text))
    config_hash: str | None = None
    survey: str = Field(sa_column=Column(Text))
    stage: str
    created_at: str
    updated_at: str
    finished_at: str | None = None
    environment: str = Field(sa_column=Column(Text))


class SurveyCellRow(MutableRow, table=True):
    """Ground truth as it was when the audit was planned."""

    __tablename__ = "survey_cell"
    audit_id: int = Field(sa_column=audit_id_column())
    position: int
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    score: float | None = None
    n: int | None = None
    standard_error: float | None = None
    nonresponse: float | None = None
    acceptable: float | None = None
    not_a_moral_issue: float | None = None
    unacceptable: float | None = None


class TaskItemRow(MutableRow, table=True):
    """One question of a task; `options` is a JSON list, `truth` the right answer where it is known."""

    __tablename__ = "task_item"
    audit_id: int = Field(sa_column=audit_id_column())
    id: str = Field(primary_key=True)
    position: int
    question: str = Field(sa_column=Column(Text, nullable=False))
    context: str = Field(sa_column=Column(Text, nullable=False))
    options: str = Field(sa_column=Column(Text, nullable=False))
    truth: str | None = Field(default=None, sa_column=Column(Text))
