"""Why requests of an audit failed, and which models have no usable answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

from auditor.config.installed_probes import list_built_in_probes
from auditor.domain import Outcome, Purpose
from auditor.lazy_imports import import_when_used
from auditor.models.refused_features import REFUSAL_STATUSES, find_refusals
from auditor.reports.data.report_model import ReportModel
from auditor.reports.document import Column
from auditor.storage.database import Database
from auditor.storage.failure_queries import (
    PROBE_TABLES,
    FailedRequestCount,
    ModelOutcomeCount,
    count_failed_requests,
    count_model_outcomes,
    count_unsent_calls,
)

if TYPE_CHECKING:
    from auditor import error_messages
    from auditor.config import AuditConfig
    from auditor.reports.data.report_source import ReportSource
else:  # its patterns are compiled when the first failure is read
    error_messages = import_when_used("auditor.error_messages")


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


MAX_TOP_FAILURES = 3
"""Failures that a summary lists."""
MAX_REPORTED_FAILURES = 20
"""Failures that a report lists."""
ADAPTED_NOTE = "No action is needed: the audit adapted to what the server accepts."
"""Stands in place of a fix for requests by which the audit learned what a server accepts."""
JUDGE_PURPOSES = frozenset({Purpose.REVIEW, Purpose.CONTEST, Purpose.GUESS, Purpose.PREFLIGHT})
"""Purposes of the calls that a model is sent as a judge, besides `BuiltInProbe.judge_purposes`."""


def build_failures_report(db: Database, source: ReportSource) -> FailuresReport:
    """List an audit's most important failures, and the models without a usable answer."""
    failures = load_failure_groups(db, source.audit.id)
    listed, others = failures[:MAX_REPORTED_FAILURES], failures[MAX_REPORTED_FAILURES:]
    answers = [*source.trace_counts, *source.sentence_pair_counts]
    return FailuresReport(
        groups=listed,
        not_listed=len(others),
        requests_not_listed=sum(group.requests for group in others),
        unusable=sum(group.unusable for group in failures),
        unsent_calls=count_unsent_calls(db, source.audit.id),
        unusable_models=find_unusable_models(
            [
                *(ModelOutcomeCount(count.model, False, count.outcome, count.n) for count in answers),
                *(ModelOutcomeCount(count.judge, True, count.outcome, count.n) for count in source.judge_counts),
                *count_model_outcomes(db, source.audit.id, PROBE_TABLES),
            ],
            failures,
            source.config,
        ),
    )


def load_failure_groups(db: Database, audit_id: int) -> list[FailureGroup]:
    """Load an audit's failed requests, grouped by cause; see `group_failures`."""
    return group_failures(count_failed_requests(db, audit_id))


def group_failures(counts: Iterable[FailedRequestCount]) -> list[FailureGroup]:
    """Merge failed requests of one model whose outcome, status and normalized message are equal.

    Returns:
        Those that left most calls without a usable answer first, then those with most requests.
    """
    by_cause: dict[tuple[str, str, str, int | None, str], list[tuple[FailedRequestCount, str]]] = {}
    for count in counts:
        message = error_messages.provider_message(count.error or "") or (
            f"the server answered with HTTP status {count.http_status}" if count.http_status else "no message"
        )
        cause = (count.name, count.model, count.outcome, count.http_status, error_messages.normalize_message(message))
        by_cause.setdefault(cause, []).append((count, message))
    groups = [_merge_counts(counted_messages) for counted_messages in by_cause.values()]
    return sorted(groups, key=lambda group: (-group.unusable, -group.requests, group.first_at, group.name))


def _merge_counts(counted_messages: Sequence[tuple[FailedRequestCount, str]]) -> FailureGroup:
    """Build the group of requests that failed for one cause, given with their messages."""
    first, message = min(counted_messages, key=lambda counted: counted[0].first_at)
    counts = [count for count, _ in counted_messages]
    unusable = sum(count.unusable_calls for count in counts)
    return FailureGroup(
        name=first.name,
        model=first.model,
        purposes=sorted({count.purpose for count in counts}),
        outcome=first.outcome,
        status=first.http_status,
        message=message,
        requests=sum(count.requests for count in counts),
        unusable=unusable,
        first_at=first.first_at,
        last_at=max(count.last_at for count in counts),
        how_to_fix=_find_fix(first, message, unusable),
        payload=first.payload,
    )


def _find_fix(failure: FailedRequestCount, message: str, unusable: int) -> str:
    """How to fix failures; for those by which the audit learned what the server accepts, that it adapted."""
    is_truncated = failure.outcome == Outcome.TRUNCATED
    is_refusal = failure.http_status in (None, *REFUSAL_STATUSES) and bool(find_refusals(message))
    if not unusable and (is_truncated or is_refusal):
        return ADAPTED_NOTE
    return error_messages.TRUNCATED_FIX if is_truncated else error_messages.how_to_fix(failure.http_status, message)


def _fix_by_answer_outcome(outcome: str) -> str:
    """How to fix answers that arrived and cannot be used; the same command does not ask for them again."""
    match outcome:
        case Outcome.UNPARSED:
            return "The model does not return the requested format: use a more capable model."
        case Outcome.TRUNCATED:
            return error_messages.TRUNCATED_FIX
        case Outcome.REFUSED:
            return "The model declines to answer: rephrase the question (survey.rephrase), or leave it out."
    return ""


STRUCTURED_ANSWERS_FIX = (
    "The model does not return the requested format: use a more capable model, or ask for free text with "
    'probes.direct.mode = "text".'
)
"""How to fix unreadable answers to direct questions that ask for a structure."""


def find_unusable_models(
    outcome_counts: Iterable[ModelOutcomeCount], failures: Sequence[FailureGroup], config: AuditConfig | None = None
) -> list[UnusableModel]:
    """Find the models of which no answer, or as judges no verdict, can be used, and the main reason.

    Args:
        outcome_counts: counts of an audit's results; a model from which it has no result at all is left out.
        failures: the audit's failures.
        config: the audit's configuration; None if it was imported.
    """
    is_structured = config is not None and config.probes.direct is not None and config.direct.mode == "structured"
    outcomes_by_role: dict[tuple[bool, str], Counter[str]] = {}
    for count in outcome_counts:
        outcomes_by_role.setdefault((count.is_judge, count.name), Counter())[count.outcome] += count.n
    return [
        _build_unusable_model(name, is_judge, outcomes, failures, is_structured=is_structured)
        for (is_judge, name), outcomes in sorted(outcomes_by_role.items())
        if not outcomes[Outcome.OK.value]
    ]


def _build_unusable_model(
    name: str, is_judge: bool, outcomes: Counter[str], failures: Sequence[FailureGroup], *, is_structured: bool
) -> UnusableModel:
    """Describe a model without a usable result: by its most important failure, else by its commonest outcome."""
    [(outcome, n)] = outcomes.most_common(1)
    planned = outcomes.total()
    judge_purposes = JUDGE_PURPOSES.union(*(probe.judge_purposes for probe in list_built_in_probes()))
    matching = [
        failure
        for failure in failures
        if failure.name == name
        and failure.unusable
        and any((purpose in judge_purposes) == is_judge for purpose in failure.purposes)
    ]
    failure = next((failure for failure in matching if failure.outcome == outcome), None)
    if failure is None and matching and not Outcome(outcome).is_answer:
        failure = matching[0]  # of a model that was stopped, most calls have another outcome than the requests
    if failure is not None:
        reason = f"{f'HTTP {failure.status}: ' if failure.status else ''}{failure.message}"
    else:
        unsent_note = ", and no request was sent" if outcome == Outcome.CLIENT_ERROR else ""
        reason = f"{n} of {planned} are '{outcome}'{unsent_note}"
    fix = failure.how_to_fix if failure else _fix_by_answer_outcome(outcome)
    if failure is None and outcome == Outcome.UNPARSED and is_structured and not is_judge:
        fix = STRUCTURED_ANSWERS_FIX
    return UnusableModel(name=name, is_judge=is_judge, planned=planned, reason=reason, how_to_fix=fix)
