"""An audit as logs of Inspect AI, one a model, written by Inspect's own writer.

A sample of Inspect is one trace: its id is the cell, its epoch the how-manieth time the cell was asked.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.atomic_files import make_folder, report_write_errors
from auditor.domain import Cell, Conflict, Method, Outcome, Ruling, Verdict, canonical_hash
from auditor.errors import UsageError
from auditor.exports.inspect_samples import (
    METADATA_KEY,
    SCORE_NAME,
    TraceRecord,
    build_sample,
    judge_score_name,
    sample_id,
    sum_usage,
)
from auditor.extras import load_extra
from auditor.metrics.proportion import proportion
from auditor.reports.measurement_schema import AlignmentRow
from auditor.reports.report_source import ReportSource, load_source
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.tables import SCHEMA_VERSION
from auditor.storage.transcripts import load_transcripts
from auditor.text_safety import slugify

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalScore

INTERVAL_NOTE = "95%, over other countries and topics; of the cells alone where there are too few of either"


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """One log: where it is, whose, and how many of its samples have a score."""

    path: Path
    model: str
    samples: int
    scored: int


def export_inspect(db: Database, name: str, folder: Path) -> list[WrittenLog]:
    """Write the traces of an audit as Inspect logs; a log of the same audit and model is replaced.

    Args:
        name: the audit's.
        folder: made if it is not there; for `inspect view --log-dir`.

    Raises:
        StorageError: there is no such audit.
        UsageError: Inspect is not installed, the audit has no traces, or the folder cannot be written to.
    """
    from auditor.reports.agreement.section import compute_alignment

    load_extra("inspect_ai.log", "inspect")
    source = load_source(db, name)
    aligned = {row.model: row for row in compute_alignment(source) if row.method == Method.DIRECT.value}
    make_folder(folder)
    written, taken = [], set[str]()
    for model in source.models:
        records = _load_trace_records(db, source, model)
        if not records:
            continue
        log = _build_log(source, model, records, aligned.get(model))
        path = folder / f"{_unique_name(f'{slugify(name)}_{slugify(model)}', taken)}.eval"
        _write_log(log, path)
        scored = sum(r.trace.score is not None for r in records)
        written.append(WrittenLog(path, model, len(records), scored))
    if not written:
        raise UsageError(f"audit '{name}' has no traces.", "Inspect's logs hold answers: name an audit that has any.")
    return written


def _unique_name(name: str, used_names: set[str]) -> str:
    own, number = name, 2
    while own in used_names:
        own, number = f"{name}-{number}", number + 1
    used_names.add(own)
    return own


def _write_log(log: EvalLog, path: Path) -> None:
    from inspect_ai.log import write_eval_log

    with report_write_errors(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".part-") as temporary:
        part = Path(temporary) / path.name
        write_eval_log(log, part)
        os.replace(part, path)


def _load_trace_records(db: Database, source: ReportSource, model: str) -> list[TraceRecord]:
    traces = results.load_traces(db, source.audit.id, model=model)
    verdicts: defaultdict[tuple[Cell, int], list[Verdict]] = defaultdict(list)
    for verdict in results.load_verdicts(db, source.audit.id, model=model):
        verdicts[verdict.cell, verdict.sample].append(verdict)
    conflicts: defaultdict[Cell, list[Conflict]] = defaultdict(list)
    for conflict in source.conflicts:
        if model in (conflict.left, conflict.right):
            conflicts[conflict.cell].append(conflict)
    said = load_transcripts(db, [key for t in traces for key in (t.key, t.repair_key) if key])
    people = source.survey.scores
    return [
        TraceRecord(
            trace=t,
            human_score=people.get(t.cell),
            verdicts=verdicts[t.cell, t.sample],
            conflicts=conflicts[t.cell],
            first_call=said.get(t.key or ""),
            repair_call=said.get(t.repair_key or ""),
        )
        for t in traces
    ]


# --- the log -----------------------------------------------------------------------------------------------------


def _build_log(
    source: ReportSource, model: str, records: Sequence[TraceRecord], alignment_row: AlignmentRow | None
) -> EvalLog:
    from inspect_ai.log import EvalLog, EvalResults, EvalStats

    config, audit = source.config, source.audit
    provider = config.model(model).model if config else model
    samples = [build_sample(record, provider) for record in records]
    usage = sum_usage(sample.model_usage.get(provider) for sample in samples if sample.output.choices)
    complete = sum(s.error is None for s in samples)
    return EvalLog(
        status="success" if audit.stage in audits.FINAL_STAGES else "cancelled",
        eval=_build_spec(source, model, provider, records),
        results=EvalResults(
            total_samples=len(samples), completed_samples=complete, scores=[*_build_eval_scores(records, alignment_row)]
        ),
        stats=EvalStats(
            started_at=audit.created_at,
            completed_at=audit.finished_at or audit.updated_at,
            model_usage={} if usage is None else {provider: usage},
        ),
        samples=samples,
    )


def _build_spec(source: ReportSource, model: str, provider: str, records: Sequence[TraceRecord]) -> Any:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.model import GenerateConfig, ModelConfig
    from inspect_ai.viewer import ViewerConfig

    audit, config, survey = source.audit, source.config, source.survey
    ids = list(dict.fromkeys(sample_id(r.trace.cell) for r in records))
    chosen = config.model(model) if config else None
    probe = config.direct if config else None
    usual = chosen.temperature if chosen and chosen.temperature is not None else probe.temperature if probe else None
    judges = config.judges_of(model) if config else []
    number = canonical_hash([audit.name, audit.created_at, model])[:22]
    return EvalSpec(
        eval_id=number,
        run_id=canonical_hash([audit.name, audit.created_at])[:22],
        task_id=number,
        created=audit.created_at,
        task=f"auditor/{audit.name}",
        task_description=f"How well {model} agrees with the people of each country: {survey.title}",
        dataset=EvalDataset(name=survey.name, samples=len(ids), sample_ids=list(ids)),
        model=provider,
        model_base_url=chosen.api_base if chosen else None,
        model_generate_config=GenerateConfig(temperature=usual, max_tokens=probe.max_tokens if probe else None),
        model_roles={"judge": [ModelConfig(model=j.model) for j in judges]} if judges else None,
        config=EvalConfig(epochs=max(r.trace.sample for r in records) + 1),
        packages={"auditor": metadata.version("auditor")},
        viewer=ViewerConfig(trust_content=False),  # models' words are anybody's: shown as they are, not as markup
        metadata={METADATA_KEY: _audit_metadata(source, model)},
    )


def _audit_metadata(source: ReportSource, model: str) -> dict[str, Any]:
    audit, survey = source.audit, source.survey
    return {
        "version": metadata.version("auditor"),
        "schema_version": SCHEMA_VERSION,
        "audit": audit.name,
        "audit_id": audit.id,
        "config_hash": audit.config_hash,
        "stage": audit.stage,
        "model": model,
        "survey": survey.title,
        "survey_source": survey.source,
        "scale": {"-1": survey.scale[0], "+1": survey.scale[1]},
    }


def _build_eval_scores(records: Sequence[TraceRecord], alignment_row: AlignmentRow | None) -> Iterable[EvalScore]:
    """The figures of the report, each with its interval; what could not be measured is not there."""
    from inspect_ai.log import EvalScore

    counts = {o.value: sum(r.trace.outcome is o for r in records) for o in Outcome}
    ok = sum(r.trace.score is not None for r in records)
    yield EvalScore(
        name=SCORE_NAME,
        scorer=SCORE_NAME,
        scored_samples=ok,
        unscored_samples=len(records) - ok,
        metrics=_build_eval_metrics(_agreement_figures(alignment_row)),
        metadata={
            "outcomes": {name: n for name, n in counts.items() if n},
            "interval": INTERVAL_NOTE,
        },
    )
    rulings: defaultdict[str, list[Ruling | None]] = defaultdict(list)
    for verdict in (v for r in records for v in r.verdicts):
        rulings[verdict.judge].append(verdict.ruling)
    for judge, said in rulings.items():
        given = [ruling for ruling in said if ruling is not None]
        share = proportion(sum(ruling is Ruling.VALID for ruling in given), len(given))
        told = {"valid": share.value, "valid_ci_low": share.ci_low, "valid_ci_high": share.ci_high}
        yield EvalScore(
            name=judge_score_name(judge),
            scorer=judge_score_name(judge),
            scored_samples=len(given),
            unscored_samples=len(said) - len(given),
            metrics=_build_eval_metrics(told),
        )


def _agreement_figures(row: AlignmentRow | None) -> dict[str, float | None]:
    if row is None:
        return {}
    found: dict[str, float | None] = {"cells": row.n}
    simple = {"pearson_r": (row.ci_low, row.ci_high), "mae": (row.mae_ci_low, row.mae_ci_high)}
    for name, ends in (simple | {"rmse": (row.rmse_ci_low, row.rmse_ci_high)}).items():
        crossed = getattr(row.crossed, name)
        low, high = ends if crossed.ci_low is None else (crossed.ci_low, crossed.ci_high)
        found |= {name: getattr(row, name), f"{name}_ci_low": low, f"{name}_ci_high": high}
    return found | {"spearman_rho": row.spearman_rho, "bias": row.bias.value}


def _build_eval_metrics(figures: Mapping[str, float | None]) -> dict[str, Any]:
    from inspect_ai.log import EvalMetric

    return {name: EvalMetric(name=name, value=value) for name, value in figures.items() if value is not None}
