"""What another package needs to write a probe, imported on first use; see docs/probes.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.agents.answer_parsing import parse_score as parse_score
    from auditor.agents.refusals import is_refusal_in_any_language as is_refusal_in_any_language
    from auditor.config.base import Structure as Structure
    from auditor.config.probe_section import ProbeSettings as ProbeSettings
    from auditor.domain import (
        Call as Call,
        Cell as Cell,
        Message as Message,
        Outcome as Outcome,
        Survey as Survey,
        Trace as Trace,
    )
    from auditor.domain.personas import find_persona as find_persona
    from auditor.domain.terms import LANGUAGES as LANGUAGES
    from auditor.errors import ConfigError as ConfigError
    from auditor.metrics.intervals.estimate import Estimate as Estimate, Tested as Tested
    from auditor.metrics.intervals.jackknife_interval import (
        FISHER_Z as FISHER_Z,
        estimate_from_replicates as estimate_from_replicates,
        replicate_over_units as replicate_over_units,
    )
    from auditor.metrics.intervals.multiple_testing import adjust_tests as adjust_tests
    from auditor.metrics.intervals.unit_means import mean_over_units as mean_over_units
    from auditor.probe_interface import (
        INTERFACE_VERSION as INTERFACE_VERSION,
        GateFigure as GateFigure,
        Headline as Headline,
        Needs as Needs,
        Probe as Probe,
        ProbeAnswer as ProbeAnswer,
        ProbeAudit as ProbeAudit,
        ProbeResult as ProbeResult,
        Question as Question,
        Reading as Reading,
        Turn as Turn,
        Unit as Unit,
    )
    from auditor.prompts import load_prompt as load_prompt
    from auditor.reports.data.report_model import ReportModel as ReportModel
    from auditor.reports.data.report_source import cell_units as cell_units
    from auditor.reports.document import (
        Block as Block,
        Callout as Callout,
        Code as Code,
        Column as Column,
        CountShare as CountShare,
        Disclosure as Disclosure,
        Facts as Facts,
        Figure as Figure,
        Paragraph as Paragraph,
        Section as Section,
        Table as Table,
    )
    from auditor.reports.number_format import describe_estimate as describe_estimate, pluralize as pluralize
    from auditor.reports.sections.phrasing import build_interval_figure as build_interval_figure, tabulate as tabulate
    from auditor.run import open_audit as open_audit
    from auditor.surveys.countries import country_code as country_code, native_languages as native_languages
    from auditor.surveys.row_reader import read_rows as read_rows

if not TYPE_CHECKING:
    __getattr__, __dir__ = import_on_first_use(__name__, __file__)
