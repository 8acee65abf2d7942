"""Traces joined with everything that was recorded about them: their calls, their verdicts and people's score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from auditor.domain import Cell, Conflict, Trace, Verdict
from auditor.storage.database import Database
from auditor.storage.transcripts import CallTranscript, load_transcripts


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A trace with people's score of its cell, its verdicts, the conflicts on its cell, and its calls."""

    trace: Trace
    human_score: float | None
    verdicts: Sequence[Verdict]
    conflicts: Sequence[Conflict]
    first_call: CallTranscript | None
    repair_call: CallTranscript | None
    """The repeated call, if the first answer could not be parsed."""

    @property
    def calls(self) -> tuple[CallTranscript, ...]:
        """The calls that were sent, in order."""
        return tuple(call for call in (self.first_call, self.repair_call) if call is not None)

    @property
    def final_call(self) -> CallTranscript | None:
        """The call whose answer counts: the repeated one if it returned text, else the first."""
        return (
            self.repair_call if self.repair_call is not None and self.repair_call.text is not None else self.first_call
        )


def join_trace_records(
    db: Database,
    traces: Sequence[Trace],
    verdicts: Iterable[Verdict],
    conflicts: Iterable[Conflict],
    human_scores: Mapping[Cell, float],
) -> list[TraceRecord]:
    """Join traces with their verdicts, the conflicts of their models and cells, people's scores, and their calls.

    The calls are loaded from the database.
    """
    verdicts_by_trace: defaultdict[tuple[str, Cell, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        verdicts_by_trace[verdict.model, verdict.cell, verdict.sample].append(verdict)
    conflicts_by_side: defaultdict[tuple[str, Cell], list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        for model in dict.fromkeys((conflict.left, conflict.right)):
            conflicts_by_side[model, conflict.cell].append(conflict)
    transcripts = load_transcripts(db, [key for trace in traces for key in (trace.key, trace.repair_key) if key])
    return [
        TraceRecord(
            trace=trace,
            human_score=human_scores.get(trace.cell),
            verdicts=verdicts_by_trace[trace.model, trace.cell, trace.sample],
            conflicts=conflicts_by_side[trace.model, trace.cell],
            first_call=transcripts.get(trace.key or ""),
            repair_call=transcripts.get(trace.repair_key or ""),
        )
        for trace in traces
    ]
