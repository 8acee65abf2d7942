from __future__ import annotations

import itertools
from dataclasses import replace
from math import log

import pytest

from auditor.domain import Cell, Decision
from auditor.review.judge_calibration import JudgedSide, calibrate_judges, compute_judge_weights, load_judged_sides
from auditor.review.rater_agreement import BlindDecisions, load_blind_decisions
from auditor.review.session import ReviewSession
from auditor.storage import results
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from tests.support.review_audit import review_case

L, R, B, N = Decision.LEFT, Decision.RIGHT, Decision.BOTH, Decision.NEITHER


def key(number: int) -> ConflictKey:
    return ConflictKey("Egypt", f"topic {number}", "alder", "birch")


def said(*rows: dict[str, Decision]) -> BlindDecisions:
    return {key(i): row for i, row in enumerate(rows)}


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
