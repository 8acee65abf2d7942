"""What does not change during a run: the config, the ground truth, and the doors to storage and models."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from numpy import float32
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Cell, Survey
from auditor.errors import AuditorError, RunInterrupted
from auditor.panel_assignment import PanelAssignment, assign_panels, elicitation_order
from auditor.storage.database import Database

MIN_IN_FLIGHT_FOR_EXTRA_WORKERS = 20
"""Requests in flight up to which the disk keeps nobody waiting for long."""


class ModelClient(Protocol):
    """Whoever answers calls: the gateway, or what stands before it."""

    async def complete(self, call: Call) -> Answer:
        """Ask; a failure is an answer with an outcome."""
        ...


class TextEncoder(Protocol):
    """A sentence encoder."""

    @property
    def revision(self) -> str:
        """What tells its vectors from another encoder's."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[float32]:
        """Unit vectors, shape (texts, dimensions)."""
        ...


class OfflineClient:
    """Answers no call: for what must go on without asking anything."""

    async def complete(self, call: Call) -> Answer:
        """Never called."""
        raise AssertionError(f"nothing may be asked here, but {call.purpose} was")


class ProgressReporter(Protocol):
    """Whoever watches a run."""

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """So many more calls are to be made in a stage, of which so many are in the ledger already."""
        ...

    def on_answer(self, stage: str, answer: Answer) -> None:
        """A call ended."""
        ...

    def on_stage_entered(self, stage: str) -> None:
        """The graph entered a stage."""
        ...

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """So many more of a stage's planned steps are done, which were no calls."""
        ...

    def on_notice(self, text: str) -> None:
        """Something that whoever watches should know, in a sentence."""
        ...


class SilentProgress:
    """Watches nothing."""

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """Nothing."""

    def on_answer(self, stage: str, answer: Answer) -> None:
        """Nothing."""

    def on_stage_entered(self, stage: str) -> None:
        """Nothing."""

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """Nothing."""

    def on_notice(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True)
class RunContext:
    """The surroundings of one run.

    Attributes:
        audit_id: the audit's row.
        cells: all cells of the audit, in order.
        gateway: answers calls, and has recorded what it answers.
        encoder: returns the encoder, loaded on first use; None when self-consistency is not measured.
        moral_encoder: the one of the probe `semantic`; None where it is not asked for.
        stop: set when no further call may go out; what is in flight is awaited and recorded.
        trouble: why the run stopped by itself.
        run: names this run among all that the audit ever had.
    """

    config: AuditConfig
    survey: Survey
    audit_id: int
    cells: Sequence[Cell]
    db: Database
    client: ModelClient
    load_encoder: Callable[[], TextEncoder] | None
    load_semantic_encoder: Callable[[], TextEncoder] | None = None
    progress: ProgressReporter = field(default_factory=SilentProgress)
    stop_event: threading.Event = field(default_factory=threading.Event)
    fatal_errors: list[AuditorError] = field(default_factory=list)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @cached_property
    def cells_in_elicitation_order(self) -> Sequence[Cell]:
        """The cells in the order in which models are asked for direct scores."""
        return elicitation_order(self.config, self.survey)

    @cached_property
    def panel_assignment(self) -> PanelAssignment:
        """Who sits on the panel of which trace."""
        return assign_panels(self.config, self.survey)

    def max_concurrent_calls(self, model: str) -> int:
        """Calls to a model that may be under way together: all, where they go out as one batch.

        Where many may be in flight, others are under way besides them: noted, and waiting for a turn, or answered, and
        waiting for the disk. Else each slot would stand empty for as long as that takes.
        """
        if self.config.batch:
            return sys.maxsize
        in_flight = self.config.model(model).max_concurrency
        return in_flight + max(0, in_flight - MIN_IN_FLIGHT_FOR_EXTRA_WORKERS) // 2

    def raise_if_stopped(self) -> None:
        """End the run where it was told to stop.

        Raises:
            ModelSetupError: a model turned out to be unusable.
            Interrupted: somebody asked for it.
        """
        if self.fatal_errors:
            raise self.fatal_errors[0]
        if self.stop_event.is_set():
            raise RunInterrupted
