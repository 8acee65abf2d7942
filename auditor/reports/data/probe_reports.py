"""Reports of the probes with a stage of their own, and their coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from auditor.config.installed_probes import InstalledProbe, list_built_in_names, load_built_in, load_probe
from auditor.domain import Outcome, Trace
from auditor.errors import ProbeError
from auditor.models.reasoning import has_thinking
from auditor.probe_interface import ProbeAudit, ProbeResult
from auditor.reports.data.agreement.over_models import FiguresByModel
from auditor.reports.data.coverage.counts import StageCoverage
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.reports.data.requests import SamplingReport
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.probe_results import list_probes_with_results, list_stored_probes
from auditor.storage.records import load_records

MAX_REMEMBERED_CELLS = 200
"""Most cells whose traces a probe has in memory while the report is built, for each model."""
ProbeReports = Mapping[str, ReportModel | None]
"""Report of each built-in probe, by the probe's name; None without results."""


class UnavailableProbe(ReportModel):
    """A probe of another package whose results cannot be reported."""

    unavailable: str
    """Why, as a sentence."""


def build_probe_reports(db: Database, source: ReportSource, sampling: SamplingReport) -> ProbeReports:
    """Build the report of each built-in probe; the modules of a probe without stored rows are not loaded."""
    stored_probes = list_stored_probes(db, source.audit.id)
    return {
        name: load_built_in(name).build_report(db, source, sampling) if name in stored_probes else None
        for name in list_built_in_names()
    }


def list_attribute_figures(probe_reports: ProbeReports) -> FiguresByModel:
    """List the figures of built-in probes that are compared with the models' attributes, by figure, then model."""
    return {
        figure: by_model
        for name, report in probe_reports.items()
        if report is not None
        for figure, by_model in load_built_in(name).list_attribute_figures(report).items()
    }


class RecordedProbe(NamedTuple):
    """A probe below the public interface with its results, and the audit as it sees it; or why it cannot be used."""

    name: str
    results: Sequence[ProbeResult]
    opened: tuple[InstalledProbe, ProbeAudit[Any]] | ProbeError
    has_excluded_answers: bool
    """Whether direct answers, on which questions may rest, were declared invalid."""


def load_recorded_probes(db: Database, source: ReportSource) -> list[RecordedProbe]:
    """Load the probes below the public interface that an audit has results of."""
    recorded_probes = []
    has_excluded_answers = any(count.outcome == Outcome.EXCLUDED for count in source.trace_counts)
    for name in list_probes_with_results(db, source.audit.id):
        opened: tuple[InstalledProbe, ProbeAudit[Any]] | ProbeError
        try:
            opened = _open_probe(db, source, name)
        except ProbeError as error:
            opened = error
        recorded = load_records(db, source.audit.id, ProbeResult, probe=name)
        recorded_probes.append(RecordedProbe(name, recorded, opened, has_excluded_answers))
    return recorded_probes


def measure_probe_coverage(
    probe_reports: ProbeReports, recorded_probes: Iterable[RecordedProbe]
) -> Iterator[StageCoverage]:
    """Yield the coverage of the answers of each probe with a stage of its own."""
    for name, report in probe_reports.items():
        if report is not None:
            yield from load_built_in(name).measure_coverage(report)
    yield from map(_measure_result_coverage, recorded_probes)


def measure_installed_probes(recorded_probes: Iterable[RecordedProbe]) -> dict[str, BaseModel]:
    """Compute the figures of probes of other packages, by the probe's name.

    A probe that is missing or broken gives an `UnavailableProbe`: the rest of the report does not depend on it.
    """
    figures: dict[str, BaseModel] = {}
    for recorded in recorded_probes:
        try:
            probe, audit = _require_opened(recorded)
            figures[recorded.name] = probe.call("measure", audit, recorded.results, returns=BaseModel)
        except ProbeError as error:
            reason = f"{error.message[0].upper()}{error.message[1:]}"
            figures[recorded.name] = UnavailableProbe(unavailable=reason)
    return figures


def _require_opened(recorded: RecordedProbe) -> tuple[InstalledProbe, ProbeAudit[Any]]:
    """The probe and its audit. Raises ProbeError if it cannot be used."""
    if isinstance(recorded.opened, ProbeError):
        raise recorded.opened
    return recorded.opened


def measure_probes_of_audits(db: Database, audit_names: Sequence[str]) -> list[dict[str, BaseModel]]:
    """Compute the figures of the probes of other packages that all of several audits have results of, audit by audit.

    Raises:
        StorageError: there is no such audit.
    """
    ids = [audits.get_audit(db, name).id for name in audit_names]
    if not set.intersection(*(set(list_probes_with_results(db, audit_id)) for audit_id in ids)):
        return [{} for _ in audit_names]
    return [measure_installed_probes(load_recorded_probes(db, load_source(db, name))) for name in audit_names]


def _measure_result_coverage(recorded: RecordedProbe) -> StageCoverage:
    """The coverage of a probe below the public interface; of one that cannot be used, only of what is recorded."""
    try:
        planned = _count_planned(recorded)
    except ProbeError:
        planned = Counter(result.model for result in recorded.results)
    rows = []
    for model in planned:
        outcomes = Counter(result.outcome.value for result in recorded.results if result.model == model)
        rows.append((model, planned[model], outcomes.pop("ok", 0), outcomes))
    return StageCoverage.by_model(recorded.name, None, rows)


def _count_planned(recorded: RecordedProbe) -> Counter[str]:
    """Planned questions by model: the first ones, and those that followed recorded answers.

    A recorded question was planned also if it rests on an answer that was excluded later: it is not asked any more.

    Raises:
        ProbeError: the probe cannot be used.
    """
    probe, audit = _require_opened(recorded)
    units = probe.plan(audit)
    planned = Counter[str]()
    for model in probe.respondents(audit):
        questions = {(question.unit, question.sample) for question in probe.ask(audit, model, units)}
        if recorded.has_excluded_answers:
            results = [result for result in recorded.results if result.model == model and result.turn == 0]
            questions |= {(result.unit, result.sample) for result in results}
        planned[model] = len(questions)
    planned.update(result.model for result in recorded.results if result.turn > 0)
    return planned


def _open_probe(db: Database, source: ReportSource, name: str) -> tuple[InstalledProbe, ProbeAudit[Any]]:
    """A probe that an audit has results of, and the audit as the probe sees it.

    Raises:
        ProbeError: the probe is not in the audit's configuration, is not installed, or cannot be used.
    """
    settings = source.config.probes.plugins.get(name) if source.config is not None else None
    if source.config is None or settings is None:
        missing = source.config.probes.missing if source.config is not None else {}
        raise ProbeError(missing.get(name, f"the configuration of the audit does not name the probe '{name}'."))

    @cache
    def load_traces_of_cells(model: str, cells: tuple[tuple[str, ...], ...] | None) -> list[Trace]:
        """The traces of the cells that a probe asked about, for its coverage and its figures."""
        return results.load_traces(db, source.audit.id, cells, model)

    def load_traces(model: str, cells: Iterable[tuple[str, ...]] | None = None) -> list[Trace]:
        selected = None if cells is None else tuple(cells)
        if len(source.cells if selected is None else selected) > MAX_REMEMBERED_CELLS:
            return results.load_traces(db, source.audit.id, selected, model)
        return load_traces_of_cells(model, selected)

    audit = ProbeAudit(
        settings=settings,
        config=source.config,
        survey=source.survey,
        load_traces=load_traces,
        load_scores=lambda: source.scores,
        load_hidden_reasoning=partial(results.has_hidden_reasoning, db, source.audit.id, has_thinking=has_thinking),
    )
    return load_probe(name), audit
