"""A hash chain over everything that results are derived from, which shows rows that were changed or deleted later.

Each link is the hash of the link before it, of a row's name and of the hash of the row's content, so the last link, the
head, depends on all rows in order. A published head, in a paper for example, proves later that no row before it was
changed. Rows that are replaced or deleted get another link; what they were stays in the chain as a hash.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    func,
    insert,
    select,
    text,
)

from auditor.domain import CellScore, SurveyCell, TaskItem, Verdict, canonical_hash, canonical_json
from auditor.domain.audit_records import Audit
from auditor.domain.records import RowPolicy
from auditor.storage.call_records import ChainLink, Dispatch, Payload, ProviderBatch, StoredAnswer, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.row_classes import coerce_values, conversion_of, insert_exact, table_of
from auditor.storage.schema import list_record_classes, load_tables

START_DIGEST = "0" * 64
LINKS_PER_QUERY = 500
"""Of how many links at a time the rows are loaded: a query for each takes longer than hashing its row."""
ACT = "act"
"""Kind of links that say what happened to an audit, such as its deletion, in JSON."""
SELF_CONSISTENCY = "self_consistency"
"""Kind of links of what an encoder measured in a row of the table `score`; the rest of the row is derived."""
RECORDED_VERDICT = "recorded_verdict"
"""Kind of links of verdicts that were read from a file, in rows of the table `verdict`."""
_TABLES_OF_MEASURED = {SELF_CONSISTENCY: "score", RECORDED_VERDICT: "verdict"}
MEASURED_COLUMNS = ("self_consistency", "evidence", "chance_similarity", "topic_similarity")
WITHHELD = "withheld"
"""Kind of links of other audits in an archive; their content is the hash of what they say."""
DELETED = ""
"""Content of the link of a row that was deleted."""
MUTABLE_RECORDS = (Audit, SurveyCell, TaskItem, ProviderBatch)
"""Records that commands replace, and that cannot be derived."""
EXPERIMENT_KINDS = (
    *("trial", "contest", "claim", "conflict", "call", "excluded_content"),
    *("design_run", "design_answer"),
)
"""Kinds of derived records of which other commands than a run write some, too; only these are in the chain."""
_IS_RECORDING = "auditor_recording"
StoredRow: TypeAlias = Mapping[str, Any] | RowMapping
"""Values of a row by column."""
TEXTS_WITH_FOLDERS = {"audit": ("config", "survey", "environment")}
"""Columns by kind with JSON whose absolute paths are not hashed, but for the file's name."""


@functools.cache
def append_only_kinds() -> frozenset[str]:
    """Kinds of records each of which has one link."""
    names = {table_of(record_class).name for record_class in list_record_classes(RowPolicy.APPEND_ONLY)}
    return frozenset(names - {table_of(ChainLink).name, table_of(Payload).name})


@functools.cache
def derived_kinds() -> frozenset[str]:
    """Kinds of records that are in the chain only where no answer is recorded behind them, such as imported scores."""
    return frozenset(table_of(record_class).name for record_class in list_record_classes(RowPolicy.DERIVED))


@functools.cache
def mutable_kinds() -> frozenset[str]:
    """Kinds of records that commands replace; each has a link for each of its contents."""
    return frozenset(table_of(record_class).name for record_class in MUTABLE_RECORDS)


@functools.cache
def covered_kinds() -> frozenset[str]:
    """Tables whose rows are in the chain, are derived from rows in it, or are named by their own hash there."""
    others = {table_of(Dispatch).name, table_of(Payload).name}
    return append_only_kinds() | mutable_kinds() | derived_kinds() | others


def _find_table(kind: str) -> Table | None:
    """The table of a kind; None for one that this version does not know."""
    return load_tables().get(_TABLES_OF_MEASURED.get(kind, kind))


def name_row(table: Table, row: StoredRow) -> str:
    """Name of a row in the chain: its key, as JSON if it has several columns."""
    key = [row[name] for name in _key_names(table)]
    return str(key[0]) if len(key) == 1 else canonical_json(key)


@functools.cache
def _key_names(table: Table) -> tuple[str, ...]:
    """Names of a table's key, in plain Python: SQLAlchemy's collection takes longer than the rest of `name_row`."""
    return tuple(column.name for column in table.primary_key)


@functools.cache
def _has_number_as_key(table: Table) -> bool:
    """Whether the first column of a table's key is an integer."""
    return next(iter(table.primary_key)).type.python_type is int


@functools.cache
def _binary_columns(kind: str) -> tuple[str, ...]:
    """Names of the columns of a kind that hold bytes."""
    table = _find_table(kind)
    return tuple(column.name for column in table.c if column.type.python_type is bytes) if table is not None else ()


def hash_content(kind: str, row: StoredRow) -> str:
    """Hash of a row's columns that are not NULL, so that a new column does not change it.

    Folders are left out, since an audit's files can be moved; of bytes, their hash counts.
    """
    return _hash_present(kind, {column: value for column, value in row.items() if value is not None})


def _hash_present(kind: str, content: StoredRow) -> str:
    """Do what `hash_content` does; none of the values is NULL."""
    if kind == SELF_CONSISTENCY:
        content = {name: content[name] for name in MEASURED_COLUMNS if name in content}
    if names := [name for name in _binary_columns(kind) if name in content]:
        content = {**content, **{name: hashlib.sha256(content[name]).hexdigest() for name in names}}
    if names := [name for name in TEXTS_WITH_FOLDERS.get(kind, ()) if name in content]:
        content = {**content, **{name: _strip_audit_text(name, content[name]) for name in names}}
    return canonical_hash(content)


@functools.lru_cache(maxsize=len(TEXTS_WITH_FOLDERS["audit"]))
def _strip_audit_text(column: str, text: str) -> Any:
    """What `strip_machine` returns, not to be changed. Cached, since an audit is hashed before and after each stage."""
    return strip_machine(column, text)


def strip_machine(column: str, text: str | None, kept_keys: Collection[str] = ()) -> Any:
    """The settings in a column's JSON without folders, and of a configuration without the database's place."""
    settings = None if text is None else strip_folders(json.loads(text), kept_keys)
    if column == "config" and settings is not None:
        settings.pop("storage", None)
    return settings


def strip_folders(value: Any, kept_keys: Collection[str] = ()) -> Any:
    """A copy of nested settings in which absolute paths, but those of some keys, are replaced by their file's name."""
    if isinstance(value, dict):
        return {key: child if key in kept_keys else strip_folders(child, kept_keys) for key, child in value.items()}
    if isinstance(value, list):
        return [strip_folders(child, kept_keys) for child in value]
    return Path(value).name if isinstance(value, str) and value.startswith("/") and Path(value).is_absolute() else value


class ChainBreak(NamedTuple):
    """A record that does not match its link; `problem` continues a sentence that begins with kind and id of the row."""

    record_kind: str
    row_id: str
    problem: str


@dataclass
class ChainCheck:
    """Outcome of a check of the chain.

    Attributes:
        head: digest of the last of them, 64 hexadecimal digits; all zeros if there is none.
        breaks: the first records that do not match, at most as many as were asked for.
        n_by_kind: number of links by the kind of their rows.
        n_replaced: number of links of rows that were replaced or deleted later, of which the content's hash is left.
        acts: what was done with audits, in order, each with its date and time.
        n_withheld: number of links of other audits, of which an archive has only the hash.
    """

    head: str = START_DIGEST
    breaks: list[ChainBreak] = field(default_factory=list)
    n_by_kind: dict[str, int] = field(default_factory=dict)
    n_replaced: int = 0
    acts: list[Mapping[str, Any]] = field(default_factory=list)
    n_withheld: int = 0

    @property
    def n_links(self) -> int:
        """Number of links checked."""
        return sum(self.n_by_kind.values())

    def add(self, kind: str, row_name: str, problem: str) -> None:
        """Add a problem of a row."""
        self.breaks.append(ChainBreak(kind, row_name, problem))


def append_entry(connection: Connection, audit_id: int, entry: object) -> int:
    """Append a record to the log of an audit, and its link; return its id."""
    record_class = type(entry)
    table = table_of(record_class)
    [values] = conversion_of(record_class).to_rows([entry], audit_id=audit_id)
    statement = insert(table).returning(*table.c)
    row = connection.execute(statement, coerce_values(record_class, values)).mappings().one()
    # RETURNING of SQLite gives an integral value of a float column as int, a later SELECT gives it as float.
    append_links(connection, {table.name: [coerce_values(record_class, dict(row))]})
    return int(row["id"])


def append_links(connection: Connection, rows_by_kind: Mapping[str, Sequence[StoredRow]]) -> None:
    """Append a link for each of some rows that were inserted in the same transaction, in this order.

    Args:
        connection: of that transaction.
        rows_by_kind: all columns of each row, with the values that will be read back (see
            `row_writing.coerce_values`), by kind.
    """
    append_contents(connection, [make_entry(kind, row) for kind, rows in rows_by_kind.items() for row in rows])


def append_act(connection: Connection, audit_id: int | None, **act: Any) -> None:
    """Append a link that says what is done with an audit, None for all; `act` is stored as JSON."""
    text = canonical_json(act)
    append_contents(connection, [LinkEntry(audit_id, ACT, text, canonical_hash(act))])


class LinkEntry(NamedTuple):
    """What a link says: the audit of a row, None for rows that audits share, its kind and name, and its hash."""

    audit_id: int | None
    kind: str
    row_name: str
    content: str

    @property
    def hash(self) -> str:
        """Hash of kind, name and content; all that another audit's archive shows of a link."""
        return hash_entry(self.kind, self.row_name, self.content)


def make_entry(kind: str, row: StoredRow) -> LinkEntry:
    """What the link of a row says."""
    table = _find_table(kind)
    assert table is not None
    audit_id = row["id"] if kind == table_of(Audit).name else row.get("audit_id")
    return LinkEntry(audit_id, kind, name_row(table, row), hash_content(kind, row))


def hash_entry(kind: str, row_name: str, content: str) -> str:
    """Hash of what a link says: the canonical JSON of the three is put together here, in half the encoder's time."""
    entry = f"[{encode_basestring(kind)},{encode_basestring(row_name)},{encode_basestring(content)}]"
    return hashlib.sha256(entry.encode("utf-8", "surrogatepass")).hexdigest()


def chain_digest(previous_digest: str, audit_id: int | None, entry_hash: str) -> str:
    """Digest of a link: hash of the one before it, and of what it says, as `hash_entry` makes it."""
    owner = "null" if audit_id is None else audit_id
    link = f"[{encode_basestring(previous_digest)},{owner},{encode_basestring(entry_hash)}]"
    return hashlib.sha256(link.encode("utf-8", "surrogatepass")).hexdigest()


def append_contents(connection: Connection, entries: Sequence[LinkEntry]) -> None:
    """Append a link for each entry."""
    if not entries:
        return
    digest = connection.execute(_last_digest_statement()).scalar_one_or_none() or START_DIGEST
    links = []
    for entry in entries:
        digest = chain_digest(digest, entry.audit_id, entry.hash)
        links.append(
            {
                "audit_id": entry.audit_id,
                "kind": entry.kind,
                "row": entry.row_name,
                "digest": digest,
                "content": entry.content,
            }
        )
    insert_exact(connection, ChainLink, links)


@functools.cache
def _last_digest_statement() -> Select[Any]:
    """Statement that selects the last link. Cached: building it takes longer than executing it."""
    table = table_of(ChainLink)
    return select(table.c.digest).order_by(table.c.id.desc()).limit(1)


# --- rows that are replaced -------------------------------------------------------------------------------------


@contextmanager
def record_changes(
    connection: Connection, audit_id: int, kinds: Collection[str], kinds_after: Collection[str] | None = None
) -> Iterator[None]:
    """Append links for all rows of an audit that change in the block, in the same transaction.

    A row that was changed past the chain before gets no link, so that it stays a finding. A block within a block does
    nothing.

    Args:
        connection: in a transaction.
        audit_id: of the audit; a new one may be stored in the block.
        kinds: of the rows.
        kinds_after: of the rows after the block, if they are others.
    """
    if connection.info.get(_IS_RECORDING) or not (kinds or kinds_after):
        yield
        return
    before = _hash_rows(connection, audit_id, kinds)
    linked = _load_last_contents(connection, audit_id, {*kinds, *(kinds_after or ())})
    if kinds_after is not None and set(kinds_after) - set(kinds):  # results are imported in place of derived ones
        before = {key: content for key, content in before.items() if key[0] not in derived_kinds() or key in linked}
    connection.info[_IS_RECORDING] = True
    try:
        yield
    finally:
        del connection.info[_IS_RECORDING]
    after = _hash_rows(connection, audit_id, kinds if kinds_after is None else kinds_after)
    entries = []
    for key in dict.fromkeys([*before, *after]):
        content, was_intact = after.get(key, DELETED), linked.get(key, DELETED) == before.get(key, DELETED)
        if content != before.get(key, DELETED) and content != linked.get(key) and (was_intact or key not in before):
            entries.append(LinkEntry(audit_id, *key, content))
    append_contents(connection, entries)


def input_kinds(*, is_imported: bool) -> list[str]:
    """Kinds of an audit's rows that commands replace; of an imported audit, its results are among them."""
    return sorted({*mutable_kinds(), table_of(Dispatch).name, *(derived_kinds() if is_imported else EXPERIMENT_KINDS)})


@contextmanager
def record_named(
    connection: Connection, audit_id: int, record_class: type, rows: Sequence[Mapping[str, Any]]
) -> Iterator[None]:
    """Append links for those of some rows of a class that change in the block; only these rows are read.

    Args:
        rows: with the values of their keys.
    """
    table = table_of(record_class)
    names = [name_row(table, row) for row in rows]
    before = _hash_named(connection, table.name, names)
    connection.info[_IS_RECORDING] = True
    try:
        yield
    finally:
        del connection.info[_IS_RECORDING]
    after = _hash_named(connection, table.name, names)
    changed = [name for name in dict.fromkeys(names) if before.get(name) != after.get(name)]
    append_contents(connection, [LinkEntry(audit_id, table.name, name, after.get(name, DELETED)) for name in changed])


def link_unreturned(connection: Connection, audit_id: int) -> None:
    """Append links for calls of earlier runs of an audit that went out and did not come back."""
    calls = _hash_rows(connection, audit_id, [table_of(Dispatch).name])
    linked = _load_last_contents(connection, audit_id, [table_of(Dispatch).name]) if calls else {}
    append_contents(connection, [LinkEntry(audit_id, *key, text) for key, text in calls.items() if key not in linked])


@contextmanager
def record_imported(connection: Connection, audit_id: int, record_class: type) -> Iterator[None]:
    """Do what `record_changes` does if the audit's results were imported, so that no answer is recorded for them."""
    kind = table_of(record_class).name
    is_derived = kind in derived_kinds() and not connection.info.get(_IS_RECORDING)
    if is_derived and connection.execute(_imported_audit_statement(), {"id": audit_id}).first() is not None:
        with record_changes(connection, audit_id, [kind, *EXPERIMENT_KINDS]):
            yield
        return
    yield


@functools.cache
def _imported_audit_statement() -> Select[Any]:
    """Statement that selects the audit bound to `id` if its results were imported. Cached: each batch executes it."""
    c = table_of(Audit).c
    return select(c.name).where(c.id == bindparam("id"), c.config.is_(None))


@contextmanager
def record_measured(
    connection: Connection, record_class: type, rows: Sequence[Mapping[str, Any]], audit_id: int
) -> Iterator[None]:
    """Append links for what some rows, which are stored in the block, say without an answer of a model.

    These are self-consistencies, which an encoder measured, and verdicts from a file, also where one is lost later.
    """
    table = table_of(record_class)
    inputs = rows
    if record_class is CellScore:
        kind = SELF_CONSISTENCY
    elif record_class is Verdict:
        kind, inputs = RECORDED_VERDICT, [row for row in rows if row.get("key") is None]
        lost = [name_row(table, row) for row in inputs if row.get("ruling") is None]
        stored = _load_named(connection, kind, lost)
        never_recorded = {name for name in lost if name not in stored or stored[name].get("ruling") is None}
        inputs = [row for row in inputs if name_row(table, row) not in never_recorded]
    else:
        inputs = []
    if not inputs or connection.info.get(_IS_RECORDING):
        yield
        return
    names = [name_row(table, row) for row in inputs]
    before = _load_named(connection, kind, names)
    yield
    after = _load_named(connection, kind, names)
    hashes = {name: hash_content(kind, row) for name, row in before.items()}
    entries = [
        LinkEntry(audit_id, kind, name, hash_content(kind, row))
        for name, row in after.items()
        # Also where a self-consistency is lost, such as by an exclusion.
        if kind != SELF_CONSISTENCY or _has_consistency(row) or _has_consistency(before.get(name))
    ]
    append_contents(connection, [entry for entry in entries if hashes.get(entry.row_name) != entry.content])


def record_deleted_scores(connection: Connection, audit_id: int) -> None:
    """Append links for the self-consistencies of an audit whose scores are deleted in this transaction."""
    linked = _load_last_contents(connection, audit_id, [SELF_CONSISTENCY])
    entries = [LinkEntry(audit_id, *key, DELETED) for key, content in linked.items() if content != DELETED]
    append_contents(connection, entries)


def _has_consistency(row: StoredRow | None) -> bool:
    """Whether a score has a self-consistency."""
    return row is not None and row.get("self_consistency") is not None


def _hash_named(connection: Connection, kind: str, names: Sequence[str]) -> dict[str, str]:
    """Hashes of the rows of a kind with some names, by name."""
    return {name: hash_content(kind, row) for name, row in _load_named(connection, kind, names).items()}


def _load_named(connection: Connection, kind: str, names: Sequence[str]) -> dict[str, StoredRow]:
    """The stored rows of a kind with some names, by name."""
    rows: dict[str, StoredRow] = {}
    for start in range(0, len(names), LINKS_PER_QUERY):
        rows |= _load_rows(connection, kind, names[start : start + LINKS_PER_QUERY])
    return rows


def is_audit_intact(db: Database, audit_id: int) -> bool:
    """Whether the row of an audit, with its configuration and survey, is as its last link says; True without a link."""
    kind = table_of(Audit).name
    with db.read() as connection:
        linked = _load_last_contents(connection, audit_id, [kind])
        try:
            return not linked or _hash_rows(connection, audit_id, [kind]) == linked
        except (TypeError, ValueError):  # a text that is no JSON
            return False


def load_linked_names(db: Database, audit_id: int) -> set[tuple[str, str]]:
    """Load kind and name of the rows of an audit's results that are in the chain, since no answer says them."""
    with db.read() as connection:
        contents = _load_last_contents(connection, audit_id, derived_kinds())
    return {key for key, content in contents.items() if content != DELETED}


def is_linked(linked: Collection[tuple[str, str]], kind: str, row: StoredRow) -> bool:
    """Whether a row is among the names that `load_linked_names` returned."""
    table = _find_table(kind)
    return table is not None and (kind, name_row(table, row)) in linked


def _hash_rows(connection: Connection, audit_id: int, kinds: Collection[str]) -> dict[tuple[str, str], str]:
    """Hashes of an audit's rows by kind and name."""
    hashes: dict[tuple[str, str], str] = {}
    for kind in kinds:
        table = _find_table(kind)
        assert table is not None
        owner = table.c.id if table is table_of(Audit) else table.c.audit_id
        rows = connection.execute(select(table).where(owner == audit_id)).mappings()
        hashes |= {(kind, name_row(table, row)): hash_content(kind, row) for row in rows}
    return hashes


def _load_last_contents(connection: Connection, audit_id: int, kinds: Collection[str]) -> dict[tuple[str, str], str]:
    """The content of the last link of each row of an audit, by kind and name."""
    c = table_of(ChainLink).c
    query = select(c.kind, c.row, c.content).where(c.kind.in_(sorted(kinds)), c.audit_id == audit_id).order_by(c.id)
    if set(kinds) == {"audit"}:  # found at once, since it is one of the last
        query = query.order_by(None).order_by(c.id.desc()).limit(1)
    return {(kind, row_name): content for kind, row_name, content in connection.execute(query)}


# --- verification -----------------------------------------------------------------------------------------------


def verify_chain(db: Database, max_breaks: int = 10, *, has_payloads: bool = True) -> ChainCheck:
    """Check all links of the chain in order, then rows without a link; stops after `max_breaks` problems.

    Args:
        db: the database.
        max_breaks: number of problems after which the check stops.
        has_payloads: whether the database has the beginnings of servers' responses, which an archive leaves out.
    """
    check = ChainCheck()
    with db.read() as connection:
        c = table_of(ChainLink).c
        query = select(c.kind, c.row, func.max(c.id)).where(c.kind.not_in([*append_only_kinds(), ACT, WITHHELD]))
        last_links = {
            (kind, row_name): link_id for kind, row_name, link_id in connection.execute(query.group_by(c.kind, c.row))
        }
        for link, row in _load_linked_rows(connection):
            check.n_by_kind[link.kind] = check.n_by_kind.get(link.kind, 0) + 1
            _check_link(check, link, row, last_links)
            check.head = link.digest
            if len(check.breaks) >= max_breaks:
                break
        else:
            problems = ((*row, "was written past the chain") for row in _find_unlinked_rows(connection, last_links))
            payloads = _check_payloads(connection) if has_payloads else ()
            for problem in itertools.chain(problems, payloads):
                check.add(*problem)
                if len(check.breaks) >= max_breaks:
                    break
    return check


def _check_link(
    check: ChainCheck, link: _Link, row: StoredRow | None, last_links: Mapping[tuple[str, str], int]
) -> None:
    """Compare a link with the one before it, whose digest is the head so far, and with its row."""
    link_id, kind, row_name, digest, content, audit_id = link
    if content is None:  # of an earlier version, which hashed the row itself
        if row is None:
            check.add(kind, row_name, "is gone")
        elif not _matches_digest(digest, check.head, kind, row):
            check.add(kind, row_name, "is not as it was written")
        return
    entry_hash = content if kind == WITHHELD else hash_entry(kind, row_name, content)
    if digest != chain_digest(check.head, audit_id, entry_hash):
        check.add(kind, row_name, "is not as it was written: its link was changed")
    elif kind == WITHHELD:
        check.n_withheld += 1
    elif kind == ACT:
        check.acts.append(json.loads(row_name))
    elif last_links.get((kind, row_name), link_id) != link_id:
        check.n_replaced += 1
    elif content == DELETED:
        check.n_replaced += 1
        is_again = _has_consistency(row) if kind == SELF_CONSISTENCY else row is not None
        if is_again and kind not in derived_kinds():  # a run derives such a row again
            check.add(kind, row_name, "was deleted, and is there again")
    elif row is None:
        if kind not in _TABLES_OF_MEASURED:  # a missing result is found when results are derived
            check.add(kind, row_name, "is gone")
    elif not _matches_content(kind, row, content):
        check.add(kind, row_name, "is not as it was written")


def _matches_content(kind: str, row: StoredRow, content: str) -> bool:
    try:
        return _hash_present(kind, row) == content
    except (TypeError, ValueError):  # a number that is not finite, or a text that is no JSON
        return False


def _find_unlinked_rows(connection: Connection, last_links: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the rows that have no link but need one."""
    link, audit = table_of(ChainLink).c, table_of(Audit).c
    for kind in sorted(append_only_kinds()):
        table = _find_table(kind)
        assert table is not None
        key, *others = table.primary_key
        names = select(link.row).where(link.kind == kind)
        if not others:
            names = select(link.row.cast(key.type)).where(link.kind == kind)
            for row_id in connection.execute(select(key).where(key.not_in(names))).scalars():
                yield kind, str(row_id)
        else:
            linked = set(connection.execute(names).scalars())
            for row in connection.execute(select(*table.primary_key)).mappings():
                if (row_name := name_row(table, row)) not in linked:
                    yield kind, row_name
    imported = select(audit.id).where(audit.config.is_(None))
    c = table_of(ChainLink).c
    deleted = {(kind, name) for kind, name in connection.execute(select(c.kind, c.row).where(c.content == DELETED))}
    for kind in [*sorted(mutable_kinds()), *sorted(derived_kinds())]:
        table = _find_table(kind)
        assert table is not None
        query = select(*table.primary_key)
        if kind in derived_kinds():
            query = query.where(table.c.audit_id.in_(imported))
        for row in connection.execute(query).mappings():
            entry = kind, name_row(table, row)
            is_deleted = kind in derived_kinds() and entry in deleted and _is_last_deleted(connection, *entry)
            if entry not in last_links or is_deleted:
                yield entry
    verdict = table_of(Verdict)
    from_file = and_(verdict.c.key.is_(None), verdict.c.ruling.is_not(None), verdict.c.audit_id.not_in(imported))
    for row in connection.execute(select(*verdict.primary_key).where(from_file)).mappings():
        if (RECORDED_VERDICT, row_name := name_row(verdict, row)) not in last_links:
            yield RECORDED_VERDICT, row_name
    score = table_of(CellScore)
    query = select(*score.primary_key).where(score.c.self_consistency.is_not(None))
    for row in connection.execute(query.where(score.c.audit_id.not_in(imported))).mappings():
        if (SELF_CONSISTENCY, row_name := name_row(score, row)) not in last_links:
            yield SELF_CONSISTENCY, row_name


def _check_payloads(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and problem of beginnings of responses that do not match their hash, which records name."""
    payload, named = table_of(Payload), set[str]()
    for record_class in (StoredAttempt, StoredAnswer):
        column = table_of(record_class).c.payload
        named.update(connection.execute(select(column).where(column.is_not(None)).distinct()).scalars())
    rows = connection.execution_options(yield_per=LINKS_PER_QUERY).execute(select(payload.c.digest, payload.c.data))
    for digest, data in rows:
        if digest not in named:
            yield payload.name, digest, "was written past the chain"
        elif not _matches_payload(digest, data):
            yield payload.name, digest, "is not as it was written"
        named.discard(digest)
    yield from ((payload.name, digest, "is gone") for digest in sorted(named))


def _matches_payload(digest: str, data: bytes) -> bool:
    try:
        return hashlib.sha256(zlib.decompress(data)).hexdigest() == digest
    except (TypeError, zlib.error):
        return False


def _is_last_deleted(connection: Connection, kind: str, row_name: str) -> bool:
    """Whether the last link of a row says that it was deleted."""
    c = table_of(ChainLink).c
    query = select(c.content).where(c.kind == kind, c.row == row_name).order_by(c.id.desc()).limit(1)
    return bool(connection.execute(query).scalar_one() == DELETED)


class _Link(NamedTuple):
    """A row of the table `link`."""

    id: int
    kind: str
    row: str
    digest: str
    content: str | None
    audit_id: int | None


def _load_linked_rows(connection: Connection) -> Iterator[tuple[_Link, StoredRow | None]]:
    """Yield each link in order with the row that it refers to, or None if the row no longer exists."""
    c = table_of(ChainLink).c
    query = select(*(c[name] for name in _Link._fields)).order_by(c.id).execution_options(yield_per=LINKS_PER_QUERY)
    for partition in connection.execute(query).partitions(LINKS_PER_QUERY):
        links = [
            # As texts: SQLite stores bytes in a column of texts, too.
            _Link(link_id, str(kind), str(row), str(digest), None if content is None else str(content), audit_id)
            for link_id, kind, row, digest, content, audit_id in partition
        ]
        names_by_kind: dict[str, list[str]] = {}
        for link in links:
            names_by_kind.setdefault(link.kind, []).append(link.row)
        rows = {kind: _load_rows(connection, kind, names) for kind, names in names_by_kind.items()}
        for link in links:
            yield link, rows[link.kind].get(link.row)


def _load_rows(connection: Connection, kind: str, names: Sequence[str]) -> dict[str, StoredRow]:
    """The values that are not NULL of the rows of a kind to which links refer, by their names.

    Empty for acts, for kinds that are not known, and for names that no row can have.
    """
    table = _find_table(kind)
    if table is None:
        return {}
    keys = [key for name in dict.fromkeys(names) if (key := _parse_name(table, name)) is not None]
    columns, query = _rows_query(table)
    if len(table.primary_key) == 1:
        parameters = {"names": [value for (value,) in keys]}
    else:
        # As text: expressions of each column of each key took most of the time of storing results.
        key_columns, parts = [f'"{table.name}"."{name}"' for name in _key_names(table)], []
        parameters = {}
        for number, key in enumerate(keys):
            of_key = {f"k{number}_{i}": value for i, value in enumerate(key)}
            parts.append(" AND ".join(f"{column} = :{k}" for column, k in zip(key_columns, of_key, strict=True)))
            parameters |= of_key
        query = query.where(text(" OR ".join(f"({part})" for part in parts) or "1 = 0"))
    stored = connection.execute(query, parameters).all()
    rows = [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in stored]
    return {name_row(table, row): row for row in rows}


def _parse_name(table: Table, name: str) -> Sequence[Any] | None:
    """The values of a row's key that its name says; None for a name that no row of the table can have."""
    n_columns = len(_key_names(table))
    try:
        if n_columns > 1:
            values = json.loads(name)
            return values if isinstance(values, list) and len(values) == n_columns else None
        return [int(name) if _has_number_as_key(table) else name]
    except ValueError:
        return None


@functools.cache
def _rows_query(table: Table) -> tuple[Sequence[str], Select[Any]]:
    """Names of a table's columns in their order, which is that of canonical JSON, and the query of some of its rows.

    If the key has one column, the parameter `names` has its values.
    """
    columns, key = sorted(table.c.keys()), list(table.primary_key)
    query = select(*(table.c[name] for name in columns))
    if len(key) == 1:
        query = query.where(key[0].in_(bindparam("names", expanding=True)))
    return columns, query


def _earlier_digest(previous_digest: str, kind: str, row: StoredRow) -> str:
    """Digest of a link of an earlier version: hash of the previous one and of the row's columns that are not NULL."""
    content = {column: value for column, value in dict(row).items() if value is not None}
    return canonical_hash([previous_digest, kind, content])


def _matches_digest(digest: str, previous_digest: str, kind: str, row: StoredRow) -> bool:
    """Whether an earlier link's digest is that of a row, for any of the `_number_variants` of its numbers."""
    try:
        return any(_earlier_digest(previous_digest, kind, variant) == digest for variant in _number_variants(kind, row))
    except (TypeError, ValueError):  # bytes or a number that is not finite: auditor never writes such a row
        return False


def _number_variants(kind: str, row: StoredRow) -> Iterator[dict[str, Any]]:
    """Yield the row as stored, then with integral values of its float columns as int, and with zeros as 0 or -0.0.

    Earlier versions linked ratings with the values of SQLite's RETURNING, which gives 3 for a stored 3.0.
    """
    table = _find_table(kind)
    assert table is not None
    integral_columns = [
        column
        for column, value in row.items()
        if isinstance(value, float) and value.is_integer() and table.c[column].type.python_type is float
    ]
    variants_by_column = [
        (abs(row[column]), 0, -0.0) if row[column] == 0 else (row[column], int(row[column]))
        for column in integral_columns
    ]
    for numbers in itertools.product(*variants_by_column):
        yield {**row, **dict(zip(integral_columns, numbers, strict=True))}


def find_uncovered(db: Database, audit_id: int) -> dict[str, int]:
    """Number of an audit's rows that are neither in the chain nor derived, by table; those without are left out.

    These are calls that went out and did not come back, until the next run of the audit links them.
    """
    dispatch, covered = table_of(Dispatch).name, covered_kinds()
    uncovered: dict[str, int] = {}
    with db.read() as connection:
        calls = _hash_rows(connection, audit_id, [dispatch])
        linked = _load_last_contents(connection, audit_id, [dispatch]) if calls else {}
        uncovered[dispatch] = len(set(calls) - set(linked))
        for name, table in sorted(load_tables().items()):
            if name not in {*covered, table_of(ChainLink).name} and "audit_id" in table.c:
                query = select(func.count()).select_from(table).where(table.c.audit_id == audit_id)
                uncovered[name] = int(connection.execute(query).scalar_one())
    return {name: n for name, n in uncovered.items() if n}


def contains_head(db: Database, head: str) -> bool:
    """Whether a head that was noted earlier is a digest of the chain, or its start."""
    table = table_of(ChainLink)
    with db.read() as connection:
        link_id = connection.execute(select(table.c.id).where(table.c.digest == head).limit(1)).scalar_one_or_none()
    return link_id is not None or head == START_DIGEST
