"""Schema of an audit's failures."""

from __future__ import annotations

from typing import Annotated

from auditor.reports.data.report_model import ReportModel
from auditor.reports.document import Column


class FailureGroup(ReportModel):
    """Failed requests of one model that ended alike: with equal outcome, HTTP status and normalized message."""

    name: Annotated[str, Column("Model", "name")]
    """The model's name in the audit."""
    model: str
    """Provider and model identifier."""
    purposes: list[str]
    requests: Annotated[int, Column("Requests")]
    """Failed requests, those included that succeeded when they were sent again."""
    unusable: Annotated[int, Column("Calls without an answer")]
    """Calls that ended with such a failure and have no usable answer."""
    outcome: Annotated[str, Column("Outcome")]
    status: Annotated[int | None, Column("HTTP status")]
    """HTTP status; null if no response began."""
    message: Annotated[str, Column("Message")]
    """The provider's message on the first of these failures; messages of the others differ in numbers, ids and
    quoted names at most."""
    first_at: str
    last_at: str
    how_to_fix: Annotated[str, Column("How to fix")]
    """Empty if no fix is known."""
    payload: str | None
    """SHA-256 of the beginning of one of the response bodies, as stored; null if none was recorded."""


class FailuresReport(ReportModel):
    """Why requests failed."""

    groups: list[FailureGroup]
    """The most important groups: those that cost most calls their answer first."""
    not_listed: int
    """Further groups."""
    requests_not_listed: int
    """Failed requests of the further groups."""
    unusable: int
    """Calls that ended with a failure and have no usable answer."""
    unsent_calls: int = 0
    """Calls that were not sent, since their model was stopped after several equal failures."""
    unusable_models: list[UnusableModel]
    """Models and judges without any usable answer or verdict."""


class UnusableModel(ReportModel):
    """A model whose answers, or whose verdicts, are all unusable."""

    name: str
    is_judge: bool
    """Whether its verdicts are meant, else its answers."""
    planned: int
    """Answers or verdicts that the audit asked for and could not use."""
    reason: str
    how_to_fix: str
    """Empty if no fix is known."""
