"""Running an audit, and opening one that was run: what the command line and Python programs call."""

from __future__ import annotations

from auditor.run.asking import NO_ENCODER, ask_models, encoder_of, moral_encoder_of
from auditor.run.fingerprints import environment, fingerprint
from auditor.run.handle import AuditHandle, open_audit, storage_url
from auditor.run.planning import NO_SURVEY, planned_cells, planned_survey
from auditor.run.running import resume_after_review, run_audit

__all__ = [
    "NO_ENCODER",
    "NO_SURVEY",
    "AuditHandle",
    "ask_models",
    "encoder_of",
    "environment",
    "fingerprint",
    "moral_encoder_of",
    "open_audit",
    "planned_cells",
    "planned_survey",
    "resume_after_review",
    "run_audit",
    "storage_url",
]
