"""What the reader of a report may do next, from what the audit lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice

from auditor.metrics.jackknife_interval import MIN_UNITS
from auditor.reports.data.agreement.alignment import rank_by_error
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES
from auditor.reports.data.coverage.lost_samples import has_large_loss
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Code, Text
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_first
from auditor.reports.sections.probe_sections import list_suggested_thresholds
from auditor.reports.sections.tiers import list_candidates
from auditor.reports.sections.variance import list_options

MAX_STEPS = 4


def list_next_steps(report: Report) -> list[Text]:
    """Up to four steps, the most urgent first; every report has at least one."""
    return list(islice(_iterate_steps(report), MAX_STEPS))


def _iterate_steps(report: Report) -> Iterator[Text]:
    """Yield the steps that this audit calls for, and at the end how to use it."""
    name = shlex.quote(report.audit.name)
    if not report.audit.complete:
        yield ["Finish the audit: ", Code("auditor run"), " with the same configuration resumes it."]
    if report.alignment and all(min(row.countries, row.topics) < MIN_UNITS for row in report.alignment):
        yield (
            f"Ask about at least {MIN_UNITS} countries and {MIN_UNITS} topics. With fewer, no figure has a 95% CI, and "
            "no conclusion about the models is possible."
        )
    if report.failures.unusable:
        n_calls = pluralize(report.failures.unusable, "call")
        yield [f"Find out why {n_calls} failed, and repeat them: ", Code(f"auditor errors {name}"), "."]
    elif any(has_large_loss(row.lost_samples) for row in report.alignment):
        yield "Find out why samples were lost (“What is missing?”) before you compare the models."
    states = report.conflicts.states
    if n_open := states.get("open", 0) + states.get("disputed", 0):
        conflicts = pluralize(n_open, "conflict")
        review = [
            f"Decide the {conflicts} that the judges could not resolve: ",
            Code(f"auditor review {name}"),
            ". Your decisions do not change any model’s agreement with people.",
        ]
    else:
        review = []
    yield from _describe_choice(report)
    yield [
        "Test the thresholds that you wrote down before the run: ",
        Code(f"auditor check {name} {_name_thresholds(report)}"),
        ".",
    ]
    yield from _describe_labels(report)
    yield from filter(None, [review])
    yield from _describe_precision(report)
    yield ["Analyse every figure and answer as data: ", Code(f"auditor export tables {name}"), "."]


def _describe_labels(report: Report) -> Iterator[Text]:
    """Yield how to measure the judges, where too few labels say how often they are right."""
    quality = report.judge_quality
    if quality is not None and not quality.is_measured and quality.reason is None:
        yield [
            "To measure the judges, label a random sample of traces, not the conflicts: ",
            Code(f"auditor review {shlex.quote(report.audit.name)} --sample {quality.suggested_labels}"),
            ".",
        ]


def _describe_choice(report: Report) -> Iterator[str]:
    """Yield which model to choose over all countries, if several were ranked."""
    for ranking in report.tiers:
        candidates = list_candidates(ranking)
        if ranking.by == "MAE" and ranking.scope == ALL_COUNTRIES and len(ranking.rows) > 1 and candidates:
            if len(candidates) == 1:
                yield f"If you choose one model, prefer {candidates[0]}: its mean absolute error is lowest."
            else:
                names = join_first(candidates)
                yield f"Do not choose between {names} by these data: each may have the lowest mean absolute error."


def _describe_precision(report: Report) -> Iterator[Text]:
    """Yield what would halve the standard error of the mean absolute error of the model with the smallest one."""
    best = min(report.alignment, key=rank_by_error, default=None)
    if best is None:
        return
    with_people = [cell for cell in report.audit.cells if cell.survey is not None]
    sizes = len({cell.country for cell in with_people}), len({cell.topic for cell in with_people})
    for row in report.variance:
        if (row.model, row.method, row.figure) == (best.model, best.method, "MAE") and row.shares is not None:
            label = SeriesLabels.of(report).label(row)
            for option in islice(list_options(row, *sizes), 1):
                yield f"To halve the standard error of the mean absolute error ({label}), plan {option}."


def _name_thresholds(report: Report) -> str:
    """Options of `auditor check` for what the audit measures: scores, opinions, or whether answers are usable."""
    if report.alignment:
        return "--max-mae YOURS --max-region-gap YOURS"
    if thresholds := list_suggested_thresholds(report):
        return " ".join(f"--{name.replace('_', '-')} YOURS" for name in thresholds)
    return "--min-coverage YOURS" if report.task is None else "--min-accuracy YOURS"
