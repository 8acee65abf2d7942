"""Read an audit's recorded answers again by the present readers, and undo that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from auditor.config import load_stored_config
from auditor.domain import canonical_json
from auditor.errors import UsageError
from auditor.run.audit_handle import open_stored_database
from auditor.run.exclusions import update_final_stage
from auditor.run.fingerprints import (
    READERS,
    find_other_readers,
    fingerprint,
    format_reader_versions,
    list_reader_versions,
)
from auditor.run.rederivation import open_derivation
from auditor.storage import audits
from auditor.storage.database import run_lock
from auditor.storage.rereadings import RowChange, store_rereading, undo_rereading


@dataclass(frozen=True, slots=True)
class Rereading:
    """What the present readers read otherwise.

    Attributes:
        readers: stored and present version of each reader that is another one now.
        n_by_table: number of results that change, by table.
        missing_probes: why probes cannot be used, as a sentence, by name: their results were not read.
    """

    readers: Mapping[str, tuple[int, int]]
    n_by_table: Mapping[str, int]
    missing_probes: Mapping[str, str]


def reread_audit(name: str, *, storage: str | None = None, is_preview: bool = False) -> Rereading:
    """Replace those results of an audit that the present readers read otherwise; no model is called.

    Results that differ although their reader has the same version stay as they are: `auditor verify` names them.

    Args:
        name: the audit's name.
        storage: database URL; as `resolve_storage_url` if None.
        is_preview: whether nothing is stored.

    Raises:
        UsageError: the audit's results were imported.
        StorageError: there is no such audit, or it is being run.
        AuditorError: results cannot be derived.
    """
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        config = load_stored_config(audit.config)
        if config is None:
            raise UsageError(f"the results of '{name}' were imported: no answers are recorded.", "Import them again.")
        changes: list[RowChange] = []
        with open_derivation(db, audit, on_reread=lambda *change: changes.append(RowChange(*change))) as compare:
            compare()
        readers = find_other_readers(audit, config)
        if not is_preview and (readers or changes):
            earlier_readers = list_reader_versions(config) | {reader: old for reader, (old, _) in readers.items()}
            was_current = audit.config_hash == fingerprint(config, readers=earlier_readers)
            config_hash = fingerprint(config) if was_current else audit.config_hash
            environment = json.loads(audit.environment) | {READERS: format_reader_versions(config)}
            store_rereading(db, audit, changes, config_hash, canonical_json(environment))
            update_final_stage(db, audit)
        return Rereading(readers, Counter(change.table.name for change in changes), config.probes.missing)


def undo_reread(name: str, *, storage: str | None = None) -> int:
    """Restore the results that the last rereading of an audit replaced, and return their number.

    Raises:
        UsageError: there is none, or the audit was run again since.
        StorageError: there is no such audit, or it is being run.
    """
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        n_restored = undo_rereading(db, audit)
        update_final_stage(db, audit)
        return n_restored
