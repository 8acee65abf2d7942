"""Model versions that answered, as providers report them, and changes of version under one model name."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from auditor.reports.data.report_model import ReportModel
from auditor.storage.costs import CallCounts

VERSION_FIELDS = ("name", "served_model", "fingerprint", "altered", "form")
read_version = attrgetter(*VERSION_FIELDS)
"""Returns what answers of one version have in common, in the order of these fields."""


class ModelVersionRow(ReportModel):
    """Answers of one model with the same reported version, altered parameters and form of structured answers."""

    name: str
    served_model: str | None
    """Model name that the provider reports; null where it reports none."""
    fingerprint: str | None
    """Identifier that the provider reports for the serving configuration."""
    altered: str | None
    """Parameters that were not sent as configured: `name` if dropped, `name=value` if changed. Null where unknown."""
    form: str | None = None
    """Form in which structured answers were requested, read from the requests as sent: `json_schema`, `json_object`,
    `tool` or `text`; null for free texts, and where it is unknown."""
    answers: int
    first_at: str
    last_at: str


def build_model_version_rows(call_counts: Iterable[CallCounts]) -> list[ModelVersionRow]:
    """Group answers by model, reported version, altered parameters and form; sorted by model, then earliest answer."""
    counts_by_version: dict[tuple[str | None, ...], list[CallCounts]] = {}
    for counts in call_counts:
        if counts.answers and counts.is_current:
            counts_by_version.setdefault(read_version(counts), []).append(counts)
    rows = [
        ModelVersionRow(
            **dict(zip(VERSION_FIELDS, version, strict=True)),
            answers=sum(counts.answers for counts in group),
            first_at=min(counts.first_at or "" for counts in group),
            last_at=max(counts.last_at or "" for counts in group),
        )
        for version, group in counts_by_version.items()
    ]
    return sorted(rows, key=lambda row: (row.name, row.first_at, *(field or "" for field in read_version(row))))


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
