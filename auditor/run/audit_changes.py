"""Rename and delete audits, under the locks of their runs."""

from __future__ import annotations

from auditor.config import AuditConfig, load_stored_config, require_audit_name
from auditor.errors import AuditorError
from auditor.run.audit_handle import open_stored_database
from auditor.run.fingerprints import fingerprint, was_run_with
from auditor.storage import audit_changes, audits
from auditor.storage.audits import Audit
from auditor.storage.database import run_lock


def rename_audit(name: str, new_name: str, *, storage: str | None = None) -> None:
    """Give an audit another name; its results, its decisions and its place in the hash chain do not change.

    Args:
        name: the audit's name.
        new_name: a name that no audit of the database has.
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` if None.

    Raises:
        UsageError: `new_name` cannot name an audit, or another audit has it.
        StorageError: there is no such audit, or it is being run.
        ConfigError: another version of auditor stored its configuration, and this one cannot read it.
    """
    require_audit_name(new_name)
    with open_stored_database(storage) as db:
        audits.get_audit(db, name)
        audit_changes.require_free_name(db, new_name)
        with run_lock(db, name), run_lock(db, new_name):
            audit = audits.get_audit(db, name)
            audit_changes.rename_audit(db, audit, new_name, *_rename_config(audit, new_name))


def delete_audit(name: str, *, storage: str | None = None) -> None:
    """Delete an audit; recorded answers, human decisions and the hash chain stay. See `storage.audit_changes`.

    Raises:
        StorageError: there is no such audit, or it is being run.
    """
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        audit_changes.delete_audit(db, audit)


def _rename_config(audit: Audit, new_name: str) -> tuple[str | None, str | None]:
    """The stored configuration with another name, as JSON, and its hash; (None, None) for imported scores.

    A hash of other prompts stays as it is: the next run then computes the results again in any case.
    """
    config = load_stored_config(audit.config)
    if config is None:
        return None, audit.config_hash
    renamed_config = config.model_copy(update={"name": new_name})
    return renamed_config.model_dump_json(), (
        fingerprint(renamed_config) if _was_run_with(config, audit) else audit.config_hash
    )


def _was_run_with(config: AuditConfig, audit: Audit) -> bool:
    """Whether an audit was run with this configuration; False if a prompt of its own can no longer be read."""
    try:
        return was_run_with(audit, config)
    except AuditorError:
        return False
