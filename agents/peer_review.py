"""Putting traces before their panels: all seats at once, or one after another while the majority is open."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from auditor.agents.call_builders import blind_trace, build_review_call
from auditor.agents.call_runner import run_calls
from auditor.agents.conflict_resolution import collect_votes, outcome_can_change
from auditor.agents.run_context import RunContext
from auditor.agents.verdict_parsing import build_shorter_call, parse_verdict, review_schema
from auditor.config import ModelSection
from auditor.domain import Cell, Conflict, Ruling, Trace, Verdict, derive_seed
from auditor.metrics.votes import can_still_change, min_majority
from auditor.panel_assignment import TraceKey
from auditor.storage import results

STAGE = "review"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One judge's place in the panel of one trace."""

    trace: Trace
    judge: ModelSection
    turn: int
    always: bool


@dataclass(slots=True)
class TracePanel:
    """A trace, its judges in the order in which they are asked, and what they have said so far."""

    trace: Trace
    judges: Sequence[ModelSection]
    votes: dict[str, Ruling | None] = field(default_factory=dict)

    def assignment(self, turn: int) -> Assignment:
        """The place of the judge whose turn it is."""
        return Assignment(self.trace, self.judges[turn], turn, turn < min_majority(len(self.judges)))

    def assignments_of(self, judge: str) -> list[Assignment]:
        """The place of one judge; none where it does not sit here."""
        return [self.assignment(turn) for turn, j in enumerate(self.judges) if j.name == judge]

    def next_assignment(self) -> Assignment | None:
        """Who is asked now; None once no vote can change what a majority says of the trace."""
        waiting = [turn for turn, j in enumerate(self.judges) if j.name not in self.votes]
        said = list(self.votes.values())
        counts = (said.count(Ruling.VALID), said.count(Ruling.INVALID))
        return self.assignment(waiting[0]) if can_still_change(*counts, len(said), len(self.judges)) else None


def build_panel(context: RunContext, trace: Trace) -> TracePanel:
    """A trace's judges in an order that is drawn for it, and does not depend on any model's name."""
    config = context.config

    def turn(judge: ModelSection) -> int:
        return derive_seed(config.seed, "turn", judge.model, judge.system, judge.params, *trace.cell, trace.text)

    return TracePanel(trace, sorted(context.panel_assignment.panel(TraceKey.from_trace(trace)), key=turn))


async def review_traces(context: RunContext, traces: Iterable[Trace]) -> None:
    """Ask the panels of some traces, and store what they say.

    An adaptive panel asks as many judges as a majority needs, then one after another. Which are asked always does not
    depend on what the others say, so that figures over their verdicts are not of disputed traces only.
    """
    config = context.config
    panels = [build_panel(context, trace) for trace in traces]
    if not config.panel.adaptive:
        await ask_panel(context, [panel.assignment(turn) for panel in panels for turn in range(len(panel.judges))])
        return
    first = [p.assignment(turn) for p in panels for turn in range(min_majority(len(p.judges)))]
    _record_votes(panels, await ask_panel(context, first))
    while seats := [seat for panel in panels if (seat := panel.next_assignment()) is not None]:
        said = await ask_panel(context, seats)
        if context.stop_event.is_set() or not said:
            return
        _record_votes(panels, said)


def _record_votes(panels: Sequence[TracePanel], verdicts: Iterable[Verdict]) -> None:
    by_trace = {(p.trace.model, p.trace.cell, p.trace.sample): p for p in panels}
    for v in verdicts:
        by_trace[v.model, v.cell, v.sample].votes[v.judge] = v.ruling


async def ask_panel(context: RunContext, assignments: Sequence[Assignment]) -> list[Verdict]:
    """What the judges in some seats say, stored; a justification that is too long is asked for once more."""
    config, probe = context.config, context.config.probes.review
    texts = {id(seat.trace): seat.trace for seat in assignments}
    shown = {key: blind_trace(config, context.survey, trace) for key, trace in texts.items()}
    calls = [build_review_call(config, context.survey, s.judge, s.trace, shown[id(s.trace)]) for s in assignments]
    answers = await run_calls(context, STAGE, calls)
    limits = probe.max_words, probe.max_trace_chars
    longer = {c.key: build_shorter_call(c, answers[c.key], *limits) for c in calls if c.key in answers}
    again = await run_calls(context, STAGE, [call for call in longer.values() if call is not None])
    verdicts = []
    for seat, call in zip(assignments, calls, strict=True):
        if call.key in answers:
            second = longer[call.key]
            shorter = again.get(second.key) if second else None
            said = parse_verdict(
                answers[call.key], seat.judge.name, seat.trace, probe.max_words, shorter, review_schema(call)
            )
            verdicts.append(replace(said, turn=seat.turn, always=seat.always or not config.panel.adaptive))
    await asyncio.to_thread(results.save_verdicts, context.db, context.audit_id, verdicts)
    return verdicts


async def ask_panels_on_conflicts(context: RunContext, conflicts: Sequence[Conflict], traces: Iterable[Trace]) -> None:
    """Ask on, where an adaptive panel left verdicts out that a conflict needs, until its outcome cannot change.

    A judge votes on a conflict once it has ruled on all traces of both sides, so the outcome is that of the full panel.

    Args:
        conflicts: all that were found.
        traces: those that go before judges, of the cells in conflict at least; verdicts on others do not count.
    """
    config = context.config
    panels: dict[tuple[str, Cell], list[TracePanel]] = defaultdict(list)
    for trace in traces:
        panels[trace.model, trace.cell].append(build_panel(context, trace))
    cells, places = (
        {c.cell for c in conflicts},
        {TraceKey.from_trace(p.trace) for sides in panels.values() for p in sides},
    )
    seated = {key: {judge.name for panel in sides for judge in panel.judges} for key, sides in panels.items()}
    while not context.stop_event.is_set():
        stored = await asyncio.to_thread(results.load_verdicts, context.db, context.audit_id, cells)
        verdicts = [v for v in stored if (v.model, v.cell, v.sample) in places]
        known = {(v.judge, v.model, v.cell, v.sample) for v in verdicts}
        wanted: dict[tuple[object, ...], Assignment] = {}
        for conflict, votes in collect_votes(config, conflicts, verdicts, seated):
            sides = [p for side in (conflict.left, conflict.right) for p in panels[side, conflict.cell]]
            missing = {
                judge: [
                    s
                    for p in sides
                    for s in p.assignments_of(judge)
                    if (judge, *TraceKey.from_trace(s.trace)) not in known
                ]
                for judge in votes
            }
            cast = {judge: vote for judge, vote in votes.items() if not missing[judge]}
            if outcome_can_change(config, list(votes), cast):
                waiting = next(judge for judge in votes if missing[judge])
                wanted |= {(waiting, *TraceKey.from_trace(s.trace)): s for s in missing[waiting]}
        if not wanted or not await ask_panel(context, list(wanted.values())):
            return
