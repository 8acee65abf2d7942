"""Every table says what may happen to its rows, and which calls they refer to."""

from __future__ import annotations

import subprocess
import sys

from auditor.domain.records import CallKey, RowPolicy
from auditor.probes.semantic.records import MoralAnswerRecord, MoralTranslation, MoralWording, PairVerdict
from auditor.storage import audit_archive
from auditor.storage.call_records import NotedCall
from auditor.storage.row_classes import METADATA, table_of
from auditor.storage.tables import list_record_classes, load_metadata, load_tables

CALLS_RECORDED_APART = {NotedCall, MoralAnswerRecord, MoralTranslation, MoralWording, PairVerdict}
"""Tables of the probe `semantic`, which stores its calls by `costs.record_calls`."""


def test_every_table_is_append_only_mutable_or_derived() -> None:
    names = [table_of(record_class).name for policy in RowPolicy for record_class in list_record_classes(policy)]
    assert sorted(names) == sorted(load_tables()) == sorted(load_metadata().tables)
    assert load_metadata() is METADATA


def test_derived_tables_belong_to_an_audit() -> None:
    assert all("audit_id" in table_of(record_class).c for record_class in list_record_classes(RowPolicy.DERIVED))


def test_every_key_of_a_call_counts_towards_the_cost() -> None:
    recorded_apart = {table_of(record_class) for record_class in CALLS_RECORDED_APART}
    tables = set(map(table_of, list_record_classes(RowPolicy.DERIVED))) - recorded_apart
    keys = {column for table in tables for column in table.c if audit_archive.is_call_key(column.name)}
    references = {column: column.info[CallKey] for table in tables for column in table.c if column.info}
    assert references.keys() == keys
    assert len(keys) == 22
    assert all(reference.name_column in key.table.c for key, reference in references.items())


def test_opening_a_database_loads_no_orm() -> None:
    """The ORM and the classes of all rows took a third of the time of a short command; no query needs them."""
    code = "import sys, auditor.storage.database; print({'sqlmodel', 'sqlalchemy.orm'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
