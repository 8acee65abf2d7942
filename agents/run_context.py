"""The context of a run: config, survey, storage and model clients, and the interfaces that it uses."""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from numpy import float32
from numpy.typing import NDArray

from auditor.agents.answer_parsing import IgnoredKeys, UnreadAnswers
from auditor.agents.cell_schedule import CellSchedule
from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Capability, Cell, Outcome, Survey, Verdict
from auditor.errors import AuditorError, RunInterrupted
from auditor.panel_assignment import PanelAssignment, TraceKey, assign_panels, elicitation_order
from auditor.storage.database import Database

MAX_OPEN_BATCHES = 64
"""Batches of a probe that are asked about at a time, so that memory does not grow with the cells. There are many, so
that a model that answers faster than another is rarely held up by it."""
MIN_IN_FLIGHT_FOR_EXTRA_WORKERS = 20
"""Up to this many concurrent requests, waiting for disk writes does not slow a run noticeably."""


class ModelClient(Protocol):
    """Interface for sending one call to a model: the gateway, or a wrapper around it."""

    async def complete(self, call: Call) -> Answer:
        """Send a call; a failed call gives an answer with the outcome of the failure."""
        ...


class ModelCapabilities(Protocol):
    """Interface for what the servers of models accept: the gateway's."""

    def needs_discovery(self, call: Call) -> bool:
        """Whether the next call like this one finds out what the server of its model accepts."""
        ...

    def capability(self, call: Call) -> Capability:
        """What the server of a call's model accepts, as far as it is known."""
        ...


class UnknownCapabilities:
    """Capabilities in a run that finds out none."""

    def needs_discovery(self, call: Call) -> bool:
        """Return False."""
        return False

    def capability(self, call: Call) -> Capability:
        """Return the capability of a server that accepts everything."""
        return Capability()


class TextEncoder(Protocol):
    """Interface of a sentence encoder."""

    @property
    def revision(self) -> str:
        """Identifies the encoder's weights, so that vectors of different encoders are not mixed."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[float32]:
        """Unit vectors, shape (texts, dimensions)."""
        ...


class ConsistencyMeter(Protocol):
    """Interface of what computes self-consistencies."""

    @property
    def identity(self) -> str:
        """What stands for the encoder in the evidence of a self-consistency; can change when the encoder is loaded."""
        ...

    async def start(self, cells: Collection[tuple[str, Cell]]) -> None:
        """Prepare for some models' cells."""
        ...

    def submit(self, cell: tuple[str, Cell], texts: Mapping[str, Sequence[str]]) -> None:
        """Take a cell's texts, by language, whose self-consistency `compute` will be asked for; never waits."""
        ...

    def compute(
        self, texts: Mapping[tuple[str, Cell], Mapping[str, Sequence[str]]]
    ) -> Mapping[tuple[str, Cell], float | None]:
        """Self-consistency by model and cell, in [-1, 1]; None for a cell without two texts in one language."""
        ...

    def compute_chance(
        self, texts: Mapping[Cell, Mapping[str, Sequence[str]]], seed: int
    ) -> Mapping[Cell, Mapping[str, float | None]]:
        """How alike one model's texts about different cells are; see `cell_scoring.chance_similarities`."""
        ...


class OfflineClient:
    """A client for runs that must not send any call."""

    async def complete(self, call: Call) -> Answer:
        """Raise an AssertionError."""
        raise AssertionError(f"internal error: a call for {call.purpose} is not allowed in this step")


class ProgressReporter(Protocol):
    """Interface for reporting the progress of a run."""

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """More calls are planned in a stage; `recorded` of these `calls` are in the ledger already."""
        ...

    def on_answer(self, stage: str, answer: Answer) -> None:
        """A call ended."""
        ...

    def on_stage_entered(self, stage: str) -> None:
        """The graph entered a stage."""
        ...

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """More of a stage's planned steps are completed, without calls."""
        ...

    def on_notice(self, text: str) -> None:
        """A message for the user, as one sentence."""
        ...


class SilentProgress:
    """Progress reporter that reports nothing."""

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """Do nothing."""

    def on_answer(self, stage: str, answer: Answer) -> None:
        """Do nothing."""

    def on_stage_entered(self, stage: str) -> None:
        """Do nothing."""

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """Do nothing."""

    def on_notice(self, text: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class RunContext:
    """The context of one run.

    Attributes:
        audit_id: id of the audit's row.
        cells: all cells of the audit, in order.
        client: sends calls, and records them with their answers.
        consistency: computes self-consistencies; None if they are not measured.
        encoder_loaders: return the encoder of a probe, loaded on first use, by the name of a probe that has one.
        stop_event: set to stop sending calls; calls in flight are awaited and recorded.
        fatal_errors: errors that stopped the run.
        run_id: id of this run, unique among all runs of the audit.
        capabilities: what the servers of the models accept.
        preflight: whether that is found out before other calls are sent.
        is_recorded: whether all answers are recorded, so that no request is waited for.
        has_cells: whether traces and verdicts of recorded answers are stored already, by `read_recorded_slice`.
        repeated: model and outcome of the answers that the user wants to be asked for again, once.
        answers_ahead: answers by key of calls that this run has sent before their stage plans them.
        open_calls: calls that some stage is getting the answer to, by key; the answer is None if the run is stopped.
        recorded_verdicts: verdicts of judges that are not asked, by the judge's name and by trace.
        blinded_texts: texts of some traces as judges see them, by text, cell and language.
        probe_plans: what the first step of a probe's subgraph has planned for its batches, by the probe's name. Loading
            it again for each batch would take time in proportion to the square of the audit's size.
    """

    config: AuditConfig
    survey: Survey
    audit_id: int
    cells: Sequence[Cell]
    db: Database
    client: ModelClient
    consistency: ConsistencyMeter | None = None
    encoder_loaders: Mapping[str, Callable[[], TextEncoder]] = field(default_factory=dict)
    progress: ProgressReporter = field(default_factory=SilentProgress)
    stop_event: threading.Event = field(default_factory=threading.Event)
    fatal_errors: list[AuditorError] = field(default_factory=list)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    capabilities: ModelCapabilities = field(default_factory=UnknownCapabilities)
    preflight: bool = True
    is_recorded: bool = False
    has_cells: bool = False
    repeated: Collection[tuple[str, Outcome]] = frozenset()
    answers_ahead: dict[str, Answer] = field(default_factory=dict)
    open_calls: dict[str, asyncio.Future[Answer | None]] = field(default_factory=dict)
    recorded_verdicts: Mapping[str, Mapping[TraceKey, Verdict]] = field(default_factory=dict)
    blinded_texts: dict[tuple[str | None, Cell, str], str] = field(default_factory=dict)
    probe_plans: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def cells_in_elicitation_order(self) -> Sequence[Cell]:
        """The cells in the order in which models are asked for direct scores."""
        return elicitation_order(self.config, self.survey)

    @cached_property
    def schedule(self) -> CellSchedule:
        """The order of the run's work on cells."""
        n_cells = len(self.cells_in_elicitation_order)
        return CellSchedule(self.config, n_cells, self.max_concurrent_calls, self.stop_event)

    @cached_property
    def unread_answers(self) -> UnreadAnswers:
        """Counts answers without a score during this run."""
        return UnreadAnswers(self.progress.on_notice, asks_for_text=self.config.direct.mode == "text")

    @cached_property
    def ignored_keys(self) -> IgnoredKeys:
        """Counts keys of this run's answers that their schemas lack."""
        return IgnoredKeys()

    @cached_property
    def panel_assignment(self) -> PanelAssignment:
        """Assignment of judges to traces."""
        return assign_panels(self.config, self.survey)

    @cached_property
    def _batch_slots(self) -> dict[str, asyncio.Semaphore]:
        """Slots for open batches, by stage."""
        return {}

    def batch_slot(self, stage: str) -> AbstractAsyncContextManager[None]:
        """Slot for a batch of a stage whose batches run beside each other; the calls of open batches are in memory.

        There is no limit with `[batch]`: a provider's batch has the calls that come together.
        """
        if self.config.batch is not None:
            return nullcontext()
        return self._batch_slots.setdefault(stage, asyncio.Semaphore(MAX_OPEN_BATCHES))

    @cached_property
    def _call_slots(self) -> dict[tuple[str, int], asyncio.Semaphore]:
        """Slots for concurrent calls, by model and priority."""
        return {}

    def call_slot(self, call: Call) -> asyncio.Semaphore:
        """What a call holds while it waits for its request and is sent; there are twice `max_concurrent_calls`.

        Calls of each priority have slots of their own, so that reviews do not wait for a slot that an answer holds. As
        many calls wait as are in flight: a request that ends is followed by one of its priority, not by a probe's.
        """
        key = call.name, call.purpose.priority
        if key not in self._call_slots:
            self._call_slots[key] = asyncio.Semaphore(2 * self.max_concurrent_calls(call.name))
        return self._call_slots[key]

    def max_concurrent_calls(self, model: str) -> int:
        """Maximum number of concurrent calls of one priority to a model; unlimited in batch mode.

        With many requests in flight it exceeds the model's `max_concurrency` by half of the excess over
        `MIN_IN_FLIGHT_FOR_EXTRA_WORKERS`, so that calls that wait for the database do not leave request slots idle.
        """
        if self.config.batch:
            return sys.maxsize
        in_flight = self.config.model(model).max_concurrency
        return in_flight + max(0, in_flight - MIN_IN_FLIGHT_FOR_EXTRA_WORKERS) // 2

    def stop_with(self, error: AuditorError) -> None:
        """Stop the run with an error, which `raise_if_stopped` raises once the calls in flight have ended."""
        self.fatal_errors.append(error)
        self.stop_event.set()

    def raise_if_stopped(self) -> None:
        """End the run if it was stopped.

        Raises:
            AuditorError: the first error that stopped the run, such as a `ModelSetupError`.
            RunInterrupted: the user stopped it.
        """
        if self.fatal_errors:
            raise self.fatal_errors[0]
        if self.stop_event.is_set():
            raise RunInterrupted
