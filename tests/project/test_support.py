"""Helpers of tests: what hangs is ended, and synthetic audits are as stated."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path

import pytest

from auditor.domain import Decision, Outcome
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support import stored_copies
from tests.support.hang_limit import WorkHangs, hang_limit
from tests.support.synthetic_audit import populate


def test_a_regular_expression_that_backtracks_is_interrupted() -> None:
    with pytest.raises(WorkHangs, match=r"longer than 0\.1 s"), hang_limit(0.1):
        re.fullmatch(r"(a|a)*b", "a" * 200)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_wait_in_an_event_loop_is_interrupted() -> None:
    with pytest.raises(WorkHangs), hang_limit(0.1):
        asyncio.run(asyncio.sleep(3600))


def test_other_work_ends_and_the_limit_can_be_restarted() -> None:
    with hang_limit(30) as restart:
        time.sleep(0.01)
        restart()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_equal_arguments_give_equal_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_by_database = []
    for name in ("one", "two"):
        monkeypatch.setattr(stored_copies, "_copies", {})
        with open_database(f"sqlite:///{tmp_path}/{name}.db") as db:
            audit = populate(db)
            loads = (
                results.load_traces, results.load_scores, results.load_verdicts, results.load_conflicts,
                results.load_ratings,
            )  # fmt: skip
            rows_by_database.append([load(db, audit.id) for load in loads])
    assert rows_by_database[0] == rows_by_database[1]


def test_rows_are_written_once_and_copied_only_to_an_empty_database(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/one.db") as one, open_database(f"sqlite:///{tmp_path}/two.db") as two:
        first = populate(one, seed=11)
        other = populate(two, name="other")
        populate(two, seed=11)
        assert [a.name for a in audits.load_audits(two)] == ["other", "population"]
        assert results.load_traces(two, other.id) != results.load_traces(one, first.id)
    written: list[str] = []
    for name in ("three", "four"):
        with open_database(f"sqlite:///{tmp_path}/{name}.db") as db:
            stored_copies.fill_once(db, tmp_path, lambda db=db: written.append(populate(db).name))  # type: ignore[misc]
            stored = audits.get_audit(db, "population")
            assert results.load_ratings(db, stored.id)
            audits.set_stage(db, stored.id, "plan")  # the copy stays as it is
    assert written == ["population"]


def test_every_outcome_and_decision_occurs(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db)
        assert {t.outcome for t in results.load_traces(db, audit.id)} == set(Outcome)
        assert {v.outcome for v in results.load_verdicts(db, audit.id)} == set(Outcome)
        assert {r.decision for r in results.load_ratings(db, audit.id)} == set(Decision)
