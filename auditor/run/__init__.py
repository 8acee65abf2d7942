"""Running an audit, and opening one that was run: what the command line and Python programs call."""

from __future__ import annotations

from auditor.run.audit_handle import AuditHandle, open_audit, storage_url
from auditor.run.audit_runner import resume_after_review, run_audit
from auditor.run.fingerprints import environment, fingerprint
from auditor.run.model_access import NO_ENCODER, ask_models, encoder_of, moral_encoder_of
from auditor.run.survey_plan import NO_SURVEY, planned_cells, planned_survey

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
