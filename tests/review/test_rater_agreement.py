from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import Decision
from auditor.metrics.judges.agreement import fleiss_kappa
from auditor.review.rater_agreement import compute_rater_agreement, find_majority, load_blind_decisions
from auditor.review.session import ReviewSession
from auditor.storage import results
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from tests.review.test_rater_agreement_judge_calibration import B, L, N, R, blind_decisions
from tests.support.review_audit import save_review_audit


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [([L], L), ([L, L], L), ([L, R], None), ([L, R, R], R), ([L, R, B], None), ([L, L, R, R], None), ([], None)],
)
def test_a_strict_majority_is_a_consensus(decisions: list[Decision], expected: Decision | None) -> None:
    assert find_majority(iter(decisions)) is expected


def test_kappa_is_fleiss_kappa_over_items_of_at_least_two_raters() -> None:
    rows = [{"ada": L, "grace": L}] * 6 + [{"ada": L, "grace": R}] * 2 + [{"ada": R, "grace": R}] * 4 + [{"ada": B}]
    agreement = compute_rater_agreement(blind_decisions(*rows))

    assert agreement.n_decided_by_rater == {"ada": 13, "grace": 12}
    # 10 of 12 agree. Chance: shares of left and right in all 24 ratings are 14/24 and 10/24.
    chance = (14 / 24) ** 2 + (10 / 24) ** 2
    assert agreement.kappa.value == pytest.approx((10 / 12 - chance) / (1 - chance))
    assert (agreement.kappa.n, agreement.kappa.n_dropped) == (12, 1)
    assert "there is 1 country" in str(agreement.kappa.reason)  # all conflicts are of Egypt
    (pair,) = agreement.pairs
    assert (pair.rater_a, pair.rater_b, pair.raw_agreement.value, pair.raw_agreement.n) == ("ada", "grace", 10 / 12, 12)
    assert pair.kappa.value == agreement.kappa.value


def test_three_raters_with_missing_decisions() -> None:
    rows = [{"ada": L, "grace": L, "mary": R}, {"ada": R, "mary": R}, {"grace": B, "mary": N}, {"ada": N, "grace": N}]
    agreement = compute_rater_agreement(blind_decisions(*rows))
    table = np.array([[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1], [0, 0, 0, 2]])
    assert agreement.kappa.value == fleiss_kappa(table).value
    assert {(p.rater_a, p.rater_b): p.raw_agreement.n for p in agreement.pairs} == {
        ("ada", "grace"): 2,
        ("ada", "mary"): 2,
        ("grace", "mary"): 2,
    }


def test_no_rater_and_one_rater_have_no_agreement_with_a_reason() -> None:
    assert compute_rater_agreement({}).kappa.reason is not None
    agreement = compute_rater_agreement(blind_decisions({"ada": L}, {"ada": R}))
    assert agreement.kappa.value is None
    assert agreement.pairs == ()


def test_only_blind_decisions_count(db: Database) -> None:
    audit = save_review_audit(db)
    session = ReviewSession(db, audit, "ada", second_rater_share=1.0)
    revised, revealed, undone, redecided, skipped, plain = session.conflict_keys()[:6]
    session.decide(session.load_item(revised), B)
    session.decide(session.load_item(revised), N)
    session.reveal(session.load_item(revealed))
    session.decide(session.load_item(revealed), B)
    session.decide(session.load_item(skipped), Decision.SKIP)
    session.decide(session.load_item(redecided), B)
    session.undo()
    session.decide(session.load_item(redecided), N)
    session.decide(session.load_item(plain), B)
    session.toggle_flag(session.load_item(plain))
    session.decide(session.load_item(undone), B)
    session.undo()

    assert load_blind_decisions(db, audit.id) == {revised: {"ada": B}, plain: {"ada": B}}


def test_decisions_on_changed_scores_do_not_count(db: Database) -> None:
    audit = save_review_audit(db, conflicts=2)
    session = ReviewSession(db, audit, "ada")
    for k in list(session.conflict_keys()):
        session.decide(session.load_item(k), B)
    unchanged, rescored = results.load_conflicts(db, audit.id)
    results.replace_conflicts(db, audit.id, [unchanged, replace(rescored, score_left=0.99)])
    assert list(load_blind_decisions(db, audit.id)) == [ConflictKey(*unchanged.cell, unchanged.left, unchanged.right)]
