"""What asking less saved: calls that were made, beside those of the full design over the same models and survey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.reports.measurement_schema import Part
from auditor.reports.pages.number_format import count, share
from auditor.reports.report_source import Source
from auditor.storage import audits


class SavingRow(Part):
    """One stage: what was asked, and what the full design would ask."""

    stage: str
    """`direct` or `review`."""
    made: int
    full: int
    """Every sample of every cell; every judge on every trace. Of reviews it is an estimate: as many of the traces that
    were not asked for would have had a score as of those that were."""
    means: list[str]
    """What saved them, as the configuration names it."""


def savings(source: Source) -> list[SavingRow]:
    """A row for each stage in which less than everything may have been asked; empty where nothing was to be saved.

    Of an audit that has not ended there is none: what is not asked yet is no saving.
    """
    config = source.config
    if config is None or not config.probes.direct or source.audit.stage not in audits.WHOLE:
        return []
    direct = list(_direct_means(config))
    review = [*direct, *_review_means(config)]
    rows = [_row(source, config, direct)] if direct else []
    if review and config.judge_models:
        rows.append(_judged(source, config, review))
    return rows


def told(row: SavingRow) -> str:
    """One row in a sentence."""
    what = "direct answers" if row.stage == "direct" else "verdicts"
    about = "" if row.stage == "direct" else "about "
    return (
        f"{count(row.made)} {what} were asked for, of {about}{count(row.full)} of the full design "
        f"({share(row.made, row.full)}), by {', '.join(row.means)}."
    )


def _direct_means(config: AuditConfig) -> Iterator[str]:
    if config.direct.tolerance is not None:
        yield f"probes.direct.tolerance = {config.direct.tolerance:g}"
    if config.direct.target_width is not None:
        yield f"probes.direct.target_width = {config.direct.target_width:g}"


def _review_means(config: AuditConfig) -> Iterator[str]:
    if config.probes.review.traces != "all":
        yield f"probes.review.traces = {config.probes.review.traces}"
    if config.panel.judges_per_trace is not None:
        yield f"panel.judges_per_trace = {config.panel.judges_per_trace}"
    if config.panel.adaptive:
        yield "panel.adaptive"


def _row(source: Source, config: AuditConfig, means: list[str]) -> SavingRow:
    full = sum(config.samples_on(source.survey).values()) * len(config.models)
    return SavingRow(stage="direct", made=sum(t.n for t in source.traces), full=full, means=means)


def _judged(source: Source, config: AuditConfig, means: list[str]) -> SavingRow:
    taken, usable = Counter[str](), Counter[str]()
    for t in source.traces:
        taken[t.model] += t.n
        usable[t.model] += t.n if t.outcome == Outcome.OK else 0
    samples = sum(config.samples_on(source.survey).values())
    full = sum(
        samples * usable[m.name] / taken[m.name] * len(config.judges_of(m.name)) for m in config.models if taken[m.name]
    )
    return SavingRow(stage="review", made=sum(j.n for j in source.judges), full=round(full), means=means)
