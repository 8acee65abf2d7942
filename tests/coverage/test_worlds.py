"""The worlds are written apart from the estimators, and their constants are the truths of what they draw."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from auditor.reports.data.report_source import MIN_ZONES as MIN_ZONES_OF_REPORTS
from benchmarks.coverage.harder_figures import MIN_ZONES, cluster
from benchmarks.coverage.worlds.design import DESIGNS, Design
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects
from benchmarks.coverage.worlds.harder_worlds import (
    HARDER_DESIGNS,
    HARDER_TRUTHS,
    REFUSED_CELLS,
    RELATED_WORLDS,
    UNLIKE_WORLDS,
    UnlikeTopics,
    measure_harder_truth,
)
from benchmarks.coverage.worlds.item_worlds import ITEM_TRUTHS, ITEM_WORLDS, measure_item_truth
from benchmarks.coverage.worlds.model_worlds import MODEL_WORLDS, ModelDesign
from benchmarks.coverage.worlds.panel_worlds import EFFECTIVE_NUMBERS, Plant, draw_panel, measure_effective_number
from benchmarks.coverage.worlds.preference_worlds import SET_TRUTHS, SET_WORLDS, measure_set_truth
from benchmarks.coverage.worlds.real_tables import REAL_WORLDS
from benchmarks.coverage.worlds.score_worlds import SCORE_TRUTHS, SIMULATED_SCORE_WORLDS, measure_truth
from benchmarks.coverage.worlds.share_worlds import SHARE_WORLDS
from benchmarks.coverage.worlds.verdict_worlds import (
    SHARED_ERRORS,
    VERDICT_TRUTHS,
    VERDICT_WORLDS,
    measure_verdict_truth,
)

WORLDS = Path(__file__).parents[2] / "benchmarks" / "coverage" / "worlds"
ALLOWED_MODULES = (
    "__future__",
    "collections",
    "csv",
    "dataclasses",
    "functools",
    "itertools",
    "numpy",
    "pathlib",
    "scipy",
    "typing",
)


@pytest.mark.parametrize("path", sorted(WORLDS.glob("*.py")), ids=lambda path: path.stem)
def test_the_worlds_import_no_estimator(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or ".")
    is_allowed = {name: name.startswith(("benchmarks.coverage.worlds", *ALLOWED_MODULES)) for name in imported}
    assert all(is_allowed.values()), is_allowed


@pytest.mark.parametrize("kind", ["gaussian", "t3", "skewed", "zones"])
def test_effects_have_mean_0_and_variance_1(kind: EffectKind) -> None:
    effects = draw_effects(kind, np.random.default_rng(0), 400_000, is_clustered=False)
    assert abs(effects.mean()) < 0.01
    assert abs(effects.var() - 1) < (0.25 if kind == "t3" else 0.02)  # the variance of t3 effects converges slowly


def test_units_of_a_zone_are_correlated() -> None:
    rng = np.random.default_rng(1)
    tables = np.array([np.sort(draw_effects("zones", rng, 16)) for _ in range(3000)])
    # 16 units in 8 zones: the mean of all varies by 0.6 / 8 + 0.4 / 16 instead of 1 / 16.
    assert abs(tables.mean(axis=1).var() - (0.6 / 8 + 0.4 / 16)) < 0.01


def is_close(constants: Mapping[str, float], measured: list[dict[str, float]]) -> dict[str, float]:
    """The figures whose constant is more than 5 standard errors from the mean of several measurements."""
    far = {}
    for name, constant in constants.items():
        values = np.array([row[name] for row in measured if name in row])
        if len(values):
            tolerance = 5 * float(values.std(ddof=1)) / len(values) ** 0.5 + 5e-4
            if abs(float(values.mean()) - constant) > tolerance:
                far[name] = float(values.mean()) - constant
    return far


@pytest.mark.parametrize("world", SIMULATED_SCORE_WORLDS, ids=lambda world: world.name)
def test_the_truths_of_scores_are_those_of_the_population(world: object) -> None:
    measured = [measure_truth(world, 60_000, seed) for seed in range(100, 106)]  # type: ignore[arg-type]
    constants = SCORE_TRUTHS[world.name]  # type: ignore[attr-defined]
    named = {name: value for name, value in constants.items() if name not in ("mae gap", "largest mae gap")}
    assert is_close(named, measured) == {}
    assert constants["mae gap"] == pytest.approx(-constants["mae"] / 2, abs=2e-4)


@pytest.mark.parametrize(
    ("worlds", "truths", "measure", "size"),
    [
        (VERDICT_WORLDS, VERDICT_TRUTHS, measure_verdict_truth, 40_000),
        (ITEM_WORLDS, ITEM_TRUTHS, measure_item_truth, 20_000),
        (SET_WORLDS, SET_TRUTHS, measure_set_truth, 20_000),
    ],
    ids=["verdicts", "items", "sets"],
)
def test_the_truths_of_verdicts_items_and_sets_are_those_of_the_population(
    worlds: tuple[object, ...],
    truths: Mapping[str, Mapping[str, float]],
    measure: Callable[..., dict[str, float]],
    size: int,
) -> None:
    for world in worlds:
        measured = [measure(world, size, seed) for seed in range(100, 106)]
        assert is_close(truths[world.name], measured) == {}, world  # type: ignore[attr-defined]


@pytest.mark.parametrize("world", [*UNLIKE_WORLDS, REFUSED_CELLS], ids=lambda world: world.name)
def test_the_truths_of_unlike_topics_are_those_of_the_population(world: UnlikeTopics) -> None:
    measured = [measure_harder_truth(world, 60_000, seed) for seed in range(100, 106)]
    assert is_close(HARDER_TRUTHS[world.name], measured) == {}


def test_the_truths_of_related_countries_are_those_of_many_audits() -> None:
    for world in RELATED_WORLDS:
        samples = [world.draw(HARDER_DESIGNS[0], np.random.default_rng(seed)) for seed in range(800)]
        errors = [sample.first - sample.survey for sample in samples]
        biases = np.array([error.mean() for error in errors])
        assert biases.mean() == pytest.approx(
            samples[0].truths["bias over zones"], abs=5 * biases.std() / len(biases) ** 0.5
        )
        maes = np.array([np.abs(error).mean() for error in errors])
        assert maes.mean() == pytest.approx(samples[0].truths["mae over zones"], abs=5 * maes.std() / len(maes) ** 0.5)
        # Topics of mean 0: what is left of the bias beyond these countries' own is independent of it.
        of_countries = np.array([sample.truths["bias of these countries"] for sample in samples])
        assert abs(np.corrcoef(of_countries, biases - of_countries)[0, 1]) < 0.08
        assert {len(np.unique(sample.zone)) for sample in samples[:200]} <= set(range(4, 9))


def test_judges_by_item_response_share_errors() -> None:
    trace = np.arange(40_000)
    rng = np.random.default_rng(7)
    verdicts = SHARED_ERRORS.draw_verdicts(rng, trace, trace, trace, rng.integers(0, 4, len(trace)))
    assert set(np.unique(verdicts)) == {0.0, 1.0}
    # Without a shared difficulty, judges of this accuracy would agree less.
    assert pearsonr(verdicts[0], verdicts[1]).statistic > 0.5


def test_the_effective_numbers_of_judges_are_those_of_the_population() -> None:
    for plant, constant in EFFECTIVE_NUMBERS.items():
        measured = [{"n": measure_effective_number(plant, 20_000, seed)} for seed in range(100, 106)]
        assert is_close({"n": constant}, measured) == {}, plant


@pytest.mark.parametrize("world", SHARE_WORLDS, ids=lambda world: world.name)
def test_the_share_of_the_population_is_the_mean_over_audits(world: object) -> None:
    rng = np.random.default_rng(2)
    shares = [world.draw(Design(20, 10), rng).truths["share of these cells"] for _ in range(1500)]  # type: ignore[attr-defined]
    assert abs(np.mean(shares) - world.share) < 5 * np.std(shares) / len(shares) ** 0.5 + 1e-9  # type: ignore[attr-defined]


def test_the_truths_of_models_are_those_of_the_population() -> None:
    for world in MODEL_WORLDS:
        sample = world.draw(ModelDesign(200_000), np.random.default_rng(3))
        assert spearmanr(sample.first, sample.second).statistic == pytest.approx(
            sample.truths["rank correlation over models"], abs=0.01
        )
        if "correlation over models" in sample.truths:
            r = pearsonr(sample.first, sample.second).statistic
            assert r == pytest.approx(sample.truths["correlation over models"], abs=0.01)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.label)
def test_designs_leave_out_the_share_of_cells_that_they_say(design: Design) -> None:
    rng = np.random.default_rng(4)
    n_cells = np.mean([len(design.draw_cells(rng)[0]) for _ in range(300)])
    expected_share = 0.7 if design.is_uneven else 1 - design.missing
    assert n_cells / (design.n_countries * design.n_topics) == pytest.approx(expected_share, abs=0.03)


@pytest.mark.parametrize("world", REAL_WORLDS, ids=lambda world: world.name)
def test_real_tables_are_resampled_where_they_are_present(world: object) -> None:
    if world.path is None:  # type: ignore[attr-defined]
        pytest.skip(f"{world.file_name} may not be passed on, and is not in ../shared/data")  # type: ignore[attr-defined]
    sample = world.draw(Design(20, 10), np.random.default_rng(5))  # type: ignore[attr-defined]
    assert len(sample.survey) > 190  # the others were not asked
    assert not np.isnan(sample.survey).any()
    assert 0.4 < sample.truths["r"] < 0.95


def test_planted_faults_have_the_size_that_they_say() -> None:
    design, rng = Design(400, 400), np.random.default_rng(6)
    lenient = draw_panel(Plant(leniency=0.2), design, rng)
    assert lenient.verdicts[0].mean() - lenient.verdicts[1].mean() == pytest.approx(0.2, abs=0.02)
    verbose = draw_panel(Plant(verbosity=0.2, quality_of_length=0.5), design, rng)
    contrast = [
        float(row[verbose.is_longer == 1].mean() - row[verbose.is_longer == 0].mean()) for row in verbose.verdicts
    ]
    assert contrast[0] - contrast[1] == pytest.approx(0.2, abs=0.04)
    assert contrast[1] > 0.05  # longer traces are better
    copying = draw_panel(Plant(n_copying=3, copied_share=1.0), design, rng)
    assert (copying.verdicts[2] == copying.verdicts[4]).all()
    assert (copying.verdicts[3] == copying.verdicts[4]).all()
    assert (copying.verdicts[1] != copying.verdicts[4]).any()
    refusing = draw_panel(Plant(refusal_slope=1.5), design, rng)
    is_refused = np.isnan(refusing.verdicts[0])
    assert refusing.label[is_refused].mean() < refusing.label[~is_refused].mean()
    assert Plant(leniency=0.1, n_copying=2, copied_share=0.5).planted == {0, 3, 4}


def test_zones_are_clusters_from_six_on() -> None:
    assert MIN_ZONES == MIN_ZONES_OF_REPORTS
    of_a_map = RELATED_WORLDS[1]
    samples = [of_a_map.draw(HARDER_DESIGNS[0], np.random.default_rng(seed)) for seed in range(40)]
    units = {(len(np.unique(sample.zone)) >= MIN_ZONES, cluster(sample).unit) for sample in samples}
    assert units == {(True, "zone"), (False, "country")}
