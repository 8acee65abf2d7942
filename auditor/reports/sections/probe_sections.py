"""Sections of the probes with a stage of their own, and what the probes of other packages add to a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from auditor.config.installed_probes import list_built_in_names, load_built_in, load_probe
from auditor.config.probe_section import BuiltInProbe, PageOne
from auditor.errors import ProbeError
from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL
from auditor.probe_interface import Headline
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, ListItem, Paragraph, Section, Table, Text
from auditor.reports.document.table_checks import find_csv_problem, find_table_problem, iterate_tables


def build_probe_sections(report: Report) -> Iterator[Section]:
    """Yield the section of each probe that the report has figures of; of a probe that cannot be used, the reason.

    The modules of a probe without results are not loaded.
    """
    sections = [probe.build_section(report) for probe in _list_reported(report)]
    sections += [_build_result_section(name, figures) for name, figures in report.probes.items()]
    yield from (section for section in sections if section is not None)


def _build_result_section(name: str, figures: BaseModel) -> Section | None:
    """Build the section of a probe below the public interface."""
    if isinstance(figures, UnavailableProbe):
        return _explain_missing(name, figures.unavailable)
    try:
        return _check_section(name, "section", load_probe(name).call_optional("section", figures, returns=Section))
    except ProbeError as error:
        return _explain_missing(name, str(error))


def find_page_one(report: Report) -> PageOne | None:
    """The page one of the first built-in probe that has one, of an audit without scores; None for none."""
    pages = (probe.build_page_one(report) for probe in _list_reported(report))
    return None if report.alignment else next((page for page in pages if page is not None), None)


def has_probes_only(report: Report) -> bool:
    """Whether the audit has figures of probes below the public interface, and no score was planned."""
    return bool(report.probes) and not report.alignment and all(row.stage != "direct" for row in report.coverage.total)


class ProbeFinding(NamedTuple):
    """A sentence of a probe on page one.

    Attributes:
        title: heading of a built-in probe's finding; None for a probe without a heading on page one.
        p_value: of the claim, before the adjustment for all probes; None for a description.
        is_caution: whether it is a reason to doubt the figures.
    """

    probe: str
    title: Text | None
    finding: ListItem | Text
    p_value: float | None
    is_caution: bool = False


def list_probe_findings(report: Report) -> list[ProbeFinding]:
    """List the sentences of all probes for page one.

    Those that claim something are one family: only those with a p-value of at most 0.05, adjusted for all probes that
    the report has figures of (`select_shown`), are listed, so that any false one has a probability of at most 5%.
    """
    findings = [*_find_built_in_findings(report), *_find_headlines(report)]
    if all(finding.p_value is None for finding in findings):
        return findings
    n_measured = sum(not isinstance(figures, UnavailableProbe) for figures in report.probes.values())
    n_probes = n_measured + len(list(_list_reported(report)))
    is_shown = select_shown([finding.p_value for finding in findings], n_probes)
    return [finding for finding, shown in zip(findings, is_shown, strict=True) if shown]


def select_shown(p_values: Sequence[float | None], n_probes: int) -> list[bool]:
    """Select the sentences that page one has: descriptions, and claims with an adjusted p-value of at most 0.05 (Holm).

    A probe without a claim is counted like one with a p-value of 1: it would have made one, had chance had it so. If
    only claims were counted, each would hold at its own 5%.

    Args:
        p_values: of the sentences, None for a description.
        n_probes: probes of the audit with figures, with or without a sentence.
    """
    from auditor.metrics.intervals.multiple_testing import holm  # loads numpy

    n_silent = max(0, n_probes - len(p_values))
    adjusted = holm([1.0 if p_value is None else p_value for p_value in p_values] + [1.0] * n_silent)
    return [
        p_value is None or adjusted_p_value <= SIGNIFICANCE_LEVEL
        for p_value, adjusted_p_value in zip(p_values, adjusted[: len(p_values)], strict=True)
    ]


def _find_built_in_findings(report: Report) -> Iterator[ProbeFinding]:
    """Yield the findings of built-in probes; without that of a probe whose page one is this page."""
    for probe in _list_reported(report):
        key_finding = probe.find_key_finding(report)
        if key_finding is not None and (report.alignment or probe.build_page_one(report) is None):
            yield ProbeFinding(probe.name, *key_finding)


def _find_headlines(report: Report) -> Iterator[ProbeFinding]:
    """Yield the sentences of the probes below the public interface, and why others have none."""
    for name, figures in report.probes.items():
        if isinstance(figures, UnavailableProbe):
            yield ProbeFinding(name, None, f"{figures.unavailable} Its results are not in this report.", None)
            continue
        try:
            headline = load_probe(name).headline(figures)
        except ProbeError as error:
            headline = Headline(str(error))
        if headline is not None:
            yield ProbeFinding(name, None, headline.sentence, headline.p_value, headline.is_caution)


def list_probe_cautions(report: Report) -> list[str]:
    """List the sentences of probes that are reasons to doubt the scores, as far as page one has them."""
    if has_probes_only(report):
        return []  # they are its answer
    return [str(finding.finding) for finding in list_probe_findings(report) if finding.is_caution]


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
    for name in list_built_in_names():
        if getattr(report, name) is not None:
            yield load_built_in(name)


def compare_installed_probes(figures_by_audit: Sequence[Mapping[str, BaseModel]]) -> Iterator[Section]:
    """Yield the comparisons of the first audit's figures with those of each other audit, by probe.

    Of a probe that cannot be used, the reason is a section of its own.
    """
    first, *others = figures_by_audit
    for name, figures in first.items():
        sections: list[Section | None] = []
        try:
            for other in [audit_figures[name] for audit_figures in others if name in audit_figures]:
                for either in (figures, other):
                    if isinstance(either, UnavailableProbe):
                        raise ProbeError(either.unavailable)
                section = load_probe(name).call_optional("compare", figures, other, returns=Section)
                sections.append(_check_section(name, "compare", section))
        except ProbeError as error:
            sections = [_explain_missing(name, f"{error.message[0].upper()}{error.message[1:]}")]
        yield from (section for section in sections if section is not None)


def build_probe_tables(report: Report) -> Iterator[Table]:
    """Yield the tables that probes with a stage of their own print at the end of a run."""
    for probe in _list_reported(report):
        yield from probe.build_summary_tables(report)
    for name, figures in report.probes.items():
        if not isinstance(figures, UnavailableProbe):
            tables = load_probe(name).call_each("summary_tables", figures, item=Table)
            yield from _check_tables(name, "summary_tables", tables)


def build_exported_tables(report: Report) -> Iterator[Table | ProbeError]:
    """Yield the tables that probes of other packages add to `auditor export tables`, or why one is left out."""
    for name, figures in report.probes.items():
        if isinstance(figures, UnavailableProbe):
            continue
        try:
            tables = load_probe(name).call_each("export_tables", figures, item=Table)
        except ProbeError as error:
            yield error
            continue
        for table in tables:
            problem = find_csv_problem(table)
            yield _make_table_error(name, "export_tables", problem) if problem else table


def _check_section(name: str, hook: str, section: Section | None) -> Section | None:
    """Return the section that a hook of a probe built; raise ProbeError for a table in it that cannot be shown."""
    _check_tables(name, hook, iterate_tables(section) if section is not None else ())
    return section


def _check_tables(name: str, hook: str, tables: Iterable[Table]) -> Iterable[Table]:
    """Return the tables that a hook of a probe built; raise ProbeError for one that cannot be shown."""
    for table in tables:
        if problem := find_table_problem(table):
            raise _make_table_error(name, hook, problem)
    return tables


def _make_table_error(name: str, hook: str, problem: str) -> ProbeError:
    """Build the error for a table that cannot be shown, for the caller to raise."""
    message = f"the hook '{hook}' of the probe '{name}' returned a table that cannot be shown: {problem}."
    return ProbeError(message, load_probe(name).advice)


def _explain_missing(name: str, reason: str) -> Section:
    """The section of a probe whose results cannot be shown."""
    text = f"{reason} Its recorded answers are kept."
    return Section(f"probe-{name}", name, [Callout("Not available", [Paragraph(text)])], name)
