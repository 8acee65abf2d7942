"""Comparisons of models and audits: pairing, direction of differences, and corrections."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest

from auditor.domain import Cell, CellScore
from auditor.errors import UsageError
from auditor.metrics.intervals.multiple_testing import holm
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.report_source import load_source
from auditor.storage.database import Database
from tests.reports.conftest import save_rows, survey_of
from tests.support.families_of_tests import check_families
from tests.support.known import known

COUNTRIES = ["Germany", "Japan", "Nigeria", "Brazil", "Egypt", "Turkey", "Mexico"]
TOPICS = ["divorce", "abortion", "suicide", "gambling", "euthanasia", "casual sex"]
CELLS = [(country, topic) for country in COUNTRIES for topic in TOPICS]
TRUTH = dict(zip(CELLS, np.random.default_rng(5).uniform(-0.9, 0.9, len(CELLS)).round(3).tolist(), strict=True))


def save_imported_audit(
    db: Database,
    name: str,
    noise: Mapping[str, float],
    *,
    drop: int = 0,
    worse_in: str = "",
    method: str = "direct",
    n_ok: int = 1,
    n_planned: int = 1,
) -> None:
    """Save an audit of imported scores.

    Each model's absolute error is about its `noise`, and 0.8 more in the country `worse_in`. The first `drop` cells
    have no score.
    """
    rng = np.random.default_rng(len(name))
    rows = []
    for model, size in noise.items():
        for i, (cell, people) in enumerate(TRUTH.items()):
            off = size * rng.choice([-1, 1]) * rng.uniform(0.8, 1.2) - (
                0.8 * np.sign(people) if cell[0] == worse_in else 0.0
            )
            score = None if i < drop else float(np.clip(people + off, -1, 1))
            n_usable = 0 if score is None else min(n_ok, n_planned)
            rows.append(CellScore(model, Cell(*cell), method, score, n_ok=n_usable, n_planned=n_planned))
    save_rows(db, survey_of(TRUTH), rows, name)


def test_the_more_accurate_model_is_better_and_reversing_the_pair_reverses_the_sign(db: Database) -> None:
    save_imported_audit(db, "one", {"near": 0.05, "far": 0.5})
    pair = compare_targets(db, [parse_target("one:far"), parse_target("one:near")]).pairs[0]
    assert (pair.mae.change, pair.pearson_r.change) == ("better", "better")
    assert known(pair.mae.difference.value) < -0.3
    reversed_pair = compare_targets(db, [parse_target("one:near"), parse_target("one:far")]).pairs[0]
    assert reversed_pair.mae.change == "worse"
    assert reversed_pair.mae.difference.value == pytest.approx(-known(pair.mae.difference.value))
    assert pair.mae.first == pytest.approx(reversed_pair.mae.second)


def test_one_audit_gives_all_pairs_and_two_audits_are_matched_by_model(db: Database) -> None:
    save_imported_audit(db, "before", {"a": 0.2, "b": 0.2, "c": 0.2})
    save_imported_audit(db, "afterwards", {"a": 0.2, "b": 0.2})
    within_one_audit = compare_targets(db, [parse_target("before")])
    assert [(p.first, p.second) for p in within_one_audit.pairs] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    between_audits = compare_targets(db, [parse_target("before"), parse_target("afterwards")])
    assert [(p.first, p.second) for p in between_audits.pairs] == [
        ("before:a", "afterwards:a"),
        ("before:b", "afterwards:b"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one"], "nothing to compare"),
        (["one", "one"], "nothing to compare"),
        (["one:nobody", "two"], "no scores of 'nobody'"),
        (["one", "two"], "nothing to compare"),
    ],
)
def test_targets_that_cannot_be_paired_raise_a_usage_error(db: Database, words: list[str], message: str) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    save_imported_audit(db, "two", {"b": 0.1, "c": 0.1})
    with pytest.raises(UsageError, match=message):
        compare_targets(db, [parse_target(word) for word in words])


def test_lost_samples_inside_cells_are_seen_where_all_cells_have_a_score(db: Database) -> None:
    save_imported_audit(db, "before", {"a": 0.2}, n_ok=5, n_planned=5)
    save_imported_audit(db, "afterwards", {"a": 0.2}, n_ok=4, n_planned=5)
    pair = compare_targets(db, [parse_target("before"), parse_target("afterwards")]).pairs[0]
    assert (pair.shared, pair.only_first) == (len(CELLS), 0)
    assert pair.first_lost_samples.share == 0.0
    assert pair.second_lost_samples.share == pytest.approx(0.2)
    assert pair.mae.second is not None
    source = load_source(db, "afterwards")
    scores, people = source.score_matrix[0], source.survey_scores
    largest_errors = np.maximum(abs((4 * scores - 1) / 5 - people), abs((4 * scores + 1) / 5 - people))
    assert known(pair.worst_case).mae.bound_high == pytest.approx(largest_errors.mean() - (pair.mae.first or 0.0))


def test_cells_with_different_survey_scores_are_not_compared(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1})
    changed_truth = {cell: (value if cell[0] != "Japan" else -value) for cell, value in TRUTH.items()}
    rows = [CellScore("a", Cell(*cell), "direct", 0.0, n_ok=1, n_planned=1) for cell in TRUTH]
    save_rows(db, survey_of(changed_truth), rows, "two")
    pair = compare_targets(db, [parse_target("one"), parse_target("two")]).pairs[0]
    assert pair.truth_differs == len(TOPICS)
    assert pair.shared == len(CELLS) - len(TOPICS)


def test_holm_correction_is_over_all_pairs_for_countries_and_for_topics(db: Database) -> None:
    save_imported_audit(db, "one", {"a": 0.1, "b": 0.3, "c": 0.6})
    comparison = compare_targets(db, [parse_target("one")], all_pairs=True)
    assert len(check_families(json.loads(comparison.model_dump_json()))) >= 4
    pairs = comparison.pairs
    assert len(pairs) == 3
    for kind in ("by_country", "by_topic"):
        parts = [part for pair in pairs for part in getattr(pair, kind) if part.difference.p_value is not None]
        assert len(parts) > len(getattr(pairs[0], kind))
        assert [part.difference.adjusted_p_value for part in parts] == pytest.approx(
            holm([part.difference.p_value for part in parts]).tolist()
        )


def test_renaming_an_unknown_model_raises_a_usage_error(db: Database) -> None:
    save_imported_audit(db, "one", {"base": 0.1, "other": 0.1})
    save_imported_audit(db, "two", {"tuned": 0.1, "other": 0.1})
    with pytest.raises(UsageError, match="the first audit has no model 'bse'"):
        compare_targets(db, [parse_target("one"), parse_target("two")], renamed_models={"bse": "tuned"})
