"""SQL with which the owner of a team's PostgreSQL database creates the roles of readers, reviewers and runners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.domain.records import RowPolicy, table_declaration
from auditor.storage.schema import VERSION_TABLE, list_record_classes, load_tables

READER, REVIEWER, RUNNER = "auditor_reader", "auditor_reviewer", "auditor_runner"
JUDGEMENT_TABLES = ("rating", "label")
"""Tables of what people say, into which only a reviewer inserts rows."""
REVIEWER_TABLES = (*JUDGEMENT_TABLES, "label_draw", "sampled_unit", "link")
"""Tables into which a reviewer inserts rows: ratings, labels and their sample, and the hash chain over them."""


def build_roles_sql() -> str:
    """SQL that creates the three roles, or updates their rights to the current tables; run by the database's owner."""
    return "\n".join(_sql_lines()) + "\n"


def _sql_lines() -> Iterator[str]:
    """Yield the lines of the SQL: create the roles, revoke all rights, then grant those of each role."""
    tables = sorted(load_tables())
    append_only_tables = sorted(
        table_declaration(record_class).name for record_class in list_record_classes(RowPolicy.APPEND_ONLY)
    )
    mutable_tables = [name for name in tables if name not in append_only_tables]
    runner_tables = [name for name in (*append_only_tables, *mutable_tables) if name not in JUDGEMENT_TABLES]
    yield "-- Roles for a database of auditor. Run it again after each upgrade: it may be run any number of times."
    yield "-- Then, for each person: GRANT auditor_reviewer TO ada;"
    yield "BEGIN;"
    for role in (READER, REVIEWER, RUNNER):
        yield "DO $$ BEGIN"
        yield f"  CREATE ROLE {role} NOLOGIN;"
        yield "EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
    yield "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    yield f"REVOKE ALL ON {_quote_names([*tables, VERSION_TABLE])} FROM {READER}, {REVIEWER}, {RUNNER};"
    yield f"GRANT SELECT ON {_quote_names([*tables, VERSION_TABLE])} TO {READER}, {REVIEWER}, {RUNNER};"
    yield f"GRANT INSERT ON {_quote_names(REVIEWER_TABLES)} TO {REVIEWER};"
    yield f"GRANT USAGE ON SEQUENCE {_quote_names(_id_sequences(REVIEWER_TABLES))} TO {REVIEWER};"
    yield f"GRANT INSERT ON {_quote_names(runner_tables)} TO {RUNNER};"
    yield f"GRANT UPDATE ON {_quote_names(mutable_tables)} TO {RUNNER};"
    yield f"GRANT DELETE ON {_quote_names(name for name in mutable_tables if name != 'audit')} TO {RUNNER};"
    yield f"GRANT USAGE ON SEQUENCE {_quote_names(_id_sequences(runner_tables))} TO {RUNNER};"
    yield "COMMIT;"


def _id_sequences(tables: Iterable[str]) -> list[str]:
    """Names of the sequences that PostgreSQL creates for the ids of tables."""
    table_objects = (load_tables()[name] for name in tables)
    return [f"{table.name}_id_seq" for table in table_objects if table.autoincrement_column is not None]


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
