"""A program that declares two more kinds of conflict, and prints as JSON where they show up.

The declarations come before the other imports, since modules derive their tables when they are imported.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from auditor.domain.decisions import ConflictKind, ConflictKindSpec, ConflictSides
from tests.support.enum_members import add_member

if __name__ == "__main__":  # not where a test run imports this module
    sides, explanation = ConflictSides.SCORES, "the scores differ by a hair"
    add_member(ConflictKind, "HAIR_SPLITTING", "hair_splitting", ConflictKindSpec(sides=sides, explanation=explanation))
    sides, explanation, label = ConflictSides.METHODS, "one model in two moods", "between two moods of one model"
    add_member(
        ConflictKind, "MOODS", "moods", ConflictKindSpec(sides=sides, explanation=explanation, unvoted_label=label)
    )

from auditor.reports.data.build import build_report
from auditor.reports.output import render_report
from auditor.review.conflict_list import format_filter, parse_filter
from auditor.storage import results
from auditor.storage.database import open_database
from auditor.storage.review_queue import ConflictQueue
from auditor.tui.plain_text import describe_queue_row
from auditor.tui.queue import format_cells, format_header
from tests.support.synthetic_audit import populate


def main() -> None:
    """Store conflicts of both kinds in a database of the folder that is the argument, and print where they show up."""
    with open_database(f"sqlite:///{sys.argv[1]}/audits.db") as db:
        audit = populate(db)
        first, second, *others = results.load_conflicts(db, audit.id)
        changed = [replace(first, kind=ConflictKind("hair_splitting")), replace(second, kind=ConflictKind("moods"))]
        results.replace_conflicts(db, audit.id, [*changed, *others])
        queue_filter = parse_filter("kind:hair_splitting kind:moods")
        queue = ConflictQueue(db, audit.id, "ada")
        rows = queue.rows([key for key, _ in queue.keys(queue_filter)])
        report = build_report(db, audit.name)
        figures = {
            "filter": format_filter(queue_filter), "lines": [describe_queue_row(1, row) for row in rows],
            "cells": ["".join(text for text, _ in format_cells(row, 120, is_cursor=False)) for row in rows],
            "header": format_header(120), "voted": len(results.load_voted_conflicts(db, audit.id)),
            "unvoted": [conflict.kind for conflict in results.load_unvoted_conflicts(db, audit.id)],
            "total": len(others) + 2,
            "kinds": [row.model_dump() for row in report.conflicts.kinds],
            "pairs": [row.kinds for row in report.conflicts.pairs], "settled_of": report.conflicts.settled.n,
            "page": " ".join(render_report(report, "text").split()),
        }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
