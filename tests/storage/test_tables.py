"""Every table says what may happen to its rows, and which calls they refer to."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import class_mapper
from sqlalchemy.orm.exc import UnmappedClassError
from sqlmodel import SQLModel

from auditor.domain.records import CallKey
from auditor.probes.semantic.records import MoralAnswerRecord, MoralTranslation, MoralWording, PairVerdict
from auditor.storage import audit_archive
from auditor.storage.call_records import NotedCall
from auditor.storage.row_classes import AppendOnlyRow, DerivedRow, MutableRow, table_of

CALLS_RECORDED_APART = {NotedCall, MoralAnswerRecord, MoralTranslation, MoralWording, PairVerdict}
"""Tables of the probe `semantic`, which stores its calls by `costs.record_calls`."""


def test_every_table_is_append_only_mutable_or_derived() -> None:
    bases = (AppendOnlyRow, MutableRow, DerivedRow)
    declared_names = [table_of(row_class).name for base in bases for row_class in base.__subclasses__()]
    assert sorted(declared_names) == sorted(SQLModel.metadata.tables)


def test_derived_tables_belong_to_an_audit() -> None:
    assert all("audit_id" in table_of(row_class).c for row_class in DerivedRow.__subclasses__())


def test_every_key_of_a_call_counts_towards_the_cost() -> None:
    recorded_apart = {table_of(record_class) for record_class in CALLS_RECORDED_APART}
    tables = {table_of(row_class) for row_class in DerivedRow.__subclasses__()} - recorded_apart
    keys = {column for table in tables for column in table.c if audit_archive.is_call_key(column.name)}
    references = {column: column.info[CallKey] for table in tables for column in table.c if column.info}
    assert references.keys() == keys
    assert len(keys) == 22
    assert all(reference.name_column in key.table.c for key, reference in references.items())


def test_no_class_is_mapped_by_the_orm() -> None:
    """The mapping of all tables took a third of their import, and rows are read without it."""
    for base in (AppendOnlyRow, MutableRow, DerivedRow):
        for row_class in base.__subclasses__():
            with pytest.raises(UnmappedClassError):
                class_mapper(row_class)
