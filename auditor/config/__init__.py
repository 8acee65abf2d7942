"""The configuration of an audit: one TOML (or strict YAML) file, validated; unknown keys name the nearest known."""

from __future__ import annotations

from auditor.config.audit import AuditConfig
from auditor.config.loading import MAX_CONFIG_BYTES, PATHS, load_config, require_name, resolve_key
from auditor.config.probes import DirectProbe, LogicProbe, LogprobProbe, Probes, ReviewProbe
from auditor.config.sections import (
    EMBEDDED,
    ENV_PREFIX,
    MOST_TO_A_PROVIDER,
    MOST_TO_A_SERVER,
    NAME,
    REPLAY,
    CheckSection,
    ConflictSection,
    EmbeddingSection,
    Limits,
    ModelSection,
    Nonresponse,
    NotNegative,
    PanelSection,
    Price,
    RunSection,
    Share,
    SurveySection,
    TaskSection,
    TelemetrySection,
)

__all__ = [
    "EMBEDDED",
    "ENV_PREFIX",
    "MAX_CONFIG_BYTES",
    "MOST_TO_A_PROVIDER",
    "MOST_TO_A_SERVER",
    "NAME",
    "PATHS",
    "REPLAY",
    "AuditConfig",
    "CheckSection",
    "ConflictSection",
    "DirectProbe",
    "EmbeddingSection",
    "Limits",
    "LogicProbe",
    "LogprobProbe",
    "ModelSection",
    "Nonresponse",
    "NotNegative",
    "PanelSection",
    "Price",
    "Probes",
    "ReviewProbe",
    "RunSection",
    "Share",
    "SurveySection",
    "TaskSection",
    "TelemetrySection",
    "load_config",
    "require_name",
    "resolve_key",
]
