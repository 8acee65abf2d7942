"""Special functions, roots and ranks equal scipy's, with or without the rest of its package."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
import scipy
from hypothesis import given, strategies as st
from scipy.optimize import brentq, isotonic_regression
from scipy.special import stdtr
from scipy.stats import rankdata

from auditor.metrics.intervals import special_functions
from auditor.metrics.intervals.special_functions import average_ranks, find_root
from auditor.metrics.labels.calibration import _pool_adjacent_violators

HEAVY_MODULE = "scipy._lib.array_api_compat"
CHECK = """
import sys, threading
from auditor.metrics.intervals import special_functions as _special

known = dict(_special.KNOWN_VALUES)
SETUP
values = {name: getattr(_special, name)(*arguments) for name, (arguments, _) in known.items()}
print("HEAVY_MODULE" in sys.modules)
import scipy.special
assert values == {name: getattr(scipy.special, name)(*arguments) for name, (arguments, _) in known.items()}
if not IMPORTS_ALL:
    import scipy.stats
    assert abs(scipy.stats.t.cdf(1.2, 5) - values["stdtr"]) < 1e-12
""".replace("HEAVY_MODULE", HEAVY_MODULE)


@given(
    st.floats(0.6, 60.0),
    st.floats(0.51, 0.9999),
    st.floats(-30.0, 0.0),
    st.floats(1.0, 700.0),
    st.sampled_from([0.1, 3]),
)
def test_a_root_is_brents(df: float, level: float, low: float, high: float, power: float) -> None:
    def function(x: float) -> float:
        difference = float(stdtr(df, x)) - level
        return math.copysign(abs(difference) ** power, difference)

    if function(low) * function(high) > 0:
        with pytest.raises(ValueError, match="the same sign"):
            find_root(function, low, high)
        return
    for tolerance in (2e-12, 1e-10):
        expected, details = brentq(function, low, high, xtol=tolerance, full_output=True, disp=False)
        if details.converged:
            assert find_root(function, low, high, tolerance) == expected
        else:
            with pytest.raises(RuntimeError, match="no root"):
                find_root(function, low, high, tolerance)


def test_an_end_of_the_interval_may_be_the_root() -> None:
    assert find_root(lambda x: x - 1, 1.0, 4.0) == 1.0
    assert find_root(lambda x: x - 1, -2.0, 1.0) == 1.0


@given(st.lists(st.integers(-5, 5) | st.floats(-1e9, 1e9), max_size=40))
def test_ranks_are_scipys(values: list[float]) -> None:
    assert average_ranks(np.array(values, dtype=float)).tolist() == rankdata(values).tolist()


@given(st.lists(st.tuples(st.integers(-9, 9) | st.floats(-9, 9), st.integers(1, 9)), min_size=1, max_size=40))
def test_the_isotonic_curve_is_scipys(points: list[tuple[float, int]]) -> None:
    means, weights = np.array(points, dtype=float).T
    curve = _pool_adjacent_violators(means, weights.astype(np.intp))
    np.testing.assert_allclose(curve, isotonic_regression(means, weights=weights).x, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("setup", "imports_all"),
    [
        ("", False),
        ("import scipy.special", True),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", True),
        ("_special.COMPILED_MODULE = 'missing'", True),
        ("_special.KNOWN_VALUES['nctdtr'] = ((5, 0.5, 1.2), 0.7)", True),
    ],
    ids=["alone", "imported before", "another thread", "no compiled module", "another value"],
)
def test_special_functions_are_scipys(setup: str, imports_all: bool) -> None:
    """The module with the compiled functions is private: without it, they come from the public package."""
    command = [sys.executable, "-c", CHECK.replace("SETUP", setup).replace("IMPORTS_ALL", str(imports_all))]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stderr
    assert process.stdout.strip() == str(imports_all)


def test_a_compiled_module_without_the_known_functions_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = import_module(f"{special_functions.PACKAGE}.{special_functions.COMPILED_MODULE}")
    assert special_functions._has_known_values(compiled)
    assert not special_functions._has_known_values(import_module("scipy.special._basic"))
    for known in (((5, 0.5, 1.2), 0.7), ((5, 1.2), 0.7)):  # it takes fewer arguments; it has another value
        monkeypatch.setattr(special_functions, "KNOWN_VALUES", {"stdtr": known})
        assert not special_functions._has_known_values(compiled)


def test_the_tested_scipy_is_the_one_of_the_makefile() -> None:
    assert scipy.__version__ == os.environ.get("AUDITOR_TEST_SCIPY", scipy.__version__)
