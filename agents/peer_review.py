"""Putting traces before their panels: all seats at once, or one after another while the majority is open."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from auditor.agents.call_builders import blinded, review_call
from auditor.agents.call_runner import ask
from auditor.agents.conflict_resolution import conflict_votes, still_open
from auditor.agents.run_context import Context
from auditor.agents.verdict_parsing import read_verdict, shape_of, shorter_call
from auditor.config import ModelSection
from auditor.domain import Cell, Conflict, Ruling, Trace, Verdict, derive_seed
from auditor.metrics.votes import can_still_change, least_majority
from auditor.panel_assignment import Place
from auditor.storage import results

STAGE = "review"


@dataclass(frozen=True, slots=True)
class Seat:
    """One judge's place in the panel of one trace."""

    trace: Trace
    judge: ModelSection
    turn: int
    always: bool


@dataclass(slots=True)
class Panel:
    """A trace, its judges in the order in which they are asked, and what they have said so far."""

    trace: Trace
    judges: Sequence[ModelSection]
    votes: dict[str, Ruling | None] = field(default_factory=dict)

    def seat(self, turn: int) -> Seat:
        """The place of the judge whose turn it is."""
        return Seat(self.trace, self.judges[turn], turn, turn < least_majority(len(self.judges)))

    def seats(self, judge: str) -> list[Seat]:
        """The place of one judge; none where it does not sit here."""
        return [self.seat(turn) for turn, j in enumerate(self.judges) if j.name == judge]

    def next(self) -> Seat | None:
        """Who is asked now; None once no vote can change what a majority says of the trace."""
        waiting = [turn for turn, j in enumerate(self.judges) if j.name not in self.votes]
        said = list(self.votes.values())
        counts = (said.count(Ruling.VALID), said.count(Ruling.INVALID))
        return self.seat(waiting[0]) if can_still_change(*counts, len(said), len(self.judges)) else None


def panel_of(context: Context, trace: Trace) -> Panel:
    """A trace's judges in an order that is drawn for it, and does not depend on any model's name."""
    config = context.config

    def turn(judge: ModelSection) -> int:
        return derive_seed(config.seed, "turn", judge.model, judge.system, judge.params, *trace.cell, trace.text)

    return Panel(trace, sorted(context.seating.panel(Place.of(trace)), key=turn))


async def review_traces(context: Context, traces: Iterable[Trace]) -> None:
    """Ask the panels of some traces, and store what they say.

    An adaptive panel asks as many judges as a majority needs, then one after another. Which are asked always does not
    depend on what the others say, so that figures over their verdicts are not of disputed traces only.
    """
    config = context.config
    panels = [panel_of(context, trace) for trace in traces]
    if not config.panel.adaptive:
        await hear(context, [panel.seat(turn) for panel in panels for turn in range(len(panel.judges))])
        return
    first = [p.seat(turn) for p in panels for turn in range(least_majority(len(p.judges)))]
    _count(panels, await hear(context, first))
    while seats := [seat for panel in panels if (seat := panel.next()) is not None]:
        said = await hear(context, seats)
        if context.stop.is_set() or not said:
            return
        _count(panels, said)


def _count(panels: Sequence[Panel], verdicts: Iterable[Verdict]) -> None:
    by_trace = {(p.trace.model, p.trace.cell, p.trace.sample): p for p in panels}
    for v in verdicts:
        by_trace[v.model, v.cell, v.sample].votes[v.judge] = v.ruling


async def hear(context: Context, seats: Sequence[Seat]) -> list[Verdict]:
    """What the judges in some seats say, stored; a justification that is too long is asked for once more."""
    config, probe = context.config, context.config.probes.review
    texts = {id(seat.trace): seat.trace for seat in seats}
    shown = {key: blinded(config, context.survey, trace) for key, trace in texts.items()}
    calls = [review_call(config, context.survey, s.judge, s.trace, shown[id(s.trace)]) for s in seats]
    answers = await ask(context, STAGE, calls)
    limits = probe.max_words, probe.max_trace_chars
    longer = {c.key: shorter_call(c, answers[c.key], *limits) for c in calls if c.key in answers}
    again = await ask(context, STAGE, [call for call in longer.values() if call is not None])
    verdicts = []
    for seat, call in zip(seats, calls, strict=True):
        if call.key in answers:
            second = longer[call.key]
            shorter = again.get(second.key) if second else None
            said = read_verdict(
                answers[call.key], seat.judge.name, seat.trace, probe.max_words, shorter, shape_of(call)
            )
            verdicts.append(replace(said, turn=seat.turn, always=seat.always or not config.panel.adaptive))
    await asyncio.to_thread(results.save_verdicts, context.db, context.audit_id, verdicts)
    return verdicts


async def hear_conflicts(context: Context, conflicts: Sequence[Conflict], traces: Iterable[Trace]) -> None:
    """Ask on, where an adaptive panel left verdicts out that a conflict needs, until its outcome cannot change.

    A judge votes on a conflict once it has ruled on all traces of both sides, so the outcome is that of the full panel.

    Args:
        conflicts: all that were found.
        traces: those that go before judges, of the cells in conflict at least; verdicts on others do not count.
    """
    config = context.config
    panels: dict[tuple[str, Cell], list[Panel]] = defaultdict(list)
    for trace in traces:
        panels[trace.model, trace.cell].append(panel_of(context, trace))
    cells, places = {c.cell for c in conflicts}, {Place.of(p.trace) for sides in panels.values() for p in sides}
    seated = {key: {judge.name for panel in sides for judge in panel.judges} for key, sides in panels.items()}
    while not context.stop.is_set():
        stored = await asyncio.to_thread(results.verdicts, context.db, context.audit_id, cells)
        verdicts = [v for v in stored if (v.model, v.cell, v.sample) in places]
        known = {(v.judge, v.model, v.cell, v.sample) for v in verdicts}
        wanted: dict[tuple[object, ...], Seat] = {}
        for conflict, votes in conflict_votes(config, conflicts, verdicts, seated):
            sides = [p for side in (conflict.left, conflict.right) for p in panels[side, conflict.cell]]
            missing = {
                judge: [s for p in sides for s in p.seats(judge) if (judge, *Place.of(s.trace)) not in known]
                for judge in votes
            }
            cast = {judge: vote for judge, vote in votes.items() if not missing[judge]}
            if still_open(config, list(votes), cast):
                waiting = next(judge for judge in votes if missing[judge])
                wanted |= {(waiting, *Place.of(s.trace)): s for s in missing[waiting]}
        if not wanted or not await hear(context, list(wanted.values())):
            return
