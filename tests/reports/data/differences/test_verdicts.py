"""Verdicts, settled conflicts and labels of two judges or audits: what differs, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from auditor.domain import (
    Cell,
    Conflict,
    ConflictKind,
    ConflictState,
    Decision,
    Outcome,
    Rating,
    Ruling,
    Trace,
    Verdict,
)
from auditor.domain.labels import LabelKind
from auditor.errors import UsageError
from auditor.metrics.judges.consistency import compare_verdicts_over_units
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.schema import DifferenceReport, ResolutionDifferences, VerdictDifferences
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.judge_quality.labelled_traces import read_trace_key
from auditor.reports.data.report_source import load_source
from auditor.reports.sections.differences_document import build_difference_document
from auditor.review.label_sampling import draw_label_sample
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.labels import append_labels, load_label_sample
from auditor.storage.records import save_records
from auditor.storage.votes import load_votes
from tests.reports.data.differences.test_compare import CELLS, save_imported_audit
from tests.reports.sections.node_text import assert_consistent, tables_of, text_of
from tests.support.known import known
from tests.support.planted_labels import make_label, plant_truth
from tests.support.stored_rows import add_rating
from tests.support.synthetic_audit import populate

ERROR_RATES = {"before": 0.05, "afterwards": 0.05, "reversed": 0.6}
"""Share of the traces on which people say the opposite of most judges, by audit."""


def compare(db: Database, *names: str, **options: Any) -> DifferenceReport:
    return compare_targets(db, [parse_target(name) for name in names], **options)


def label_sample(db: Database, audit: Audit, error_rate: float) -> None:
    """Draw a sample and label all of it, as a person who contradicts most judges at a rate."""
    draw_label_sample(db, audit, LabelKind.TRACE, 200)
    truth = plant_truth(load_votes(db, audit.id), error_rate)
    keys = [read_trace_key(sampled.unit.parts) for sampled in load_label_sample(db, audit.id, LabelKind.TRACE)]
    append_labels(db, audit.id, [make_label(key, is_valid=truth[key]) for key in keys])


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Audits whose judges people labelled, and one without labels."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('drift') / 'audits.db'}") as database:
        for seed, (name, error_rate) in enumerate(ERROR_RATES.items()):
            label_sample(database, populate(database, name=name, seed=seed), error_rate)
        populate(database, name="unlabelled")
        yield database


def test_a_judge_that_agrees_less_with_people_is_shown(labelled: Database) -> None:
    comparison = compare(labelled, "before", "reversed")
    rows = [row for row in comparison.judge_drift if row.figure == "accuracy"]
    quality = [build_judge_quality(load_source(labelled, name)) for name in ("before", "reversed")]
    assert [row.judge for row in rows] == [row.judge for row in known(quality[0]).judges]
    for i, row in enumerate(rows):
        first, second = (None if one is None else one.judges[i].accuracy.value for one in quality)
        assert (row.first.value, row.second.value) == (first, second)
        assert row.change.value == pytest.approx((second or 0) - (first or 0))
        assert (row.change.ci_high or 0) < 0
        assert (row.change.adjusted_p_value or 1) < 0.05
    document = build_difference_document(comparison)
    assert_consistent(document)
    assert f"{rows[0].judge}: its agreement with people changed from" in text_of(document.sections)
    assert len(tables_of(document)["judge-drift"].rows) == len(comparison.judge_drift) == 2 * len(rows)


def test_no_drift_is_shown_where_there_is_none(labelled: Database) -> None:
    comparison = compare(labelled, "before", "afterwards")
    assert comparison.judge_drift
    assert all((row.change.adjusted_p_value or 1) >= 0.05 for row in comparison.judge_drift)
    assert "no change of its agreement with people is shown" in text_of(build_difference_document(comparison).sections)


def test_each_two_audits_are_compared_once_and_only_if_both_are_labelled(labelled: Database) -> None:
    rows = compare(labelled, "before", "afterwards", "reversed").judge_drift
    keys = [(row.first_audit, row.second_audit, row.judge, row.figure) for row in rows]
    assert {key[:2] for key in keys} == {("before", "afterwards"), ("before", "reversed")}
    assert len(keys) == len(set(keys))
    for names in (("before", "unlabelled"), ("before",)):
        unlabelled = compare(labelled, *names)
        assert unlabelled.judge_drift == []
        assert "Have the judges drifted?" not in text_of(build_difference_document(unlabelled).sections)


def save_conflicts(db: Database, audit: str, models: tuple[str, str], winners: Sequence[str | None]) -> None:
    rows = [
        Conflict(
            Cell(*cell), *models, 0.5, -0.5, ConflictKind.BINARY,
            ConflictState.OPEN if winner is None else ConflictState.MAJORITY, winner=winner,
        )
        for cell, winner in zip(CELLS, winners, strict=False)
    ]  # fmt: skip
    results.replace_conflicts(db, audits.get_audit(db, audit).id, rows)


def settle(db: Database, **options: Any) -> ResolutionDifferences:
    """How conflicts were settled in the audits `one` and `two`."""
    [part] = compare(db, "one", "two", **options).settlements
    return part


def test_differently_settled_conflicts_are_counted_and_listed_whichever_model_is_on_the_left(db: Database) -> None:
    save_imported_audit(db, "one", {"base": 0.1, "other": 0.1})
    save_imported_audit(db, "two", {"tuned": 0.1, "other": 0.1})
    save_conflicts(db, "one", ("base", "other"), ["base", "base", "other", None, "base", None])
    save_conflicts(db, "two", ("other", "tuned"), ["tuned", "other", "other", "other", None, None])
    renamed = {"renamed_models": {"base": "tuned"}}
    part = settle(db, **renamed)
    assert (part.shared, part.n, part.flipped, part.only_first, part.only_second, part.neither) == (6, 3, 1, 1, 1, 1)
    assert part.share.value == pytest.approx(1 / 3)
    flips = [(flip.country, flip.topic, flip.first_winner, flip.second_winner) for flip in part.flips]
    assert flips == [(*CELLS[1], "base", "other")]
    assert settle(db, **renamed, max_listed=0).not_listed == 1


def test_the_share_of_different_outcomes_has_an_interval_over_countries_and_topics(db: Database) -> None:
    for name in ("one", "two"):
        save_imported_audit(db, name, {"a": 0.1, "b": 0.1})
    save_conflicts(db, "one", ("a", "b"), ["a"] * 42)
    save_conflicts(db, "two", ("a", "b"), ["b" if i % 5 == 0 else None if i % 9 == 1 else "a" for i in range(42)])
    part = settle(db)
    assert (part.n, part.flipped, part.share.n, part.share.resampled) == (38, 9, 38, ("country", "topic"))
    assert part.share.value == pytest.approx(9 / 38)


def test_a_human_decision_overrides_the_judges_in_a_comparison(db: Database) -> None:
    for name in ("one", "two"):
        save_imported_audit(db, name, {"a": 0.1, "b": 0.1})
        save_conflicts(db, name, ("a", "b"), ["a"])
    decided = Rating(Cell(*CELLS[0]), "a", "b", 0.5, -0.5, "ann", Decision.RIGHT, datetime(2026, 1, 2, tzinfo=UTC))
    add_rating(db, audits.get_audit(db, "two").id, decided)
    flips = [(flip.first_by, flip.second_winner, flip.second_by) for flip in settle(db).flips]
    assert flips == [("majority", "b", "person")]


def save_verdicts(db: Database, audit: str, rulings: Mapping[str, list[bool]]) -> None:
    rows = [
        Verdict(judge, "a", Cell(*cell), 0, Outcome.OK, Ruling.VALID if is_valid else Ruling.INVALID)
        for judge, votes in rulings.items()
        for cell, is_valid in zip(CELLS, votes, strict=False)
    ]
    save_records(db, audits.get_audit(db, audit).id, rows)


def compare_judges(db: Database, *judges: str, **options: Any) -> VerdictDifferences:
    """The verdicts of judges of the audit `one`."""
    [pair] = compare(db, "one", judges=list(judges), **options).judges
    return pair


def test_two_judges_on_the_same_traces(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    save_verdicts(db, "one", {"x": [True] * 10 + [False] * 5, "y": [False] * 8 + [True] * 2 + [False] * 4 + [True]})
    pair = compare_judges(db, "x", "y", max_listed=3)
    assert (pair.first, pair.second) == ("x", "y")
    assert (pair.n, pair.both_valid, pair.both_invalid, pair.to_valid, pair.to_invalid) == (15, 2, 4, 1, 8)
    assert (pair.change.p_value, pair.change.ci_low, pair.kappa.ci_low) == (None, None, None)
    assert "an interval needs at least 5 countries and 5 topics" in str(pair.change.reason)
    assert (len(pair.flips), pair.not_listed) == (3, 6)
    assert pair.change.value == pytest.approx(-7 / 15)
    with pytest.raises(UsageError, match="no trace has valid verdicts"):
        compare_judges(db, "x", "nobody")


def test_the_nearest_judge_is_named_for_one_that_gave_no_verdict(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    save_verdicts(db, "one", {"claude": [True] * 5, "gpt": [False] * 5})
    with pytest.raises(UsageError, match=r"no trace has valid verdicts .* Did you mean 'claude'\?"):
        compare_judges(db, "gpt", "claud")


def test_the_interval_of_two_judges_is_over_countries_and_topics(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    rng = np.random.default_rng(3)
    x, y = rng.random(42) < 0.8, rng.random(42) < 0.4
    save_verdicts(db, "one", {"x": x.tolist(), "y": y.tolist()})
    pair = compare_judges(db, "x", "y")
    units = {"country": [country for country, _ in CELLS], "topic": [topic for _, topic in CELLS]}
    expected = compare_verdicts_over_units(np.stack([x & y, y & ~x, x & ~y, ~x & ~y], axis=1).astype(int), units)
    assert (pair.change, pair.kappa) == (expected.change, expected.kappa)
    assert (pair.change.p_value is None, pair.change.resampled) == (False, ("country", "topic"))


def test_verdicts_that_an_adaptive_panel_adds_are_not_compared(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    save_verdicts(db, "one", {"x": [True] * 8, "y": [False] * 8})
    audit = audits.get_audit(db, "one").id
    mixed = [replace(verdict, always=verdict.cell != CELLS[0]) for verdict in results.load_verdicts(db, audit)]
    save_records(db, audit, mixed)
    pair = compare_judges(db, "x", "y")
    assert (pair.about, pair.n, pair.traces) == ("answers", 7, 7)


def compare_answers(
    db: Database, texts: tuple[str, str], votes: tuple[dict[str, list[bool]], dict[str, list[bool]]], scores: Any = None
) -> VerdictDifferences:
    """The verdicts of two audits, with answers whose texts have one letter; without texts there are none."""
    for i, name in enumerate(("one", "two")):
        save_imported_audit(db, name, {"a": 0.1})
        answers = zip(CELLS, texts[i], (0.5,) * len(CELLS) if scores is None else scores[i], strict=False)
        rows = [Trace("a", Cell(*cell), 0, Outcome.OK, score, text) for cell, text, score in answers]
        save_records(db, audits.get_audit(db, name).id, rows)
        save_verdicts(db, name, votes[i])
    return known(compare(db, "one", "two").pairs[0].verdicts)


def test_flips_between_audits_compare_the_same_judge(db: Database) -> None:
    votes = {"x": [True, True], "y": [True, True]}, {"x": [True, False], "z": [False, False]}
    verdicts = compare_answers(db, ("", ""), votes)
    flips = [(flip.judge, flip.country, flip.topic, flip.first, flip.second) for flip in verdicts.flips]
    assert flips == [("x", *CELLS[1], "VALID", "INVALID")]


def test_a_flip_records_whether_the_answer_was_the_same(db: Database) -> None:
    """Short texts recur with other scores, which judges see too; a task's answers have no score."""
    verdicts = compare_answers(db, ("stu", "sxy"), ({"x": [True] * 4}, {"x": [False, False, True, False]}))
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.to_invalid) == ("answers", 1, 1, 1)
    assert verdicts.other_answers == 3
    same = {(flip.country, flip.topic): flip.same_answer for flip in verdicts.flips}
    assert same == {CELLS[0]: True, CELLS[1]: False, CELLS[3]: None}


def test_an_answer_is_the_same_only_if_text_and_score_are_equal(db: Database) -> None:
    scores = (0.5, 0.5, None, None), (0.5, -0.4, None, 0.5)
    verdicts = compare_answers(db, ("ssss", "ssss"), ({"x": [True] * 4}, {"x": [False] * 4}), scores)
    same = {(flip.country, flip.topic): flip.same_answer for flip in verdicts.flips}
    assert same == dict(zip(CELLS, (True, False, True, False), strict=False))
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.other_answers) == ("answers", 2, 2, 2)


def test_verdicts_on_different_answers_are_labelled_and_traces_are_counted_once(db: Database) -> None:
    votes = [{judge: [vote] * 5 for judge in "xy"} for vote in (True, False)]
    verdicts = compare_answers(db, ("stuvw", "abcde"), (votes[0], votes[1]))
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.other_answers) == ("cells", 10, 5, 0)
