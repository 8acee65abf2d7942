"""Coverage: planned against recorded samples and verdicts, and refusals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from auditor.domain import Outcome
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.intervals.unit_means import ShareTable, shares_over_units
from auditor.models.finish_reasons import FinishCategory, classify_finish_reason
from auditor.reports.data.coverage.counts import (
    OK,
    CoverageReport,
    CoverageRow,
    CoverageUnit,
    ExclusionRow,
    FinishReasonRow,
    StageCoverage,
    UnitOutcomeCount,
    UnitRepeatCount,
    count_planned_verdicts,
    count_reviewable_traces,
)
from auditor.reports.data.coverage.lost_samples import measure_score_coverage
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource, sampling_units
from auditor.storage.costs import CallCounts
from auditor.storage.count_queries import OutcomeCount, RepeatCount


def build_coverage_report(
    source: ReportSource, probe_stages: Sequence[StageCoverage], n_addressing_traces: Mapping[str, int]
) -> CoverageReport:
    """Compute coverage of scores, verdicts and the other probes, by model, country, topic and judge.

    Args:
        source: the stored records of the audit.
        probe_stages: coverage of probes with a stage of their own. Answers that belong to no cell are counted by model
            only.
        n_addressing_traces: number of usable traces that address their judge, by model.
    """
    probe_stages = [_count_first_outcomes(stage, source) for stage in probe_stages]
    cell_stages = measure_coverage(source)
    all_stages = [*cell_stages, *probe_stages]
    judge_stages = [stage for stage in [_judge_coverage(source)] if stage.planned or stage.recorded]
    return CoverageReport(
        total=_build_coverage_rows(all_stages, lambda unit: None, [None]),
        models=[
            *_build_coverage_rows(cell_stages, lambda unit: unit.name, source.models),
            *(
                row
                for stage in probe_stages
                for row in _build_coverage_rows(
                    [stage], lambda unit: unit.name, list(dict.fromkeys(unit.name for unit in stage.planned))
                )
            ),
        ],
        countries=_build_coverage_rows(all_stages, lambda unit: unit.country, source.named_countries),
        topics=_build_coverage_rows(all_stages, lambda unit: unit.topic, source.topics),
        judges=_build_coverage_rows(judge_stages, lambda unit: unit.name, source.judge_names),
        undocumented_finish_reasons=find_undocumented_finish_reasons(source.call_counts),
        unplanned_cells=source.survey.n_unplanned,
        exclusions=[
            ExclusionRow(
                id=exclusion.id,
                selection=exclusion.selection,
                reason=exclusion.reason,
                excluded_at=exclusion.excluded_at,
                answers=exclusion.n_answers,
            )
            for exclusion in source.exclusions
        ],
        excluded_before_import=source.n_excluded_before_import,
        shortened_traces={
            name: source.n_shortened_traces[name] for name in source.models if name in source.n_shortened_traces
        },
        addressing_traces={name: n_addressing_traces[name] for name in source.models if name in n_addressing_traces},
    )


def find_undocumented_finish_reasons(calls: Iterable[CallCounts]) -> list[FinishReasonRow]:
    """Count answers with an undocumented finish reason, by model and reason."""
    answers_by_reason = Counter[tuple[str, str]]()
    for counts in calls:
        if (
            counts.finish_reason
            and counts.is_current
            and classify_finish_reason(counts.finish_reason) is FinishCategory.UNKNOWN
        ):
            answers_by_reason[counts.name, counts.finish_reason] += counts.sums.answers
    return [
        FinishReasonRow(name=name, reason=reason, answers=n) for (name, reason), n in sorted(answers_by_reason.items())
    ]


def _count_first_outcomes(stage: StageCoverage, source: ReportSource) -> StageCoverage:
    """Coverage of a probe whose answers count by their first outcome where a question was asked again."""
    repeats = [
        UnitRepeatCount(CoverageUnit(count.model, "", ""), count.first_outcome, count.n, count.answered)
        for count in source.probe_repeats
        if (count.stage, count.method) == (stage.stage, stage.method)
    ]
    return StageCoverage.of_first_outcomes(stage.stage, stage.method, stage.planned, stage.recorded, repeats)


def measure_coverage(source: ReportSource) -> list[StageCoverage]:
    """Measure the coverage of scores by method, and of verdicts where some are planned or recorded."""
    return [
        *measure_score_coverage(source),
        *(stage for stage in [_verdict_coverage(source)] if stage.planned or stage.recorded),
    ]


def _verdict_coverage(source: ReportSource) -> StageCoverage:
    """Measure the coverage of verdicts by author of the trace, country and topic; of imports, all are planned."""
    outcome_counts = [
        UnitOutcomeCount(CoverageUnit(count.model, count.country, count.topic), count.outcome, count.n)
        for count in source.verdict_counts
    ]
    max_planned = None
    if source.config:
        traces = source.trace_counts, source.scored_traces
        planned = count_planned_verdicts(source.config, *traces)
        max_planned = count_planned_verdicts(source.config, *traces, guaranteed_only=False)
    else:
        planned = Counter[CoverageUnit]()
        for unit, _, n in outcome_counts:
            planned[unit] += n
    repeats = [
        UnitRepeatCount(
            CoverageUnit(count.model, count.country, count.topic), count.first_outcome, count.n, count.answered
        )
        for count in source.verdict_repeats
    ]
    return StageCoverage.of_first_outcomes("review", None, planned, outcome_counts, repeats, max_planned)


def _judge_coverage(source: ReportSource) -> StageCoverage:
    """Coverage of verdicts by judge, over all countries and topics.

    An adaptive panel chooses its judges during the run, so only the verdicts asked for count as planned.
    """
    planned = Counter[CoverageUnit]()
    if source.config is None or not source.config.panel.adaptive:
        planned.update({CoverageUnit(judge, "", ""): n for judge, n in _count_traces_by_judge(source).items()})
    recorded = [
        UnitOutcomeCount(CoverageUnit(count.judge, "", ""), count.outcome, count.n) for count in source.judge_counts
    ]
    repeats = [
        UnitRepeatCount(CoverageUnit(count.judge, "", ""), count.first_outcome, count.n, count.answered)
        for count in source.verdict_repeats
    ]
    return StageCoverage.of_first_outcomes("review", None, planned, recorded, repeats)


def _count_traces_by_judge(source: ReportSource) -> Counter[str]:
    """Count the traces assigned to each judge; all traces of the models that it may judge, unless assigned singly."""
    if source.judges_by_trace is not None:
        return Counter(judge for judges in source.judges_by_trace.values() for judge in judges)
    traces_by_author, traces_by_judge = Counter[str](), Counter[str]()
    for unit, n in count_reviewable_traces(source.config, source.trace_counts, source.scored_traces).items():
        traces_by_author[unit.name] += n
    for author, n in traces_by_author.items():
        for judge in source.config.judges_of(author) if source.config else ():
            traces_by_judge[judge.name] += n
    return traces_by_judge


def _build_coverage_rows(
    stages: Iterable[StageCoverage], group_key: Callable[[CoverageUnit], str | None], group_order: Sequence[str | None]
) -> list[CoverageRow]:
    """Sum each stage by group.

    `group_key` returns the group of a unit, such as its country; `group_order` lists the groups to show, in order.
    """
    return [row for stage in stages for row in _build_stage_rows(stage, group_key, group_order)]


def _build_stage_rows(
    stage_coverage: StageCoverage, group_key: Callable[[CoverageUnit], str | None], group_order: Sequence[str | None]
) -> list[CoverageRow]:
    """Sum a stage by group, in `group_order`; groups without planned items are left out."""
    outcomes: dict[str | None, Counter[str]] = defaultdict(Counter)
    for unit, outcome, n in stage_coverage.recorded:
        outcomes[group_key(unit)][outcome] += n
    repeated: dict[str | None, list[UnitRepeatCount]] = defaultdict(list)
    for repeat in stage_coverage.repeats:
        repeated[group_key(repeat.unit)].append(repeat)
    planned = Counter[str | None]()
    for unit, n in stage_coverage.planned_totals.items():
        planned[group_key(unit)] += n
    return [
        _build_coverage_row(stage_coverage, name, planned[name], outcomes[name], repeated[name])
        for name in group_order
        if planned[name]
    ]


def _build_coverage_row(
    stage_coverage: StageCoverage,
    name: str | None,
    planned: int,
    outcome_counts: Counter[str],
    repeats: Iterable[UnitRepeatCount],
) -> CoverageRow:
    """Build the row of one group; items that are planned but have no outcome are `missing`."""
    return CoverageRow(
        stage=stage_coverage.stage,
        method=stage_coverage.method,
        name=name,
        planned=planned,
        ok=outcome_counts[OK],
        losses={o.value: outcome_counts[o.value] for o in Outcome if o is not Outcome.OK and outcome_counts[o.value]},
        missing=planned - outcome_counts.total(),
        asked_again=sum(repeat.n for repeat in repeats),
        answered_again=sum(repeat.answered for repeat in repeats),
    )


ANSWER_OUTCOMES = frozenset(o.value for o in Outcome if o.is_answer and o is not Outcome.EXCLUDED)


class RefusalRow(ReportModel):
    """Share of refusals for one model, country or topic."""

    name: str
    """The model, country or topic."""
    share: ShareEstimate
    """Refusals / answers; failed requests and excluded answers are in neither. A country's interval is over other
    topics, a topic's over other countries."""


class RefusalsReport(ReportModel):
    """Refusals to the direct question, most often refused first."""

    total: ShareEstimate
    models: list[RefusalRow]
    countries: list[RefusalRow]
    topics: list[RefusalRow]


class ReaskRow(ReportModel):
    """Answers of one model that could not be read and were asked for again."""

    model: str
    asked: int
    read: int
    """Second requests whose answer had a score."""


def build_refusals_report(source: ReportSource) -> RefusalsReport | None:
    """Compute shares of refusals by model, country and topic; None without an answer to a direct question."""
    answer_counts = count_first_answers(source.trace_counts, source.trace_repeats)
    if not answer_counts:
        return None
    return RefusalsReport(
        total=shares_over_units([_share_table(answer_counts)])[0],
        models=_build_refusal_rows(answer_counts, "model"),
        countries=[] if source.survey.task else _build_refusal_rows(answer_counts, "country"),
        topics=_build_refusal_rows(answer_counts, "topic"),
    )


def build_reask_rows(source: ReportSource) -> list[ReaskRow]:
    """Build one row per model whose unreadable answers were asked for again."""
    asked, read = Counter[str](), Counter[str]()
    for count in source.trace_counts:
        asked[count.model] += count.asked_again
        read[count.model] += count.asked_again * (count.outcome == Outcome.OK)
    return [ReaskRow(model=model, asked=n, read=read[model]) for model, n in sorted(asked.items()) if n]


def count_first_answers(
    trace_counts: Iterable[OutcomeCount], trace_repeats: Iterable[RepeatCount]
) -> list[OutcomeCount]:
    """Count the answers to direct questions by model, cell and outcome: those to questions asked again by the first."""
    counts = Counter[tuple[str, str, str, str]]()
    for count in trace_counts:
        counts[count.model, count.country, count.topic, count.outcome] += count.n
    for repeat in trace_repeats:
        unit = (repeat.model, repeat.country, repeat.topic)
        counts[*unit, Outcome.OK.value] -= repeat.answered
        counts[*unit, repeat.first_outcome] += repeat.answered
    return [OutcomeCount(*group, n) for group, n in counts.items() if n and group[-1] in ANSWER_OUTCOMES]


def _build_refusal_rows(
    answer_counts: Sequence[OutcomeCount], group_by: Literal["model", "country", "topic"]
) -> list[RefusalRow]:
    """Build one row per model, country or topic, the largest share of refusals first."""
    groups: dict[str, list[OutcomeCount]] = defaultdict(list)
    for count in answer_counts:
        groups[getattr(count, group_by)].append(count)
    shares = shares_over_units([_share_table(group, group_by) for group in groups.values()])
    rows = [RefusalRow(name=name, share=share) for name, share in zip(groups, shares, strict=True)]
    return sorted(rows, key=lambda row: (-(row.share.value or 0.0), row.name))


def _share_table(answer_counts: Sequence[OutcomeCount], group_by: str = "") -> ShareTable:
    """Refusals and answers with the units that are resampled: countries and topics, or items, but not `group_by`."""
    units = sampling_units([count.country for count in answer_counts], [count.topic for count in answer_counts])
    return ShareTable(
        [count.n * (count.outcome == Outcome.REFUSED.value) for count in answer_counts],
        [count.n for count in answer_counts],
        {unit: labels for unit, labels in units.items() if unit != group_by},
    )
