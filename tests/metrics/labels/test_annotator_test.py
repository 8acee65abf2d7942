from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import ttest_1samp

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.multiple_testing import benjamini_yekutieli
from auditor.metrics.labels.annotator_test import Scoring, alternative_annotator_test
from tests.support.known import known

NAN = float("nan")
DATA = next(
    (
        folder
        for parent in Path(__file__).resolve().parents
        if (folder := parent / "shared" / "data" / "AltTest").is_dir()
    ),
    None,
)
"""The folder `data` of the repository nitaytech/AltTest, which has no licence and may not be passed on."""
PUBLISHED: dict[tuple[str, str], tuple[Scoring, float, bool, float, float]] = {
    ("wax", "gemini_pro"): ("accuracy", 0.1, True, 0.50, 0.74),
    ("wax", "llama-31"): ("accuracy", 0.1, False, 0.00, 0.57),
    ("lgbteen", "gpt-4o"): ("accuracy", 0.2, True, 0.75, 0.77),
    ("mtbench", "gpt-4o"): ("accuracy", 0.2, False, 0.00, 0.77),
    ("framing", "mistral-v03"): ("accuracy", 0.15, False, 0.25, 0.80),
    ("cebab_aspects", "gemini_flash"): ("accuracy", 0.1, True, 0.70, 0.91),
    ("summeval", "mistral-v03"): ("neg_rmse", 0.2, False, 0.00, 0.62),
    ("10k_prompts", "gpt-4o-mini"): ("neg_rmse", 0.15, True, 0.92, 0.80),
    ("cebab_stars", "gpt-4o"): ("neg_rmse", 0.1, True, 0.90, 0.90),
    ("lesion", "gemini_flash"): ("neg_rmse", 0.15, False, 0.17, 0.71),
}
"""Scoring, epsilon, whether it passes, winning rate and advantage probability, as the authors' notebook prints them."""


def _ratings() -> tuple[Floats, Floats]:
    """Labels 1 to 4 of five raters on 120 items, some missing, and of a judge; made without a random generator."""
    items = np.arange(120)
    truth = items * 7 % 4 + 1
    humans = np.array(
        [np.where((items * (11 + 2 * r) + r) % 10 < 3, (truth + r) % 4 + 1, truth) for r in range(5)], dtype=float
    )
    for r in range(5):
        humans[r, (items * 13 + 5 * r) % 9 < r] = NAN
    humans[4, 40:] = NAN
    judge = np.where(items * 17 % 11 < 2, truth % 4 + 1, truth).astype(float)
    judge[5] = NAN
    return humans, judge


def _slow_p_value(humans: Floats, judge: Floats, rater: int, epsilon: float, scoring: Scoring) -> float:
    """The p-value of one rater, item by item, by scipy's test."""
    differences = []
    for item in range(humans.shape[1]):
        others = [humans[k, item] for k in range(len(humans)) if k != rater and not np.isnan(humans[k, item])]
        own_label, judged = humans[rater, item], judge[item]
        if np.isnan(own_label) or np.isnan(judged) or not others:
            continue
        if scoring == "accuracy":
            score, judge_score = np.mean(np.equal(others, own_label)), np.mean(np.equal(others, judged))
        else:
            score, judge_score = (-np.sqrt(np.mean((np.array(others) - label) ** 2)) for label in (own_label, judged))
        differences.append(int(score >= judge_score) - int(judge_score >= score))
    return float(ttest_1samp(differences, epsilon, alternative="less").pvalue)


@pytest.mark.parametrize(
    ("scoring", "epsilon", "winning_rate", "advantage", "p_values"),
    [
        ("accuracy", 0.0, 0.5, 0.9090942316556613,
         [3.518626625072139e-02, 3.338709271467176e-04, 4.967414027024602e-07, 9.337238862212948e-01]),
        ("accuracy", 0.1, 0.75, 0.9090942316556613,
         [1.1457946388170462e-04, 2.6304868298060856e-07, 5.685855526392291e-10, 1.903495437378089e-01]),
        ("neg_rmse", 0.0, 0.5, 0.8890662204511796,
         [1.7835948602520843e-01, 2.474156013609247e-03, 2.1498687229455877e-08, 7.955803404373885e-01]),
        ("neg_rmse", 0.2, 1.0, 0.8890662204511796,
         [5.451061737550089e-06, 5.221330245467128e-09, 1.6104071604580844e-14, 3.357179291506278e-04]),
    ],
)  # fmt: skip
def test_constants_of_the_authors_notebook(
    scoring: Scoring, epsilon: float, winning_rate: float, advantage: float, p_values: list[float]
) -> None:
    # Computed by the function `alt_test` of alt_test_example.ipynb, github.com/nitaytech/AltTest at 18428b1.
    result = alternative_annotator_test(*_ratings(), epsilon=epsilon, scoring=scoring)
    assert result.winning_rate == pytest.approx(winning_rate)
    assert result.advantage_probability == pytest.approx(advantage, abs=1e-12)
    np.testing.assert_allclose(result.p_values, [*p_values, NAN], rtol=1e-9)
    assert result.passed is (winning_rate >= 0.5)
    assert result.n_by_annotator.tolist() == [119, 105, 91, 79, 21]
    assert (
        result.reason == "1 of 5 raters not tested: a test of a rater needs 30 items with labels by at least 2 raters "
        "and the judge: rater 5 lacks 9"
    )


@pytest.mark.skipif(DATA is None, reason="the authors' data are not in shared/data/AltTest")
@pytest.mark.parametrize(("data_set", "judge_name"), PUBLISHED)
def test_published_results(data_set: str, judge_name: str) -> None:
    scoring, epsilon, passed, winning_rate, advantage = PUBLISHED[data_set, judge_name]
    by_rater = json.loads((known(DATA) / data_set / "human_annotations.json").read_text(encoding="utf-8"))
    judged = json.loads((known(DATA) / data_set / "llm_annotations.json").read_text(encoding="utf-8"))[judge_name]
    items = sorted({item for labels in by_rater.values() for item in labels})
    codes: dict[str, float] = {}

    def encode(label: str | float | None) -> float:
        if label is None:
            return NAN
        return codes.setdefault(str(label), float(len(codes))) if scoring == "accuracy" else float(label)

    humans = [[encode(labels.get(item)) for item in items] for labels in by_rater.values()]
    judge = [encode(judged.get(item)) for item in items]
    result = alternative_annotator_test(humans, judge, epsilon=epsilon, scoring=scoring)
    assert (result.passed, round(known(result.winning_rate), 2), round(known(result.advantage_probability), 2)) == (
        passed,
        winning_rate,
        advantage,
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["accuracy", "neg_rmse"]), st.floats(0.0, 0.4))
def test_p_values_are_scipys(seed: int, scoring: Scoring, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    humans = rng.integers(0, 4, (4, 50)).astype(float)
    humans[rng.random(humans.shape) < 0.1] = NAN
    judge = np.where(rng.random(50) < 0.05, NAN, rng.integers(0, 4, 50))
    result = alternative_annotator_test(humans, judge, epsilon=epsilon, scoring=scoring)
    expected = [_slow_p_value(humans, judge, rater, epsilon, scoring) for rater in range(4)]
    np.testing.assert_allclose(result.p_values, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_passing_level_is_the_smallest_at_which_the_judge_passes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    humans = np.where(rng.random((4, 60)) < 0.8, 1.0, 0.0)
    test = alternative_annotator_test(humans, np.where(rng.random(60) < 0.8, 1.0, 0.0), epsilon=0.2)
    level = benjamini_yekutieli(test.p_values)
    assert test.passing_level == sorted(level)[1]
    assert test.passed == (known(test.passing_level) <= 0.05)


def test_a_perfect_judge_ties_with_perfect_raters() -> None:
    labels = np.tile(np.arange(40) % 2, (3, 1))
    result = alternative_annotator_test(labels, labels[0], epsilon=0.1)
    assert (result.winning_rate, result.advantage_probability, result.passed) == (1.0, 1.0, True)
    np.testing.assert_array_equal(result.p_values, [0.0, 0.0, 0.0])
    no_margin = alternative_annotator_test(labels, labels[0], epsilon=0.0)
    assert (no_margin.winning_rate, no_margin.advantage_probability, no_margin.passed) == (0.0, 1.0, False)
    np.testing.assert_array_equal(no_margin.p_values, [1.0, 1.0, 1.0])


def test_a_judge_that_is_always_wrong_fails() -> None:
    labels = np.tile(np.arange(40) % 2, (3, 1))
    result = alternative_annotator_test(labels, 1 - labels[0], epsilon=0.2)
    assert (result.winning_rate, result.advantage_probability, result.passed) == (0.0, 0.0, False)
    np.testing.assert_array_equal(result.p_values, [1.0, 1.0, 1.0])


def test_equal_distances_of_decimal_scores_are_a_tie() -> None:
    # 0.3 - 0.1 and 0.5 - 0.3 differ by rounding.
    humans = np.tile([[0.1], [0.3]], (1, 30))
    result = alternative_annotator_test(humans, np.full(30, 0.5), epsilon=0.2, scoring="neg_rmse")
    assert result.advantage_probabilities[0] == 1.0


def test_more_raters_an_item_may_be_asked_for() -> None:
    humans, judge = _ratings()
    two, three = (alternative_annotator_test(humans, judge, epsilon=0.1, min_raters=m) for m in (2, 3))
    n_labels = (~np.isnan(humans)).sum(axis=0)
    assert three.n == int(((n_labels >= 3) & ~np.isnan(judge)).sum()) < two.n == 119


def test_too_few_items_say_how_many_are_missing() -> None:
    result = alternative_annotator_test(np.ones((2, 25)), np.ones(25), epsilon=0.1)
    assert (result.winning_rate, result.advantage_probability, result.passed, result.n) == (None, None, None, 0)
    assert np.isnan(result.p_values).all()
    assert not result.wins.any()
    assert "2 of 2 raters not tested" in (result.reason or "")
    assert "rater 1 lacks 5, rater 2 lacks 5" in (result.reason or "")
    empty = alternative_annotator_test(np.empty((0, 3)), np.ones(3), epsilon=0.1)
    assert empty.reason == "the test needs at least 2 raters, but there are none"
    few_topics = alternative_annotator_test(np.ones((2, 40)), np.ones(40), epsilon=0.1, clusters=np.arange(40) % 3)
    assert "a test over clusters needs 5 of them: rater 1 lacks 2, rater 2 lacks 2" in (few_topics.reason or "")


def test_clusters_are_tested_by_their_means() -> None:
    humans, judge = _ratings()
    clusters = np.arange(120) % 7
    result = alternative_annotator_test(humans[:2], judge, epsilon=0.1, clusters=clusters)
    both = ~np.isnan(humans[:2]).any(axis=0) & ~np.isnan(judge)
    differences = (humans[0] == humans[1]).astype(float) - (judge == humans[1])
    means = [differences[both & (clusters == cluster)].mean() for cluster in range(7)]
    assert result.p_values[0] == pytest.approx(ttest_1samp(means, 0.1, alternative="less").pvalue)
    one_each = alternative_annotator_test(humans, judge, epsilon=0.1, clusters=np.arange(120))
    plain = alternative_annotator_test(humans, judge, epsilon=0.1)
    np.testing.assert_allclose(one_each.p_values, plain.p_values)


def test_the_clustered_test_keeps_its_level_where_the_plain_one_does_not() -> None:
    # Rater 2 always says 0. Rater 1 and the judge say 0 with a chance that differs by topic, and on average the rater
    # by exactly epsilon more often: a judge that should pass in 5% of the simulations.
    rng = np.random.default_rng(26)
    n_topics, n_items, epsilon = 12, 15, 0.15
    topics = np.repeat(np.arange(n_topics), n_items)
    false_passes = np.zeros(2)
    for _ in range(400):
        effect = rng.choice([-0.2, 0.2], n_topics)[topics]
        rater = rng.random(len(topics)) > 0.75 + effect / 2
        judge = rng.random(len(topics)) > 0.75 - epsilon - effect / 2
        humans = np.stack([rater, np.zeros(len(topics))])
        for i, clusters in enumerate((None, topics)):
            result = alternative_annotator_test(humans, judge, epsilon=epsilon, clusters=clusters)
            false_passes[i] += result.p_values[0] <= 0.05
    plain, clustered = false_passes / 400
    assert plain > 0.10
    assert clustered < 0.085  # 0.05 + 3 standard errors


def test_wrong_arguments_are_named() -> None:
    labels = np.ones((2, 3))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": 1.5}, "epsilon must be from 0 to 1"),
        ({"epsilon": NAN}, "epsilon must be from 0 to 1"),
        ({"epsilon": 0.1, "scoring": "kappa"}, "scoring must be 'accuracy' or 'neg_rmse'"),
        ({"epsilon": 0.1, "min_raters": 1}, "min_raters must be at least 2"),
        ({"epsilon": 0.1, "clusters": [1, 2]}, "clusters must have the shape of judge"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            alternative_annotator_test(labels, np.ones(3), **arguments)
    with pytest.raises(ValueError, match="humans must have the shape"):
        alternative_annotator_test(labels, np.ones(4), epsilon=0.1)
    with pytest.raises(ValueError, match="finite"):
        alternative_annotator_test(labels, [1.0, 2.0, np.inf], epsilon=0.1)
