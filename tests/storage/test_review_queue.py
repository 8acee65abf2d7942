"""The review queue in SQL equals the rules in Python; ratings settle conflicts by one rule everywhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision, Rating, RatingAction
from auditor.reports.data.audit_status import load_audit_status
from auditor.storage import rating_log, results, review_queue
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter, QueueRow, QueueSort
from auditor.storage.database import Database
from auditor.storage.rating_log import RatingChange
from auditor.storage.review_queue import ConflictQueue, load_reviewed_conflicts
from tests.support.stored_rows import add_rating
from tests.support.synthetic_audit import populate

RATERS = ("ada", "grace", "mary")
RatingsByConflict = dict[ConflictKey, dict[str, Rating]]


@pytest.fixture(scope="module")
def db(shared_db: Database) -> Database:
    return shared_db


@pytest.fixture(scope="module")
def audit(db: Database) -> Audit:
    populate(db, models=2, countries=2, topics=2, name="another")
    audit = populate(db, models=4, countries=6, topics=5)
    rng = random.Random(5)
    keys = [key_of(conflict) for conflict in results.load_conflicts(db, audit.id)]
    for _ in range(160):
        rater = rng.choice(RATERS)
        decision, note = rng.choice(list(Decision)), rng.choice(["", "odd %_ one"])
        rating_change = RatingChange(RatingAction.DECIDE, decision=decision, note=note)
        rating_log.append_rating(db, audit.id, rng.choice(keys[:60]), rater, rating_change)
        if rng.random() < 0.2:
            rating_log.undo(db, audit.id, rater)
    return audit


def key_of(conflict: Conflict) -> ConflictKey:
    return ConflictKey(*conflict.cell, conflict.left, conflict.right)


def current_ratings(db: Database, audit: Audit) -> RatingsByConflict:
    """Each rater's last rating of each conflict, if it was made on the current scores."""
    conflicts = {key_of(conflict): conflict for conflict in results.load_conflicts(db, audit.id)}
    ratings_by_conflict: RatingsByConflict = {}
    for entry in rating_log.load_entries(db, audit.id):
        conflict = conflicts[entry.key]
        if (entry.rating.score_left, entry.rating.score_right) == (conflict.score_left, conflict.score_right):
            ratings_by_conflict.setdefault(entry.key, {})[entry.rating.rater] = entry.rating
    return ratings_by_conflict


def expected_status(conflict: Conflict, ratings: dict[str, Rating]) -> ConflictStatus:
    counts_by_decision = Counter(rating.decision for rating in ratings.values() if rating.decision.resolves_conflict)
    if not counts_by_decision:
        return ConflictStatus.MAJORITY if conflict.state is ConflictState.MAJORITY else ConflictStatus.OPEN
    has_majority = 2 * max(counts_by_decision.values()) > sum(counts_by_decision.values())
    return ConflictStatus.PERSON if has_majority else ConflictStatus.DISPUTED


def queue_rows(db: Database, audit: Audit, rater: str, queue_filter: QueueFilter | None = None) -> list[QueueRow]:
    queue = review_queue.ConflictQueue(db, audit.id, rater)
    return queue.rows([key for key, _ in queue.keys(queue_filter or QueueFilter())])


@pytest.mark.parametrize("rater", [*RATERS, "nobody"])
def test_rows_show_the_current_ratings(db: Database, audit: Audit, rater: str) -> None:
    ratings_by_conflict = current_ratings(db, audit)
    conflicts = {key_of(conflict): conflict for conflict in results.load_conflicts(db, audit.id)}
    row_by_key = {row.key: row for row in queue_rows(db, audit, rater)}
    assert set(row_by_key) == set(conflicts)
    for key, conflict in conflicts.items():
        row, ratings = row_by_key[key], ratings_by_conflict.get(key, {})
        assert row.status is expected_status(conflict, ratings)
        assert row.n_raters == sum(rating.decision.resolves_conflict for rating in ratings.values())
        own_rating = ratings.get(rater)
        assert row.decision is (own_rating and own_rating.decision)
        assert row.note == (own_rating.note if own_rating else "")
        assert (row.score_left, row.score_right, row.kind) == (conflict.score_left, conflict.score_right, conflict.kind)


def test_reviewed_conflicts_have_the_decision_of_the_majority_and_the_status_of_the_queue(
    db: Database, audit: Audit
) -> None:
    ratings_by_conflict = current_ratings(db, audit)
    status_by_key = {row.key: row.status for row in queue_rows(db, audit, "ada")}
    reviewed_conflicts = load_reviewed_conflicts(db, audit.id)
    assert [reviewed.conflict for reviewed in reviewed_conflicts] == results.load_conflicts(db, audit.id)
    for reviewed in reviewed_conflicts:
        conflict = reviewed.conflict
        key = key_of(conflict)
        ratings = ratings_by_conflict.get(key, {})
        deciding = [rating for _, rating in sorted(ratings.items()) if rating.decision.resolves_conflict]
        counts_by_decision = Counter(rating.decision for rating in deciding)
        majority = [decision for decision, n in counts_by_decision.items() if 2 * n > len(deciding)]
        assert reviewed.decision is (majority[0] if majority else None)
        assert reviewed.ratings == tuple(deciding)
        assert reviewed.status is status_by_key[key]
        sides = {Decision.LEFT: conflict.left, Decision.RIGHT: conflict.right}
        decided_winner = None if reviewed.decision is None else sides.get(reviewed.decision)
        assert reviewed.winner == (decided_winner if deciding else conflict.winner)
    assert len({(reviewed.status, reviewed.decision) for reviewed in reviewed_conflicts}) > len(Decision)


def test_counts_by_status_equal_those_of_the_rows(db: Database, audit: Audit) -> None:
    counted = Counter(row.status for row in queue_rows(db, audit, "ada"))
    counts = review_queue.ConflictQueue(db, audit.id, "ada").count_by_status()
    assert {k: n for k, n in counts.items() if n} == counted
    assert len(counted) == 4, "the drawn ratings leave a standing untested"


FILTERS: dict[str, tuple[QueueFilter, Callable[[QueueRow], bool]]] = {
    "kinds": (QueueFilter(kinds=(ConflictKind.BINARY,)), lambda r: r.kind is ConflictKind.BINARY),
    "states": (QueueFilter(states=(ConflictStatus.DISPUTED, ConflictStatus.PERSON)),
     lambda r: r.status in (ConflictStatus.DISPUTED, ConflictStatus.PERSON)),
    "country": (QueueFilter(countries=("EGY",)), lambda r: r.key.country == "Egypt"),
    "topic or topic": (QueueFilter(topics=("divorce", "abor")), lambda r: r.key.topic in ("divorce", "abortion")),
    "words": (QueueFilter(words=("a", "divorce")),
     lambda r: r.key.topic == "divorce" and "a" in r.key.country.lower() + r.note),
    "note": (QueueFilter(words=("%_",)), lambda r: "%_" in r.note),
    "gap": (QueueFilter(min_gap=0.5, max_gap=0.8), lambda r: r.gap is not None and 0.5 <= r.gap <= 0.8),
    "model": (QueueFilter(models=("alder",)), lambda r: r.revealed and "alder" in (r.key.left, r.key.right)),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_filters(db: Database, audit: Audit, name: str) -> None:
    queue_filter, matches = FILTERS[name]
    all_rows = queue_rows(db, audit, "ada")
    expected = {row.key for row in all_rows if matches(row)}
    assert {row.key for row in queue_rows(db, audit, "ada", queue_filter)} == expected
    assert 0 < len(expected) < len(all_rows)


def test_todo_lists_open_disputed_and_singly_rated_conflicts(db: Database, audit: Audit) -> None:
    rows = queue_rows(db, audit, "ada")
    undecided = [row for row in rows if not (row.decision and row.decision.resolves_conflict)]
    unsettled = (ConflictStatus.OPEN, ConflictStatus.DISPUTED)
    open_keys = {row.key for row in undecided if row.status in unsettled or row.n_raters == 1}
    assert {row.key for row in queue_rows(db, audit, "ada", QueueFilter(todo=True))} == open_keys
    decided_keys = {row.key for row in queue_rows(db, audit, "ada", QueueFilter(todo=False))}
    assert decided_keys == {row.key for row in rows} - open_keys


def test_conflicts_of_a_rater(db: Database, audit: Audit) -> None:
    of_mary = {key: ratings.get("mary") for key, ratings in current_ratings(db, audit).items()}
    expected = {key for key, rating in of_mary.items() if rating and rating.decision.resolves_conflict}
    assert {row.key for row in queue_rows(db, audit, "ada", QueueFilter(raters=("mary",)))} == expected


def expected_informativeness(conflict: Conflict, rows_of_rater: list[QueueRow], row: QueueRow) -> float:
    """The documented informativeness: gap / 2 x (1 + evenness of the votes) x (novelty of topic + of country).

    It is doubled if the conflict is disputed, and halved on a cell that the rater has seen revealed.
    """
    votes = conflict.votes_left + conflict.votes_right
    evenness = 1 - abs(conflict.votes_left - conflict.votes_right) / votes if votes else 1.0
    resolved_keys = [r.key for r in rows_of_rater if r.decision and r.decision.resolves_conflict]
    topic_novelty = 1 / (1 + sum(k.topic == row.key.topic for k in resolved_keys))
    country_novelty = 1 / (1 + sum(k.country == row.key.country for k in resolved_keys))
    weight = 2 if row.status is ConflictStatus.DISPUTED else 1
    blind_factor = 0.5 if any(r.revealed and r.key[:2] == row.key[:2] for r in rows_of_rater) else 1.0
    gap = abs(conflict.difference or 0.0)
    return gap / 2 * (1 + evenness) * (topic_novelty + country_novelty) * weight * blind_factor


def expected_skips(db: Database, audit: Audit, rater: str) -> set[ConflictKey]:
    """The conflicts that a rater put off last, by the decisions that were not undone."""
    entries = rating_log.load_entries(db, audit.id, rater=rater)
    acts = [(entry.id, entry.rating.act, entry.rating.of) for entry in entries]
    in_force, _ = rating_log.undo_redo_stacks(acts)
    decisions = {entry.key: entry.rating.decision for entry in entries if entry.id in in_force}
    return {key for key, decision in decisions.items() if decision is Decision.SKIP}


def test_rows_are_sorted_by_informativeness(db: Database, audit: Audit) -> None:
    conflicts = {key_of(conflict): conflict for conflict in results.load_conflicts(db, audit.id)}
    ordered = queue_rows(db, audit, "ada")
    assert len({row.key for row in ordered if row.decision is None}) > 20
    skipped_keys = expected_skips(db, audit, "ada")
    assert {row.key for row in ordered if row.skipped} == skipped_keys
    ranks = [2 if r.decision and r.decision.resolves_conflict else int(r.key in skipped_keys) for r in ordered]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    for rank in (0, 1, 2):
        rows_of_rank = [row for row, r in zip(ordered, ranks, strict=True) if r == rank]
        scores_of_rank = [expected_informativeness(conflicts[row.key], ordered, row) for row in rows_of_rank]
        assert scores_of_rank == pytest.approx(sorted(scores_of_rank, reverse=True))


def test_other_orders_and_their_reverse(db: Database, audit: Audit) -> None:
    gaps = [row.gap or 0.0 for row in queue_rows(db, audit, "ada", QueueFilter(sort=QueueSort.GAP))]
    assert gaps == sorted(gaps, reverse=True)
    by_country = QueueFilter(sort=QueueSort.COUNTRY, reverse=True)
    countries = [row.key.country for row in queue_rows(db, audit, "ada", by_country)]
    assert countries == sorted(countries, reverse=True)


def test_rows_are_in_the_requested_order_without_unknown_keys(db: Database, audit: Audit) -> None:
    queue = review_queue.ConflictQueue(db, audit.id, "ada")
    keys = [key for key, _ in queue.keys(QueueFilter())]
    missing_key = ConflictKey("Atlantis", "divorce", "alder", "birch")
    assert [row.key for row in queue.rows([keys[3], missing_key, keys[1]])] == [keys[3], keys[1]]
    assert [row.key for row in queue.rows(keys)] == keys


def _conflict(topic: str) -> Conflict:
    return Conflict(
        Cell("Egypt", topic), "a", "b", 0.5, -0.5, ConflictKind.BINARY, ConflictState.MAJORITY,
        seats=1, votes_left=1, winner="a",
    )  # fmt: skip


def _rating(decision: Decision, rater: str = "ada", score_left: float = 0.5, *, score: float | None = None) -> Rating:
    decided_at = datetime(2026, 1, 1, tzinfo=UTC)
    return Rating(Cell("Egypt", ""), "a", "b", score_left, -0.5, rater, decision, decided_at, score)


LEFT, RIGHT, BOTH, SCORE, SKIP = Decision.LEFT, Decision.RIGHT, Decision.BOTH, Decision.SCORE, Decision.SKIP
CASES: dict[str, tuple[list[Rating], ConflictStatus, Decision | None, str | None]] = {
    "nobody": ([], ConflictStatus.MAJORITY, None, "a"),
    "right": ([_rating(RIGHT)], ConflictStatus.PERSON, RIGHT, "b"),
    "left": ([_rating(LEFT)], ConflictStatus.PERSON, LEFT, "a"),
    "both": ([_rating(BOTH)], ConflictStatus.PERSON, BOTH, None),
    "skipped": ([_rating(SKIP)], ConflictStatus.MAJORITY, None, "a"),
    "taken back": ([_rating(RIGHT), _rating(SKIP)], ConflictStatus.MAJORITY, None, "a"),
    "revised": ([_rating(RIGHT), _rating(LEFT)], ConflictStatus.PERSON, LEFT, "a"),
    "other score": ([_rating(RIGHT, score_left=0.4)], ConflictStatus.MAJORITY, None, "a"),
    "disputed": ([_rating(RIGHT), _rating(LEFT, "bo")], ConflictStatus.DISPUTED, None, None),
    "two of three": ([_rating(RIGHT), _rating(LEFT, "bo"), _rating(RIGHT, "cy")], ConflictStatus.PERSON, RIGHT, "b"),
    "opposite scores": ([_rating(SCORE, score=0.8), _rating(SCORE, "bo", score=-0.8)],
                        ConflictStatus.DISPUTED, None, None),
    "scores of one sign": ([_rating(SCORE, score=0.8), _rating(SCORE, "bo", score=0.1),
                            _rating(SCORE, "cy", score=-0.1)], ConflictStatus.PERSON, SCORE, None),
    "a score of zero": ([_rating(SCORE, score=0.0), _rating(SCORE, "bo", score=-0.2)],
                        ConflictStatus.PERSON, SCORE, None),
    "one skips": ([_rating(RIGHT), _rating(SKIP, "bo")], ConflictStatus.PERSON, RIGHT, "b"),
}  # fmt: skip


def test_ratings_override_the_judges(db: Database) -> None:
    audit = populate(db, models=2, countries=2, topics=2, name="cases")
    results.replace_conflicts(db, audit.id, [_conflict(name) for name in CASES])
    for name, (ratings, *_) in CASES.items():
        for rating in ratings:
            add_rating(db, audit.id, replace(rating, cell=Cell("Egypt", name)))
    reviewed_by_name = {r.conflict.cell.topic: r for r in load_reviewed_conflicts(db, audit.id)}
    assert set(reviewed_by_name) == set(CASES)
    for name, (ratings, *expected) in CASES.items():
        reviewed = reviewed_by_name[name]
        assert [reviewed.status, reviewed.decision, reviewed.winner] == expected, name
        deciding_raters = sorted(rating.rater for rating in reviewed.ratings)
        assert [rating.rater for rating in reviewed.ratings] == deciding_raters
        assert {rating.rater for rating in ratings} >= set(deciding_raters)
        assert bool(deciding_raters) == (reviewed.status in (ConflictStatus.PERSON, ConflictStatus.DISPUTED)), name
        assert reviewed.conflict == _conflict(name)


def test_a_conflict_within_the_noise_of_its_samples_is_half_as_informative(db: Database) -> None:
    audit = populate(db, models=2, countries=2, topics=2, name="noisy")
    conflicts = [replace(_conflict(f"gap {0.5 + left:.1f}"), score_left=left) for left in (0.5, 0.2, -0.1)]
    conflicts[0] = replace(conflicts[0], within_noise=True)
    results.replace_conflicts(db, audit.id, conflicts)
    topics = [key.topic for key, _ in ConflictQueue(db, audit.id, "ada").keys(QueueFilter())]
    assert topics == ["gap 0.7", "gap 1.0", "gap 0.4"]


def test_the_ratings_are_complete(db: Database) -> None:
    audit = populate(db, models=2, countries=2, topics=2, name="complete")
    conflict = results.load_conflicts(db, audit.id)[0]
    rating = Rating(
        conflict.cell, conflict.left, conflict.right, conflict.score_left, conflict.score_right, "zoe", Decision.SCORE,
        datetime(2026, 1, 1, tzinfo=UTC), 0.25, note="a note", flagged=True, shown="survey", swapped=True,
        duration_s=1.5,
    )  # fmt: skip
    add_rating(db, audit.id, rating)
    reviewed = next(r for r in load_reviewed_conflicts(db, audit.id) if r.conflict == conflict)
    assert rating in reviewed.ratings


def test_report_status_and_queue_count_the_same(db: Database) -> None:
    audit = populate(db, countries=5, topics=4, name="counted")
    conflicts = results.load_conflicts(db, audit.id)
    for i, conflict in enumerate(conflicts):
        for rater in ("bo", "cy")[: i % 3]:
            decision = list(Decision)[(i * (2 if rater == "bo" else 1)) % len(Decision)]
            rating = replace(
                _rating(decision, rater, (conflict.score_left or 0.0) - (i % 5 == 4)), cell=conflict.cell,
                left=conflict.left, right=conflict.right, score_right=conflict.score_right,
            )  # fmt: skip
            add_rating(db, audit.id, rating)
    reviewed_conflicts = load_reviewed_conflicts(db, audit.id)
    assert [reviewed.conflict for reviewed in reviewed_conflicts] == conflicts
    counts = Counter(reviewed.status for reviewed in reviewed_conflicts)
    assert ConflictQueue(db, audit.id, "ada").count_by_status() == counts
    assert all(counts[status] for status in ConflictStatus)
    status = load_audit_status(db, audit)
    assert status["conflicts"] == len(conflicts)
    assert status["open"] == counts[ConflictStatus.OPEN] + counts[ConflictStatus.DISPUTED]


def test_ratings_without_conflicts_resolve_nothing(db: Database) -> None:
    audit = populate(db, countries=3, topics=3, name="none")
    assert results.load_ratings(db, audit.id)
    results.replace_conflicts(db, audit.id, [])
    assert load_reviewed_conflicts(db, audit.id) == []
