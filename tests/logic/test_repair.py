"""REPAIR: what it flips, what it exports, and what it sends to people."""

from __future__ import annotations

import io
import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from auditor.domain import Relation
from auditor.errors import UsageError
from auditor.imports.comparisons import import_comparisons
from auditor.logic.repair import (
    build_training_rows,
    list_flips,
    rate_items,
    repair_comparisons,
    send_to_review,
    summarize_repairs,
)
from auditor.logic.training_data import build_data_card, write_training_rows
from auditor.metrics.preference import commutativity, negation_invariance
from auditor.metrics.transitive_subsets import transitivity
from auditor.run import open_audit
from auditor.storage import audits, evidence, results
from auditor.storage.conflict_status import ConflictKey, ConflictStatus
from auditor.storage.database import Database, open_database
from auditor.storage.review_queue import ConflictQueue
from auditor.tui.plain_text_app import run_plain_text_review
from tests.imports.test_comparisons import write_rows

NAMES = list("abcdefghijkl")


def recorded(storage: str, folder: Path, noise: float, seed: int = 0) -> None:
    """A judge that prefers what is earlier in the alphabet, but for a share of its answers; people always do."""
    rng = np.random.default_rng(seed)
    rows = []
    for a, b in permutations(NAMES, 2):
        right = (a < b) == (rng.random() >= noise)
        rows.append(f"j,c,{a},{b},standard,{'A' if right else 'B'},0,0,{'A' if a < b else 'B'}")
    file = write_rows(
        folder / "x.csv", *rows, head="judge,context,item_a,item_b,relation,decision,sample,paraphrase,people"
    )
    import_comparisons(file, audit="judged", storage=storage)


@pytest.fixture
def db(storage: str, tmp_path: Path) -> Database:
    recorded(storage, tmp_path, 0.1)
    return open_database(storage, create=False)


def test_a_ranking_with_a_tenth_flipped_is_repaired(db: Database) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    [m] = repair_outcome
    fixed = m.repair.preferences
    assert transitivity(fixed, k=3).value == transitivity(fixed, k=len(NAMES)).value == 1.0
    assert commutativity(fixed).value == negation_invariance(fixed, m.repair.negated).value == 1.0
    [o] = summarize_repairs(repair_outcome)
    assert o.people[0] is not None
    assert o.people[1] is not None
    assert o.people[1] > o.people[0]
    assert o.flipped == len(list_flips(repair_outcome)) > 5
    for flip in list_flips(repair_outcome):
        assert flip.original_choice is not flip.repaired_choice


def test_noise_can_be_put_in_and_is_taken_out(storage: str, tmp_path: Path) -> None:
    recorded(storage, tmp_path, 0.0)
    with open_database(storage, create=False) as db:
        assert list_flips(repair_comparisons(db, "judged")) == []
        repair_outcome = repair_comparisons(db, "judged", noise=0.1)
    [o] = summarize_repairs(repair_outcome)
    assert o.flipped >= 10
    assert o.people[1] is not None
    assert o.people[1] > 0.95
    assert o.commutativity[0] != o.commutativity[1] == 1.0


@pytest.mark.parametrize("form", ["preference", "chat"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_for_preference_tuning(db: Database, tmp_path: Path, form: str, suffix: str) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    rows = build_training_rows(repair_outcome)
    known = int((~np.isnan(repair_outcome[0].repair.preferences)).sum())
    assert len(rows) == 2 * known
    assert sum(row.flipped for row in rows) == len(list_flips(repair_outcome))
    write_training_rows(rows, tmp_path / f"rows{suffix}", form)  # type: ignore[arg-type]
    file = tmp_path / f"rows{suffix}"
    read = (
        pq.read_table(file).to_pylist() if suffix == ".parquet" else list(map(json.loads, file.open(encoding="utf-8")))
    )
    assert len(read) == len(rows)
    for record, row in zip(read, rows, strict=True):
        text = record["prompt"] if form == "preference" else record["prompt"][-1]["content"]
        chosen = record["chosen"] if form == "preference" else record["chosen"][0]["content"]
        assert f"A: {row.item_a}\nB: {row.item_b}\n" in text
        assert ("worse" in text) == (row.relation is Relation.NEGATED)
        assert chosen == row.chosen != row.rejected
    card = build_data_card("judged", rows, summarize_repairs(repair_outcome), form)  # type: ignore[arg-type]
    assert f"{len(rows)} rows" in card
    assert "1.00" in card


def test_exactly_the_flipped_go_to_people(db: Database) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
        flips = list_flips(repair_outcome)
        pairs = {frozenset((f.first, f.second)) for f in flips}
        audit = audits.get_audit(db, "judged")
        for _ in range(2):  # sending twice is sending once
            assert send_to_review(db, "judged", flips) == len(pairs)
        conflicts = results.load_conflicts(db, audit.id)
        assert {c.cell.topic for c in conflicts} == {" / ".join(sorted(NAMES[i] for i in p)) for p in pairs}
        assert sum(ConflictQueue(db, audit.id, rater="ann").count_by_status().values()) == len(pairs)
        one = conflicts[0]
        left, right = evidence.load_sides(db, audit.id, ConflictKey(*one.cell, one.left, one.right))
        side_texts = [side[0].text for side in (left, right)]
        assert side_texts[0] != side_texts[1]
        assert all(text and text.startswith("Which of the two is better?") for text in side_texts)
        results.replace_conflicts(db, audit.id, [])  # a run that finds conflicts anew leaves these alone
        assert len(results.load_conflicts(db, audit.id)) == len(pairs)
        assert send_to_review(db, "judged", []) == 0
        assert results.load_conflicts(db, audit.id) == []


def test_the_report_lists_what_was_sent(db: Database, storage: str) -> None:
    with db:
        n = send_to_review(db, "judged", list_flips(repair_comparisons(db, "judged")))
    part = open_audit("judged", storage=storage).report().conflicts
    assert (part.total, part.kinds[-1].kind, part.kinds[-1].total, part.pairs) == (n, "logic", n, [])


def test_a_missing_item_set_is_an_error(db: Database) -> None:
    with db, pytest.raises(UsageError, match="It has: j"):
        repair_comparisons(db, "judged", "k")


def test_three_ratings_of_the_items(db: Database, storage: str, tmp_path: Path) -> None:
    with db:
        rows, notes = rate_items(repair_comparisons(db, "judged"))
    assert all("some items won or lost all" in note for note in notes)
    assert [r.win_loss for r in rows] == sorted((r.win_loss for r in rows), reverse=True)
    assert {rows[0].item, rows[-1].item} <= {"a", "b", "k", "l"}
    assert rows[0].strength > rows[-1].strength
    assert rows[0].elo_low <= rows[0].elo <= rows[0].elo_high
    separate_files = write_rows(
        tmp_path / "apart.csv",
        "j,c,a,b,standard,A",
        "j,c,x,y,standard,A",
        head="judge,context,item_a,item_b,relation,decision",
    )
    import_comparisons(separate_files, audit="apart", storage=storage)
    with open_database(storage, create=False) as reopened:
        assert "not compared with each other" in rate_items(repair_comparisons(reopened, "apart"))[1][0]


def test_a_person_can_settle_what_was_sent(db: Database, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with db:
        n = send_to_review(db, "judged", list_flips(repair_comparisons(db, "judged")))
    printed = io.StringIO()
    run_plain_text_review(storage, "judged", rater="ann", stdin=io.StringIO("next\nleft\nquit\n"), stdout=printed)
    assert "Which of the two is better?" in printed.getvalue()
    with open_database(storage, create=False) as reopened:
        counts = ConflictQueue(reopened, audits.get_audit(reopened, "judged").id, rater="ann").count_by_status()
    assert (counts[ConflictStatus.PERSON], sum(counts.values())) == (1, n)
