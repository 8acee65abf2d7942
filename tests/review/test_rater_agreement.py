"""Agreement of raters with each other and with judges, and what judges' verdicts are worth."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import log

import numpy as np
import pytest

from auditor.domain import AnswerKind, Cell, CellScore, Decision, Outcome, Ruling, Task, TaskItem, Trace, Verdict
from auditor.metrics.judges.agreement import fleiss_kappa
from auditor.review.rater_agreement import (
    BlindDecisions,
    JudgedSide,
    calibrate_judges,
    categorize_ratings,
    compute_judge_weights,
    compute_rater_agreement,
    find_majority,
    load_blind_decisions,
    load_blind_ratings,
    load_judged_sides,
)
from auditor.review.session import ReviewSession
from auditor.storage import audits, results
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from auditor.storage.records import save_records
from auditor.tasks import survey_from_task
from tests.support.known import known
from tests.support.review_audit import save_review_audit

L, R, B, N = Decision.LEFT, Decision.RIGHT, Decision.BOTH, Decision.NEITHER


def key(number: int) -> ConflictKey:
    return ConflictKey("Egypt", f"topic {number}", "alder", "birch")


def blind_decisions(*rows: dict[str, Decision]) -> BlindDecisions:
    return {key(i): row for i, row in enumerate(rows)}


def test_judged_sides_do_not_depend_on_the_displayed_order(db: Database) -> None:
    """The judges call the negative side VALID: raters who pick it agree with them in either display order."""
    audit = save_review_audit(db)
    for rater in ("ada", "grace", "mary"):
        session = ReviewSession(db, audit, rater)
        for k in list(session.conflict_keys()):
            item = session.load_item(k)
            session.decide(item, L if (item.left.score or 0.0) < (item.right.score or 0.0) else R)

    judged_sides = load_judged_sides(db, audit, load_blind_decisions(db, audit.id))
    assert len(judged_sides) == 20 * 2 * 2  # conflicts, sides, and the judges of each side
    scores = {(score.model, score.cell): score.score or 0.0 for score in results.load_scores(db, audit.id)}
    assert all(isinstance(x.cell, Cell) for x in judged_sides)
    assert scores
    calibration_by_judge = {x.judge: x for x in calibrate_judges(judged_sides)}
    assert set(calibration_by_judge) == {"alder", "birch", "cedar"}
    assert calibration_by_judge["cedar"].raw_agreement.value == 1.0
    assert calibration_by_judge["cedar"].raw_agreement.n + calibration_by_judge["cedar"].n_tied == 40


def test_a_side_in_several_conflicts_is_counted_once(db: Database) -> None:
    """With 12 cells, three models and every pair decided, a judge has 24 sides, although each is in two conflicts."""
    audit = save_review_audit(db, conflicts=12)
    pairs = results.load_conflicts(db, audit.id)
    conflicts = [
        pair
        for c in pairs
        for pair in (c, replace(c, right="cedar", score_right=0.05), replace(c, left="birch", right="cedar"))
    ]
    results.replace_conflicts(db, audit.id, conflicts)
    decisions = {
        ConflictKey(*conflict.cell, conflict.left, conflict.right): {
            "ada": L if conflict.left == "birch" else R if conflict.right == "birch" else B
        }
        for conflict in conflicts
    }  # birch is right against both; alder and cedar are wrong against birch and right against each other, so not used
    judged_sides = load_judged_sides(db, audit, decisions)
    assert len({(x.judge, x.cell) for x in judged_sides}) == len(judged_sides) == 24
    assert {(x.judge, x.is_correct) for x in judged_sides} == {("alder", True), ("cedar", True)}

    decisions = {k: {"ada": N} if {"alder", "cedar"} == {k.left, k.right} else d for k, d in decisions.items()}
    calibration_by_judge = {x.judge: x for x in calibrate_judges(load_judged_sides(db, audit, decisions))}
    assert {judge: x.raw_agreement.n + x.n_tied for judge, x in calibration_by_judge.items()} == dict.fromkeys(
        ("alder", "birch", "cedar"), 24
    )


def test_verdicts_that_an_adaptive_panel_adds_are_not_used(db: Database) -> None:
    audit = save_review_audit(db, conflicts=1)
    (conflict,) = results.load_conflicts(db, audit.id)
    verdicts = [verdict for verdict in results.load_verdicts(db, audit.id) if verdict.cell == conflict.cell]
    save_records(db, audit.id, [replace(verdict, always=verdict.judge != "cedar") for verdict in verdicts])
    decisions = {ConflictKey(*conflict.cell, conflict.left, conflict.right): {"ada": L}}
    assert {x.judge for x in load_judged_sides(db, audit, decisions)} == {"alder", "birch"}


def test_only_verdicts_on_the_answer_in_conflict_are_used(db: Database) -> None:
    """The judge is right about each answer, of which "b" is the commonest: on the side it agrees with people."""
    item = TaskItem("q", "Which one?", options=("a", "b", "c", "d"))
    survey = survey_from_task(Task("items.csv", AnswerKind.CHOICE, "", items={"q": item}))
    audit = audits.save_audit(db, name="task", config=None, config_hash=None, survey=survey, environment={})
    for model, answers in (("alder", "bbacd"), ("birch", "aaaab")):
        save_records(db, audit.id, [Trace(model, item.cell, i, Outcome.OK, answer=a) for i, a in enumerate(answers)])
        rulings = [Ruling.VALID if answer == "b" else Ruling.INVALID for answer in answers]
        verdicts = [Verdict("oak", model, item.cell, i, Outcome.OK, ruling) for i, ruling in enumerate(rulings)]
        save_records(db, audit.id, verdicts)
        score = CellScore(model, item.cell, "direct", None, None, len(answers), len(answers), None, answer=answers[0])
        save_records(db, audit.id, [score])
    judged_sides = load_judged_sides(db, audit, {ConflictKey(*item.cell, "alder", "birch"): {"ada": L}})
    assert [(x.valid_share, x.is_correct) for x in judged_sides] == [(1.0, True), (0.0, False)]


def test_both_and_neither_are_used_and_custom_scores_are_not(db: Database) -> None:
    audit = save_review_audit(db, conflicts=3)
    session = ReviewSession(db, audit, "ada")
    both, neither, scored = session.conflict_keys()
    session.decide(session.load_item(both), B)
    session.decide(session.load_item(neither), N)
    session.decide(session.load_item(scored), Decision.SCORE, score=0.1)
    judged_sides = load_judged_sides(db, audit, load_blind_decisions(db, audit.id))
    assert {(x.cell.topic, x.is_correct) for x in judged_sides} == {(both.topic, True), (neither.topic, False)}


CELLS = itertools.count()


def judged_side(share: float, is_correct: bool, judge: str = "cedar") -> JudgedSide:
    return JudgedSide(judge, Cell("Egypt", f"topic {next(CELLS)}"), share, is_correct)


def test_a_judge_who_is_right_three_times_in_four() -> None:
    judged_sides = [judged_side(1.0, True)] * 9 + [judged_side(0.0, True)] * 3 + [judged_side(0.5, False)] * 2
    (calibration,) = calibrate_judges(judged_sides)
    assert (calibration.raw_agreement.value, calibration.raw_agreement.n, calibration.n_tied) == (0.75, 12, 2)
    assert calibration.weight == pytest.approx(log((10 / 14) / (4 / 14)))
    assert "30" in known(calibration.calibration.reason)


def test_intervals_are_over_countries_and_topics() -> None:
    sides = [
        JudgedSide("cedar", Cell(f"country {i}", f"topic {j}"), float((i + j) % 4 != 0), True)
        for i in range(6)
        for j in range(7)
    ]
    (calibration,) = calibrate_judges([*sides, JudgedSide("cedar", Cell("country 0", "topic 0"), 0.0, False)])
    assert calibration.raw_agreement.resampled == ("country", "topic")
    assert calibration.kappa.resampled == ("country", "topic")
    assert calibration.calibration.error_before.resampled == ("country", "topic")
    (few,) = calibrate_judges([side for side in sides if side.cell.country < "country 4"])
    assert (few.raw_agreement.ci_low, few.kappa.ci_low) == (None, None)
    assert "there are 4 countries" in str(few.raw_agreement.reason)


def test_weights_are_one_on_average_and_never_negative() -> None:
    good_sides = [judged_side(1.0, True, "good")] * 18 + [judged_side(1.0, False, "good")] * 2
    fair_sides = [judged_side(1.0, True, "fair")] * 14 + [judged_side(1.0, False, "fair")] * 6
    bad_sides = [judged_side(1.0, False, "bad")] * 20
    new_sides = [judged_side(1.0, True, "new")] * 3
    weights = compute_judge_weights(calibrate_judges([*good_sides, *fair_sides, *bad_sides, *new_sides]))
    assert weights["bad"] == 0.0
    assert weights["new"] == 1.0
    assert weights["good"] + weights["fair"] + weights["bad"] == pytest.approx(3)
    # (18 + 1) / 22 and (14 + 1) / 22, as log odds
    assert weights["good"] / weights["fair"] == pytest.approx(log(19 / 3) / log(15 / 7))
    assert compute_judge_weights([]) == {}
    assert compute_judge_weights(calibrate_judges(bad_sides)) == {"bad": 0.0}


def test_calibration_maps_shares_to_how_often_people_agree() -> None:
    judged_sides = [judged_side(1.0, i % 10 != 0) for i in range(40)] + [
        judged_side(0.0, i % 4 == 0) for i in range(40)
    ]
    (calibration,) = calibrate_judges(judged_sides)
    assert calibration.calibration.predict([0.0, 1.0]) == pytest.approx([0.25, 0.9])
    assert calibration.calibration.error_after.value is not None


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


@pytest.mark.parametrize(
    ("ada", "grace", "agreement"),
    [
        ((0.8, 0.8, -0.4, 0.0), (-0.8, 0.3, -0.1, 0.2), 0.75),
        ((0.0, 0.0), (0.4, 0.0), 1.0),
        ((0.0, 0.0), (-0.4, 0.0), 1.0),
    ],
)
def test_custom_scores_agree_if_their_signs_do_and_0_agrees_with_both(
    db: Database, ada: tuple[float, ...], grace: tuple[float, ...], agreement: float
) -> None:
    audit = save_review_audit(db)
    keys = list(ReviewSession(db, audit, "ada").conflict_keys())[: len(ada)]
    for rater, scores in (("ada", ada), ("grace", grace)):
        session = ReviewSession(db, audit, rater)
        for k, score in zip(keys, scores, strict=True):
            session.decide(session.load_item(k), Decision.SCORE, score=score, withhold=True)
    [pair] = compute_rater_agreement(categorize_ratings(load_blind_ratings(db, audit.id))).pairs
    assert (pair.raw_agreement.value, pair.raw_agreement.n) == (agreement, len(ada))


def test_a_decision_without_a_score_has_one_category_whatever_scores_others_gave(db: Database) -> None:
    audit = save_review_audit(db)
    keys = list(ReviewSession(db, audit, "ada").conflict_keys())[:2]
    for rater, score in {"ada": None, "grace": -0.4}.items():
        session = ReviewSession(db, audit, rater)
        for k in keys:
            decision = Decision.SCORE if score is not None and k == keys[0] else Decision.BOTH
            session.decide(
                session.load_item(k), decision, score=score if decision is Decision.SCORE else None, withhold=True
            )
    categories = categorize_ratings(load_blind_ratings(db, audit.id))
    assert [by_rater["ada"] for by_rater in categories.values()] == [(Decision.BOTH, False)] * 2
