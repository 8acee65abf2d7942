"""The frozen dataclass of a record is the only declaration of its table, its columns and its conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Column, Integer, MetaData, Table
from sqlalchemy.types import NullType
from sqlmodel import Session, SQLModel, select

from auditor.domain import Cell, Outcome, Purpose, Trace
from auditor.domain.records import (
    CallKey,
    Key,
    LongText,
    NotStored,
    Nullable,
    Owners,
    RowOwner,
    RowPolicy,
    StoredAs,
    stored,
)
from auditor.storage.database import open_database
from auditor.storage.engine import make_engine
from auditor.storage.row_classes import conversion_of, make_columns, table_of
from auditor.storage.row_models import row_class_of
from auditor.storage.schema import list_record_classes
from tests.support.synthetic_audit import populate


@stored("sample_record", position=3)
@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A record with a field of each kind."""

    cell: Key[Cell]
    outcome: Outcome
    notes: NotStored[tuple[str, ...]] = ("not stored",)
    text: LongText[str | None] = None
    shares: tuple[float, ...] | None = None
    ratings: LongText[Mapping[str, bool]] = field(default_factory=dict, hash=False)
    is_rescaled: Nullable[bool] = False
    measured_at: datetime | None = None
    key: Annotated[str | None, CallKey(Purpose.DIRECT, "country")] = None


@stored("sample_record", position=3)
@dataclass(frozen=True, slots=True)
class LongerRecord(SampleRecord):
    """The record with one more field."""

    n_words: int | None = None


@stored("sample_log", RowPolicy.APPEND_ONLY, RowOwner.AUDIT_LOG)
@dataclass(frozen=True, slots=True)
class SampleEntry:
    """An entry of a log."""

    text: str


@dataclass(frozen=True, slots=True)
class SampleServer:
    """A part of a record, which has a column for each of its fields."""

    model: str
    url: str | None


@stored("sample_finding", RowPolicy.APPEND_ONLY, RowOwner.AUDIT_NUMBERED, first_columns=("id", "audit_id", "seen_at"))
@dataclass(frozen=True, slots=True)
class SampleFinding:
    """A record with a part, an id, and a column of another name and text."""

    id: Owners[int]
    server: Key[SampleServer]
    words: Annotated[tuple[str, ...], StoredAs("joined", " ".join, lambda text: tuple(text.split(" ")))]
    seen_at: str


def make_table(record_class: type, name: str) -> Table:
    metadata = MetaData()
    Table("audit", metadata, Column("id", Integer, primary_key=True))
    return Table(name, metadata, *make_columns(record_class))


def test_columns_follow_the_annotations() -> None:
    columns = make_table(SampleRecord, "sample_record").c
    names = "audit_id country topic position outcome text shares ratings is_rescaled measured_at key"
    assert [column.name for column in columns] == names.split()
    assert [column.name for column in columns if column.primary_key] == ["audit_id", "country", "topic"]
    assert [str(columns[name].type) for name in ("text", "shares", "is_rescaled")] == ["TEXT", "VARCHAR", "BOOLEAN"]
    assert [column.name for column in columns if not column.nullable][3:] == ["position", "outcome", "ratings"]
    assert columns.key.info == {CallKey: CallKey(Purpose.DIRECT, "country")}
    assert make_table(SampleEntry, "sample_log").c.keys() == ["id", "audit_id", "text"]


def test_a_record_is_read_as_it_was_written() -> None:
    conversion = conversion_of(SampleRecord)
    full = SampleRecord(
        Cell("Egypt", "divorce"), Outcome.OK, text="a\nb", shares=(0.25, 0.75), ratings={"fit": True},
        is_rescaled=True, measured_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), key="k",
    )  # fmt: skip
    empty = SampleRecord(Cell("Egypt", "abortion"), Outcome.REFUSED)
    rows = conversion.to_rows([full, empty], audit_id=7)
    assert {name: rows[0][name] for name in ("audit_id", "country", "shares", "ratings", "measured_at")} == {
        "audit_id": 7, "country": "Egypt", "shares": "[0.25,0.75]", "ratings": '{"fit":true}',
        "measured_at": "2026-01-02T03:04:05.000+00:00",
    }  # fmt: skip
    assert "notes" not in rows[0]
    assert [conversion.to_record([row[name] for name in conversion.column_names]) for row in rows] == [full, empty]
    no_answer = rows[0] | {"is_rescaled": None}
    assert not conversion.to_record([no_answer[name] for name in conversion.column_names]).is_rescaled


def test_parts_have_columns_and_marks_say_their_names_texts_and_order() -> None:
    conversion = conversion_of(SampleFinding)
    finding = SampleFinding(4, SampleServer("m", None), ("a", "b"), "2026")
    [row] = conversion.to_rows([finding], audit_id=7)
    assert row == {"audit_id": 7, "model": "m", "url": "", "joined": "a b", "seen_at": "2026"}
    names = ["id", "audit_id", "seen_at", "model", "url", "joined"]
    assert make_table(SampleFinding, "sample_finding").c.keys() == names
    assert conversion.to_record([4, "m", "", "a b", "2026"]) == finding


def test_optional_columns_that_are_empty_in_all_rows_are_left_out() -> None:
    records = [SampleRecord(Cell("Egypt", topic), Outcome.REFUSED) for topic in ("abortion", "divorce")]
    names = ["country", "topic", "outcome", "ratings", "is_rescaled"]
    assert [list(row) for row in conversion_of(SampleRecord).to_rows(records)] == [names, names]
    assert conversion_of(SampleRecord).to_rows([], audit_id=7) == []


def test_a_new_field_is_one_new_column_of_a_migration() -> None:
    engine = make_engine("sqlite://")
    longer = make_table(LongerRecord, "sample_record").metadata
    with engine.begin() as connection:
        make_table(SampleRecord, "sample_record").metadata.create_all(connection)
        [(change, _, table, column)] = compare_metadata(MigrationContext.configure(connection), longer)
    engine.dispose()
    assert (change, table, column.name, column.nullable) == ("add_column", "sample_record", "n_words", True)


def test_classes_that_cannot_be_stored_say_why() -> None:
    with pytest.raises(TypeError, match="Cell has no declaration"):
        make_columns(Cell)


def test_rows_are_read_in_a_session_of_sqlmodel(tmp_path: Path) -> None:
    assert issubclass(row_class_of(Trace), SQLModel)
    trace_row: Any = row_class_of(Trace)
    with open_database(f"sqlite:///{tmp_path}/auditor.db") as db, Session(db.engine) as session:
        populate(db)
        rows = session.exec(select(trace_row).where(trace_row.model == "alder", trace_row.sample == 0)).all()
        assert "model='alder'" in repr(rows[0])
    assert {(row.model, row.country) for row in rows} >= {("alder", "Egypt"), ("alder", "Brazil")}


def test_every_table_has_a_row_class_of_sqlmodel() -> None:
    row_classes: list[Any] = list(map(row_class_of, list_record_classes()))
    assert [row_class.__table__ for row_class in row_classes] == list(map(table_of, list_record_classes()))


def test_the_type_of_a_column_depends_on_no_other_table() -> None:
    for record_class in list_record_classes():
        assert not [column.name for column in make_columns(record_class) if isinstance(column.type, NullType)]
