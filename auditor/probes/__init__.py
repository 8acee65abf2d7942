"""What another package needs to write a probe, imported on first use; see docs/probes.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.agents.answer_parsing import is_refusal_in_any_language
    from auditor.config.probe_section import ProbeSettings
    from auditor.domain import Call, Cell, Message, Outcome, Survey, Trace
    from auditor.errors import ConfigError
    from auditor.metrics.estimate import Estimate
    from auditor.metrics.unit_means import mean_over_units
    from auditor.models.answer_schemas import Structure
    from auditor.probe_interface import (
        INTERFACE_VERSION,
        GateFigure,
        Needs,
        Probe,
        ProbeAnswer,
        ProbeAudit,
        ProbeResult,
        Question,
        Reading,
        Turn,
        Unit,
    )
    from auditor.prompts import load_prompt
    from auditor.reports.data.report_model import ReportModel
    from auditor.reports.data.sampling_units import cell_units
    from auditor.reports.document import (
        Callout,
        Column,
        CountShare,
        Disclosure,
        Facts,
        Figure,
        Paragraph,
        Section,
        Table,
    )
    from auditor.run import open_audit

__all__ = [
    "INTERFACE_VERSION",
    "Call",
    "Callout",
    "Cell",
    "Column",
    "ConfigError",
    "CountShare",
    "Disclosure",
    "Estimate",
    "Facts",
    "Figure",
    "GateFigure",
    "Message",
    "Needs",
    "Outcome",
    "Paragraph",
    "Probe",
    "ProbeAnswer",
    "ProbeAudit",
    "ProbeResult",
    "ProbeSettings",
    "Question",
    "Reading",
    "ReportModel",
    "Section",
    "Structure",
    "Survey",
    "Table",
    "Trace",
    "Turn",
    "Unit",
    "cell_units",
    "is_refusal_in_any_language",
    "load_prompt",
    "mean_over_units",
    "open_audit",
]

_MODULES = {
    "auditor.agents.answer_parsing": ("is_refusal_in_any_language",),
    "auditor.config.probe_section": ("ProbeSettings",),
    "auditor.domain": ("Call", "Cell", "Message", "Outcome", "Survey", "Trace"),
    "auditor.errors": ("ConfigError",),
    "auditor.metrics.estimate": ("Estimate",),
    "auditor.models.answer_schemas": ("Structure",),
    "auditor.metrics.unit_means": ("mean_over_units",),
    "auditor.prompts": ("load_prompt",),
    "auditor.reports.data.sampling_units": ("cell_units",),
    "auditor.run": ("open_audit",),
    "auditor.reports.data.report_model": ("ReportModel",),
    "auditor.reports.document": (
        *("Callout", "Column", "CountShare", "Disclosure", "Facts", "Figure", "Paragraph", "Section", "Table"),
    ),
}
_MODULE_BY_NAME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'auditor.probes' has no attribute {name!r}")
    return getattr(import_module(_MODULE_BY_NAME.get(name, "auditor.probe_interface")), name)
