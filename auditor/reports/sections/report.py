"""The audit's report as a document, brief or full: its key figures, followed by the sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.config import EMBEDDED
from auditor.config.providers import provider_of
from auditor.reports.data.report_schema import AuditSummary, Report
from auditor.reports.document import Callout, Code, Document, Facts, Name, Paragraph, Section, Text
from auditor.reports.document.blocks import drop_repeated
from auditor.reports.number_format import format_count, format_percent, format_usd
from auditor.reports.sections.agreement import build_agreement_section, build_tiers_section
from auditor.reports.sections.baselines import build_baselines_section, build_population_section
from auditor.reports.sections.cells import (
    build_differences_section,
    build_group_errors_section,
    build_map_section,
    build_scatter_section,
)
from auditor.reports.sections.conflicts import build_conflicts_section
from auditor.reports.sections.cost import build_cost_section
from auditor.reports.sections.coverage import (
    build_coverage_section,
    build_failures_section,
    build_lost_samples_section,
    build_refusals_section,
)
from auditor.reports.sections.examples import build_examples_section
from auditor.reports.sections.judge_quality import build_judge_quality_section, build_pair_labels_section
from auditor.reports.sections.over_models import build_model_attributes_section, build_over_models_section
from auditor.reports.sections.page_one import build_summary_section
from auditor.reports.sections.panel import build_panel_section
from auditor.reports.sections.probe_sections import build_probe_sections, list_probe_sizes
from auditor.reports.sections.provenance import build_provenance_section, build_simulation_note, label_kind
from auditor.reports.sections.regions import build_regions_section
from auditor.reports.sections.self_comparisons import (
    build_consistency_section,
    build_languages_section,
    build_methods_section,
)
from auditor.reports.sections.sensitivity import build_sensitivity_section, build_variance_section
from auditor.reports.sections.task import build_items_section, build_peer_validity_section, build_task_section

SECTION_BUILDERS: Sequence[Callable[[Report], Section | Iterable[Section] | None]] = (
    build_summary_section,
    build_map_section,
    build_group_errors_section,
    build_examples_section,
    build_agreement_section,
    build_task_section,
    build_peer_validity_section,
    build_items_section,
    build_baselines_section,
    build_population_section,
    build_tiers_section,
    build_regions_section,
    build_differences_section,
    build_scatter_section,
    build_languages_section,
    build_methods_section,
    build_sensitivity_section,
    build_variance_section,
    build_consistency_section,
    build_over_models_section,
    build_model_attributes_section,
    build_probe_sections,
    build_panel_section,
    build_judge_quality_section,
    build_pair_labels_section,
    build_conflicts_section,
    build_refusals_section,
    build_lost_samples_section,
    build_coverage_section,
    build_failures_section,
    build_cost_section,
    build_provenance_section,
)
"""Sections of the report in their order; each builder returns None, or no section, where nothing was measured."""

EMBEDDED_LABEL = (
    "All models below are real but very small, and ran on this machine. They know little about the world, so expect "
    "results near chance. They show how an audit runs, not how good language models are."
)


READING_NOTE: Text = [
    "Unless a table says otherwise, 95% CIs are for other countries and topics like these, n counts cells (a country "
    "and a topic), “p (adjusted)” holds for all tests of its table (Holm), “p” for one. ",
    Code("auditor export tables"),
    " writes all rows and columns.",
]
"""What holds for all tables of a full report on a survey."""
SURVEY_SOURCES = "Concordance: Lin 1989. Sampling error of surveys: Cook & Stefanski 1994. "
SOURCES = "Thresholds of weaknesses: EvalMORAAL, arXiv 2510.05942."


def build_report_document(report: Report, *, is_brief: bool = False) -> Document:
    """Build the document of an audit's report; the brief one has the first section only."""
    audit = report.audit
    warning = f"The audit has not finished (stage: {audit.stage}). All figures below are provisional."
    provisional = [] if audit.complete else [Callout("Provisional report", [Paragraph(warning)])]
    has_survey = report.task is None and bool(audit.survey.survey.title)
    kind = "Audit against a survey" if has_survey else "Audit of answers"
    sections = [build_summary_section(report)] if is_brief else _build_sections(report)
    return Document(
        kind=label_kind(kind, is_simulated=audit.simulated),
        title=audit.name,
        subtitle=["Compared with ", Name(audit.survey.survey.title)] if audit.survey.survey.title else "",
        sections=sections,
        opening=[
            *_label_models(audit),
            *provisional,
            Facts(list_key_figures(report)),
            *([Paragraph(READING_NOTE, "note")] if has_survey and not is_brief else []),
        ],
        footer=f"Made by auditor {audit.auditor} from the stored results of the audit “{audit.name}”. "
        + ("The full report has all figures." if is_brief else (SURVEY_SOURCES if has_survey else "") + SOURCES),
        is_brief=is_brief,
    )


def _label_models(audit: AuditSummary) -> list[Callout]:
    """Say which models the figures are about if they are simulated, or small ones that run on this machine."""
    if audit.simulated:
        return build_simulation_note(is_simulated=True)
    if audit.models and all(provider_of(model.model or "") is EMBEDDED for model in audit.models):
        return [Callout("Live demo: small local models", [Paragraph(EMBEDDED_LABEL)])]
    return []


def _build_sections(report: Report) -> list[Section]:
    """All sections that have something to show, in their order."""
    sections: list[Section] = []
    for build_section in SECTION_BUILDERS:
        built = build_section(report)
        sections += [built] if isinstance(built, Section) else built or ()
    return drop_repeated(sections)


def list_key_figures(report: Report) -> list[tuple[str, str]]:
    """Key figures of the audit, such as its size and cost, as (label, value)."""
    audit, cost, states = report.audit, report.cost.total, report.conflicts.states
    figures = [_label_count("model", sum(model.audited for model in audit.models))]
    if audit.survey.survey.title:
        figures += [
            _label_count("country", len({cell.country for cell in audit.cells}), "countries"),
            _label_count("topic", len({cell.topic for cell in audit.cells})),
            _label_count("cell asked", audit.survey.asked, "cells asked")
            if audit.samples
            else _label_count("cell of the survey", audit.survey.asked, "cells of the survey"),
        ]
    if report.task is not None:
        figures.append(_label_count("item", len(report.task.items)))
    figures += [_label_count(noun, n) for noun, n in list_probe_sizes(report)]
    figures += [(f"{row.counted_label} usable", format_percent(row.ok, row.planned)) for row in report.coverage.total]
    if report.conflicts.total:
        figures.append(_label_count("open conflict", states["open"] + states["disputed"]))
    return [*figures, ("cost", format_usd(cost.usd, cost.lower_bound))]


def _label_count(singular: str, n: int, plural_form: str = "") -> tuple[str, str]:
    """A count with its noun, as (label, value)."""
    return singular if n == 1 else plural_form or f"{singular}s", format_count(n)
