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
    """The call that shows the model its first answer, if that could not be parsed."""
    repeat_call: CallTranscript | None = None
    """The call that asked the question again (`auditor run --ask-again`)."""

    @property
    def calls(self) -> tuple[CallTranscript, ...]:
        """The calls that were sent, in order."""
        return tuple(call for call in (self.first_call, self.repair_call, self.repeat_call) if call is not None)

    @property
    def final_call(self) -> CallTranscript | None:
        """The call whose answer counts: the last one that returned text, else the first."""
        return next((call for call in reversed(self.calls[1:]) if call.text is not None), self.first_call)


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
    transcripts = load_transcripts(
        db, [key for trace in traces for key in (trace.key, trace.repair_key, trace.repeat_key) if key]
    )
    return [
        TraceRecord(
            trace=trace,
            human_score=human_scores.get(trace.cell),
            verdicts=verdicts_by_trace[trace.model, trace.cell, trace.sample],
            conflicts=conflicts_by_side[trace.model, trace.cell],
            first_call=transcripts.get(trace.key or ""),
            repair_call=transcripts.get(trace.repair_key or ""),
            repeat_call=transcripts.get(trace.repeat_key or ""),
        )
        for trace in traces
    ]
