"""Row classes of distributions of answers: models' answers on a survey's scale, and people's shares."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlmodel import Field

from auditor.domain import Purpose
from auditor.storage.row_classes import DerivedRow, audit_id_column, call_key_column


class SurveySharesRow(DerivedRow, table=True):
    """The shares of people's answers that an audit compares with, as JSON."""

    __tablename__ = "survey_shares"
    audit_id: int = Field(sa_column=audit_id_column())
    shares: str = Field(sa_column=Column(Text, nullable=False))


class OpinionRow(DerivedRow, table=True):
    """One answer of a model about a cell, or about a group of it; dimension and group are empty for everyone.

    The country is empty for a question that names none. `shares` is a JSON list of shares in the order of the scale; a
    sampled answer has a single 1. `n` is the number of answers behind the shares, NULL for shares that the model
    stated. `scale_order` is empty where it is unknown. `is_rescaled` and `mass` are as in `Opinion`.
    """

    __tablename__ = "opinion"
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    dimension: str = Field(primary_key=True)
    group: str = Field(primary_key=True)
    mode: str = Field(primary_key=True)
    scale_order: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    shares: str | None = None
    n: int | None = None
    is_rescaled: bool | None = None
    mass: float | None = None
    key: str | None = call_key_column(Purpose.OPINION, "model")
    repair_key: str | None = call_key_column(Purpose.OPINION, "model")
