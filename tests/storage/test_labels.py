"""Samples and labels in the database: what can be drawn, durability, the hash chain, and kills while writing."""

from __future__ import annotations

import os
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from auditor import failpoints
from auditor.domain import ComparisonChoice, Outcome, Purpose
from auditor.domain.labels import UNSURE, Label, LabelKind, LabelUnit
from auditor.errors import StorageError
from auditor.probes.logic import comparison_rows as comparisons
from auditor.probes.logic.comparisons import Comparison, Item, ItemSet, Relation
from auditor.probes.semantic.records import MoralAnswerRecord, PairVerdict
from auditor.review.label_sampling import draw_label_sample
from auditor.storage import audits, hash_chain, labels, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.labels import load_labelable_units
from auditor.storage.records import save_records
from tests.support.forked_commands import CONTEXT
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import save_review_audit

TRACE = LabelUnit(LabelKind.TRACE, ("alder", "Egypt", "divorce", "1"))


@pytest.fixture
def audit(db: Database) -> Audit:
    return save_review_audit(db, conflicts=4)


def make_label(unit: LabelUnit = TRACE, value: str = "VALID", rater: str = "ada") -> Label:
    labelled_at = datetime(2026, 11, 23, tzinfo=UTC)
    return Label(unit, rater, value, labelled_at, {"score_fit": True}, text_hash="00", duration_s=3)


def test_a_label_is_on_the_disk_and_in_the_chain_when_append_returns(db: Database, audit: Audit, storage: str) -> None:
    label = make_label()
    labels.append_label(db, audit.id, label)
    with open_database(storage, create=False) as second:
        assert labels.load_labels(second, audit.id, LabelKind.TRACE) == [label]
        assert hash_chain.verify_chain(second).breaks == []


def test_the_last_label_of_each_rater_is_in_force(db: Database, audit: Audit) -> None:
    for rater, value in (("ada", "VALID"), ("ben", UNSURE), ("ada", "INVALID")):
        labels.append_label(db, audit.id, make_label(value=value, rater=rater))
    in_force = labels.load_labels(db, audit.id, LabelKind.TRACE)
    assert {(label.rater, label.value) for label in in_force} == {("ada", "INVALID"), ("ben", UNSURE)}


def test_several_labels_are_saved_together_or_not_at_all(db: Database, audit: Audit) -> None:
    missing = make_label(TRACE._replace(parts=("alder", "Egypt", "divorce", "77")))
    message = "not saved: the audit has no such trace any more: alder, Egypt, divorce, 77"
    with pytest.raises(StorageError, match=message):
        labels.append_labels(db, audit.id, [make_label(), missing])
    assert labels.load_entries(db, audit.id) == []


def test_only_labels_of_the_screen_are_undone_there(db: Database, audit: Audit) -> None:
    unit = make_label()
    labels.append_labels(db, audit.id, [unit, Label(TRACE, "ada", "INVALID", unit.labelled_at, source="labels.csv")])
    assert labels.undo_label(db, audit.id, LabelKind.TRACE, "ada") == unit
    assert labels.undo_label(db, audit.id, LabelKind.TRACE, "ada") is None
    assert [label.value for label in labels.load_labels(db, audit.id, LabelKind.TRACE)] == ["INVALID"]


@pytest.mark.parametrize("table", ["label", "label_draw", "sampled_unit"])
def test_a_changed_row_breaks_the_chain(db: Database, audit: Audit, table: str) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 20)
    labels.append_label(db, audit.id, make_label())
    column = {"label": "value", "label_draw": "stratify", "sampled_unit": "stratum"}[table]
    db.write(lambda c: c.execute(text(f"UPDATE {table} SET {column} = 'other' WHERE id = 1")))
    assert hash_chain.verify_chain(db).breaks == [hash_chain.ChainBreak(table, "1", "is not as it was written")]


def test_sample_and_labels_survive_another_run_of_the_audit(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 20)
    before = labels.load_label_sample(db, audit.id, LabelKind.TRACE)
    labels.append_label(db, audit.id, make_label(before[0].unit))
    traces = results.load_traces(db, audit.id)
    keys: dict[str, Any] = {"name": audit.name, "config": audit.config, "survey": audits.load_audit_survey(db, audit)}
    assert audits.save_audit(db, **keys, config_hash="changed", environment={}).id == audit.id
    assert labels.load_labels(db, audit.id, LabelKind.TRACE) == []  # until the text is there again
    save_records(db, audit.id, traces)
    assert labels.load_label_sample(db, audit.id, LabelKind.TRACE) == before
    assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == 1


def test_a_deleted_audit_keeps_its_labels_and_the_chain(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 20)
    labels.append_label(db, audit.id, make_label())
    assert audits.count_contents(db, audit.id).labels == 1
    audits.delete_audit(db, audit)
    assert len(labels.load_entries(db, audit.id)) == 1
    assert hash_chain.verify_chain(db).breaks == []


def test_pairs_of_answers_are_those_of_judges_and_those_to_two_wordings(db: Database, audit: Audit) -> None:
    answers = [
        MoralAnswerRecord("alder", "q1", wording, sample, Outcome.OK, f"wording {wording}, sample {sample}")
        for wording, sample in ((0, 0), (0, 1), (0, 2), (1, 0), (2, 0))
    ]
    save_records(db, audit.id, answers)
    asked = ((Purpose.declare("consistency"), 0, 1), (Purpose.declare("contradiction"), 1, 2))
    verdicts = [
        PairVerdict(judge, purpose.value, "alder", "q1", left, right, Outcome.OK, holds=True)
        for judge in ("birch", "cedar")
        for purpose, left, right in asked
    ]
    save_records(db, audit.id, verdicts)
    units = load_labelable_units(db, audit.id, LabelKind("answer_pair"))
    pairs = (("consistency", "0", "1"), ("contradiction", "1", "2"), ("equivalence", "1", "2"))
    assert [unit.unit.parts for unit in units] == [(kind, "alder", "q1", *pair) for kind, *pair in pairs]
    assert units[0].content != units[1].content
    assert draw_label_sample(db, audit, LabelKind("answer_pair"), 20).n_sampled == 3
    labels.append_label(db, audit.id, make_label(units[0].unit, "yes"))
    assert len(labels.load_labels(db, audit.id, LabelKind("answer_pair"))) == 1
    assert labels.load_labels(db, audit.id, LabelKind.TRACE) == []


def test_comparisons_are_those_in_their_standard_form(db: Database, audit: Audit) -> None:
    items = tuple(Item(name, f"item {name}") for name in "abc")
    comparisons.replace_item_sets(db, audit.id, [ItemSet("set", "", "acceptability", items)])
    asked = [("a", "b", Relation.STANDARD), ("b", "a", Relation.STANDARD), ("a", "c", Relation.NEGATED)]
    rows = [
        Comparison(judge, "set", first, second, relation, Outcome.OK, ComparisonChoice.FIRST)
        for judge in ("birch", "cedar")
        for first, second, relation in asked
    ]
    save_records(db, audit.id, rows)
    units = load_labelable_units(db, audit.id, LabelKind("comparison"))
    assert [unit.unit.parts for unit in units] == [("set", "a", "b"), ("set", "b", "a")]
    labels.append_label(db, audit.id, make_label(units[0].unit, "TIE"))
    assert len(labels.load_labels(db, audit.id, LabelKind("comparison"))) == 1


# --- kills


def kill_at(point: str, storage: str) -> int:
    """Draw a sample and label it in a process that dies at a failpoint; return its exit code."""
    process = CONTEXT.Process(target=_draw_and_label, args=(point, storage))
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


def _draw_and_label(point: str, storage: str) -> None:
    os.environ[failpoints.ENVIRONMENT_VARIABLE] = point
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "moral")
        draw_label_sample(db, audit, LabelKind.TRACE, 20)
        for sampled in labels.load_label_sample(db, audit.id, LabelKind.TRACE)[:4]:
            labels.append_label(db, audit.id, make_label(sampled.unit))
            print(len(labels.load_entries(db, audit.id)), flush=True)


N_SAMPLED = 36
"""Size of the sample: all traces, since no stratum has more than the minimum."""
KILLS = [
    *((f"draw:{n}", 0, 0) for n in (1, N_SAMPLED)), ("before_commit:1", 0, 0), ("after_commit:1", N_SAMPLED, 0),
    *((f"label:{n}", N_SAMPLED, n - 1) for n in (1, 2, 4)), ("before_commit:3", N_SAMPLED, 1),
    ("after_commit:3", N_SAMPLED, 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def unsampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with an audit of which nothing is drawn or labelled."""
    path = tmp_path_factory.mktemp("unsampled") / "audits.db"
    with open_database(f"sqlite:///{path}") as db:
        save_review_audit(db, conflicts=4)
    return path


@pytest.mark.parametrize(("point", "n_sampled", "n_labels"), KILLS)
def test_a_kill_loses_nothing_and_leaves_no_half_of_a_write(
    unsampled: Path, tmp_path: Path, point: str, n_sampled: int, n_labels: int
) -> None:
    shutil.copy(unsampled, tmp_path / "audits.db")
    storage = f"sqlite:///{tmp_path / 'audits.db'}"
    assert kill_at(point, storage) == -signal.SIGKILL
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "moral")
        assert len(labels.load_label_sample(db, audit.id, LabelKind.TRACE)) == n_sampled
        assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == n_labels
        assert hash_chain.verify_chain(db).breaks == []
        assert draw_label_sample(db, audit, LabelKind.TRACE, 20).n_sampled == N_SAMPLED
        assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == n_labels
