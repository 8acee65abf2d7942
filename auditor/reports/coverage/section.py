"""Coverage: of what was planned, how much is there, and why the rest is not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from auditor.config import AuditConfig
from auditor.domain import Cell, Method, Outcome
from auditor.metrics.votes import least_majority
from auditor.models.finish_reasons import Meaning, meaning_of
from auditor.panel_assignment import Place, reviewed
from auditor.prompts.sentence_pairs import load_contrasts
from auditor.reports.coverage.schema import CoveragePart, CoverageRow, FinishReasonRow
from auditor.reports.logic.schema import LogicPart
from auditor.reports.report_source import Source
from auditor.reports.semantic.schema import SemanticPart
from auditor.storage.costs import CallTally
from auditor.storage.count_queries import OutcomeTally

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


@dataclass(frozen=True)
class Tally:
    """One kind of thing that was planned, and what came of it."""

    stage: Literal["direct", "review", "semantic", "logic"]
    method: str | None
    planned: Mapping[Unit, int]
    seen: Sequence[Count]

    @cached_property
    def totals(self) -> Mapping[Unit, int]:
        """What was planned of each unit; where more is there, that."""
        recorded = Counter[Unit]()
        for unit, _, n in self.seen:
            recorded[unit] += n
        return {unit: max(self.planned.get(unit, 0), recorded[unit]) for unit in {**self.planned, **recorded}}


def coverage(source: Source, semantic: SemanticPart | None = None, logic: LogicPart | None = None) -> CoveragePart:
    """Coverage of scores by method, and of verdicts, by model, country, topic and judge; and of the other probes."""
    placed, elsewhere = tallies(source), [*_of_semantic(semantic), *_of_logic(logic)]
    every = [*placed, *elsewhere]
    judged = [t for t in [_judged(source)] if t.planned or t.seen]
    return CoveragePart(
        total=_rows(every, lambda unit: None, [None]),
        models=[
            *_rows(placed, lambda unit: unit.name, source.models),
            *(row for tally in elsewhere for row in _rows([tally], lambda unit: unit.name, _names(tally))),
        ],
        countries=_rows(placed, lambda unit: unit.country, source.named_countries),
        topics=_rows(placed, lambda unit: unit.topic, source.topics),
        judges=_rows(judged, lambda unit: unit.name, source.judge_names),
        undocumented_finish_reasons=undocumented(source.calls),
        shortened_traces={name: source.shortened[name] for name in source.models if name in source.shortened},
    )


def undocumented(calls: Iterable[CallTally]) -> list[FinishReasonRow]:
    """Finish reasons whose meaning is not known, by model."""
    found = Counter[tuple[str, str]]()
    for tally in calls:
        if tally.finish_reason and tally.is_current and meaning_of(tally.finish_reason) is Meaning.UNKNOWN:
            found[tally.name, tally.finish_reason] += tally.answers
    return [FinishReasonRow(name=name, reason=reason, answers=n) for (name, reason), n in sorted(found.items())]


def _names(tally: Tally) -> list[str]:
    return list(dict.fromkeys(unit.name for unit in tally.planned))


def _of_semantic(part: SemanticPart | None) -> Iterator[Tally]:
    """Answers to moral questions, and the rules of thumb that were asked for."""
    if part is None:
        return
    yield _elsewhere("semantic", "answers", [(r.model, r.planned, r.ok, r.losses) for r in part.models])
    if any(r.rules_planned for r in part.models):
        rules = [(r.model, r.rules_planned, r.rules_ok, r.rules_losses) for r in part.models]
        yield _elsewhere("semantic", "rules", rules)


def _of_logic(part: LogicPart | None) -> Iterator[Tally]:
    """Comparisons of items."""
    if part is not None:
        yield _elsewhere("logic", None, [(r.judge, r.questions, r.ok, r.losses) for r in part.judges])


def _elsewhere(
    stage: Literal["semantic", "logic"],
    method: str | None,
    rows: Iterable[tuple[str, int, int, Mapping[str, int]]],
) -> Tally:
    """What was counted by model already: planned, ok and lost."""
    planned, seen = {}, []
    for name, n, ok, losses in rows:
        unit = Unit(name, "", "")
        planned[unit] = n
        seen += [Count(unit, outcome, k) for outcome, k in {OK: ok, **losses}.items() if k]
    return Tally(stage, method, planned, seen)


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
    recorded = Counter[Unit]()
    for count in seen:
        recorded[count.unit] += count.n
    planned = _planned(source, Method.DIRECT) or _typical(source, list(recorded.items()))
    return Tally("direct", Method.DIRECT.value, planned, seen)


def _scores(source: Source, method: str) -> Tally:
    """Without traces only the numbers of samples are known, as whoever measured them wrote them down."""
    mine = [(Unit(s.model, *s.cell), s) for s in source.scores if s.method == method]
    planned = _planned(source, method) if method in tuple(Method) else {}
    return Tally(
        stage="direct",
        method=method,
        planned=planned or _typical(source, [(unit, s.n_planned) for unit, s in mine]),
        seen=[Count(unit, OK, s.n_ok) for unit, s in mine],
    )


def _typical(source: Source, known: Sequence[tuple[Unit, int]]) -> dict[Unit, int]:
    """Where nobody wrote down a plan: every cell of the survey, with as many samples as most of the model's cells have.

    Cells that were not brought in are missing: otherwise a few of many would be full coverage. What is there beyond
    that is planned, too.
    """
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    for unit, n in known:
        sizes[unit.name][n] += 1
    typical = {name: max(1, *(n for n, k in c.items() if k == max(c.values()))) for name, c in sizes.items()}
    planned = {Unit(name, *cell): n for name, n in typical.items() for cell in source.survey.scores}
    return planned | {unit: max(n, planned.get(unit, 0)) for unit, n in known}


def _planned(source: Source, method: str) -> dict[Unit, int]:
    """Every model about every cell that people were asked about: k samples in each language, or all comparisons.

    What is asked only by what was answered before is planned by being asked.
    """
    if source.config is None:
        return {}
    if method == Method.LOGPROB:
        n = load_contrasts().count
        return {Unit(m.name, *cell): n for m in source.config.models for cell in source.survey.asked}
    k = source.config.samples_on(source.survey, least=True)
    if source.config.direct.target_width is not None:  # what no model was asked about was not to be asked
        reached = set(source.cells)
        k = {cell: n for cell, n in k.items() if cell in reached}
    return {Unit(m.name, *cell): n for m in source.config.models for cell, n in k.items()}


def _review(source: Source) -> Tally:
    planned = planned_verdicts(source.config, source.traces, source.readable) if source.config else {}
    seen = [Count(Unit(v.model, v.country, v.topic), v.outcome, v.n) for v in source.verdicts]
    return Tally("review", None, planned, seen)


def planned_verdicts(
    config: AuditConfig, traces: Iterable[OutcomeTally], readable: Iterable[tuple[str, Cell, int]] = ()
) -> dict[Unit, int]:
    """Verdicts that are certain to be asked for: of an adaptive panel no more than a majority of its seats."""
    seats = {m.name: config.panel_size(m.name) for m in config.models}
    judges = {m: least_majority(n) if config.panel.adaptive else n for m, n in seats.items()}
    found = reviewable(config, traces, readable)
    return {unit: n * judges[unit.name] for unit, n in found.items() if judges.get(unit.name)}


def _judged(source: Source) -> Tally:
    """Verdicts by judge; the unit's country and topic are not told apart.

    Whom an adaptive panel asks is known only by asking, so there nothing is planned but what was asked.
    """
    if source.config is not None and source.config.panel.adaptive:
        return Tally("review", None, {}, [Count(Unit(j.judge, "", ""), j.outcome, j.n) for j in source.judges])
    planned = Counter({Unit(judge, "", ""): n for judge, n in _assigned(source).items()})
    return Tally("review", None, planned, [Count(Unit(j.judge, "", ""), j.outcome, j.n) for j in source.judges])


def _assigned(source: Source) -> Counter[str]:
    """How many traces each judge was given."""
    if source.seats is not None:
        return Counter(judge for judges in source.seats.values() for judge in judges)
    authors, found = Counter[str](), Counter[str]()
    for unit, n in _reviewable(source).items():
        authors[unit.name] += n
    for author, n in authors.items():
        for judge in source.config.judges_of(author) if source.config else ():
            found[judge.name] += n
    return found


def _reviewable(source: Source) -> dict[Unit, int]:
    return reviewable(source.config, source.traces, source.readable)


def reviewable(
    config: AuditConfig | None, traces: Iterable[OutcomeTally], readable: Iterable[tuple[str, Cell, int]] = ()
) -> dict[Unit, int]:
    """How many traces of each model and cell go before judges: those with a score, or the first few of them.

    Args:
        readable: those with a score one by one, where it matters which they are.
    """
    if config is not None and config.is_thinned:
        return Counter(Unit(p.model, *p.cell) for p in reviewed(config, (Place(*key) for key in readable)))
    limit = config.probes.review.traces if config else "all"
    scored = {Unit(t.model, t.country, t.topic): t.n for t in traces if t.outcome == OK}
    return {unit: n if limit == "all" else min(n, limit) for unit, n in scored.items()}


def _rows(tallies: Iterable[Tally], by: Callable[[Unit], str | None], order: Sequence[str | None]) -> list[CoverageRow]:
    return [row for tally in tallies for row in _rows_of(tally, by, order)]


def _rows_of(tally: Tally, by: Callable[[Unit], str | None], order: Sequence[str | None]) -> list[CoverageRow]:
    outcomes: dict[str | None, Counter[str]] = defaultdict(Counter)
    for unit, outcome, n in tally.seen:
        outcomes[by(unit)][outcome] += n
    planned = Counter[str | None]()
    for unit, n in tally.totals.items():
        planned[by(unit)] += n
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
