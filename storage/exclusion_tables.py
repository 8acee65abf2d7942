"""Row classes of answers that people declared invalid."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Text
from sqlmodel import Field

from auditor.storage.row_classes import AppendOnlyRow, DerivedRow


class ExclusionRow(AppendOnlyRow, table=True):
    """A declaration that answers of an audit are invalid, or the undo of an earlier one (`of`).

    The answers are those that match all of `model`, `country`, `topic`, `sample` and `probe` that are not NULL.
    """

    __tablename__ = "exclusion"
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id"), nullable=False, index=True))
    act: str
    of: int | None = None
    model: str | None = None
    country: str | None = None
    topic: str | None = None
    sample: int | None = None
    reason: str = Field(sa_column=Column(Text, nullable=False))
    excluded_at: str
    probe: str | None = None


class ExcludedContentRow(DerivedRow, table=True):
    """A row of another table as it was before its answer was excluded; it is restored when the exclusion is undone.

    `row` is its primary key as a JSON list, `content` all of its columns as JSON.
    """

    __tablename__ = "excluded_content"
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True))
    source: str = Field(primary_key=True)
    row: str = Field(sa_column=Column(Text, primary_key=True))
    content: str = Field(sa_column=Column(Text, nullable=False))
