"""REPAIR: what it flips, and how consistent the repaired answers are."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.metrics.logic.consistency import commutativity, negation_invariance
from auditor.metrics.logic.transitivity import transitivity
from auditor.probes.logic.repair import list_flips, repair_comparisons, summarize_stages
from auditor.probes.logic.repair_command import summarize_repairs
from auditor.storage.database import Database, open_database
from tests.support.recorded_comparisons import NAMES, import_recorded_comparisons


def test_a_ranking_with_a_tenth_flipped_is_repaired(db: Database) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    [m] = repair_outcome
    fixed = m.repair.preferences
    assert transitivity(fixed, k=3).value == transitivity(fixed, k=len(NAMES)).value == 1.0
    assert commutativity(fixed).value == negation_invariance(fixed, m.repair.negated).value == 1.0
    [o] = summarize_repairs(repair_outcome, summarize_stages(repair_outcome, k=3))
    assert o.people[0] is not None
    assert o.people[1] is not None
    assert o.people[1] > o.people[0]
    assert o.flipped == len(list_flips(repair_outcome)) > 5
    for flip in list_flips(repair_outcome):
        assert flip.original_choice is not flip.repaired_choice


def test_noise_can_be_put_in_and_is_taken_out(storage: str, tmp_path: Path) -> None:
    import_recorded_comparisons(storage, tmp_path, 0.0)
    with open_database(storage, create=False) as db:
        assert list_flips(repair_comparisons(db, "judged")) == []
        repair_outcome = repair_comparisons(db, "judged", noise=0.1)
    [o] = summarize_repairs(repair_outcome, summarize_stages(repair_outcome, k=3))
    assert o.flipped >= 10
    assert o.people[1] is not None
    assert o.people[1] > 0.95
    assert o.commutativity[0] != o.commutativity[1] == 1.0


def test_a_missing_item_set_is_an_error(db: Database) -> None:
    with db, pytest.raises(UsageError, match="It has: j"):
        repair_comparisons(db, "judged", "k")
