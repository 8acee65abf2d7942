"""Errors that a user can fix; every message says what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from auditor.domain import Answer


def did_you_mean(word: str, known_words: Iterable[str], fallback: str, cutoff: float = 0.63) -> str:
    """A question that names the known word closest to a misspelt one; the fallback hint if none is close.

    Capitals do not count. The default cutoff accepts "cult" for "culture" (similarity 0.73), and not "order" for
    "score" (0.60).
    """
    known_by_folded = {known.casefold(): known for known in known_words}
    close_matches = difflib.get_close_matches(word.casefold(), known_by_folded, n=1, cutoff=cutoff)
    return f"Did you mean '{known_by_folded[close_matches[0]]}'?" if close_matches else fallback


def format_count(value: int) -> str:
    """Format an integer with a thin space between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def pluralize(n: int, singular: str, plural_form: str = "") -> str:
    """Format a count with its noun; the plural is singular + "s" if none is given."""
    return f"{format_count(n)} {singular if n == 1 else plural_form or singular + 's'}"


PROBLEM_SEPARATOR = "\n  also: "
"""Separates the problems of an error that has several; each is shown in a line of its own."""


class AuditorError(Exception):
    """Base class of all errors that are shown as one line, or one a problem, without a traceback.

    Attributes:
        message: what is wrong, and where.
        how_to_fix: an instruction that fixes it; may be empty.
        exit_code: the process's exit code when this error ends a command.
        answer: the answer of the call that this error ended, so that its attempts are recorded; None if no request
            was sent.
    """

    exit_code: ClassVar[int] = 1
    answer: Answer | None = None

    def __init__(self, message: str, how_to_fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.how_to_fix = how_to_fix

    def __str__(self) -> str:
        """The message, followed by the advice if there is any."""
        return f"{self.message} {self.how_to_fix}".rstrip()

    def with_answer(self, answer: Answer | None) -> Self:
        """A copy of this error with the answer of one call: several calls may end with the same error."""
        error = type(self)(self.message, self.how_to_fix)
        error.answer = answer
        return error


class RunInterrupted(AuditorError):
    """The run was stopped by a signal, with everything saved."""

    exit_code = 130

    def __init__(
        self,
        message: str = "the run was stopped; all answers received so far are saved.",
        how_to_fix: str = "To resume, run the same command again.",
    ) -> None:
        super().__init__(message, how_to_fix)


class UsageError(AuditorError):
    """A command was called with invalid arguments or options."""

    exit_code = 2


class UnfinishedAuditError(UsageError):
    """An audit has not got as far as a command needs."""

    exit_code = 4


class ConfigError(UsageError):
    """The audit's configuration is wrong; no request has been sent."""


class ProbeError(ConfigError):
    """A probe of another package cannot be used, or one of its hooks failed."""


class SurveyError(AuditorError):
    """A survey cannot be read, or lacks what was requested from it."""


class SelectionError(SurveyError):
    """A configuration or an option names countries or topics that a survey does not have."""

    exit_code = 2


class StorageError(AuditorError):
    """The database cannot be opened, is locked by another run, or lacks what was requested from it."""


class EmptyStorageError(StorageError):
    """The database exists and is empty."""


class UnavailableError(StorageError):
    """The database could not be used for as long as a run waits for it, or another run of the audit has begun."""


class UnstorableError(StorageError):
    """The database cannot hold a row because of what is in the row; other rows are not affected."""


class NotAllowedError(StorageError):
    """The user's role on the database server does not allow the operation."""


class ModelSetupError(AuditorError):
    """A model cannot be used at all: weights missing, key missing, server unreachable, package not installed."""


class UnusableModelsError(ModelSetupError):
    """Several models cannot be used at all; shown as one line for each, with its own advice.

    Attributes:
        errors: the error of each model.
    """

    errors: Sequence[ModelSetupError] = ()


class NoUsableAnswerError(AuditorError):
    """A run ended, and some or all of its models have no usable answer."""

    exit_code = 4


class ImportFileError(AuditorError):
    """A file given to an import cannot be used; the message names the row or the column."""


class ReviewError(AuditorError):
    """There are too few human decisions for the requested computation."""
