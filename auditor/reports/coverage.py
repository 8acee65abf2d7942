"""Coverage: of what was planned, how much is there, and why the rest is not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from auditor.config import AuditConfig
from auditor.domain import Method, Outcome
from auditor.metrics.votes import least_majority
from auditor.prompts.contrasts import load_contrasts
from auditor.reports.measures import CoveragePart, CoverageRow
from auditor.reports.source import Source
from auditor.storage.tallies import OutcomeTally

OK = Outcome.OK.value


class Unit(NamedTuple):
    """What coverage is counted by; `name` is the model's, or the judge's."""

    name: str
    country: str
    topic: str


class Count(NamedTuple):
    """Samples or verdicts of one unit that ended in one outcome."""

    unit: Unit
    outcome: str
    n: int


class Tally(NamedTuple):
    """One kind of thing that was planned, and what came of it."""

    stage: Literal["direct", "review"]
    method: str | None
    planned: Mapping[Unit, int]
    seen: Sequence[Count]


def coverage(source: Source) -> CoveragePart:
    """Coverage of scores by method, and of verdicts, by model, country, topic and judge."""
    every = tallies(source)
    judged = [t for t in [_judged(source)] if t.planned or t.seen]
    return CoveragePart(
        total=_rows(every, lambda unit: None, [None]),
        models=_rows(every, lambda unit: unit.name, source.models),
        countries=_rows(every, lambda unit: unit.country, source.countries),
        topics=_rows(every, lambda unit: unit.topic, source.topics),
        judges=_rows(judged, lambda unit: unit.name, source.judge_names),
    )


def tallies(source: Source) -> list[Tally]:
    """What was planned and seen of scores, by method, and of verdicts where there are any to be."""
    return [*score_tallies(source), *(t for t in [_review(source)] if t.planned or t.seen)]


def score_tallies(source: Source) -> list[Tally]:
    """What was planned and seen of scores, a tally for each method."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    if source.config and source.config.probes.direct:
        methods = {Method.DIRECT.value: None} | methods
    if source.config and source.config.probes.logprob:
        methods |= {Method.LOGPROB.value: None}
    return [_score_tally(source, method) for method in methods]


def _score_tally(source: Source, method: str) -> Tally:
    if method == Method.DIRECT and source.traces:
        return _traces(source)
    if method == Method.LOGPROB and source.contrasts:
        seen = [Count(Unit(c.model, c.country, c.topic), c.outcome, c.n) for c in source.contrasts]
        return Tally("direct", method, _planned(source, method), seen)
    return _scores(source, method)


def _traces(source: Source) -> Tally:
    seen = [Count(Unit(t.model, t.country, t.topic), t.outcome, t.n) for t in source.traces]
    return Tally("direct", Method.DIRECT.value, _planned(source, Method.DIRECT), seen)


def _scores(source: Source, method: str) -> Tally:
    """Without traces only the numbers of samples are known, as whoever measured them wrote them down."""
    mine = [(Unit(s.model, *s.cell), s) for s in source.scores if s.method == method]
    planned = _planned(source, method) if method in tuple(Method) else {}
    return Tally(
        stage="direct",
        method=method,
        planned=planned or {unit: s.n_planned for unit, s in mine},
        seen=[Count(unit, OK, s.n_ok) for unit, s in mine],
    )


def _planned(source: Source, method: str) -> dict[Unit, int]:
    """Every model about every cell that people were asked about: k samples in each language, or all comparisons."""
    if source.config is None:
        return {}
    if method == Method.LOGPROB:
        n = load_contrasts().count
        return {Unit(m.name, *cell): n for m in source.config.models for cell in source.survey.scores}
    k = source.config.samples_on(source.survey)
    return {Unit(m.name, *cell): n for m in source.config.models for cell, n in k.items()}


def _review(source: Source) -> Tally:
    adaptive = source.config is not None and source.config.panel.adaptive
    seats = {m: len(_judges_of(source, m)) for m in source.models}
    judges = {m: least_majority(n) if adaptive else n for m, n in seats.items()}
    planned = {unit: n * judges[unit.name] for unit, n in _reviewable(source).items() if judges[unit.name]}
    seen = [Count(Unit(v.model, v.country, v.topic), v.outcome, v.n) for v in source.verdicts]
    return Tally("review", None, planned, seen)


def _judged(source: Source) -> Tally:
    """Verdicts by judge; the unit's country and topic are not told apart.

    Whom an adaptive panel asks is known only by asking, so there nothing is planned but what was asked.
    """
    if source.config is not None and source.config.panel.adaptive:
        return Tally("review", None, {}, [Count(Unit(j.judge, "", ""), j.outcome, j.n) for j in source.judges])
    traces = Counter[str]()
    for unit, n in _reviewable(source).items():
        traces[unit.name] += n
    planned = Counter[Unit]()
    for model, n in traces.items():
        for judge in _judges_of(source, model):
            planned[Unit(judge, "", "")] += n
    return Tally("review", None, planned, [Count(Unit(j.judge, "", ""), j.outcome, j.n) for j in source.judges])


def _reviewable(source: Source) -> dict[Unit, int]:
    return reviewable(source.config, source.traces)


def reviewable(config: AuditConfig | None, traces: Iterable[OutcomeTally]) -> dict[Unit, int]:
    """How many traces of each model and cell go before judges: those with a score, or the first few of them."""
    limit = config.probes.review.traces if config else "all"
    scored = {Unit(t.model, t.country, t.topic): t.n for t in traces if t.outcome == OK}
    return {unit: n if limit == "all" else min(n, limit) for unit, n in scored.items()}


def _judges_of(source: Source, model: str) -> list[str]:
    return [j.name for j in source.config.judges_of(model)] if source.config else []


def _rows(tallies: Iterable[Tally], by: Callable[[Unit], str | None], order: Sequence[str | None]) -> list[CoverageRow]:
    return [row for tally in tallies for row in _rows_of(tally, by, order)]


def _rows_of(tally: Tally, by: Callable[[Unit], str | None], order: Sequence[str | None]) -> list[CoverageRow]:
    recorded = Counter[Unit]()
    outcomes: dict[str | None, Counter[str]] = defaultdict(Counter)
    for unit, outcome, n in tally.seen:
        recorded[unit] += n
        outcomes[by(unit)][outcome] += n
    planned = Counter[str | None]()
    for unit in {*tally.planned, *recorded}:
        planned[by(unit)] += max(tally.planned.get(unit, 0), recorded[unit])
    return [_row(tally, name, planned[name], outcomes[name]) for name in order if planned[name]]


def _row(tally: Tally, name: str | None, planned: int, outcomes: Counter[str]) -> CoverageRow:
    return CoverageRow(
        stage=tally.stage,
        method=tally.method,
        name=name,
        planned=planned,
        ok=outcomes[OK],
        losses={o.value: outcomes[o.value] for o in Outcome if o is not Outcome.OK and outcomes[o.value]},
        missing=planned - outcomes.total(),
    )
