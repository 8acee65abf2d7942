"""Special functions of scipy, imported at first use: most commands need none.

The functions have scipy's names, arguments and results; arrays are broadcast.
"""

from __future__ import annotations

import sys
import threading
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGE = "scipy.special"
COMPILED_MODULE = "_ufuncs"
"""Module of the package with its compiled functions."""
NAMES = ("stdtr", "stdtrit", "nctdtr", "ndtr", "ndtri", "betainc", "betaincinv", "expit", "logit")


@cache
def _load() -> ModuleType:
    """The module with the functions: the compiled ones if they can be imported without the rest of the package.

    The package imports wrappers for other array libraries, which takes longer than importing numpy. While its place is
    taken, no other thread may import it, so the public way is used where there are other threads.
    """
    if PACKAGE in sys.modules or threading.active_count() > 1:
        return import_module(PACKAGE)
    import scipy

    package = ModuleType(PACKAGE)
    package.__path__ = [f"{path}/special" for path in scipy.__path__]
    sys.modules[PACKAGE] = package
    try:
        compiled = import_module(f"{PACKAGE}.{COMPILED_MODULE}")
    except ImportError:
        compiled = package
    finally:
        del sys.modules[PACKAGE]
    return compiled if all(hasattr(compiled, name) for name in NAMES) else import_module(PACKAGE)


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
