"""What another package needs to write a probe, imported on first use; see docs/probes.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.agents.answer_parsing import is_refusal_in_any_language, parse_score
    from auditor.config.probe_section import ProbeSettings
    from auditor.domain import Call, Cell, Message, Outcome, Survey, Trace
    from auditor.domain.languages import LANGUAGES
    from auditor.domain.personas import find_persona
    from auditor.errors import ConfigError
    from auditor.metrics.estimate import Estimate, Tested
    from auditor.metrics.jackknife_interval import FISHER_Z, estimate_from_replicates
    from auditor.metrics.multiple_testing import adjust_tests
    from auditor.metrics.unit_means import mean_over_units
    from auditor.metrics.unit_replicates import replicate_over_units
    from auditor.models.answer_schemas import Structure
    from auditor.probe_interface import (
        INTERFACE_VERSION,
        GateFigure,
        Headline,
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
        Block,
        Callout,
        Code,
        Column,
        CountShare,
        Disclosure,
        Facts,
        Figure,
        Paragraph,
        Section,
        Table,
    )
    from auditor.reports.number_format import describe_estimate, pluralize
    from auditor.reports.sections.estimate_plots import build_interval_figure
    from auditor.reports.sections.tables import tabulate
    from auditor.run import open_audit
    from auditor.surveys.languages import native_languages
    from auditor.surveys.row_reader import read_rows

__all__ = [
    "FISHER_Z",
    "INTERFACE_VERSION",
    "LANGUAGES",
    "Block",
    "Call",
    "Callout",
    "Cell",
    "Code",
    "Column",
    "ConfigError",
    "CountShare",
    "Disclosure",
    "Estimate",
    "Facts",
    "Figure",
    "GateFigure",
    "Headline",
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
    "Tested",
    "Trace",
    "Turn",
    "Unit",
    "adjust_tests",
    "build_interval_figure",
    "cell_units",
    "describe_estimate",
    "estimate_from_replicates",
    "find_persona",
    "is_refusal_in_any_language",
    "load_prompt",
    "mean_over_units",
    "native_languages",
    "open_audit",
    "parse_score",
    "pluralize",
    "read_rows",
    "replicate_over_units",
    "tabulate",
]

_MODULES = {
    "auditor.agents.answer_parsing": ("is_refusal_in_any_language", "parse_score"),
    "auditor.config.probe_section": ("ProbeSettings",),
    "auditor.domain": ("Call", "Cell", "Message", "Outcome", "Survey", "Trace"),
    "auditor.domain.languages": ("LANGUAGES",),
    "auditor.domain.personas": ("find_persona",),
    "auditor.errors": ("ConfigError",),
    "auditor.metrics.estimate": ("Estimate", "Tested"),
    "auditor.metrics.multiple_testing": ("adjust_tests",),
    "auditor.models.answer_schemas": ("Structure",),
    "auditor.metrics.jackknife_interval": ("FISHER_Z", "estimate_from_replicates"),
    "auditor.metrics.unit_means": ("mean_over_units",),
    "auditor.metrics.unit_replicates": ("replicate_over_units",),
    "auditor.prompts": ("load_prompt",),
    "auditor.reports.data.sampling_units": ("cell_units",),
    "auditor.reports.sections.estimate_plots": ("build_interval_figure",),
    "auditor.reports.number_format": ("describe_estimate", "pluralize"),
    "auditor.reports.sections.tables": ("tabulate",),
    "auditor.run": ("open_audit",),
    "auditor.surveys.languages": ("native_languages",),
    "auditor.surveys.row_reader": ("read_rows",),
    "auditor.reports.data.report_model": ("ReportModel",),
    "auditor.reports.document": (
        *(
            "Block",
            "Callout",
            "Code",
            "Column",
            "CountShare",
            "Disclosure",
            "Facts",
            "Figure",
            "Paragraph",
            "Section",
            "Table",
        ),
    ),
}
_MODULE_BY_NAME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'auditor.probes' has no attribute {name!r}")
    return getattr(import_module(_MODULE_BY_NAME.get(name, "auditor.probe_interface")), name)
