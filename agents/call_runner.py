"""Running many calls concurrently: each is noted in the ledger before it is sent; recorded answers are reused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from auditor.agents.run_context import ModelClient, RunContext
from auditor.domain import Answer, Call, Outcome
from auditor.errors import AuditorError
from auditor.failpoints import failpoint
from auditor.models.reasoning import was_cut_by_lower_limit
from auditor.storage import costs, ledger
from auditor.storage.database import Database


@dataclass(frozen=True, slots=True)
class CallRecorder:
    """Records the calls of one run in the ledger.

    Attributes:
        db: the database.
        audit_id: the audit to which the calls belong.
        run_id: id of the run. Calls that it has sent but not recorded when it dies may have been paid for.
        n_recorded_attempts: number of attempts that are recorded already, by the key of a call that is sent again.
    """

    db: Database
    audit_id: int
    run_id: str
    n_recorded_attempts: dict[str, int] = field(default_factory=dict)

    async def record_dispatch(self, call: Call) -> None:
        """Record that a call is about to be sent."""
        await ledger.record_dispatch(self.db, self.run_id, self.audit_id, call)

    async def clear_dispatch(self, call: Call) -> None:
        """Record that a call was not sent."""
        await ledger.clear_dispatch(self.db, self.run_id, call)

    async def record_failed_attempts(self, call: Call, failure: Answer) -> None:
        """Record the attempts of a call that is sent again, which may take a day; `record_answer` leaves them out.

        Raises:
            StorageError: the database cannot be written.
        """
        n_recorded = self.n_recorded_attempts.get(call.key, 0)
        self.n_recorded_attempts[call.key] = len(failure.attempts)
        new_attempts = replace(failure, attempts=failure.attempts[n_recorded:])
        await ledger.record_answer(self.db, call, new_attempts, audit_id=self.audit_id)

    async def record_answer(self, call: Call, answer: Answer) -> Answer:
        """Record a call's answer or failure, with its attempts, and return it as recorded.

        An answer that the database cannot store is returned as a failure of this call.

        Raises:
            StorageError: the database cannot be written.
        """
        new_attempts = answer.attempts[self.n_recorded_attempts.pop(call.key, 0) :]
        return await ledger.record_answer(
            self.db, call, replace(answer, attempts=new_attempts), run_id=self.run_id, audit_id=self.audit_id
        )


class RecordingClient:
    """Records each call that it passes on, and each answer before it returns it."""

    def __init__(self, client: ModelClient, recorder: CallRecorder) -> None:
        """Wrap a client that does not record calls."""
        self._client, self._recorder = client, recorder

    async def complete(self, call: Call) -> Answer:
        """Send a call and return its answer as recorded.

        Raises:
            ModelSetupError: the model cannot be used at all.
            AuditorError: the call cannot be sent, or the database cannot be written.
        """
        # Failpoints are where tests end the process, to check that nothing is lost or asked twice.
        failpoint("before_dispatch")
        await self._recorder.record_dispatch(call)
        try:
            answer = await self._client.complete(call)
        except AuditorError as error:
            if error.answer is None:
                await self._recorder.clear_dispatch(call)
            else:
                await self._recorder.record_answer(call, error.answer)
            raise
        failpoint("after_response")
        recorded_answer = await self._recorder.record_answer(call, answer)
        failpoint("after_record")
        return recorded_answer


REPEATABLE_OUTCOMES = frozenset({Outcome.REFUSED, Outcome.TRUNCATED, Outcome.UNPARSED})
"""Outcomes of recorded answers that can be asked for again. Failed requests are sent again by every run."""


class RepeatableRecord(Protocol):
    """A record that was read from the answer to a call; its class has the fields `repeat_key` and `first_outcome`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def outcome(self) -> Outcome:
        """How the answer was read."""

    @property
    def key(self) -> str | None:
        """Key of the call."""


R = TypeVar("R", bound=RepeatableRecord)


async def run_calls(
    context: RunContext,
    stage: str,
    calls: Sequence[Call],
    on_answer: Callable[[str, Answer], None] = lambda key, answer: None,
) -> dict[str, Answer]:
    """Get the answers to calls, by the key of the call, from the ledger or from the models.

    A recorded answer that was truncated by a lower limit than the present one is asked again; `Answer.key` is then the
    key of the retake. Each model has its own workers, so that a slow model does not hold up the others. If a model
    turns out to be unusable, or the run is asked to stop, no further call is sent, calls in flight are awaited and
    recorded, and the answers are incomplete. Nothing is raised, since an exception in one branch would cancel the calls
    of the others.

    Args:
        context: the run's context.
        stage: name of the stage, for progress.
        calls: the planned calls.
        on_answer: called with the key of a planned call and its answer, as soon as it is there.
    """
    if not calls:
        return {}
    unique_calls = {call.key: call for call in calls}
    # Lanes run side by side, and equal texts have equal calls: the first lane gets the answer, the others wait for it.
    shared = {key: context.open_calls[key] for key in unique_calls if key in context.open_calls}
    unshared = {key: call for key, call in unique_calls.items() if key not in shared}
    loop = asyncio.get_running_loop()
    opened = {key: loop.create_future() for key in unshared}
    context.open_calls.update(opened)
    answers: dict[str, Answer] = {}

    def close_call(key: str, answer: Answer) -> None:
        opened[key].set_result(answer)
        on_answer(key, answer)

    try:
        await _run_own_calls(context, stage, unshared, len(shared), answers, close_call)
    finally:
        for key, future in opened.items():
            del context.open_calls[key]
            if not future.done():
                future.set_result(None)
    for key, future in shared.items():
        if (answer := await future) is not None:
            answers[key] = answer
            on_answer(key, answer)
    return answers


async def _run_own_calls(
    context: RunContext,
    stage: str,
    unique_calls: Mapping[str, Call],
    n_shared: int,
    answers: dict[str, Answer],
    on_answer: Callable[[str, Answer], None],
) -> None:
    """Get the answers to calls that no other stage is getting, and add them to `answers`; see `run_calls`.

    Args:
        unique_calls: the calls by key.
        n_shared: number of further planned calls, whose answers another stage gets.
    """
    recorded, retakes = await asyncio.to_thread(_load_recorded, context, unique_calls)
    answers |= recorded
    # They have been counted, and those that failed are not repeated in this run.
    sent_ahead = {key: context.answers_ahead.pop(key) for key in unique_calls if key in context.answers_ahead}
    answers |= sent_ahead
    n_counted = n_shared - len(sent_ahead)
    context.progress.on_calls_planned(stage, len(unique_calls) + n_counted, len(answers) + n_counted)
    # By model: the key that a call was planned under, and the call that is sent.
    calls_by_model: dict[str, list[tuple[str, Call]]] = {}
    for key, call in unique_calls.items():
        if key not in answers:
            calls_by_model.setdefault(call.name, []).append((key, retakes.get(key, call)))
    for key, answer in answers.items():
        on_answer(key, answer)
    await asyncio.gather(
        *(
            _run_queue(context, stage, queue, answers, on_answer)
            for name, model_calls in calls_by_model.items()
            for queue in [iter(model_calls)]  # one queue, from which all workers of the model take calls
            for _ in range(min(len(model_calls), context.max_concurrent_calls(name)))
        )
    )


def _load_recorded(context: RunContext, calls: Mapping[str, Call]) -> tuple[dict[str, Answer], dict[str, Call]]:
    """Load recorded answers, and plan the retakes of truncated ones; see `_follow_retakes`."""
    answers = ledger.load_answers(context.db, calls)
    return answers, _follow_retakes(context, calls, answers)


def _follow_retakes(context: RunContext, calls: Mapping[str, Call], answers: dict[str, Answer]) -> dict[str, Call]:
    """Replace truncated answers by those of their retakes, and remove those that are to be asked again.

    Args:
        context: knows the present limits.
        calls: the planned calls by key.
        answers: recorded answers by the key of the planned call; changed in place.

    Returns:
        The retakes to be sent, by the key of the planned call.
    """
    retakes: dict[str, Call] = {}
    latest_calls = {key: calls[key] for key, answer in answers.items() if answer.outcome is Outcome.TRUNCATED}
    while latest_calls:
        latest_calls = {key: replace(call, retake=call.retake + 1) for key, call in latest_calls.items()}
        recorded = ledger.load_answers(context.db, [call.key for call in latest_calls.values()])
        for key, call in latest_calls.items():
            if call.key in recorded:
                answers[key] = recorded[call.key]
            elif was_cut_by_lower_limit(answers[key], call, context.capabilities.capability(call)):
                retakes[key] = call
        latest_calls = {
            key: call
            for key, call in latest_calls.items()
            if call.key in recorded and recorded[call.key].outcome is Outcome.TRUNCATED
        }
    for key in retakes:
        del answers[key]
    return retakes


async def run_audit_calls(context: RunContext, stage: str, calls: Sequence[Call]) -> dict[str, Answer]:
    """Get the answers by key of the call, and record the calls so that their cost is attributed to the audit."""
    if not calls:
        return {}
    call_identities = [(call.name, call.purpose.value, call.key) for call in calls]
    await asyncio.to_thread(costs.record_calls, context.db, context.audit_id, call_identities)
    answers = await run_calls(context, stage, calls)
    retake_identities = [
        (call.name, call.purpose.value, answers[call.key].key)
        for call in calls
        if call.key in answers and answers[call.key].key != call.key
    ]
    if retake_identities:
        await asyncio.to_thread(costs.record_calls, context.db, context.audit_id, retake_identities)
    return answers


async def repeat_calls(context: RunContext, stage: str, calls: Sequence[tuple[Call, Outcome]]) -> dict[str, Answer]:
    """Get second answers to calls without a usable one, by the key of the first call.

    A call is repeated if the user chose its model and outcome for this run (`RunContext.repeated`). One that an earlier
    run repeated keeps its second answer, whatever it is: no call is repeated twice. Second requests that failed are
    left out.

    Args:
        context: the run's context.
        stage: name of the stage, for progress.
        calls: the calls, each with the outcome of its first answer as it was read.
    """
    outcomes = {call.key: outcome for call, outcome in calls if outcome in REPEATABLE_OUTCOMES}
    repeats = {call.key: replace(call, is_repeat=True) for call, _ in calls if call.key in outcomes}
    if not repeats:
        return {}
    recorded = await asyncio.to_thread(ledger.find_answered_keys, context.db, [call.key for call in repeats.values()])
    repeats = {
        key: call
        for key, call in repeats.items()
        if call.key in recorded or (call.name, outcomes[key]) in context.repeated
    }
    answers = await run_calls(context, stage, list(repeats.values()))
    return {
        key: answers[call.key]
        for key, call in repeats.items()
        if call.key in answers and answers[call.key].outcome.is_answer
    }


async def find_unsent_repairs(context: RunContext, answers: Iterable[Answer]) -> dict[str, Outcome]:
    """Outcomes of repairs that another run sends again, by key: they were not sent, or their requests failed.

    A repair that its server refused as invalid is left out: the server would refuse it again.

    Args:
        context: the run's context.
        answers: the answers to calls that repair unreadable answers.
    """
    outcomes = {answer.key: answer.outcome for answer in answers if not answer.outcome.is_answer}
    for key in [key for key, outcome in outcomes.items() if outcome is Outcome.CLIENT_ERROR]:
        # Calls to a model that was stopped fail in the same way, but no request of theirs is recorded in this run.
        last_outcome: Outcome | None = Outcome.CLIENT_ERROR
        if not context.is_recorded:
            last_outcome = await asyncio.to_thread(ledger.load_last_outcome, context.db, key, context.audit_id)
        if last_outcome is Outcome.CLIENT_ERROR:
            del outcomes[key]
        elif last_outcome is not None:
            outcomes[key] = last_outcome
    return outcomes


async def repeat_unusable(
    context: RunContext, stage: str, asked: Sequence[tuple[Call, R]], read: Callable[[int, Answer], R]
) -> list[R]:
    """Ask for unusable answers again where the user wants that, or did in an earlier run; see `repeat_calls`.

    Args:
        context: the run's context.
        stage: name of the stage, for progress.
        asked: the calls, each with what was read from its answer.
        read: reads a second answer, given the position of its call.

    Returns:
        The records in the same order.
    """
    answers = await repeat_calls(context, stage, [(call, record.outcome) for call, record in asked])
    return [
        merge_repeated(record, read(position, answers[call.key])) if call.key in answers else record
        for position, (call, record) in enumerate(asked)
    ]


def merge_repeated(record: R, second: R) -> R:
    """Replace a record of an unusable answer by that of the same question asked again, if that is usable.

    Args:
        record: read from the first answer, and from the repair of it.
        second: read from the second answer.

    Returns:
        A record with the keys of the first calls, the key of the repeat, and the first outcome.
    """
    merged = second if second.outcome is Outcome.OK else record
    first_keys = {name: getattr(record, name) for name in ("key", "repair_key") if hasattr(record, name)}
    return replace(merged, **first_keys, repeat_key=second.key, first_outcome=record.outcome)


async def _run_queue(
    context: RunContext,
    stage: str,
    queue: Iterator[tuple[str, Call]],
    answers: dict[str, Answer],
    on_answer: Callable[[str, Answer], None],
) -> None:
    """Send calls one after another until the queue is empty or the run is stopped; add answers by key to `answers`."""
    for key, call in queue:
        async with context.call_slot(call):
            if context.stop_event.is_set():
                return
            try:
                answer = await context.client.complete(call)
            except AuditorError as error:
                context.stop_with(error)
                return
        answers[key] = replace(answer, attempts=())  # as loaded from the ledger; the bodies would fill the memory
        context.progress.on_answer(stage, answer)
        context.ignored_keys.record(call, answer)
        on_answer(key, answers[key])
