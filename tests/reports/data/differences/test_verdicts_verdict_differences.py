"""Verdicts of two judges or two audits on the same traces: flips, their p values, and whether the answer changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import Cell, Outcome, Ruling, Trace, Verdict
from auditor.errors import UsageError
from auditor.metrics.judges.consistency import compare_verdicts_over_units
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.data.differences.test_compare import CELLS, save_imported_audit


def _save_verdicts(db: Database, audit: str, rulings: Mapping[str, list[bool]]) -> None:
    rows = [
        Verdict(judge, "a", Cell(*cell), 0, Outcome.OK, Ruling.VALID if is_valid else Ruling.INVALID)
        for judge, votes in rulings.items()
        for cell, is_valid in zip(CELLS, votes, strict=False)
    ]
    save_records(db, audits.get_audit(db, audit).id, rows)


def test_two_judges_on_the_same_traces(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    _save_verdicts(db, "one", {"x": [True] * 10 + [False] * 5, "y": [False] * 8 + [True] * 2 + [False] * 4 + [True]})
    verdict_pair = compare_targets(db, [parse_target("one")], judges=["x", "y"], max_listed=3).judges[0]
    assert (
        verdict_pair.n,
        verdict_pair.both_valid,
        verdict_pair.both_invalid,
        verdict_pair.to_valid,
        verdict_pair.to_invalid,
    ) == (15, 2, 4, 1, 8)
    n_countries, n_topics = (len({cell[side] for cell in CELLS[:15]}) for side in (0, 1))
    assert min(n_countries, n_topics) < 5
    assert (verdict_pair.change.p_value, verdict_pair.change.ci_low, verdict_pair.kappa.ci_low) == (None, None, None)
    assert "an interval needs at least 5 countries and 5 topics" in str(verdict_pair.change.reason)
    assert (len(verdict_pair.flips), verdict_pair.not_listed) == (3, 6)
    assert verdict_pair.change.value == pytest.approx(-7 / 15)
    with pytest.raises(UsageError, match="no trace has valid verdicts"):
        compare_targets(db, [parse_target("one")], judges=["x", "nobody"])


def test_the_interval_of_two_judges_is_over_countries_and_topics(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    rng = np.random.default_rng(3)
    rulings = {"x": (rng.random(42) < 0.8).tolist(), "y": (rng.random(42) < 0.4).tolist()}
    _save_verdicts(db, "one", rulings)
    [verdict_pair] = compare_targets(db, [parse_target("one")], judges=["x", "y"]).judges
    counts = np.array(
        [[x and y, y and not x, x and not y, not x and not y] for x, y in zip(*rulings.values(), strict=True)]
    )
    units = {"country": [country for country, _ in CELLS], "topic": [topic for _, topic in CELLS]}
    expected = compare_verdicts_over_units(counts, units)
    assert verdict_pair.change == expected.change
    assert verdict_pair.change.p_value == expected.change.p_value is not None
    assert verdict_pair.kappa == expected.kappa
    assert verdict_pair.change.resampled == ("country", "topic")


def test_flips_between_audits_compare_the_same_judge(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    save_imported_audit(db, "two", {"a": 0.1})
    _save_verdicts(db, "one", {"x": [True, True], "y": [True, True]})
    _save_verdicts(db, "two", {"x": [True, False], "z": [False, False]})
    verdicts = compare_targets(db, [parse_target("one"), parse_target("two")]).pairs[0].verdicts
    assert verdicts is not None
    assert [(flip.judge, flip.country, flip.topic, flip.first, flip.second) for flip in verdicts.flips] == [
        ("x", *CELLS[1], "VALID", "INVALID")
    ]


def _save_answers(
    db: Database, audit: str, texts: Sequence[str], scores: Sequence[float | None] = (0.5,) * len(CELLS)
) -> None:
    rows = [
        Trace("a", Cell(*cell), 0, Outcome.OK, score, text)
        for cell, text, score in zip(CELLS, texts, scores, strict=False)
    ]
    save_records(db, audits.get_audit(db, audit).id, rows)


def test_a_flip_records_whether_the_answer_was_the_same(db: Database) -> None:
    for name, answers, votes in (("one", "stu", [True] * 4), ("two", "sxy", [False, False, True, False])):
        save_imported_audit(db, name, {"a": 0.1})
        _save_answers(db, name, answers)
        _save_verdicts(db, name, {"x": votes})
    comparison = compare_targets(db, [parse_target("one"), parse_target("two")])
    verdicts = comparison.pairs[0].verdicts
    assert verdicts is not None
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.to_invalid) == ("answers", 1, 1, 1)
    assert verdicts.other_answers == 3
    assert {(flip.country, flip.topic): flip.same_answer for flip in verdicts.flips} == {
        CELLS[0]: True, CELLS[1]: False, CELLS[3]: None,
    }  # fmt: skip


def test_an_answer_is_the_same_only_if_text_and_score_are_equal(db: Database) -> None:
    """Short texts recur with other scores, which judges see too; a task's answers have no score."""
    for name, scores, vote in (("one", (0.5, 0.5, None, None), True), ("two", (0.5, -0.4, None, 0.5), False)):
        save_imported_audit(db, name, {"a": 0.1})
        _save_answers(db, name, "ssss", scores)
        _save_verdicts(db, name, {"x": [vote] * 4})
    verdicts = compare_targets(db, [parse_target("one"), parse_target("two")]).pairs[0].verdicts
    assert verdicts is not None
    assert {(flip.country, flip.topic): flip.same_answer for flip in verdicts.flips} == {
        CELLS[0]: True, CELLS[1]: False, CELLS[2]: True, CELLS[3]: False,
    }  # fmt: skip
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.other_answers) == ("answers", 2, 2, 2)


def test_verdicts_on_different_answers_are_labelled_and_traces_are_counted_once(db: Database) -> None:
    for name, answers, vote in (("one", "stuvw", True), ("two", "abcde", False)):
        save_imported_audit(db, name, {"a": 0.1})
        _save_answers(db, name, answers)
        _save_verdicts(db, name, {"x": [vote] * 5, "y": [vote] * 5})
    comparison = compare_targets(db, [parse_target("one"), parse_target("two")])
    verdicts = comparison.pairs[0].verdicts
    assert verdicts is not None
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.other_answers) == ("cells", 10, 5, 0)


def test_verdicts_that_an_adaptive_panel_adds_are_not_compared(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    _save_verdicts(db, "one", {"x": [True] * 8, "y": [False] * 8})
    audit = audits.get_audit(db, "one").id
    mixed = [replace(verdict, always=verdict.cell != CELLS[0]) for verdict in results.load_verdicts(db, audit)]
    save_records(db, audit, mixed)
    [verdict_pair] = compare_targets(db, [parse_target("one")], judges=["x", "y"]).judges
    assert (verdict_pair.about, verdict_pair.n, verdict_pair.traces) == ("answers", 7, 7)
