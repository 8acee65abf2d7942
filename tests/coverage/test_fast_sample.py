"""A small sample of the study: intervals that reports print cover the truth, and those of version 0.1 do not.

The full study is `make coverage`. With so few runs only a fault is noticed that `make coverage` would show as well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import coverage
from benchmarks.coverage.agreement_figures import AGREEMENT_STUDY
from benchmarks.coverage.bound_figures import BOUND_STUDY
from benchmarks.coverage.culture_figures import CULTURE_STUDY
from benchmarks.coverage.figures import Study
from benchmarks.coverage.findings import MIN_PRINTED_RUNS, list_problems
from benchmarks.coverage.harder_figures import HARDER_STUDY, THESE_COUNTRIES_STUDY
from benchmarks.coverage.item_figures import ITEM_STUDY
from benchmarks.coverage.judge_figures import ITEM_JUDGE_STUDY, JUDGE_STUDY
from benchmarks.coverage.known_limits import Place, load_known_limits
from benchmarks.coverage.label_figures import LABEL_STUDY
from benchmarks.coverage.memory_figures import MEMORY_STUDY, RECITAL_STUDIES
from benchmarks.coverage.model_figures import MODEL_STUDY
from benchmarks.coverage.obedience_figures import OBEDIENCE_STUDY
from benchmarks.coverage.opinion_figures import GAP_STUDY, OPINION_STUDY
from benchmarks.coverage.pair_figures import PAIR_STUDY
from benchmarks.coverage.paper_statements import PAPER_STUDIES
from benchmarks.coverage.place_figures import PLACE_STUDY
from benchmarks.coverage.planted import measure_plant
from benchmarks.coverage.planted_studies import PLANTED_STUDIES
from benchmarks.coverage.pressure_figures import PRESSURE_PLANTS, PRESSURE_STUDY
from benchmarks.coverage.ranking_figures import RANKING_STUDY
from benchmarks.coverage.reasoning_figures import REASONING_PLANTS, REASONING_STUDY, SHARE_OF_CELLS_STUDY
from benchmarks.coverage.run_figures import RUN_STUDIES, RUN_STUDY
from benchmarks.coverage.runner import Result, measure
from benchmarks.coverage.score_figures import SCORE_STUDY
from benchmarks.coverage.set_figures import SET_STUDY
from benchmarks.coverage.share_figures import SHARE_STUDY
from benchmarks.coverage.similarity_figures import SIMILARITY_PLANTS, SIMILARITY_STUDY
from benchmarks.coverage.studies import STUDIES
from benchmarks.coverage.validity_figures import VALIDITY_STUDY
from benchmarks.coverage.verdict_figures import ITEM_VERDICT_STUDY, VERDICT_STUDY
from benchmarks.coverage.wording_figures import WORDING_STUDY
from tests.coverage.small_population import small_population  # noqa: F401 - a fixture

MAX_SAMPLE_WIDTH = 1.7
"""The width is compared with an oracle from few runs."""
SAMPLE = [
    (SCORE_STUDY, "gaussian", "20 × 10", 80),
    (AGREEMENT_STUDY, "few respondents, error 0.08", "12 × 10", 80),
    (HARDER_STUDY, "cultural zones", "12 × 10", 80),
    (THESE_COUNTRIES_STUDY, "spatial", "12 × 10", 80),
    (PLACE_STUDY, "gaussian", "10 cells", 150),
    (BOUND_STUDY, "many refusals", "10 × 8", 40),
    (RANKING_STUDY, "5 equal models", "10 × 8", 40),
    (SHARE_STUDY, "moderate", "20 × 10", 150),
    (SIMILARITY_STUDY, "reasonings differ by topic", "12 × 10", 80),
    (VERDICT_STUDY, "gaussian", "20 × 10", 60),
    (ITEM_VERDICT_STUDY, "gaussian", "20 items", 50),
    (JUDGE_STUDY, "lenient judge", "20 × 10", 40),
    (ITEM_JUDGE_STUDY, "lenient judge", "20 items", 40),
    (LABEL_STUDY, "judges toss a coin", "20 × 10", 40),
    (OBEDIENCE_STUDY, "obeys at 30%", "8 × 6", 60),
    (ITEM_STUDY, "gaussian", "20 items", 60),
    (SET_STUDY, "sets that differ", "10 sets of 8", 40),
    (MODEL_STUDY, "gaussian", "12 models", 60),
    (OPINION_STUDY, "sharpened", "20 × 10", 40),
    (GAP_STUDY, "gaps times 1.6", "20 × 10", 100),
    (CULTURE_STUDY, "worse in one region", "10 × 20", 100),
    (VALIDITY_STUDY, "verdicts follow the model", "12 × 60", 100),
    (PAIR_STUDY, "a measure that follows people", "40 questions, 50% and 50% and 10% and 10% of the pairs", 100),
    (WORDING_STUDY, "wordings that shift answers", "12 × 10", 80),
    (RUN_STUDY, "levels shift scores", "12 × 10", 40),
    (PRESSURE_STUDY, "slope 0.3", "12 × 10, 50% missing", 80),
    (MEMORY_STUDY, "no recall", "12 × 10", 80),
    (REASONING_STUDY, "follows its reasoning", "12 × 10", 80),
    (REASONING_STUDY, "ignores its reasoning", "20 × 10", 80),
    (SHARE_OF_CELLS_STUDY, "follows it in half of the cells", "12 × 10", 80),
]
"""A study, a world and a design, and the number of runs."""
CONTROLS, N_CONTROL_RUNS = [("scores", "gaussian", "20 × 10"), ("verdicts", "gaussian", "20 × 10")], 60
"""Where the intervals of version 0.1 are computed, too, and the number of runs."""


def test_every_study_is_measured_and_in_the_sample() -> None:
    modules = [
        import_module(f"benchmarks.coverage.{path.stem}") for path in Path(coverage.__path__[0]).glob("*_figures.py")
    ]
    studies = {id(value) for module in modules for value in vars(module).values() if isinstance(value, Study)}
    assert studies == {id(study) for study in STUDIES} == {id(study) for study, *_ in SAMPLE}


@cache
def measure_place(study_name: str, world: str, design: str) -> list[Result]:
    [(study, n_runs)] = [(row[0], row[3]) for row in SAMPLE if (row[0].name, *row[1:3]) == (study_name, world, design)]
    naive_runs = N_CONTROL_RUNS if (study_name, world, design) in CONTROLS else 1
    [drawn_world] = [w for w in study.worlds if w.name == world]
    [drawn_design] = [d for d in study.designs if d.label == design]
    return measure(study, drawn_world, drawn_design, [n_runs], naive_runs)


@pytest.mark.parametrize(("study", "world", "design"), [(row[0].name, *row[1:3]) for row in SAMPLE])
def test_intervals_cover(study: str, world: str, design: str) -> None:
    for result in measure_place(study, world, design):
        if result.summary.n_runs >= MIN_PRINTED_RUNS:
            is_known = Place(result.figure, result.world, result.design, "coverage") in load_known_limits()
            assert result.summary.is_covering or is_known, result
            assert (result.summary.mean_width or 0) < MAX_SAMPLE_WIDTH, result


def test_the_rule_notices_the_intervals_of_version_0_1() -> None:
    naive_results = [
        replace(result, summary=result.naive)
        for place in CONTROLS
        for result in measure_place(*place)
        if result.naive is not None
    ]
    missed = {result.figure for result in naive_results if not list_problems(result.summary)}
    # Differences of correlations fall short by a few points only, which needs the runs of `make coverage`.
    assert missed <= {"r difference", "r gap", "mae gap"}
    assert len(naive_results) > 15


@pytest.mark.parametrize(
    ("name", "scenario", "n_runs"),
    [
        ("judges that copy", "3 of 5 copy 100% of the verdicts", 30),
        ("a judge that compares without looking: always TIE", "always TIE", 20),
        ("a lenient judge, named from verdicts", "30 points", 20),
        ("a judge that prefers length, where longer traces are better", "0 points", 30),
        ("consistency grows with size", "two standard deviations between models per decade", 60),
        ("consistency grows with size in unequal families", "two standard deviations between models per decade", 60),
        ("consistency grows with size, five models", "ten standard deviations per decade", 20),
        ("less consistent about one region", "equal regions", 40),
        ("a measure of consistency follows people", "two measures of noise", 40),
        ("says something else in one language", "cosine lower by 0.1", 40),
        ("a measure of consistency follows people", "error of 0.1", 40),
        ("verdicts follow accuracy", "VALID more often by 0.25 if right", 40),
        ("verdicts follow accuracy", "verdicts follow the model", 40),
        ("more samples stop helping", "noise of 0.17, five are enough", 20),
        ("farther from people in one language, by region", "MAE larger by 0.08 in one region", 30),
        ("non-inferiority", "both regions at the margin", 30),
        ("a level of the design changes the error", "only pairs of factors", 20),
        ("a level of the design changes the error", "MAE larger by 0.10 with one level", 20),
        ("a ranking changes with the design", "levels shift all models", 20),
        ("a ranking changes with the design", "a level moves one model by 0.50", 20),
        ("models that follow users", "slope 0.3", 20),
        ("models that follow users in one region only", "slope 1 in one region", 20),
        ("models that flip under pressure", "slope 1", 20),
        ("recital of a wrong wave in 4 of 12 countries", "recital of a wrong wave in 4 of 12 countries", 20),
        ("models that follow their reasoning", "all cells", 20),
        ("models that follow in some cells only", "none", 20),
        ("samples more alike than by chance", "one of five models", 20),
    ],
)
def test_planted_faults_are_named_and_honest_judges_are_not(name: str, scenario: str, n_runs: int) -> None:
    [study] = [
        study
        for study in (
            *PLANTED_STUDIES,
            *PAPER_STUDIES,
            *RUN_STUDIES,
            *SIMILARITY_PLANTS,
            *RECITAL_STUDIES,
            *PRESSURE_PLANTS,
            *REASONING_PLANTS,
        )
        if study.name == name
    ]
    has_control = study in PLANTED_STUDIES
    result = measure_plant(study if has_control else replace(study, naive=None), scenario, study.designs[0], n_runs)
    assert result.n_false <= 0.15 * n_runs, result
    assert result.n_named >= 0.85 * n_runs, result
    if result.has_plant and has_control and study.naive is not None:
        assert (result.n_naive_false or 0) > 0.5 * n_runs or (result.n_naive_named or 0) < 0.5 * n_runs, result
