"""What every experiment receives and returns.

An experiment is a function in a module of its name. Its name is that of the command `auditor experiment NAME`, its
docstring the help, and its parameters after the context are the arguments and options. It imports libraries and other
modules when it is called: `auditor --help` imports the modules of all experiments.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter
    from auditor.reports.document import Document
    from auditor.storage.database import Database

AuditArgument: TypeAlias = Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name, or its config file.")]
AskOption: TypeAlias = Annotated[
    bool, typer.Option("--ask", help="Ask models for the answers that are not recorded yet; this may cost money.")
]


def _open_no_progress(**_: bool) -> AbstractContextManager[None]:
    """Open nothing: no one watches the calls."""
    return nullcontext()


def _show_nothing(_message: str) -> None:
    """Drop the message: no one waits for it."""


@dataclass(frozen=True)
class ExperimentContext:
    """Where an experiment reads, and what follows its calls to models.

    Attributes:
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` if None.
        open_progress: opens what receives every answer. With `prints_cost=True`, it prints the number of calls and
            their cost at the end.
        print_message: shows a message to the person who waits, such as the expected cost before anything is asked.
        handles_signals: whether SIGINT, SIGTERM and SIGHUP stop calls with everything saved, as in `run_audit`.
    """

    storage: str | None = None
    open_progress: Callable[..., AbstractContextManager[ProgressReporter | None]] = _open_no_progress
    print_message: Callable[[str], None] = _show_nothing
    handles_signals: bool = False

    @property
    def url(self) -> str:
        """URL of the database."""
        from auditor.run import resolve_storage_url

        return resolve_storage_url(self.storage)

    def open_database(self) -> Database:
        """Open the database, which must exist; UsageError or StorageError if it cannot be opened."""
        from auditor.run import open_stored_database

        return open_stored_database(self.storage)


@dataclass(frozen=True)
class ExperimentResult:
    """The result of an experiment.

    Attributes:
        data: what `--json` prints: a `ReportModel`, or a list or dict of them.
        document: what a page and the terminal show.
    """

    data: Any
    document: Document


Experiment: TypeAlias = Callable[..., ExperimentResult]
"""A function of an `ExperimentContext`, and of arguments and options with their typer annotations."""
