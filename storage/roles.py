"""Who may do what in a team's database, as SQL for its owner: readers, reviewers, runners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlmodel import SQLModel

from auditor.storage.tables import VERSION_TABLE

GRAPH_SCHEMA = "auditor_graph"
"""Where the graph remembers its stage."""

READER, REVIEWER, RUNNER = "auditor_reader", "auditor_reviewer", "auditor_runner"
REVIEWER_TABLES = ("rating", "link")
"""What a reviewer adds to: decisions, and the chain of hashes over them."""
APPEND_ONLY_TABLES = ("answer", "attempt", "limit_change", "link", "payload", "vector")
"""What a runner adds to and never changes."""


def roles_sql() -> str:
    """SQL that makes the three roles, or brings them up to date with the tables; run as the owner of the database."""
    return "\n".join(_sql_lines()) + "\n"


def _sql_lines() -> Iterator[str]:
    tables = sorted(SQLModel.metadata.tables)
    changed = [name for name in tables if name not in {*APPEND_ONLY_TABLES, "rating"}]
    yield "-- Roles for a database of auditor. Run it again after each upgrade: it may be run any number of times."
    yield "-- Then, for each person: GRANT auditor_reviewer TO ada;"
    yield "BEGIN;"
    for role in (READER, REVIEWER, RUNNER):
        yield from _create_role_lines(role)
    yield "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    yield f"REVOKE ALL ON {_quote_names([*tables, VERSION_TABLE])} FROM {READER}, {REVIEWER}, {RUNNER};"
    yield f"GRANT SELECT ON {_quote_names([*tables, VERSION_TABLE])} TO {READER}, {REVIEWER}, {RUNNER};"
    yield f"GRANT INSERT ON {_quote_names(REVIEWER_TABLES)} TO {REVIEWER};"
    yield f"GRANT USAGE ON SEQUENCE {_quote_names(_id_sequences(REVIEWER_TABLES))} TO {REVIEWER};"
    yield f"GRANT INSERT ON {_quote_names([*APPEND_ONLY_TABLES, *changed])} TO {RUNNER};"
    yield f"GRANT UPDATE ON {_quote_names(changed)} TO {RUNNER};"
    yield f"GRANT DELETE ON {_quote_names(name for name in changed if name != 'audit')} TO {RUNNER};"
    yield f"GRANT USAGE ON SEQUENCE {_quote_names(_id_sequences([*APPEND_ONLY_TABLES, *changed]))} TO {RUNNER};"
    yield f"GRANT USAGE ON SCHEMA {GRAPH_SCHEMA} TO {RUNNER};"
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {GRAPH_SCHEMA} TO {RUNNER};"
    yield "COMMIT;"


def _create_role_lines(role: str) -> Iterator[str]:
    yield "DO $$ BEGIN"
    yield f"  CREATE ROLE {role} NOLOGIN;"
    yield "EXCEPTION WHEN duplicate_object THEN NULL; END $$;"


def _id_sequences(tables: Iterable[str]) -> list[str]:
    """The sequences behind the tables' ids, by PostgreSQL's names for them."""
    found = (SQLModel.metadata.tables[name] for name in tables)
    return [f"{table.name}_id_seq" for table in found if table.autoincrement_column is not None]


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
