"""A small form of the simulation of sentences: few audits, so that only a broken rule is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.coverage.sentence_figures import SentenceResult, largest_count, list_claims, measure_sentences
from benchmarks.coverage.worlds.sentence_worlds import (
    NULL_WORLDS,
    PEOPLE_SDS,
    POWER_WORLDS,
    SENTENCE_WORLDS,
    SentenceWorld,
)

WORLDS = {world.name: world for world in SENTENCE_WORLDS}


@pytest.mark.parametrize("world", [WORLDS["2 noise models"], WORLDS["4 models, equal in all countries"]])
def test_few_audits_without_findings_have_a_false_sentence(world: SentenceWorld) -> None:
    result = measure_sentences(world, 12)
    for family, n_false in result.n_false.items():
        limit = 0.1 if family in ("page one", "report") else 0.05
        assert n_false <= binom.ppf(0.999, 12, limit), (family, n_false)


@pytest.mark.parametrize("world", [world for world in POWER_WORLDS if len(world.models) == 1], ids=lambda w: w.name)
def test_what_is_planted_is_mostly_stated(world: SentenceWorld) -> None:
    assert measure_sentences(world, 12).n_found >= binom.ppf(0.001, 12, world.min_found)


def test_a_low_share_of_valid_is_listed_and_coins_are_not() -> None:
    world = WORLDS["VALID share of 0.55, 600 verdicts"]
    claims = [list(list_claims(world.draw(np.random.default_rng(seed)))) for seed in range(4)]
    listed = [{claim.subject for claim in audit if claim.family == "shortfalls"} for audit in claims]
    assert sum("m0 valid share" in subjects for subjects in listed) >= 3
    assert all(subjects <= {"m0 valid share"} for subjects in listed)


def test_truths_are_those_of_large_audits() -> None:
    world = NULL_WORLDS[3]
    samples = [world.draw(np.random.default_rng(seed)) for seed in range(300)]
    differences = np.stack([sample.scores - sample.survey for sample in samples])
    mae = np.abs(differences).mean(axis=(0, 2, 3))
    assert mae == pytest.approx(samples[0].mae, rel=0.06)
    people = np.stack([sample.survey for sample in samples])
    scores = np.stack([sample.scores for sample in samples])
    r = [np.corrcoef(scores[:, m].ravel(), people.ravel())[0, 1] for m in range(8)]
    assert r == pytest.approx(samples[0].r, abs=0.06)
    assert people.var() == pytest.approx(sum(sd**2 for sd in PEOPLE_SDS), rel=0.1)
    by_country = np.abs(differences).mean(axis=3) - np.stack([sample.mae_by_country for sample in samples])
    assert by_country.mean() == pytest.approx(0, abs=0.01)


def test_a_result_fails_above_the_limits_of_600_audits() -> None:
    assert largest_count("closest", 600) / 600 == pytest.approx(0.068, abs=2e-3)
    assert largest_count("page one", 600) / 600 == pytest.approx(0.125, abs=2e-3)
    result = SentenceResult("w", 600, {"closest": 60, "report": 400}, 100, "order m0", 0.75)
    assert [problem.split(": ")[1][:40] for problem in result.list_problems()] == [
        "a false sentence of the family “closest”",
        "a false sentence of the family “report” ",
        "order m0 is stated in 16.7%",
    ]
