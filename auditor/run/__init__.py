"""Run audits, and open audits that were run: the interface for the command line and for Python programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.run.audit_handle import (
        AuditHandle,
        open_audit,
        open_stored_audit,
        open_stored_database,
    )
    from auditor.run.audit_runner import finish_audit, resume_after_review, run_audit, store_audit
    from auditor.run.encoders import NO_ENCODER, direct_encoder_loader, probe_encoder_loaders
    from auditor.run.fingerprints import describe_environment, fingerprint
    from auditor.run.model_access import run_with_models
    from auditor.run.storage_location import locate_audit, locate_storage, resolve_storage_url
    from auditor.run.survey_plan import (
        EMPTY_SURVEY,
        check_probe_input,
        describe_survey_problems,
        list_unmeasurable,
        load_planned_survey,
    )

__all__ = [
    "EMPTY_SURVEY",
    "NO_ENCODER",
    "AuditHandle",
    "check_probe_input",
    "describe_environment",
    "describe_survey_problems",
    "direct_encoder_loader",
    "fingerprint",
    "finish_audit",
    "list_unmeasurable",
    "load_planned_survey",
    "locate_audit",
    "locate_storage",
    "open_audit",
    "open_stored_audit",
    "open_stored_database",
    "probe_encoder_loaders",
    "resolve_storage_url",
    "resume_after_review",
    "run_audit",
    "run_with_models",
    "store_audit",
]

if not TYPE_CHECKING:
    __getattr__ = import_on_first_use(
        __name__,
        {
            "audit_handle": (
                "AuditHandle",
                "open_audit",
                "open_stored_audit",
                "open_stored_database",
            ),
            "audit_runner": ("finish_audit", "resume_after_review", "run_audit", "store_audit"),
            "encoders": ("NO_ENCODER", "direct_encoder_loader", "probe_encoder_loaders"),
            "fingerprints": ("describe_environment", "fingerprint"),
            "model_access": ("run_with_models",),
            "storage_location": ("locate_audit", "locate_storage", "resolve_storage_url"),
            "survey_plan": (
                *("EMPTY_SURVEY", "check_probe_input", "describe_survey_problems"),
                *("list_unmeasurable", "load_planned_survey"),
            ),
        },
    )
