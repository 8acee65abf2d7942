"""The configuration of an audit: one TOML (or strict YAML) file, validated; unknown keys name the nearest known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig
    from auditor.config.loader import MAX_CONFIG_BYTES, MODEL_PATH_KEYS, load_config, require_audit_name, resolve_secret
    from auditor.config.model_section import (
        DEFAULT_PROVIDER_CONCURRENCY,
        DEFAULT_SERVER_CONCURRENCY,
        ENV_PREFIX,
        CapabilitiesSection,
        ModelSection,
        Price,
        ReasoningSection,
    )
    from auditor.config.probes import DirectProbe, LogprobProbe, Probes, ReviewProbe
    from auditor.config.providers.table import EMBEDDED, REPLAY, SIMULATED
    from auditor.config.sections import (
        AUDIT_NAME_PATTERN,
        BatchSection,
        CheckSection,
        CompareSection,
        ConflictSection,
        EmbeddingSection,
        LabelSection,
        Limits,
        NonInferioritySection,
        NonNegativeFloat,
        NonresponseTreatment,
        PanelSection,
        RunSection,
        SurveySection,
        TaskSection,
        TelemetrySection,
        UnitFloat,
    )
    from auditor.config.stored import load_stored_config, rename_old_keys

__all__ = [
    "AUDIT_NAME_PATTERN",
    "DEFAULT_PROVIDER_CONCURRENCY",
    "DEFAULT_SERVER_CONCURRENCY",
    "EMBEDDED",
    "ENV_PREFIX",
    "MAX_CONFIG_BYTES",
    "MODEL_PATH_KEYS",
    "REPLAY",
    "SIMULATED",
    "AuditConfig",
    "BatchSection",
    "CapabilitiesSection",
    "CheckSection",
    "CompareSection",
    "ConflictSection",
    "DirectProbe",
    "EmbeddingSection",
    "LabelSection",
    "Limits",
    "LogprobProbe",
    "ModelSection",
    "NonInferioritySection",
    "NonNegativeFloat",
    "NonresponseTreatment",
    "PanelSection",
    "Price",
    "Probes",
    "ReasoningSection",
    "ReviewProbe",
    "RunSection",
    "SurveySection",
    "TaskSection",
    "TelemetrySection",
    "UnitFloat",
    "load_config",
    "load_stored_config",
    "rename_old_keys",
    "require_audit_name",
    "resolve_secret",
]

if not TYPE_CHECKING:
    __getattr__ = import_on_first_use(
        __name__,
        {
            "audit": ("AuditConfig",),
            "loader": (
                "MAX_CONFIG_BYTES",
                "MODEL_PATH_KEYS",
                "load_config",
                "require_audit_name",
                "resolve_secret",
            ),
            "model_section": (
                "DEFAULT_PROVIDER_CONCURRENCY",
                "DEFAULT_SERVER_CONCURRENCY",
                "ENV_PREFIX",
                "CapabilitiesSection",
                "ModelSection",
                "Price",
                "ReasoningSection",
            ),
            "probes": (
                "DirectProbe",
                "LogprobProbe",
                "Probes",
                "ReviewProbe",
            ),
            "providers.table": (
                "EMBEDDED",
                "REPLAY",
                "SIMULATED",
            ),
            "sections": (
                "AUDIT_NAME_PATTERN",
                "BatchSection",
                "CheckSection",
                "CompareSection",
                "ConflictSection",
                "EmbeddingSection",
                "LabelSection",
                "Limits",
                "NonInferioritySection",
                "NonNegativeFloat",
                "NonresponseTreatment",
                "PanelSection",
                "RunSection",
                "SurveySection",
                "TaskSection",
                "TelemetrySection",
                "UnitFloat",
            ),
            "stored": (
                "load_stored_config",
                "rename_old_keys",
            ),
        },
    )
