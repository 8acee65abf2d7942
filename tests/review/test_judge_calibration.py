from __future__ import annotations

import itertools
from dataclasses import replace
from math import log

import numpy as np
import pytest

from auditor.domain import Cell, Decision
from auditor.metrics.agreement import fleiss_kappa
from auditor.review.judge_calibration import JudgedSide, calibrate_judges, compute_judge_weights, load_judged_sides
from auditor.review.rater_agreement import BlindDecisions, compute_rater_agreement, find_majority, load_blind_decisions
from auditor.review.session import ReviewSession
from auditor.review.summary import summarize_ratings
from auditor.storage import results
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from tests.support.review_audit import review_case

L, R, B, N = Decision.LEFT, Decision.RIGHT, Decision.BOTH, Decision.NEITHER


def key(number: int) -> ConflictKey:
    return ConflictKey("Egypt", f"topic {number}", "alder", "birch")


def said(*rows: dict[str, Decision]) -> BlindDecisions:
    return {key(i): row for i, row in enumerate(rows)}


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [([L], L), ([L, L], L), ([L, R], None), ([L, R, R], R), ([L, R, B], None), ([L, L, R, R], None), ([], None)],
)
def test_a_strict_majority_is_a_consensus(decisions: list[Decision], expected: Decision | None) -> None:
    assert find_majority(iter(decisions)) is expected


def test_kappa_is_fleiss_over_what_at_least_two_decided() -> None:
    rows = [{"ada": L, "grace": L}] * 6 + [{"ada": L, "grace": R}] * 2 + [{"ada": R, "grace": R}] * 4 + [{"ada": B}]
    found = compute_rater_agreement(said(*rows))

    assert found.n_decided_by_rater == {"ada": 13, "grace": 12}
    # 10 of 12 agree. Chance: shares of left and right in all 24 ratings are 14/24 and 10/24.
    chance = (14 / 24) ** 2 + (10 / 24) ** 2
    assert found.kappa.value == pytest.approx((10 / 12 - chance) / (1 - chance))
    assert (found.kappa.n_items, found.kappa.n_dropped) == (12, 1)
    assert found.kappa.ci_low is not None
    (pair,) = found.pairs
    assert (pair.rater_a, pair.rater_b, pair.raw_agreement.value, pair.raw_agreement.n) == ("ada", "grace", 10 / 12, 12)
    assert pair.kappa.value == found.kappa.value


def test_three_raters_who_did_not_all_decide_all() -> None:
    rows = [{"ada": L, "grace": L, "mary": R}, {"ada": R, "mary": R}, {"grace": B, "mary": N}, {"ada": N, "grace": N}]
    found = compute_rater_agreement(said(*rows))
    table = np.array([[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1], [0, 0, 0, 2]])
    assert found.kappa.value == fleiss_kappa(table).value
    assert {(p.rater_a, p.rater_b): p.raw_agreement.n for p in found.pairs} == {
        ("ada", "grace"): 2,
        ("ada", "mary"): 2,
        ("grace", "mary"): 2,
    }


def test_nobody_and_one_alone_have_no_agreement_and_a_reason() -> None:
    assert compute_rater_agreement({}).kappa.reason is not None
    alone = compute_rater_agreement(said({"ada": L}, {"ada": R}))
    assert alone.kappa.value is None
    assert alone.pairs == ()


def test_only_what_was_said_blind_counts(db: Database) -> None:
    audit = review_case(db)
    desk = ReviewSession(db, audit, "ada", second_rater_share=1.0)
    revised, revealed, undone, redecided, skipped, plain = desk.conflict_keys()[:6]
    desk.decide(desk.load_item(revised), B)
    desk.decide(desk.load_item(revised), N)
    desk.reveal(desk.load_item(revealed))
    desk.decide(desk.load_item(revealed), B)
    desk.decide(desk.load_item(skipped), Decision.SKIP)
    desk.decide(desk.load_item(redecided), B)
    desk.undo()
    desk.decide(desk.load_item(redecided), N)
    desk.decide(desk.load_item(plain), B)
    desk.toggle_flag(desk.load_item(plain))
    desk.decide(desk.load_item(undone), B)
    desk.undo()

    assert load_blind_decisions(db, audit.id) == {revised: {"ada": B}, plain: {"ada": B}}


def test_what_was_said_of_other_scores_does_not_count(db: Database) -> None:
    audit = review_case(db, conflicts=2)
    desk = ReviewSession(db, audit, "ada")
    for k in list(desk.conflict_keys()):
        desk.decide(desk.load_item(k), B)
    one, other = results.load_conflicts(db, audit.id)
    results.replace_conflicts(db, audit.id, [one, replace(other, score_left=0.99)])
    assert list(load_blind_decisions(db, audit.id)) == [ConflictKey(*one.cell, one.left, one.right)]


def test_lessons_are_of_the_sides_as_stored_whatever_was_shown_where(db: Database) -> None:
    """The case's judges call the negative side VALID; people who do so too agree with every judge, swapped or not."""
    audit = review_case(db)
    for rater in ("ada", "grace", "mary"):
        desk = ReviewSession(db, audit, rater)
        for k in list(desk.conflict_keys()):
            item = desk.load_item(k)
            desk.decide(item, L if (item.left.score or 0.0) < (item.right.score or 0.0) else R)

    learnt = load_judged_sides(db, audit.id, load_blind_decisions(db, audit.id))
    assert len(learnt) == 20 * 2 * 2  # conflicts, sides, and the judges of each side
    scores = {(s.model, s.cell): s.score or 0.0 for s in results.load_scores(db, audit.id)}
    assert all(isinstance(x.cell, Cell) for x in learnt)
    assert scores
    found = {x.judge: x for x in calibrate_judges(learnt)}
    assert set(found) == {"alder", "birch", "cedar"}
    assert found["cedar"].raw_agreement.value == 1.0
    assert found["cedar"].raw_agreement.n + found["cedar"].raw_agreement.lost == 40


def test_a_side_of_several_conflicts_teaches_once(db: Database) -> None:
    """Of three models' conflicts on 12 cells, all decided, a judge has 24 sides before it and learns of no more."""
    audit = review_case(db, conflicts=12)
    pairs = results.load_conflicts(db, audit.id)
    every = [
        pair
        for c in pairs
        for pair in (c, replace(c, right="cedar", score_right=0.05), replace(c, left="birch", right="cedar"))
    ]
    results.replace_conflicts(db, audit.id, every)
    said = {
        ConflictKey(*c.cell, c.left, c.right): {"ada": L if c.left == "birch" else R if c.right == "birch" else B}
        for c in every
    }  # birch is right against both; alder and cedar are wrong against it and right beside each other: no lesson
    learnt = load_judged_sides(db, audit.id, said)
    assert len({(x.judge, x.cell) for x in learnt}) == len(learnt) == 24
    assert {(x.judge, x.is_correct) for x in learnt} == {("alder", True), ("cedar", True)}

    said = {k: {"ada": N} if {"alder", "cedar"} == {k.left, k.right} else d for k, d in said.items()}
    found = {x.judge: x for x in calibrate_judges(load_judged_sides(db, audit.id, said))}
    assert {judge: x.raw_agreement.n + x.raw_agreement.lost for judge, x in found.items()} == dict.fromkeys(
        ("alder", "birch", "cedar"), 24
    )


def test_what_an_adaptive_panel_asked_of_disputed_traces_teaches_nothing(db: Database) -> None:
    audit = review_case(db, conflicts=1)
    (one,) = results.load_conflicts(db, audit.id)
    verdicts = [v for v in results.load_verdicts(db, audit.id) if v.cell == one.cell]
    results.save_verdicts(db, audit.id, [replace(v, always=v.judge != "cedar") for v in verdicts])
    said = {ConflictKey(*one.cell, one.left, one.right): {"ada": L}}
    assert {x.judge for x in load_judged_sides(db, audit.id, said)} == {"alder", "birch"}


def test_both_neither_and_a_score_of_ones_own(db: Database) -> None:
    audit = review_case(db, conflicts=3)
    desk = ReviewSession(db, audit, "ada")
    both, neither, own = desk.conflict_keys()
    desk.decide(desk.load_item(both), B)
    desk.decide(desk.load_item(neither), N)
    desk.decide(desk.load_item(own), Decision.SCORE, score=0.1)
    learnt = load_judged_sides(db, audit.id, load_blind_decisions(db, audit.id))
    assert {(x.cell.topic, x.is_correct) for x in learnt} == {(both.topic, True), (neither.topic, False)}


CELLS = itertools.count()


def lesson(share: float, right: bool, judge: str = "cedar") -> JudgedSide:
    return JudgedSide(judge, Cell("Egypt", f"topic {next(CELLS)}"), share, right)


def test_a_judge_who_is_right_three_times_in_four() -> None:
    learnt = [lesson(1.0, True)] * 9 + [lesson(0.0, True)] * 3 + [lesson(0.5, False)] * 2
    (found,) = calibrate_judges(learnt)
    assert (found.raw_agreement.value, found.raw_agreement.n, found.raw_agreement.lost) == (0.75, 12, 2)
    assert found.weight == pytest.approx(log((10 / 14) / (4 / 14)))
    assert found.calibration.reason is not None
    assert "30" in found.calibration.reason


def test_weights_are_one_on_average_and_never_negative() -> None:
    good = [lesson(1.0, True, "good")] * 18 + [lesson(1.0, False, "good")] * 2
    fair = [lesson(1.0, True, "fair")] * 14 + [lesson(1.0, False, "fair")] * 6
    bad = [lesson(1.0, False, "bad")] * 20
    new = [lesson(1.0, True, "new")] * 3
    weights = compute_judge_weights(calibrate_judges([*good, *fair, *bad, *new]))
    assert weights["bad"] == 0.0
    assert weights["new"] == 1.0
    assert weights["good"] + weights["fair"] + weights["bad"] == pytest.approx(3)
    # (18 + 1) / 22 and (14 + 1) / 22, as log odds
    assert weights["good"] / weights["fair"] == pytest.approx(log(19 / 3) / log(15 / 7))
    assert compute_judge_weights([]) == {}
    assert compute_judge_weights(calibrate_judges(bad)) == {"bad": 0.0}


def test_calibration_maps_shares_to_how_often_people_agree() -> None:
    learnt = [lesson(1.0, i % 10 != 0) for i in range(40)] + [lesson(0.0, i % 4 == 0) for i in range(40)]
    (found,) = calibrate_judges(learnt)
    assert found.calibration.predict([0.0, 1.0]) == pytest.approx([0.25, 0.9])
    assert found.calibration.error_after.value is not None


def test_the_summary_says_all_in_words(db: Database) -> None:
    audit = review_case(db)
    assert [t.note for t in summarize_ratings(db, audit).tables] == [
        "Nobody has decided anything blind yet.",
        "No judged side has been decided blind yet.",
        "Nothing to learn from yet.",
    ]
    for rater in ("ada", "grace"):
        desk = ReviewSession(db, audit, rater)
        for number, k in enumerate(sorted(desk.conflict_keys())):
            item = desk.load_item(k)
            strict = L if (item.left.score or 0.0) < (item.right.score or 0.0) else R
            desk.decide(item, B if rater == "grace" and number < 2 else strict)
    raters, judges, worth = summarize_ratings(db, audit).tables
    rows = {row.name: row for table in (raters, judges, worth) for row in table.rows}
    assert rows["ada"].text == "20 decided blind"
    assert rows["ada and grace: same"].text == "90% [70%, 97%] of 20"
    assert rows["cedar: same"].text == "100% [90%, 100%] of 36"
    assert rows["cedar: curve"].text.startswith("0% VALID is ")
    assert "held out" in rows["cedar: error"].text
    assert float(rows["cedar: weight"].text) > 0
    assert "needs 30 ratings" in rows["alder: curve"].text
