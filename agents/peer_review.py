"""Peer review of traces by panels: calls, verdicts, and judges one after another until the majority is certain."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from auditor.agents.call_builders import blind_trace, build_review_call
from auditor.agents.call_runner import merge_repeated, repeat_calls, run_calls
from auditor.agents.conflict_resolution import collect_votes, outcome_can_change
from auditor.agents.refusals import begins_with_refusal, find_outcome_without_structure, has_words
from auditor.agents.run_context import RunContext
from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, Conflict, Message, Outcome, Ruling, Trace, Verdict, derive_seed
from auditor.domain.decisions import SURVEY_REVIEW, TASK_REVIEWS, aspect_questions
from auditor.metrics.judges.votes import can_still_change, min_majority
from auditor.models.answer_schemas import Review, TraceReview
from auditor.models.reasoning import strip_thinking
from auditor.models.structured import SCHEMA_BY_NAME
from auditor.models.structured_reading import parse_structured_answer
from auditor.panel_assignment import TraceKey
from auditor.prompts import load_prompt
from auditor.storage import results
from auditor.storage.records import save_records
from auditor.text_safety import truncate_middle


def parse_verdict(
    answer: Answer,
    judge: str,
    trace: Trace,
    max_words: int,
    shorter_answer: Answer | None = None,
    schema: type[Review] = TraceReview,
    request: str = "",
    *,
    turn: int = 0,
    always: bool = True,
) -> Verdict:
    """Parse the verdict from a judge's answer.

    The ruling is always that of the first answer. The justification is the shorter one of the two answers if both have
    the same ruling; if it is still too long, it is cut and the verdict marked as `shortened`.

    Args:
        answer: the judge's answer.
        judge: name of the judge.
        trace: the trace judged.
        max_words: maximum length of the justification.
        shorter_answer: answer to the call from `build_shorter_call`, if there was one.
        schema: schema of the answer.
        request: what the judge was asked; an answer that only repeats it does not count.
        turn, always: of the verdict.
    """
    make = partial(Verdict, judge, trace.model, trace.cell, trace.sample, key=answer.key, turn=turn, always=always)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return make(answer.outcome)
    review = parse_structured_answer(schema, answer.text, request)
    if isinstance(review, str):
        return make(find_outcome_without_structure(answer.text))
    if not has_words(review.justification):
        return make(Outcome.UNPARSED)
    if begins_with_refusal(review.justification):
        # A server that enforces the structure makes a verdict of a refusal.
        return make(Outcome.REFUSED)
    justification = review.justification
    if shorter_answer is not None and shorter_answer.outcome is Outcome.OK and shorter_answer.text is not None:
        shorter_review = parse_structured_answer(schema, shorter_answer.text, request)
        if not isinstance(shorter_review, str) and shorter_review.verdict == review.verdict:
            justification = min(justification, shorter_review.justification, key=_word_count)
    return make(
        Outcome.OK,
        ruling=Ruling(review.verdict),
        aspects={
            name: getattr(review, question.key)
            for name, question in aspect_questions(for_task=schema.__name__ in TASK_REVIEWS).items()
        },
        confidence=None if review.confidence is None else review.confidence / 100,
        justification=truncate_words(justification, max_words),
        shortened=_word_count(justification) > max_words,
        # Key of the call that asked for a shorter justification.
        again_key=shorter_answer.key if shorter_answer is not None else None,
    )


def build_shorter_call(call: Call, answer: Answer, max_words: int, max_chars: int) -> Call | None:
    """Build the call that asks a judge for a shorter justification; None if not needed, or without a valid verdict.

    Args:
        call, answer: the first call, and the judge's answer.
        max_words: maximum length of the justification.
        max_chars: maximum length of the judge's first answer as repeated in the new call.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return None
    if _word_count(answer.text.replace("\\", " ")) <= max_words:  # an escape may stand for a space
        return None
    review = parse_structured_answer(review_schema(call), answer.text, call.request_text)
    if isinstance(review, str) or _word_count(review.justification) <= max_words:
        return None
    follow_up = load_prompt("review.shorter").render(
        words=str(_word_count(review.justification)), max_words=str(max_words)
    )
    shown_answer = Message("assistant", truncate_middle(strip_thinking(answer.text), max_chars))
    return replace(call, messages=(*call.messages, shown_answer, follow_up[-1]))


def review_schema(call: Call) -> type[Review]:
    """Schema of the verdict that a call asks for."""
    return cast(type[Review], SCHEMA_BY_NAME[call.schema or SURVEY_REVIEW])


def truncate_words(text: str, max_words: int) -> str:
    """Cut a text with more than `max_words` words, and append an ellipsis."""
    words = text.split()
    return text.strip() if len(words) <= max_words else " ".join(words[:max_words]) + " …"


def _word_count(text: str) -> int:
    """Number of words of a text, separated by white space."""
    return len(text.split())


STAGE = "review"
MAX_BLINDED_TEXTS = 1000
"""Texts that are kept: each takes about 0.6 ms of CPU, which is a quarter of the cost of a call."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One judge's position in the panel of one trace.

    Attributes:
        turn: position in the order of asking, from 0.
        always: whether the judge is asked regardless of the other verdicts; False for one that an adaptive panel asks
            only while no majority is certain.
    """

    trace: Trace
    judge: ModelSection
    turn: int
    always: bool


@dataclass(slots=True)
class TracePanel:
    """A trace, its judges in the order of asking, and their rulings so far; a ruling is None if the call failed."""

    trace: Trace
    judges: Sequence[ModelSection]
    votes: dict[str, Ruling | None] = field(default_factory=dict)

    def assignment(self, turn: int) -> Assignment:
        """Assignment of the judge at a position, from 0; the first ones, enough for a majority, are always asked."""
        return Assignment(self.trace, self.judges[turn], turn, turn < min_majority(len(self.judges)))

    def assignments_of(self, judge: str) -> list[Assignment]:
        """Assignment of one judge, as a list; empty if it is not on this panel."""
        return [self.assignment(turn) for turn, member in enumerate(self.judges) if member.name == judge]

    def next_assignment(self) -> Assignment | None:
        """Assignment of the next judge to ask; None once no further ruling can change the majority."""
        open_turns = [turn for turn, member in enumerate(self.judges) if member.name not in self.votes]
        rulings = list(self.votes.values())
        counts = (rulings.count(Ruling.VALID), rulings.count(Ruling.INVALID))
        return self.assignment(open_turns[0]) if can_still_change(*counts, len(rulings), len(self.judges)) else None


def build_panel(context: RunContext, trace: Trace) -> TracePanel:
    """Build the panel of a trace, with its judges in a random order that does not depend on any model's name."""
    config = context.config

    def order_key(judge: ModelSection) -> int:
        """Random number that orders the judges of this trace, the same in every run."""
        return derive_seed(config.seed, "turn", judge.model, judge.system, judge.params, *trace.cell, trace.text)

    return TracePanel(trace, sorted(context.panel_assignment.panel(TraceKey.from_trace(trace)), key=order_key))


async def review_traces(context: RunContext, judge: ModelSection, traces: Iterable[Trace]) -> None:
    """Ask one judge for its verdicts on those of some traces that it is assigned to, and store them."""
    assignments = [
        assignment for trace in traces for assignment in build_panel(context, trace).assignments_of(judge.name)
    ]
    await ask_panel(context, assignments)


async def review_with_panels(context: RunContext, traces: Iterable[Trace]) -> None:
    """Ask all judges for their verdicts on some traces, and store them."""
    panels = [build_panel(context, trace) for trace in traces]
    await ask_panel(context, [panel.assignment(turn) for panel in panels for turn in range(len(panel.judges))])


async def review_adaptively(context: RunContext, traces: Iterable[Trace]) -> None:
    """Ask the adaptive panels of some traces, and store their verdicts.

    An adaptive panel first asks as many judges as a majority needs, then one after another. The first judges are chosen
    independently of any verdict, so that statistics over them are not restricted to disputed traces.
    """
    panels = [build_panel(context, trace) for trace in traces]
    first_assignments = [panel.assignment(turn) for panel in panels for turn in range(min_majority(len(panel.judges)))]
    _record_votes(panels, await ask_panel(context, first_assignments))
    while next_assignments := [assignment for panel in panels if (assignment := panel.next_assignment()) is not None]:
        verdicts = await ask_panel(context, next_assignments)
        if context.stop_event.is_set() or not verdicts:
            return
        _record_votes(panels, verdicts)


def _record_votes(panels: Sequence[TracePanel], verdicts: Iterable[Verdict]) -> None:
    """Add the ruling of each verdict to the panel of its trace; None if the judge's call failed."""
    panel_by_trace = {(panel.trace.model, panel.trace.cell, panel.trace.sample): panel for panel in panels}
    for verdict in verdicts:
        panel_by_trace[verdict.model, verdict.cell, verdict.sample].votes[verdict.judge] = verdict.ruling


async def ask_panel(context: RunContext, assignments: Sequence[Assignment]) -> list[Verdict]:
    """Obtain the verdicts of judges, by asking or from records; store and return them."""
    recorded = [assignment for assignment in assignments if assignment.judge.verdicts is not None]
    asked = [assignment for assignment in assignments if assignment.judge.verdicts is None]
    verdicts = [
        *(_find_recorded_verdict(context, assignment) for assignment in recorded),
        *(await _ask_judges(context, asked)),
    ]
    await asyncio.to_thread(save_records, context.db, context.audit_id, verdicts)
    return verdicts


def _find_recorded_verdict(context: RunContext, assignment: Assignment) -> Verdict:
    """A judge's recorded verdict on a trace; a failure, not a verdict, if the record has none."""
    trace_key, judge = TraceKey.from_trace(assignment.trace), assignment.judge.name
    verdict = context.recorded_verdicts[judge].get(trace_key) or Verdict(judge, *trace_key, Outcome.CLIENT_ERROR)
    return replace(verdict, turn=assignment.turn, always=assignment.always or not context.config.panel.adaptive)


async def _ask_judges(context: RunContext, assignments: Sequence[Assignment]) -> list[Verdict]:
    """Ask judges for verdicts, again where the user wants that; see `repeat_calls`."""
    config = context.config
    calls = [
        build_review_call(
            config, context.survey, assignment.judge, assignment.trace, _blind_trace(context, assignment.trace)
        )
        for assignment in assignments
    ]
    answers = await run_calls(context, STAGE, calls)
    asked = [(assignment, call) for assignment, call in zip(assignments, calls, strict=True) if call.key in answers]
    verdicts = await _parse_verdicts(context, asked, answers)
    second_answers = await repeat_calls(
        context, STAGE, [(call, verdict.outcome) for (_, call), verdict in zip(asked, verdicts, strict=True)]
    )
    repeated = [position for position, (_, call) in enumerate(asked) if call.key in second_answers]
    second_verdicts = await _parse_verdicts(context, [asked[position] for position in repeated], second_answers)
    for position, second_verdict in zip(repeated, second_verdicts, strict=True):
        verdicts[position] = merge_repeated(verdicts[position], second_verdict)
    return verdicts


def _blind_trace(context: RunContext, trace: Trace) -> str:
    """A trace's text as shown to judges, computed once for judges that review it, or an equal one, in turn."""
    texts, key = context.blinded_texts, (trace.text, trace.cell, trace.language)
    if key not in texts:
        if len(texts) >= MAX_BLINDED_TEXTS:
            texts.clear()
        texts[key] = blind_trace(context.config, context.survey, trace)
    return texts[key]


async def _parse_verdicts(
    context: RunContext, asked: Sequence[tuple[Assignment, Call]], answers: Mapping[str, Answer]
) -> list[Verdict]:
    """Parse the verdict of each call from the answer to it; too long a justification is requested once more.

    Args:
        asked: the calls, each with its assignment.
        answers: an answer to each of them, by the call's key.
    """
    config, probe = context.config, context.config.probes.review
    limits = probe.max_words, probe.max_trace_chars
    shorter_calls = {call.key: build_shorter_call(call, answers[call.key], *limits) for _, call in asked}
    shorter_answers = await run_calls(context, STAGE, [call for call in shorter_calls.values() if call is not None])
    verdicts = []
    for assignment, call in asked:
        shorter_call = shorter_calls[call.key]
        verdict = parse_verdict(
            answers[call.key],
            assignment.judge.name,
            assignment.trace,
            probe.max_words,
            shorter_answers.get(shorter_call.key) if shorter_call else None,
            review_schema(call),
            call.request_text,
            turn=assignment.turn,
            always=assignment.always or not config.panel.adaptive,
        )
        verdicts.append(verdict)
    return verdicts


async def ask_panels_on_conflicts(context: RunContext, conflicts: Sequence[Conflict], traces: Iterable[Trace]) -> None:
    """Ask for the verdicts that adaptive panels skipped, until no further vote can change the outcome of a conflict.

    A judge's vote counts once it has judged all traces of both sides, so the outcome equals that of the full panel.

    Args:
        conflicts: all conflicts found.
        traces: the traces selected for review, at least on the cells in conflict; verdicts on others do not count.
    """
    config = context.config
    panels: dict[tuple[str, Cell], list[TracePanel]] = defaultdict(list)
    for trace in traces:
        panels[trace.model, trace.cell].append(build_panel(context, trace))
    cells, trace_keys = (
        {conflict.cell for conflict in conflicts},
        {TraceKey.from_trace(panel.trace) for cell_panels in panels.values() for panel in cell_panels},
    )
    assigned_judges = {
        key: {judge.name for panel in cell_panels for judge in panel.judges} for key, cell_panels in panels.items()
    }
    while not context.stop_event.is_set():
        stored_verdicts = await asyncio.to_thread(results.load_verdicts, context.db, context.audit_id, cells)
        verdicts = [
            verdict for verdict in stored_verdicts if (verdict.model, verdict.cell, verdict.sample) in trace_keys
        ]
        judged = {(verdict.judge, verdict.model, verdict.cell, verdict.sample) for verdict in verdicts}
        next_assignments: dict[tuple[object, ...], Assignment] = {}
        for conflict, votes in collect_votes(config, conflicts, verdicts, assigned_judges):
            side_panels = [panel for side in (conflict.left, conflict.right) for panel in panels[side, conflict.cell]]
            missing_assignments = {
                judge: [
                    assignment
                    for panel in side_panels
                    for assignment in panel.assignments_of(judge)
                    if (judge, *TraceKey.from_trace(assignment.trace)) not in judged
                ]
                for judge in votes
            }
            # Only the votes of judges that have judged all traces of both sides.
            cast_votes = {judge: vote for judge, vote in votes.items() if not missing_assignments[judge]}
            if outcome_can_change(config, list(votes), cast_votes):
                next_judge = next(judge for judge in votes if missing_assignments[judge])
                next_assignments |= {
                    (next_judge, *TraceKey.from_trace(assignment.trace)): assignment
                    for assignment in missing_assignments[next_judge]
                }
        if not next_assignments or not await ask_panel(context, list(next_assignments.values())):
            return
