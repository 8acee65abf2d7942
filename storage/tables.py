"""All tables of the database: importing this module makes every row class.

Times are ISO 8601 in UTC; unknown numbers are NULL, never 0. The table `answer` is the ledger: it is shared by all
audits of a database, and its key covers all that determines an answer. Most other tables belong to one audit each and
are derived from the ledger. `rating` and `label` are append-only. The records of a probe are in the module that its
`parts` name.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from auditor.storage.row_classes import row_class_of

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
for _record_class in RECORDS:
    row_class_of(_record_class)


for _name in list_built_in_names():
    for _record_class in load_built_in(_name).list_records():
        row_class_of(_record_class)
