"""All tables of the database.

Times are ISO 8601 in UTC; unknown numbers are NULL, never 0. The table `answer` is the ledger: it is shared by all
audits of a database, and its key covers all that determines an answer. Most other tables belong to one audit each and
are derived from the ledger. `rating` and `label` are append-only. The records of a probe are in the module that its
`parts` name.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sqlalchemy import MetaData, Table

from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import (
    AlteredTraceVerdict,
    CellScore,
    Claim,
    Conflict,
    Contest,
    Guess,
    Rating,
    Restatement,
    SentencePairScore,
    SurveyCell,
    TaskItem,
    Trace,
    Verdict,
)
from auditor.domain.audit_records import Audit, DesignAnswer, ExcludedContent, Exclusion, PlannedRun, Registration
from auditor.domain.labels import DrawnUnit, LabelDraw, LabelEntry
from auditor.domain.records import RowPolicy, table_declaration
from auditor.probe_interface import ProbeResult
from auditor.storage.call_records import (
    ChainLink,
    Dispatch,
    LimitChange,
    NotedCall,
    Payload,
    ProviderBatch,
    StoredAnswer,
    StoredAttempt,
    StoredCapability,
    TextVector,
)
from auditor.storage.migrations import find_latest_revision
from auditor.storage.row_classes import METADATA, table_of

SCHEMA_VERSION = find_latest_revision()
"""Number of the latest revision in `migrations/versions`; each revision adds one."""
REVISION = f"{SCHEMA_VERSION:04}"
VERSION_TABLE = "auditor_version"
"""Table that holds the database's revision; its presence marks a database of auditor."""

RECORDS: Sequence[type] = (
    StoredAnswer,
    StoredAttempt,
    Payload,
    LimitChange,
    StoredCapability,
    Dispatch,
    ProviderBatch,
    ChainLink,
    Exclusion,
    ExcludedContent,
    Registration,
    LabelDraw,
    DrawnUnit,
    LabelEntry,
    Audit,
    SurveyCell,
    TaskItem,
    Trace,
    CellScore,
    SentencePairScore,
    Verdict,
    Guess,
    Restatement,
    AlteredTraceVerdict,
    Contest,
    PlannedRun,
    DesignAnswer,
    Claim,
    Conflict,
    Rating,
    ProbeResult,
    NotedCall,
    TextVector,
)
"""Classes of records with a table, in the order in which exports list the tables."""


@functools.cache
def list_record_classes(policy: RowPolicy | None = None) -> tuple[type, ...]:
    """Classes of all records with a table, those of built-in probes last; only those with a policy, if it is named."""
    probes = map(load_built_in, list_built_in_names())
    record_classes = (*RECORDS, *(record_class for probe in probes for record_class in probe.list_records()))
    return tuple(
        record_class for record_class in record_classes if policy in (None, table_declaration(record_class).policy)
    )


def load_metadata() -> MetaData:
    """The metadata of all tables."""
    for record_class in list_record_classes():
        table_of(record_class)
    return METADATA


def load_tables() -> dict[str, Table]:
    """All tables by their names, in the order of `list_record_classes`."""
    return {table.name: table for table in map(table_of, list_record_classes())}
