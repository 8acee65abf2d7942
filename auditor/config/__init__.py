"""The configuration of an audit: one TOML (or strict YAML) file, validated; unknown keys name the nearest known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig as AuditConfig, load_stored_config as load_stored_config
    from auditor.config.loader import (
        MAX_CONFIG_BYTES as MAX_CONFIG_BYTES,
        MODEL_PATH_KEYS as MODEL_PATH_KEYS,
        load_config as load_config,
        require_audit_name as require_audit_name,
        resolve_secret as resolve_secret,
    )
    from auditor.config.model_section import (
        DEFAULT_PROVIDER_CONCURRENCY as DEFAULT_PROVIDER_CONCURRENCY,
        DEFAULT_SERVER_CONCURRENCY as DEFAULT_SERVER_CONCURRENCY,
        ENV_PREFIX as ENV_PREFIX,
        CapabilitiesSection as CapabilitiesSection,
        ModelSection as ModelSection,
        Price as Price,
        ReasoningSection as ReasoningSection,
    )
    from auditor.config.probes import (
        DirectProbe as DirectProbe,
        LogprobProbe as LogprobProbe,
        Probes as Probes,
        ReviewProbe as ReviewProbe,
    )
    from auditor.config.providers import EMBEDDED as EMBEDDED, REPLAY as REPLAY, SIMULATED as SIMULATED
    from auditor.config.sections import (
        AUDIT_NAME_PATTERN as AUDIT_NAME_PATTERN,
        BatchSection as BatchSection,
        CheckSection as CheckSection,
        CompareSection as CompareSection,
        ConflictSection as ConflictSection,
        EmbeddingSection as EmbeddingSection,
        LabelSection as LabelSection,
        LimitsSection as LimitsSection,
        NonInferioritySection as NonInferioritySection,
        NonNegativeFloat as NonNegativeFloat,
        NonresponseTreatment as NonresponseTreatment,
        PanelSection as PanelSection,
        RunSection as RunSection,
        SurveySection as SurveySection,
        TaskSection as TaskSection,
        TelemetrySection as TelemetrySection,
        UnitFloat as UnitFloat,
    )

if not TYPE_CHECKING:
    __getattr__, __dir__ = import_on_first_use(__name__, __file__)
