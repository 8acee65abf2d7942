"""Sections of the probes with a stage of their own, and what the probes of other packages add to a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from auditor.config.installed_probes import load_built_in, load_probe
from auditor.config.probe_section import BuiltInProbe, PageOne
from auditor.config.probes import BUILT_IN_PROBES
from auditor.errors import ProbeError
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, ListItem, Paragraph, Section, Table


def build_probe_section(probe: str, report: Report) -> Section | None:
    """Build the section of a built-in probe; its modules are not loaded for an audit without results of the probe."""
    if getattr(report, probe) is None:
        return None
    return load_built_in(probe).build_section(report)


def find_page_one(report: Report) -> PageOne | None:
    """The page one of the first built-in probe that has one, of an audit without scores; None for none."""
    pages = (probe.build_page_one(report) for probe in _list_reported(report))
    return None if report.alignment else next((page for page in pages if page is not None), None)


def list_key_findings(report: Report) -> list[ListItem]:
    """List the findings of built-in probes that page one of any audit names."""
    findings = (probe.find_key_finding(report) for probe in _list_reported(report))
    return [finding for finding in findings if finding is not None]


def describe_probe_votes(report: Report) -> str:
    """Describe the effects of built-in probes on the judges' votes; empty for none."""
    return " ".join(filter(None, (probe.describe_votes(report) for probe in _list_reported(report))))


def list_probe_sizes(report: Report) -> list[tuple[str, int]]:
    """List what built-in probes asked about, as a noun in the singular and a number, for the head of the report."""
    sizes = (probe.find_size(report) for probe in _list_reported(report))
    return [size for size in sizes if size is not None]


def list_suggested_thresholds(report: Report) -> list[str]:
    """List the thresholds that `auditor check` has for the built-in probes of the report, as far as they are usual."""
    return [name for probe in _list_reported(report) for name in probe.suggested_thresholds]


def _list_reported(report: Report) -> Iterator[BuiltInProbe]:
    """Yield the built-in probes that the report has figures of."""
    for name in BUILT_IN_PROBES:
        if getattr(report, name) is not None:
            yield load_built_in(name)


def build_installed_sections(report: Report) -> Iterator[Section]:
    """Yield the sections of the probes of other packages; of a probe that cannot be used, the reason."""
    for name, figures in report.probes.items():
        if isinstance(figures, UnavailableProbe):
            yield _explain_missing(name, figures.unavailable)
            continue
        try:
            section = load_probe(name).call_optional("section", figures, returns=Section)
        except ProbeError as error:
            section = _explain_missing(name, str(error))
        if section is not None:
            yield section


def compare_installed_probes(figures_by_audit: Sequence[Mapping[str, BaseModel]]) -> Iterator[Section]:
    """Yield the comparisons of the first audit's figures with those of each other audit, by probe."""
    first, *others = figures_by_audit
    for other in others:
        for name in first:
            pair = (first[name], other.get(name))
            if not any(figures is None or isinstance(figures, UnavailableProbe) for figures in pair):
                section = load_probe(name).call_optional("compare", *pair, returns=Section)
                if section is not None:
                    yield section


def build_installed_tables(report: Report) -> Iterator[Table]:
    """Yield the tables that probes of other packages print at the end of a run."""
    for name, figures in report.probes.items():
        if not isinstance(figures, UnavailableProbe):
            yield from load_probe(name).call_each("summary_tables", figures, item=Table)


def build_exported_tables(report: Report) -> Iterator[Table]:
    """Yield the tables that probes of other packages add to `auditor export tables`."""
    for name, figures in report.probes.items():
        if not isinstance(figures, UnavailableProbe):
            yield from load_probe(name).call_each("export_tables", figures, item=Table)


def list_headlines(report: Report) -> Iterator[str]:
    """Yield the sentences of probes of other packages for page one, and why others have none."""
    for name, figures in report.probes.items():
        if isinstance(figures, UnavailableProbe):
            yield f"{figures.unavailable} Its results are not in this report."
            continue
        try:
            headline = load_probe(name).call_optional("headline", figures, returns=str)
        except ProbeError as error:
            headline = str(error)
        if headline:
            yield headline


def _explain_missing(name: str, reason: str) -> Section:
    """The section of a probe whose results cannot be shown."""
    text = f"{reason} Its recorded answers are kept."
    return Section(f"probe-{name}", name, [Callout("Not available", [Paragraph(text)])], name)
