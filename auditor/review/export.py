"""Export the rating log as CSV or JSONL for other programs: one row per action, including undone actions."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any, Literal, TextIO

from auditor.review.rater_agreement import select_current_entries
from auditor.storage import rating_log
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.rating_log import RatingEntry
from auditor.text_safety import escape_formula

RATING_COLUMNS = (
    "audit", "id", "conflict", "country", "topic", "left", "right", "score_left", "score_right", "rater", "decided_at",
    "act", "of", "decision", "score", "flagged", "note", "shown", "swapped", "duration_s", "in_force",
    "answer_left", "answer_right", "withheld", "follows",
)  # fmt: skip

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
        keep_formulas: in CSV, do not put a quote in front of texts that a spreadsheet would read as a formula. JSONL
            has all texts as stored.
    """
    rows = list(iter_rating_rows(db, audit))
    if file_format == "jsonl":
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return len(rows)
    writer = csv.DictWriter(stream, RATING_COLUMNS)
    writer.writeheader()
    writer.writerows(
        row if keep_formulas else {name: escape_formula(value) for name, value in row.items()} for row in rows
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
