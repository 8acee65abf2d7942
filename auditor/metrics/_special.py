"""Special functions of scipy, imported at first use: most commands need none.

The functions have scipy's names, arguments and results; arrays are broadcast. They come from scipy's compiled module,
which is private: importing `scipy.special` takes six times as long, most of it for other array libraries. They are
compared with known values before their first use, and without that module they come from `scipy.special`. `make scipy`
tests both ways with the oldest and the newest supported scipy.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGE = "scipy.special"
COMPILED_MODULE = "_ufuncs"
"""Private module of the package with its compiled functions."""
KNOWN_VALUES: Mapping[str, tuple[tuple[float, ...], float]] = {
    "stdtr": ((5, 1.2), 0.8580544716469487),
    "stdtrit": ((5, 0.9), 1.4758840488244815),
    "nctdtr": ((5, 0.5, 1.2), 0.725943773230301),
    "ndtr": ((0.3,), 0.6179114221889526),
    "ndtri": ((0.3,), -0.5244005127080409),
    "betainc": ((2, 3, 0.4), 0.5248),
    "betaincinv": ((2, 3, 0.4), 0.3291665033784079),
    "expit": ((0.3,), 0.574442516811659),
    "logit": ((0.3,), -0.8472978603872034),
}
"""Arguments and value of each function."""
KNOWN_TOLERANCE = 1e-9
"""Relative; between versions, values differ by up to 1e-10."""


@cache
def _load() -> ModuleType:
    """The module with the functions: the compiled one if it can be imported alone and has the functions as known.

    While the package's place in `sys.modules` is taken, no other thread may import it, so the package is imported where
    there are other threads.
    """
    if PACKAGE in sys.modules or threading.active_count() > 1:
        return import_module(PACKAGE)
    compiled = _import_compiled()
    return compiled if compiled is not None and _has_known_values(compiled) else import_module(PACKAGE)


def _import_compiled() -> ModuleType | None:
    """Import the compiled module without the code of its package; None if there is no such module."""
    import scipy

    package = ModuleType(PACKAGE)
    package.__path__ = [f"{path}/special" for path in scipy.__path__]
    sys.modules[PACKAGE] = package
    try:
        return import_module(f"{PACKAGE}.{COMPILED_MODULE}")
    except ImportError:
        return None
    finally:
        del sys.modules[PACKAGE]


def _has_known_values(module: ModuleType) -> bool:
    """Whether a module has all functions, with the values of `KNOWN_VALUES`."""
    functions = {name: getattr(module, name, None) for name in KNOWN_VALUES}
    try:
        return all(
            function is not None and math.isclose(function(*arguments), value, rel_tol=KNOWN_TOLERANCE)
            for function, (arguments, value) in zip(functions.values(), KNOWN_VALUES.values(), strict=True)
        )
    except (TypeError, ValueError):
        return False


def stdtr(df: Any, t: Any) -> Any:
    """Cumulative distribution function of Student's t with `df` degrees of freedom."""
    return _load().stdtr(df, t)


def stdtrit(df: Any, p: Any) -> Any:
    """Quantile `p` of Student's t with `df` degrees of freedom."""
    return _load().stdtrit(df, p)


def nctdtr(df: Any, noncentrality: Any, t: Any) -> Any:
    """Cumulative distribution function of the noncentral t distribution."""
    return _load().nctdtr(df, noncentrality, t)


def ndtr(x: Any) -> Any:
    """Cumulative distribution function of the standard normal distribution."""
    return _load().ndtr(x)


def ndtri(p: Any) -> Any:
    """Quantile `p` of the standard normal distribution."""
    return _load().ndtri(p)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Regularized incomplete beta function."""
    return _load().betainc(a, b, x)


def betaincinv(a: Any, b: Any, y: Any) -> Any:
    """Inverse of the regularized incomplete beta function."""
    return _load().betaincinv(a, b, y)


def expit(x: Any) -> Any:
    """Logistic function, the inverse of `logit`."""
    return _load().expit(x)


def logit(p: Any) -> Any:
    """Log-odds of a probability in [0, 1]."""
    return _load().logit(p)
