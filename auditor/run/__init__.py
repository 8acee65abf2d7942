"""Run audits, and open audits that were run: the interface for the command line and for Python programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.run.audit_handle import (
        AuditHandle as AuditHandle,
        locate_audit as locate_audit,
        locate_storage as locate_storage,
        open_audit as open_audit,
        open_stored_audit as open_stored_audit,
        open_stored_database as open_stored_database,
        resolve_storage_url as resolve_storage_url,
    )
    from auditor.run.audit_runner import (
        finish_audit as finish_audit,
        resume_after_review as resume_after_review,
        run_audit as run_audit,
        store_audit as store_audit,
    )
    from auditor.run.fingerprints import describe_environment as describe_environment, fingerprint as fingerprint
    from auditor.run.model_access import run_with_models as run_with_models
    from auditor.run.survey_plan import (
        EMPTY_SURVEY as EMPTY_SURVEY,
        NO_ENCODER as NO_ENCODER,
        check_probe_input as check_probe_input,
        describe_survey_problems as describe_survey_problems,
        direct_encoder_loader as direct_encoder_loader,
        list_unmeasurable as list_unmeasurable,
        load_planned_survey as load_planned_survey,
        probe_encoder_loaders as probe_encoder_loaders,
    )

if not TYPE_CHECKING:
    __getattr__, __dir__ = import_on_first_use(__name__, __file__)
