"""What providers say they used for a model's answers, and whether it changed behind one and the same name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.measurement_schema import ReportModel
from auditor.reports.pages.number_format import format_count, pluralize
from auditor.storage.costs import CallCounts
from auditor.text_safety import escape_invisible


class ModelVersionRow(ReportModel):
    """Answers of one model that the provider says came from one and the same."""

    name: str
    served_model: str | None
    """Null where the provider does not say."""
    fingerprint: str | None
    """The provider's name for the configuration behind it."""
    altered: str | None
    """Parameters that did not go out as asked: dropped by name, changed as `name=value`. Null where it is not known."""
    answers: int
    first_at: str
    last_at: str


def build_model_version_rows(call_counts: Iterable[CallCounts]) -> list[ModelVersionRow]:
    """Rows by model, the earliest first."""
    found: dict[tuple[str, str | None, str | None, str | None], list[CallCounts]] = {}
    for tally in call_counts:
        if tally.answers and tally.is_current:
            key = (tally.name, tally.served_model, tally.fingerprint, tally.altered)
            found.setdefault(key, []).append(tally)
    rows = [
        ModelVersionRow(
            name=name,
            served_model=model,
            fingerprint=fingerprint,
            altered=altered,
            answers=sum(t.answers for t in group),
            first_at=min(t.first_at or "" for t in group),
            last_at=max(t.last_at or "" for t in group),
        )
        for (name, model, fingerprint, altered), group in found.items()
    ]
    return sorted(rows, key=lambda r: (r.name, r.first_at, r.served_model or "", r.fingerprint or "", r.altered or ""))


def count_versions_by_model(rows: Iterable[ModelVersionRow]) -> dict[str, int]:
    """By model, how many things served it, as far as providers say; 0 where they say nothing."""
    seen: dict[str, set[tuple[str | None, str | None]]] = {}
    for row in rows:
        said = {(row.served_model, row.fingerprint)} if row.served_model or row.fingerprint else set()
        seen.setdefault(row.name, set()).update(said)
    return {name: len(used) for name, used in sorted(seen.items())}


def find_models_with_version_changes(rows: Iterable[ModelVersionRow]) -> list[str]:
    """Models that were served by more than one thing, as far as providers say."""
    return [name for name, n in count_versions_by_model(rows).items() if n > 1]


def describe_model_versions(rows: Sequence[ModelVersionRow]) -> list[str]:
    """What a reader must know of it, a sentence each; none where all was as asked for and stayed so."""
    return [
        *(_describe_version_change(name, rows) for name in find_models_with_version_changes(rows)),
        *_describe_altered_requests(rows),
    ]


def _describe_version_change(model_name: str, rows: Sequence[ModelVersionRow]) -> str:
    used: dict[str, int] = {}
    for row in rows:
        if row.name == model_name:
            said = escape_invisible(row.served_model or "an unnamed model")
            said += f" ({escape_invisible(row.fingerprint)})" if row.fingerprint else ""
            used[said] = used.get(said, 0) + row.answers
    told = ", ".join(f"{model} for {pluralize(n, 'answer')}" for model, n in used.items())
    return (
        f"What stands behind {model_name} changed: the provider says it used {told}. Its figures are a mixture of "
        "these."
    )


def _describe_altered_requests(rows: Sequence[ModelVersionRow]) -> list[str]:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.altered:
            found[row.name, row.altered] = found.get((row.name, row.altered), 0) + row.answers
    return [
        f"Of the requests to {name}, {format_count(n)} that were answered did not go out as asked: "
        f"{_format_alterations(what)}."
        for (name, what), n in sorted(found.items())
    ]


def _format_alterations(alterations: str) -> str:
    parts = (part.partition("=") for part in alterations.split(", "))
    told = (f"{name} went out as {value}" if value else f"{name} was left out" for name, _, value in parts)
    return escape_invisible("; ".join(told))
