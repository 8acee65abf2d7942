"""Model versions that answered, as providers report them, and changes of version under one model name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.data.measurement_schema import ReportModel
from auditor.reports.number_format import format_count, pluralize
from auditor.storage.costs import CallCounts
from auditor.text_safety import escape_invisible


class ModelVersionRow(ReportModel):
    """Answers of one model with the same reported version and the same altered parameters."""

    name: str
    served_model: str | None
    """Model name that the provider reports; null where it reports none."""
    fingerprint: str | None
    """Identifier that the provider reports for the serving configuration."""
    altered: str | None
    """Parameters that were not sent as configured: `name` if dropped, `name=value` if changed. Null where unknown."""
    answers: int
    first_at: str
    last_at: str


def build_model_version_rows(call_counts: Iterable[CallCounts]) -> list[ModelVersionRow]:
    """Group answers by model, reported version and altered parameters; sorted by model, then earliest answer."""
    counts_by_version: dict[tuple[str, str | None, str | None, str | None], list[CallCounts]] = {}
    for counts in call_counts:
        if counts.answers and counts.is_current:
            key = (counts.name, counts.served_model, counts.fingerprint, counts.altered)
            counts_by_version.setdefault(key, []).append(counts)
    rows = [
        ModelVersionRow(
            name=name,
            served_model=model,
            fingerprint=fingerprint,
            altered=altered,
            answers=sum(counts.answers for counts in group),
            first_at=min(counts.first_at or "" for counts in group),
            last_at=max(counts.last_at or "" for counts in group),
        )
        for (name, model, fingerprint, altered), group in counts_by_version.items()
    ]
    return sorted(
        rows, key=lambda row: (row.name, row.first_at, row.served_model or "", row.fingerprint or "", row.altered or "")
    )


def count_versions_by_model(rows: Iterable[ModelVersionRow]) -> dict[str, int]:
    """Count the reported versions of each model; 0 where its provider reports none."""
    versions_by_model: dict[str, set[tuple[str | None, str | None]]] = {}
    for row in rows:
        version = {(row.served_model, row.fingerprint)} if row.served_model or row.fingerprint else set()
        versions_by_model.setdefault(row.name, set()).update(version)
    return {name: len(versions) for name, versions in sorted(versions_by_model.items())}


def find_models_with_version_changes(rows: Iterable[ModelVersionRow]) -> list[str]:
    """List the models with more than one reported version."""
    return [name for name, n in count_versions_by_model(rows).items() if n > 1]


def describe_model_versions(rows: Sequence[ModelVersionRow]) -> list[str]:
    """Describe version changes and altered requests, one sentence each; empty where there are none."""
    return [
        *(_describe_version_change(name, rows) for name in find_models_with_version_changes(rows)),
        *_describe_altered_requests(rows),
    ]


def _describe_version_change(model_name: str, rows: Sequence[ModelVersionRow]) -> str:
    """Write one sentence on the versions that a provider used under one model name, with answers per version."""
    answers_by_version: dict[str, int] = {}
    for row in rows:
        if row.name == model_name:
            version_label = escape_invisible(row.served_model or "an unnamed model")
            version_label += f" ({escape_invisible(row.fingerprint)})" if row.fingerprint else ""
            answers_by_version[version_label] = answers_by_version.get(version_label, 0) + row.answers
    version_list = ", ".join(f"{model} for {pluralize(n, 'answer')}" for model, n in answers_by_version.items())
    return (
        f"What stands behind {model_name} changed: the provider says it used {version_list}. "
        "Its figures are a mixture of these."
    )


def _describe_altered_requests(rows: Sequence[ModelVersionRow]) -> list[str]:
    """Write one sentence per model and set of altered parameters; empty where no request was altered."""
    answers_by_alteration: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.altered:
            answers_by_alteration[row.name, row.altered] = (
                answers_by_alteration.get((row.name, row.altered), 0) + row.answers
            )
    return [
        f"Of the requests to {name}, {format_count(n)} that were answered did not go out as asked: "
        f"{_format_alterations(alterations)}."
        for (name, alterations), n in sorted(answers_by_alteration.items())
    ]


def _format_alterations(alterations: str) -> str:
    """Format altered parameters: `name` was left out, `name=value` was sent as value."""
    settings = (setting.partition("=") for setting in alterations.split(", "))
    changes = (f"{name} went out as {value}" if value else f"{name} was left out" for name, _, value in settings)
    return escape_invisible("; ".join(changes))
