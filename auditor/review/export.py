"""Export the logs of ratings and of labels as CSV or JSONL: one row per action, including undone actions."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TextIO

from auditor.domain.decisions import REVIEW_ASPECTS, ReviewAspect
from auditor.domain.labels import LabelKind
from auditor.review.rater_agreement import select_current_entries
from auditor.storage import labels, rating_log
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.labels import list_part_names
from auditor.storage.rating_log import RatingEntry
from auditor.text_safety import escape_csv_cell

RATING_COLUMNS = (
    "audit", "id", "conflict", "country", "topic", "left", "right", "score_left", "score_right", "rater", "decided_at",
    "act", "of", "decision", "score", "flagged", "note", "shown", "swapped", "duration_s", "in_force",
    "answer_left", "answer_right", "withheld", "follows",
)  # fmt: skip

LABEL_COLUMNS = (
    "inclusion", "stratum", "act", "of", "in_force", "note", "duration_s", "text_hash", "source", "labelled_at",
)  # fmt: skip
"""Columns of exported labels after those of the unit, the label and its aspects."""

RatingsFileFormat = Literal["csv", "jsonl"]


def iter_rating_rows(db: Database, audit: Audit) -> Iterator[dict[str, Any]]:
    """Yield every row of an audit's log, oldest first.

    `in_force` is true for each rater's last rating of a conflict, unless a later run changed the conflict's scores or
    removed it. Sides and decisions are as stored: `left` is the report's left model, on whichever side it was shown.
    """
    entries = rating_log.load_entries(db, audit.id)
    current_ids = {(entry.key, entry.rating.rater): entry.id for entry in select_current_entries(db, audit.id, entries)}
    for entry in entries:
        yield _format_rating_row(audit, entry, in_force=current_ids.get((entry.key, entry.rating.rater)) == entry.id)


def write_ratings(
    db: Database, audit: Audit, stream: TextIO, file_format: RatingsFileFormat = "csv", *, keep_formulas: bool = False
) -> int:
    """Write an audit's ratings and return the number of rows.

    Args:
        stream: the output; for CSV it must be opened with `newline=""`.
        keep_formulas: in CSV, do not put a quote in front of texts that a spreadsheet would read as a formula, nor
            show control and invisible characters. JSONL has all texts as stored.
    """
    return _write_rows(list(iter_rating_rows(db, audit)), RATING_COLUMNS, stream, file_format, keep_formulas)


def iter_label_rows(db: Database, audit: Audit, kind: LabelKind) -> Iterator[dict[str, Any]]:
    """Yield every row of the log of one kind of labels, oldest first, by the names of `label_columns`.

    `in_force` is true for each rater's last label of a unit that was not undone, unless a later run changed the unit's
    text or removed it. Stratum and inclusion probability are empty for a unit outside of the sample.
    """
    in_force = {entry.id for entry in labels.load_entries_in_force(db, audit.id, kind)}
    sample = {sampled.unit: sampled for sampled in labels.load_label_sample(db, audit.id, kind)}
    for entry in labels.load_entries(db, audit.id, kind):
        label, sampled = entry.label, sample.get(entry.label.unit)
        yield {
            "audit": audit.name,
            "id": entry.id,
            "rater": label.rater,
            **dict(zip(list_part_names(kind), label.unit.parts, strict=True)),
            "verdict": label.value,
            **{aspect.name: label.aspects.get(aspect.name) for aspect in _aspects(kind)},
            "inclusion": sampled and sampled.inclusion,
            "stratum": " × ".join(sampled.stratum) if sampled else "",
            "act": entry.act.value,
            "of": entry.of,
            "in_force": entry.id in in_force,
            "note": label.note,
            "duration_s": label.duration_s,
            "text_hash": label.text_hash,
            "source": label.source,
            "labelled_at": label.labelled_at.isoformat(timespec="milliseconds"),
        }


def label_columns(kind: LabelKind) -> tuple[str, ...]:
    """Columns of exported labels of a kind; `auditor import labels` reads those up to `inclusion`."""
    aspects = (aspect.name for aspect in _aspects(kind))
    return ("audit", "id", "rater", *list_part_names(kind), "verdict", *aspects, *LABEL_COLUMNS)


def _aspects(kind: LabelKind) -> tuple[ReviewAspect, ...]:
    """Aspects that raters of a kind may be asked about."""
    return REVIEW_ASPECTS if kind is LabelKind.TRACE else ()


def write_labels(
    db: Database,
    audit: Audit,
    stream: TextIO,
    kind: LabelKind = LabelKind.TRACE,
    file_format: RatingsFileFormat = "csv",
    *,
    keep_formulas: bool = False,
) -> int:
    """Write an audit's labels of one kind and return the number of rows; arguments as in `write_ratings`."""
    rows = list(iter_label_rows(db, audit, kind))
    return _write_rows(rows, label_columns(kind), stream, file_format, keep_formulas)


def _write_rows(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    stream: TextIO,
    file_format: RatingsFileFormat,
    keep_formulas: bool,
) -> int:
    """Write rows as CSV or JSONL, and return their number."""
    if file_format == "jsonl":
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return len(rows)
    writer = csv.DictWriter(stream, columns)
    writer.writeheader()
    writer.writerows(
        row if keep_formulas else {name: escape_csv_cell(value) for name, value in row.items()} for row in rows
    )
    return len(rows)


def _format_rating_row(audit: Audit, entry: RatingEntry, *, in_force: bool) -> dict[str, Any]:
    """Return one entry of the log as a row: its values by the names in `RATING_COLUMNS`.

    `act` is what the person did; `of` is the id of the entry that an undo reverts or a redo restores; `shown` names the
    hidden evidence that they had seen, empty for a blind rating; `swapped` is true if left was shown on the right;
    `withheld` is true if the decision did not reveal the evidence; `follows` is the id of the entry whose decision on
    another conflict of the cell settled this one.
    """
    rating = entry.rating
    values = (
        audit.name, entry.id, entry.key.id, *rating.cell, rating.left, rating.right,
        rating.score_left, rating.score_right, rating.rater,
        rating.decided_at.isoformat(timespec="milliseconds"), rating.act.value, rating.of, rating.decision.value,
        rating.score, rating.flagged,
        rating.note, rating.shown, rating.swapped, rating.duration_s, in_force,
        rating.answer_left, rating.answer_right, rating.withheld, rating.follows,
    )  # fmt: skip
    return dict(zip(RATING_COLUMNS, values, strict=True))
