"""Components of variance are those of a mixed model in full tables, and are recovered in incomplete ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

from auditor.metrics.designs.run_effects import LevelContrasts, estimate_sources
from benchmarks.coverage.worlds.run_worlds import HALVES, LEVELS

FACTORS = LevelContrasts.from_levels([{f"f{i}": str(level) for i, level in enumerate(run)} for run in LEVELS])


def draw_errors(rng: np.random.Generator, n_models: int, n_cells: int) -> np.ndarray:
    """Errors with variances: model 0.09, f0 0.02, model × f1 0.01, cell 0.04, model × cell 0.01, residual 0.0625."""
    errors = 0.3 * rng.normal(size=(n_models, 1, 1)) + 0.2 * rng.normal(size=(1, n_cells, 1))
    errors = errors + 0.1 * rng.normal(size=(n_models, n_cells, 1)) + 0.1 * (2 * LEVELS[:, 0] - 1)
    errors = errors + 0.1 * rng.normal(size=(n_models, 2))[:, LEVELS[:, 1]][:, None]
    return np.asarray(errors + 0.25 * rng.normal(size=(n_models, n_cells, len(LEVELS))))


def test_components_of_a_full_table_are_those_of_a_mixed_model() -> None:
    runs = LevelContrasts.from_levels([{"wording": level} for level in "abcde"])
    rng = np.random.default_rng(3)
    errors = 0.5 * rng.normal(size=(1, 12, 1)) + 0.4 * rng.normal(size=5) + 0.3 * rng.normal(size=(1, 12, 5))
    sources = estimate_sources(errors, runs)
    assert sources is not None
    cell, wording = (index.ravel() for index in np.indices((12, 5)))
    frame = pd.DataFrame({"error": errors.ravel(), "cell": cell, "wording": wording, "group": 1})
    formulas = {"cell": "0 + C(cell)", "wording": "0 + C(wording)"}
    fitted = smf.mixedlm("error ~ 1", frame, groups="group", vc_formula=formulas).fit()
    expected = dict(zip(fitted.model.exog_vc.names, fitted.vcomp, strict=True))
    np.testing.assert_allclose(
        [sources["cell"], sources["wording"]], [expected["cell"], expected["wording"]], rtol=1e-3
    )
    np.testing.assert_allclose(sources["residual"], fitted.scale, rtol=1e-3)


def test_components_are_recovered_where_each_cell_is_asked_in_half_of_the_runs() -> None:
    rng, estimates = np.random.default_rng(4), []
    for _ in range(40):
        errors = draw_errors(rng, 4, 120)
        errors[:, ~HALVES[rng.permutation(120) % len(HALVES)]] = np.nan
        estimates.append(estimate_sources(errors, FACTORS) or {})
    means = {source: float(np.mean([row[source] for row in estimates])) for source in estimates[0]}
    expected = {"model": 0.09, "f0": 0.02, "model × f1": 0.01, "cell": 0.04, "model × cell": 0.01, "residual": 0.0625}
    for source, variance in means.items():
        assert abs(variance - expected.get(source, 0.0)) < max(0.003, 0.3 * expected.get(source, 0.0)), source


def test_runs_that_act_in_pairs_of_factors_are_a_source_of_their_own() -> None:
    signs = 2 * LEVELS - 1
    errors = 0.1 * np.random.default_rng(5).normal(size=(2, 60, 16)) + 0.3 * signs[:, 2] * signs[:, 3]
    sources = estimate_sources(errors, FACTORS)
    assert sources is not None
    assert sources["factor × factor"] > 0.1
    assert max(sources[f"f{i}"] for i in range(7)) == 0


def test_one_model_has_no_component_of_models_and_no_residual_gives_none() -> None:
    rng = np.random.default_rng(6)
    assert set(estimate_sources(draw_errors(rng, 1, 20), FACTORS) or {}) == {
        *(f"f{i}" for i in range(7)), "factor × factor", "cell", "residual",
    }  # fmt: skip
    assert estimate_sources(draw_errors(rng, 1, 1), FACTORS) is None
