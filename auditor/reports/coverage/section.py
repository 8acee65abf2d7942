"""Coverage: of what was planned, how much is there, and why the rest is not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from auditor.config import AuditConfig
from auditor.domain import Cell, Method, Outcome
from auditor.metrics.votes import min_majority
from auditor.models.finish_reasons import FinishCategory, classify_finish_reason
from auditor.panel_assignment import TraceKey, select_reviewed
from auditor.prompts.sentence_pairs import load_sentence_pairs
from auditor.reports.coverage.schema import CoverageReport, CoverageRow, FinishReasonRow
from auditor.reports.logic.schema import LogicReport
from auditor.reports.report_source import ReportSource
from auditor.reports.semantic.schema import SemanticReport
from auditor.storage.costs import CallCounts
from auditor.storage.count_queries import OutcomeCount

OK = Outcome.OK.value


class CoverageUnit(NamedTuple):
    """What coverage is counted by; `name` is the model's, or the judge's."""

    name: str
    country: str
    topic: str


class UnitOutcomeCount(NamedTuple):
    """Samples or verdicts of one unit that ended in one outcome."""

    unit: CoverageUnit
    outcome: str
    n: int


@dataclass(frozen=True)
class StageCoverage:
    """One kind of thing that was planned, and what came of it."""

    stage: Literal["direct", "review", "semantic", "logic"]
    method: str | None
    planned: Mapping[CoverageUnit, int]
    recorded: Sequence[UnitOutcomeCount]

    @cached_property
    def planned_totals(self) -> Mapping[CoverageUnit, int]:
        """What was planned of each unit; where more is there, that."""
        recorded = Counter[CoverageUnit]()
        for unit, _, n in self.recorded:
            recorded[unit] += n
        return {unit: max(self.planned.get(unit, 0), recorded[unit]) for unit in {**self.planned, **recorded}}


def build_coverage_report(
    source: ReportSource, semantic: SemanticReport | None = None, logic: LogicReport | None = None
) -> CoverageReport:
    """Coverage of scores by method, and of verdicts, by model, country, topic and judge; and of the other probes."""
    placed, elsewhere = measure_coverage(source), [*_semantic_coverage(semantic), *_logic_coverage(logic)]
    every = [*placed, *elsewhere]
    judged = [t for t in [_judge_coverage(source)] if t.planned or t.recorded]
    return CoverageReport(
        total=_build_coverage_rows(every, lambda unit: None, [None]),
        models=[
            *_build_coverage_rows(placed, lambda unit: unit.name, source.models),
            *(
                row
                for tally in elsewhere
                for row in _build_coverage_rows([tally], lambda unit: unit.name, _unit_names(tally))
            ),
        ],
        countries=_build_coverage_rows(placed, lambda unit: unit.country, source.named_countries),
        topics=_build_coverage_rows(placed, lambda unit: unit.topic, source.topics),
        judges=_build_coverage_rows(judged, lambda unit: unit.name, source.judge_names),
        undocumented_finish_reasons=find_undocumented_finish_reasons(source.call_counts),
        shortened_traces={
            name: source.n_shortened_traces[name] for name in source.models if name in source.n_shortened_traces
        },
    )


def find_undocumented_finish_reasons(calls: Iterable[CallCounts]) -> list[FinishReasonRow]:
    """Finish reasons whose meaning is not known, by model."""
    found = Counter[tuple[str, str]]()
    for tally in calls:
        if (
            tally.finish_reason
            and tally.is_current
            and classify_finish_reason(tally.finish_reason) is FinishCategory.UNKNOWN
        ):
            found[tally.name, tally.finish_reason] += tally.answers
    return [FinishReasonRow(name=name, reason=reason, answers=n) for (name, reason), n in sorted(found.items())]


def _unit_names(stage_coverage: StageCoverage) -> list[str]:
    return list(dict.fromkeys(unit.name for unit in stage_coverage.planned))


def _semantic_coverage(semantic: SemanticReport | None) -> Iterator[StageCoverage]:
    """Answers to moral questions, and the rules of thumb that were asked for."""
    if semantic is None:
        return
    yield _coverage_by_model("semantic", "answers", [(r.model, r.planned, r.ok, r.losses) for r in semantic.models])
    if any(r.rules_planned for r in semantic.models):
        rules = [(r.model, r.rules_planned, r.rules_ok, r.rules_losses) for r in semantic.models]
        yield _coverage_by_model("semantic", "rules", rules)


def _logic_coverage(logic: LogicReport | None) -> Iterator[StageCoverage]:
    """Comparisons of items."""
    if logic is not None:
        yield _coverage_by_model("logic", None, [(r.judge, r.questions, r.ok, r.losses) for r in logic.judges])


def _coverage_by_model(
    stage: Literal["semantic", "logic"],
    method: str | None,
    rows: Iterable[tuple[str, int, int, Mapping[str, int]]],
) -> StageCoverage:
    """What was counted by model already: planned, ok and lost."""
    planned, seen = {}, []
    for name, n, ok, losses in rows:
        unit = CoverageUnit(name, "", "")
        planned[unit] = n
        seen += [UnitOutcomeCount(unit, outcome, k) for outcome, k in {OK: ok, **losses}.items() if k]
    return StageCoverage(stage, method, planned, seen)


def measure_coverage(source: ReportSource) -> list[StageCoverage]:
    """What was planned and seen of scores, by method, and of verdicts where there are any to be."""
    return [*measure_score_coverage(source), *(t for t in [_verdict_coverage(source)] if t.planned or t.recorded)]


def measure_score_coverage(source: ReportSource) -> list[StageCoverage]:
    """What was planned and seen of scores, a tally for each method."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    if source.config and source.config.probes.direct:
        methods = {Method.DIRECT.value: None} | methods
    if source.config and source.config.probes.logprob:
        methods |= {Method.LOGPROB.value: None}
    return [_score_coverage(source, method) for method in methods]


def _score_coverage(source: ReportSource, method: str) -> StageCoverage:
    if method == Method.DIRECT and source.trace_counts:
        return _trace_coverage(source)
    if method == Method.LOGPROB and source.sentence_pair_counts:
        seen = [
            UnitOutcomeCount(CoverageUnit(c.model, c.country, c.topic), c.outcome, c.n)
            for c in source.sentence_pair_counts
        ]
        return StageCoverage("direct", method, _planned_samples(source, method), seen)
    return _imported_score_coverage(source, method)


def _trace_coverage(source: ReportSource) -> StageCoverage:
    seen = [UnitOutcomeCount(CoverageUnit(t.model, t.country, t.topic), t.outcome, t.n) for t in source.trace_counts]
    recorded = Counter[CoverageUnit]()
    for count in seen:
        recorded[count.unit] += count.n
    planned = _planned_samples(source, Method.DIRECT) or _infer_planned_samples(source, list(recorded.items()))
    return StageCoverage("direct", Method.DIRECT.value, planned, seen)


def _imported_score_coverage(source: ReportSource, method: str) -> StageCoverage:
    """Without traces only the numbers of samples are known, as whoever measured them wrote them down."""
    mine = [(CoverageUnit(s.model, *s.cell), s) for s in source.scores if s.method == method]
    planned = _planned_samples(source, method) if method in tuple(Method) else {}
    return StageCoverage(
        stage="direct",
        method=method,
        planned=planned or _infer_planned_samples(source, [(unit, s.n_planned) for unit, s in mine]),
        recorded=[UnitOutcomeCount(unit, OK, s.n_ok) for unit, s in mine],
    )


def _infer_planned_samples(
    source: ReportSource, recorded_samples: Sequence[tuple[CoverageUnit, int]]
) -> dict[CoverageUnit, int]:
    """Where nobody wrote down a plan: every cell of the survey, with as many samples as most of the model's cells have.

    Cells that were not brought in are missing: otherwise a few of many would be full coverage. What is there beyond
    that is planned, too.
    """
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    for unit, n in recorded_samples:
        sizes[unit.name][n] += 1
    typical = {name: max(1, *(n for n, k in c.items() if k == max(c.values()))) for name, c in sizes.items()}
    planned = {CoverageUnit(name, *cell): n for name, n in typical.items() for cell in source.survey.scores}
    return planned | {unit: max(n, planned.get(unit, 0)) for unit, n in recorded_samples}


def _planned_samples(source: ReportSource, method: str) -> dict[CoverageUnit, int]:
    """Every model about every cell that people were asked about: k samples in each language, or all comparisons.

    What is asked only by what was answered before is planned by being asked.
    """
    if source.config is None:
        return {}
    if method == Method.LOGPROB:
        n = load_sentence_pairs().pairs_per_cell
        return {CoverageUnit(m.name, *cell): n for m in source.config.models for cell in source.survey.asked_cells}
    k = source.config.samples_by_cell(source.survey, guaranteed_only=True)
    if source.config.direct.target_width is not None:  # what no model was asked about was not to be asked
        reached = set(source.cells)
        k = {cell: n for cell, n in k.items() if cell in reached}
    return {CoverageUnit(m.name, *cell): n for m in source.config.models for cell, n in k.items()}


def _verdict_coverage(source: ReportSource) -> StageCoverage:
    planned = count_planned_verdicts(source.config, source.trace_counts, source.scored_traces) if source.config else {}
    seen = [UnitOutcomeCount(CoverageUnit(v.model, v.country, v.topic), v.outcome, v.n) for v in source.verdict_counts]
    return StageCoverage("review", None, planned, seen)


def count_planned_verdicts(
    config: AuditConfig, traces: Iterable[OutcomeCount], scored_traces: Iterable[tuple[str, Cell, int]] = ()
) -> dict[CoverageUnit, int]:
    """Verdicts that are certain to be asked for: of an adaptive panel no more than a majority of its seats."""
    seats = {m.name: config.panel_size(m.name) for m in config.models}
    judges = {m: min_majority(n) if config.panel.adaptive else n for m, n in seats.items()}
    found = count_reviewable_traces(config, traces, scored_traces)
    return {unit: n * judges[unit.name] for unit, n in found.items() if judges.get(unit.name)}


def _judge_coverage(source: ReportSource) -> StageCoverage:
    """Verdicts by judge; the unit's country and topic are not told apart.

    Whom an adaptive panel asks is known only by asking, so there nothing is planned but what was asked.
    """
    if source.config is not None and source.config.panel.adaptive:
        return StageCoverage(
            "review",
            None,
            {},
            [UnitOutcomeCount(CoverageUnit(j.judge, "", ""), j.outcome, j.n) for j in source.judge_counts],
        )
    planned = Counter({CoverageUnit(judge, "", ""): n for judge, n in _count_traces_by_judge(source).items()})
    return StageCoverage(
        "review",
        None,
        planned,
        [UnitOutcomeCount(CoverageUnit(j.judge, "", ""), j.outcome, j.n) for j in source.judge_counts],
    )


def _count_traces_by_judge(source: ReportSource) -> Counter[str]:
    """How many traces each judge was given."""
    if source.judges_by_trace is not None:
        return Counter(judge for judges in source.judges_by_trace.values() for judge in judges)
    authors, found = Counter[str](), Counter[str]()
    for unit, n in _count_reviewable_in_audit(source).items():
        authors[unit.name] += n
    for author, n in authors.items():
        for judge in source.config.judges_of(author) if source.config else ():
            found[judge.name] += n
    return found


def _count_reviewable_in_audit(source: ReportSource) -> dict[CoverageUnit, int]:
    return count_reviewable_traces(source.config, source.trace_counts, source.scored_traces)


def count_reviewable_traces(
    config: AuditConfig | None, traces: Iterable[OutcomeCount], scored_traces: Iterable[tuple[str, Cell, int]] = ()
) -> dict[CoverageUnit, int]:
    """How many traces of each model and cell go before judges: those with a score, or the first few of them.

    Args:
        readable: those with a score one by one, where it matters which they are.
    """
    if config is not None and config.review_varies_by_trace:
        return Counter(
            CoverageUnit(p.model, *p.cell) for p in select_reviewed(config, (TraceKey(*key) for key in scored_traces))
        )
    limit = config.probes.review.traces if config else "all"
    scored = {CoverageUnit(t.model, t.country, t.topic): t.n for t in traces if t.outcome == OK}
    return {unit: n if limit == "all" else min(n, limit) for unit, n in scored.items()}


def _build_coverage_rows(
    stages: Iterable[StageCoverage], group_key: Callable[[CoverageUnit], str | None], group_order: Sequence[str | None]
) -> list[CoverageRow]:
    return [row for tally in stages for row in _build_stage_rows(tally, group_key, group_order)]


def _build_stage_rows(
    stage_coverage: StageCoverage, group_key: Callable[[CoverageUnit], str | None], group_order: Sequence[str | None]
) -> list[CoverageRow]:
    outcomes: dict[str | None, Counter[str]] = defaultdict(Counter)
    for unit, outcome, n in stage_coverage.recorded:
        outcomes[group_key(unit)][outcome] += n
    planned = Counter[str | None]()
    for unit, n in stage_coverage.planned_totals.items():
        planned[group_key(unit)] += n
    return [
        _build_coverage_row(stage_coverage, name, planned[name], outcomes[name])
        for name in group_order
        if planned[name]
    ]


def _build_coverage_row(
    stage_coverage: StageCoverage, name: str | None, planned: int, outcome_counts: Counter[str]
) -> CoverageRow:
    return CoverageRow(
        stage=stage_coverage.stage,
        method=stage_coverage.method,
        name=name,
        planned=planned,
        ok=outcome_counts[OK],
        losses={o.value: outcome_counts[o.value] for o in Outcome if o is not Outcome.OK and outcome_counts[o.value]},
        missing=planned - outcome_counts.total(),
    )
