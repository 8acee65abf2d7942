"""What models' servers were found to accept, in which form they were asked, and changes of limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from auditor.domain import Capability, CapabilityKey, Outcome, Purpose, Trace
from auditor.storage import hash_chain
from auditor.storage.call_records import LimitChange, StoredAnswer, StoredCapability
from auditor.storage.count_queries import fetch_rows
from auditor.storage.database import Database
from auditor.storage.hash_chain import append_entry
from auditor.storage.ledger import utc_now
from auditor.storage.row_classes import conversion_of, insert_new, make_storable, select_records, table_of


def current_capabilities(history: Iterable[StoredCapability]) -> dict[CapabilityKey, StoredCapability]:
    """The latest capability of each key, of a history in order."""
    return {stored.key: stored for stored in history}


async def save_capability(
    db: Database,
    audit_id: int,
    key: CapabilityKey,
    capability: Capability,
    evidence: str,
    litellm_version: str,
    *,
    newer_than: int = 0,
) -> Capability:
    """Store a capability, unless the audit has one for this key, and return the one that is stored.

    A stored capability without a form of structured answers is completed by one with a form.

    Args:
        db: the database.
        audit_id: the audit.
        key: what the capability belongs to.
        capability: what was found out.
        evidence: what the server answered that led to it.
        litellm_version: version of litellm that it was found out with.
        newer_than: number up to which stored capabilities are replaced, since all is to be found out again.
    """
    created_at = utc_now()

    def job(connection: sa.Connection) -> Capability:
        """Insert the next number if it is due; a row of that number from another process wins."""
        current = _load_current(connection, audit_id, key)
        is_settled = current is not None and current.number > newer_than
        if current and is_settled and (current.capability.form is not None or capability.form is None):
            return current.capability
        number = 1 if current is None else current.number + 1
        new_capability = StoredCapability(key, number, capability.id, capability, evidence, litellm_version, created_at)
        [row] = conversion_of(StoredCapability).to_rows([new_capability], audit_id=audit_id)
        insert_new(connection, StoredCapability, [make_storable(StoredCapability, row)])
        c = table_of(StoredCapability).c
        named = [c[name] == row[name] for name in ("audit_id", "model", "server", "effort", "number")]
        new_row = connection.execute(sa.select(table_of(StoredCapability)).where(*named)).mappings().one()
        hash_chain.append_links(connection, {"capability": [new_row]})
        stored = _load_current(connection, audit_id, key)
        assert stored is not None
        return stored.capability

    return await db.writer.write(job)


def _load_current(connection: sa.Connection, audit_id: int, key: CapabilityKey) -> StoredCapability | None:
    """Load the latest capability of a key; None if there is none."""
    c = table_of(StoredCapability).c
    conditions = (
        c.audit_id == audit_id,
        c.model == key.model,
        c.server == (key.server or ""),
        c.effort == (key.effort or ""),
    )
    stored = select_records(connection, StoredCapability, *conditions, order_by=[c.number.desc()], limit=1)
    return stored[0] if stored else None


class FormScore(NamedTuple):
    """Mean score of a model's usable direct answers on one cell that were requested in one form.

    Attributes:
        answers: number of these answers.
    """

    model: str
    form: str
    country: str
    topic: str
    score: float
    answers: int


class Alteration(NamedTuple):
    """A way in which some of a model's requests for one purpose were sent otherwise than configured.

    Attributes:
        altered: see `auditor.domain.Answer`.
    """

    name: str
    purpose: str
    altered: str | None


def load_direct_alterations(db: Database, audit_id: int) -> list[Alteration]:
    """Ways in which each model's direct questions were sent, in the order of the models' names."""
    trace, answer = table_of(Trace).c, table_of(StoredAnswer).c
    query = (
        sa.select(trace.model, sa.literal(Purpose.DIRECT.value), answer.altered)
        .distinct()
        .select_from(table_of(Trace).join(table_of(StoredAnswer), answer.key == trace.key))
        .where(trace.audit_id == audit_id)
        .order_by(trace.model, answer.altered.nulls_first())
    )
    return fetch_rows(db, Alteration._make, query)


def load_scores_by_form(db: Database, audit_id: int) -> list[FormScore]:
    """Mean scores of an audit's direct answers by model, form and cell, in this order; free texts have no form."""
    trace, answer = table_of(Trace).c, table_of(StoredAnswer).c
    group = (trace.model, answer.form, trace.country, trace.topic)
    query = (
        sa.select(*group, sa.func.avg(trace.score), sa.func.count())
        .select_from(table_of(Trace).join(table_of(StoredAnswer), answer.key == trace.key))
        .where(trace.audit_id == audit_id, trace.outcome == Outcome.OK.value, trace.score.is_not(None))
        .where(answer.form.is_not(None))
        .group_by(*group)
        .order_by(*group)
    )
    return fetch_rows(db, FormScore._make, query)


def record_limit_change(
    db: Database, run_id: str, audit_id: int, account: str, before: int, after: int, reason: str
) -> None:
    """Queue the record of a change, without waiting until it is durable."""
    change = LimitChange(run_id, utc_now(), account, before, after, reason)
    db.writer.submit(lambda connection: append_entry(connection, audit_id, change))
