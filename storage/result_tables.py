"""Row class of what probes without tables of their own read from answers."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlmodel import Field

from auditor.storage.row_classes import DerivedRow, audit_id_column, call_key_column


class ProbeResultRow(DerivedRow, table=True):
    """What a probe without tables of its own read from one answer; `unit` is a JSON list of strings, `value` JSON."""

    __tablename__ = "probe_result"
    audit_id: int = Field(sa_column=audit_id_column())
    probe: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    unit: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    turn: int = Field(primary_key=True)
    outcome: str
    key: str | None = call_key_column(None, "model")
    value: str | None = Field(default=None, sa_column=Column(Text))
    reader_version: int
