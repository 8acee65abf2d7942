"""The report of an audit: a pure function of what is stored, so that equal answers give equal reports."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import numpy as np

from auditor.domain import Cell
from auditor.reports.agreement.baselines import baselines, ceiling, gain
from auditor.reports.agreement.languages import languages
from auditor.reports.agreement.method_differences import methods
from auditor.reports.agreement.nonresponse import nonresponse
from auditor.reports.agreement.section import alignment, by_country, by_topic, regions
from auditor.reports.agreement.tiers import tiers
from auditor.reports.conflicts.section import conflicts
from auditor.reports.cost.savings import savings
from auditor.reports.cost.section import cost
from auditor.reports.coverage.model_versions import served
from auditor.reports.coverage.refusals import refusals, repairs
from auditor.reports.coverage.section import coverage
from auditor.reports.logic.section import logic
from auditor.reports.panel.section import panel, peer_agreement, self_consistency
from auditor.reports.report_schema import AuditPart, CellPart, ModelPart, PhrasingPart, Report, SurveyPart
from auditor.reports.report_source import Source, load
from auditor.reports.semantic.section import semantic
from auditor.reports.task.section import task
from auditor.storage import audits
from auditor.storage.database import Database


def build_report(db: Database, audit_name: str) -> Report:
    """Everything that is known of an audit.

    Nothing is asked of any model, nothing is written, and no clock is read: the report changes only when what is
    stored changes. Times in it are stored ones. Only what the respondents of a survey tell, the ceiling and the bounds
    of nonresponse, is read from the survey's own file, and named as missing where that is gone.

    Raises:
        StorageError: there is no such audit.
    """
    with _uncollected():
        return _built(db, load(db, audit_name))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Python's search for cyclic garbage waits: rows by the million make none, and would be searched time and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _built(db: Database, source: Source) -> Report:
    most = ceiling(source)
    aligned = alignment(source, most[0].largest_r)
    peers = peer_agreement(source)
    moral, compared = semantic(db, source), logic(db, source)
    return Report(
        audit=_audit(source),
        coverage=coverage(source, moral, compared),
        alignment=aligned,
        gain=gain(source),
        baselines=baselines(source),
        ceiling=most,
        nonresponse=nonresponse(source) if _bounds_wanted(source) else None,
        regions=regions(source),
        topics=by_topic(source),
        countries=by_country(source),
        self_consistency=self_consistency(source),
        panel=panel(source, aligned, peers),
        peer_agreement=peers,
        conflicts=conflicts(db, source),
        refusals=refusals(source),
        repairs=repairs(source),
        methods=methods(source),
        task=task(source),
        tiers=tiers(source),
        languages=languages(db, source),
        semantic=moral,
        logic=compared,
        cost=cost(source),
        served=served(source.calls),
        savings=savings(source),
        environment=json.loads(source.audit.environment),
    )


def _bounds_wanted(source: Source) -> bool:
    section = source.config.survey if source.config else None
    return section is not None and section.nonresponse == "bounds"


def _audit(source: Source) -> AuditPart:
    audit, config, survey = source.audit, source.config, source.survey
    return AuditPart(
        name=audit.name,
        auditor=metadata.version("auditor"),
        stage=audit.stage,
        complete=audit.stage in audits.WHOLE,
        created_at=audit.created_at,
        finished_at=audit.finished_at,
        seed=config.seed if config else None,
        config_hash=audit.config_hash,
        samples=config.direct.samples if config and config.probes.direct else None,
        survey=SurveyPart(
            name=survey.name,
            title=survey.title,
            source=survey.source,
            wording=survey.wording,
            scale=survey.scale,
            cells=0 if survey.task else len(source.cells),
            asked=0 if survey.task else int((~np.isnan(source.truth)).sum()),
            rephrased={
                code: PhrasingPart(wording=p.wording, scale=p.scale, topics=dict(p.topics))
                for code, p in survey.phrasings.items()
            },
        ),
        models=_models(source),
        cells=[] if survey.task else _cells(source),
    )


def _models(source: Source) -> list[ModelPart]:
    providers = {m.name: m.model for m in [*source.config.models, *source.config.judge_models]} if source.config else {}
    return [
        ModelPart(name=name, model=providers.get(name), judge=name in source.judge_names, audited=name in source.models)
        for name in dict.fromkeys([*source.models, *source.judge_names])
    ]


def _cells(source: Source) -> list[CellPart]:
    people = source.survey.scores
    methods = list(dict.fromkeys(method for method, _ in source.columns))
    values = source.matrix.T.tolist()

    def scores(row: list[float]) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, float | None]] = {method: {} for method in methods}
        for (method, model), value in zip(source.columns, row, strict=True):
            found[method][model] = None if value != value else value
        return found

    return [
        CellPart(country=cell.country, topic=cell.topic, survey=people.get(Cell(*cell)), scores=scores(row))
        for cell, row in zip(source.cells, values, strict=True)
    ]
