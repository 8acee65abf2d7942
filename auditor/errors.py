"""What can go wrong in a way a person can mend; every message says what, where, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from auditor.domain import Answer


def did_you_mean(word: str, known: Iterable[str], fallback: str) -> str:
    """The known word that a misspelt one is nearest to, as a question; where none is near, another hint."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"Did you mean '{near[0]}'?" if near else fallback


class AuditorError(Exception):
    """Root of all errors that are shown as one line, without a traceback.

    Attributes:
        message: what is wrong, and where.
        mend: how to mend it, as an instruction; may be empty.
        exit_code: the process's exit code when this error ends a command.
        answer: what had come of the call that this error ended, so that its attempts are recorded; None where no
            request had gone out.
    """

    exit_code: ClassVar[int] = 1
    answer: Answer | None = None

    def __init__(self, message: str, how_to_fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.how_to_fix = how_to_fix

    def __str__(self) -> str:
        return f"{self.message} {self.how_to_fix}".rstrip()

    def with_answer(self, answer: Answer | None) -> Self:
        """This error, for one call: another may have ended with the same one."""
        error = type(self)(self.message, self.how_to_fix)
        error.answer = answer
        return error


class RunInterrupted(AuditorError):
    """The run was asked to stop, and did, with everything saved."""

    exit_code = 130

    def __init__(
        self,
        message: str = "the run was stopped; everything that arrived is saved.",
        how_to_fix: str = "Give the same command again.",
    ) -> None:
        super().__init__(message, how_to_fix)


class UsageError(AuditorError):
    """A command was given words or options it cannot take."""

    exit_code = 2


class ConfigError(UsageError):
    """The audit's configuration is wrong; nothing has been asked of any model."""


class SurveyError(AuditorError):
    """A survey cannot be read, or does not hold what was asked of it."""


class StorageError(AuditorError):
    """The database cannot be opened, is held by another run, or does not hold what was asked of it."""


class EmptyStorageError(StorageError):
    """The database is there, and nothing is in it yet."""


class UnstorableError(StorageError):
    """The database cannot hold a row because of what is in the row; other rows are not affected."""


class NotAllowedError(StorageError):
    """The user's role on the server does not allow it."""


class ModelSetupError(AuditorError):
    """A model cannot be used at all: weights missing, key missing, server unreachable, package not installed."""


class ImportFileError(AuditorError):
    """A file given to an import cannot be used; the message names the row or the column."""


class ReviewError(AuditorError):
    """What people decided does not suffice for what was asked of it."""
