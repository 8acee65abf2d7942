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
from auditor.errors import AuditorError, Interrupted
from auditor.panel_assignment import Seating, asking_order, seating
from auditor.storage.database import Database

FEW = 20
"""Requests in flight up to which the disk keeps nobody waiting for long."""


class Asker(Protocol):
    """Whoever answers calls: the gateway, or what stands before it."""

    async def complete(self, call: Call) -> Answer:
        """Ask; a failure is an answer with an outcome."""
        ...


class Encoder(Protocol):
    """A sentence encoder."""

    @property
    def revision(self) -> str:
        """What tells its vectors from another encoder's."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[float32]:
        """Unit vectors, shape (texts, dimensions)."""
        ...


class Nobody:
    """Answers no call: for what must go on without asking anything."""

    async def complete(self, call: Call) -> Answer:
        """Never called."""
        raise AssertionError(f"nothing may be asked here, but {call.purpose} was")


class Progress(Protocol):
    """Whoever watches a run."""

    def planned(self, stage: str, calls: int, recorded: int) -> None:
        """So many more calls are to be made in a stage, of which so many are in the ledger already."""
        ...

    def answered(self, stage: str, answer: Answer) -> None:
        """A call ended."""
        ...

    def entered(self, stage: str) -> None:
        """The graph entered a stage."""
        ...

    def worked(self, stage: str, n: int) -> None:
        """So many more of a stage's planned steps are done, which were no calls."""
        ...

    def noted(self, text: str) -> None:
        """Something that whoever watches should know, in a sentence."""
        ...


class Silent:
    """Watches nothing."""

    def planned(self, stage: str, calls: int, recorded: int) -> None:
        """Nothing."""

    def answered(self, stage: str, answer: Answer) -> None:
        """Nothing."""

    def entered(self, stage: str) -> None:
        """Nothing."""

    def worked(self, stage: str, n: int) -> None:
        """Nothing."""

    def noted(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Context:
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
    gateway: Asker
    encoder: Callable[[], Encoder] | None
    moral_encoder: Callable[[], Encoder] | None = None
    progress: Progress = field(default_factory=Silent)
    stop: threading.Event = field(default_factory=threading.Event)
    trouble: list[AuditorError] = field(default_factory=list)
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @cached_property
    def asked(self) -> Sequence[Cell]:
        """The cells in the order in which models are asked for direct scores."""
        return asking_order(self.config, self.survey)

    @cached_property
    def seating(self) -> Seating:
        """Who sits on the panel of which trace."""
        return seating(self.config, self.survey)

    def most_at_once(self, model: str) -> int:
        """Calls to a model that may be under way together: all, where they go out as one batch.

        Where many may be in flight, others are under way besides them: noted, and waiting for a turn, or answered, and
        waiting for the disk. Else each slot would stand empty for as long as that takes.
        """
        if self.config.batch:
            return sys.maxsize
        in_flight = self.config.model(model).most_in_flight
        return in_flight + max(0, in_flight - FEW) // 2

    def raise_if_stopped(self) -> None:
        """End the run where it was told to stop.

        Raises:
            ModelSetupError: a model turned out to be unusable.
            Interrupted: somebody asked for it.
        """
        if self.trouble:
            raise self.trouble[0]
        if self.stop.is_set():
            raise Interrupted
