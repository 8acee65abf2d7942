"""A program that declares more decisions of people and kinds of conflict, and prints as JSON where they show up.

The decisions are made in both interfaces.

The declarations come before the other imports, since modules derive their tables when they are imported.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditor.domain.decisions import ConflictKind, ConflictKindSpec, ConflictSides, Decision, DecisionSpec
from tests.support.enum_members import add_member

if __name__ == "__main__":  # not where a test run imports this module
    for name, key, mirrored, upholds, phrase in (
        ("lean_left", "9", "lean_right", (True, False), "left is rather right"),
        ("lean_right", "0", "lean_left", (False, True), "right is rather right"),
        ("unclear", "8", "", None, "the question is unclear"),
    ):
        spec = DecisionSpec(
            keys=key, glyph="~", label=name, help=phrase, phrase=phrase, upholds=upholds, mirrored=mirrored
        )
        add_member(Decision, name.upper(), name, spec)
    later = DecisionSpec(keys="w", glyph="w", label="put off", help="Decide later", phrase="put off", resolves=False)
    add_member(Decision, "LATER", "later", later)
    hair_splitting = ConflictKindSpec(sides=ConflictSides.SCORES, explanation="the scores differ by a hair")
    add_member(ConflictKind, "HAIR_SPLITTING", "hair_splitting", hair_splitting)
    moods = ConflictKindSpec(
        sides=ConflictSides.METHODS,
        explanation="one model in two moods",
        unvoted_label="between two moods of one model",
    )
    add_member(ConflictKind, "MOODS", "moods", moods)

from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.review.conflict_list import format_filter, parse_filter
from auditor.review.export import iter_rating_rows
from auditor.review.rater_agreement import compute_rater_agreement, load_blind_decisions, load_judged_sides
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.review_queue import ConflictQueue, load_reviewed_conflicts
from auditor.tui.app import ReviewApp
from auditor.tui.key_bindings import render_key_tables
from auditor.tui.plain_text import describe_queue_row
from auditor.tui.plain_text_app import run_plain_text_review
from auditor.tui.queue import format_cells, format_header
from auditor.tui.settings import SETTINGS_FOLDER_VARIABLE, ReviewSettings
from tests.support.review_audit import save_review_audit
from tests.support.synthetic_audit import populate
from tests.tui.app_driver import Driver


async def press_keys(db: Database, folder: Path) -> str:
    """Open a conflict on the screen, decide it and the next one by key, and return what the screens showed."""
    app = ReviewApp(db, rater="grace", audit="moral", settings=ReviewSettings(folder, open_next=False))
    async with app.run_test(size=(160, 50)) as pilot:
        driver: Any = Driver(app, pilot)
        await driver.settle()
        await driver.press("enter", "9")
        screens = [driver.text]
        await driver.press("space", "8")
        screens.append(driver.text)
        await driver.press("space", "w", "q")
        return "\n".join([*screens, driver.text])


def type_commands(url: str) -> str:
    """Decide in plain text, and return what was printed."""
    commands = ("open-next off", "next", "lean_right", "next", "unclear", "next", "later", "help")
    output = io.StringIO()
    run_plain_text_review(url, "moral", rater="ada", stdin=io.StringIO("\n".join(commands)), stdout=output)
    return output.getvalue()


def list_decided_conflicts(report: Report) -> Iterator[Report]:
    """Yield copies of a report, each with one conflict that people decided: a page shows the largest two only."""
    for row in report.conflicts.largest:
        if row.decision:
            conflicts = report.conflicts.model_copy(update={"largest": [row]})
            yield report.model_copy(update={"conflicts": conflicts})


def collect_results(db: Database, audit: Audit) -> dict[str, Any]:
    """Collect what the status of conflicts, calibration, export and report make of the decisions."""
    blind_decisions = load_blind_decisions(db, audit.id)
    report = build_report(db, audit.name)
    reviewed_conflicts = load_reviewed_conflicts(db, audit.id)
    rows = list(iter_rating_rows(db, audit))
    return {
        "settled": [(reviewed.status, reviewed.decision,
                     reviewed.winner is not None) for reviewed in reviewed_conflicts if reviewed.ratings],
        "upheld": [({"lean_left": row["left"], "lean_right": row["right"]}[row["decision"]],
                    row["rater"]) for row in rows if row["decision"].startswith("lean_")],
        "winners": [reviewed.winner for reviewed in reviewed_conflicts if reviewed.ratings and reviewed.winner],
        "exported": [row["decision"] for row in rows],
        "decided": compute_rater_agreement(blind_decisions).n_decided_by_rater,
        "judged_cells": len({side.cell for side in load_judged_sides(db, audit, blind_decisions)}),
        "json": [row.decision for row in report.conflicts.largest if row.decision],
        "page": " ".join(" ".join(render_report(page, "text") for page in list_decided_conflicts(report)).split()),
    }  # fmt: skip


def list_conflicts_of_new_kinds(db: Database) -> dict[str, Any]:
    """Store conflicts of both kinds, and collect where they show up."""
    audit = populate(db)
    first, second, *others = results.load_conflicts(db, audit.id)
    changed = [replace(first, kind=ConflictKind("hair_splitting")), replace(second, kind=ConflictKind("moods"))]
    results.replace_conflicts(db, audit.id, [*changed, *others])
    queue_filter = parse_filter("kind:hair_splitting kind:moods")
    queue = ConflictQueue(db, audit.id, "ada")
    rows = queue.rows([key for key, _ in queue.keys(queue_filter)])
    report = build_report(db, audit.name)
    return {
        "filter": format_filter(queue_filter), "lines": [describe_queue_row(1, row) for row in rows],
        "cells": ["".join(text for text, _ in format_cells(row, 120, is_cursor=False)) for row in rows],
        "header": format_header(120), "voted": len(results.load_voted_conflicts(db, audit.id)),
        "unvoted": [conflict.kind for conflict in results.load_unvoted_conflicts(db, audit.id)],
        "total": len(others) + 2,
        "kinds": [row.model_dump() for row in report.conflicts.kinds],
        "pairs": [row.kinds for row in report.conflicts.pairs], "settled_of": report.conflicts.settled.n,
        "page": " ".join(render_report(report, "text").split()),
    }  # fmt: skip


def main() -> None:
    """Make the decisions on the screen and in plain text, and store the conflicts, in a database of this folder."""
    folder = Path(sys.argv[1])
    os.environ[SETTINGS_FOLDER_VARIABLE] = str(folder)
    url = f"sqlite:///{folder}/audits.db"
    with open_database(url) as db:
        audit = save_review_audit(db)
        decisions = {"screens": asyncio.run(press_keys(db, folder)), "transcript": type_commands(url)}
        decisions |= {"keys": render_key_tables(), **collect_results(db, audit)}
        print(json.dumps({"decisions": decisions, "kinds": list_conflicts_of_new_kinds(db)}))


if __name__ == "__main__":
    main()
