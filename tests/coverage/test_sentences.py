"""A small form of the simulation of sentences: few audits, so that only a broken rule is noticed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.coverage.page import DOCS
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
    result = measure_sentences(world, 8)
    for family, n_false in result.n_false.items():
        limit = 0.1 if family in ("page one", "report") else 0.05
        assert n_false <= binom.ppf(0.999, 8, limit), (family, n_false)


@pytest.mark.parametrize("world", [world for world in POWER_WORLDS if len(world.models) == 1], ids=lambda w: w.name)
def test_what_is_planted_is_mostly_stated(world: SentenceWorld) -> None:
    assert measure_sentences(world, 8).n_found >= binom.ppf(0.001, 8, world.min_found)


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


FAMILIES_BY_SENTENCE = {
    "“agrees … with people”": ("closeness",),
    "“orders countries and topics": ("order",),
    "“captures differences between countries”": ("differences between countries",),
    "“closest to people: …”": ("closest",),
    "the same in each region": ("closest in Western countries", "closest in Non-Western countries"),
    "“closer than people's means”": ("guesses",),
    "“topics go together": ("structure",),
    "“more permissive than people in …”": ("places",),
    "“further from people in H": ("further",),
    "the same on topics": ("further on topics",),
    "“the error is larger in …”": ("regions", "bias in regions"),
    "a threshold is failed": ("shortfalls",),
    "“… is unlike all other topics”": ("influence",),
    "**any on page one**": ("page one",),
    "**any in the report**": ("report",),
}
"""Families of results by the beginning of their row in docs/method.md."""
POWER_BY_SENTENCE = {
    "“orders countries and topics": ("r = 0.7 of one of eight models",),
    "“closest to people: …”": ("best of five, error SD 0.08 against 0.15",),
    "“closer than people's means”": (
        "closer than people's means, error SD 0.15",
        "closer than similar countries, error SD 0.15",
    ),
    "“further from people in H": ("further in one of 12 countries, 0.45 against 0.12", "further, one of four models"),
    "a threshold is failed": ("VALID share of 0.55, 600 verdicts",),
    "“… is unlike all other topics”": ("one taboo topic, errors five times as large",),
    "in six zones": ("r = 0.7, 12 countries of six zones", "best of five, 12 countries of six zones"),
}


def test_the_method_has_the_error_rates_and_powers_of_the_data() -> None:
    """The largest rate of false sentences over the worlds without findings, and the share of audits that find one."""
    page = (DOCS / "method.md").read_text(encoding="utf-8")
    rows = json.loads((DOCS / "coverage.json").read_text(encoding="utf-8"))["sentences"]
    result_by_world = {row["world"]: SentenceResult(**row) for row in rows}
    for sentence, families in FAMILIES_BY_SENTENCE.items():
        [line] = [line for line in page.splitlines() if line.startswith(f"| {sentence}")]
        for family in families:
            results = [result_by_world[world.name] for world in NULL_WORLDS if world.name in result_by_world]
            largest = max(result.n_false.get(family, 0) / result.n_audits for result in results)
            assert f"{largest:.1%}" in line, (sentence, family, f"{largest:.1%}")
    for sentence, worlds in POWER_BY_SENTENCE.items():
        text = page[page.index(sentence) :]
        for world in worlds:
            stated = f"{result_by_world[world].n_found / result_by_world[world].n_audits:.0%}"
            assert stated in text.partition("\n|")[0].partition("\n\n")[0], (sentence, world, stated)


def test_a_result_fails_above_the_limits_of_600_audits() -> None:
    assert largest_count("closest", 600) / 600 == pytest.approx(0.068, abs=2e-3)
    assert largest_count("page one", 600) / 600 == pytest.approx(0.125, abs=2e-3)
    result = SentenceResult("w", 600, {"closest": 60, "report": 400}, 100, "order m0", 0.75)
    assert [problem.split(": ")[1][:40] for problem in result.list_problems()] == [
        "a false sentence of the family “closest”",
        "a false sentence of the family “report” ",
        "order m0 is stated in 16.7%",
    ]
