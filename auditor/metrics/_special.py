"""Special functions of scipy, imported at first use: the import takes as long as numpy's, and most commands need none.

The functions have scipy's names, arguments and results; arrays are broadcast.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike


def stdtr(df: ArrayLike, t: ArrayLike) -> Any:
    """Cumulative distribution function of Student's t with `df` degrees of freedom."""
    from scipy import special

    return special.stdtr(df, t)


def stdtrit(df: ArrayLike, p: ArrayLike) -> Any:
    """Quantile `p` of Student's t with `df` degrees of freedom."""
    from scipy import special

    return special.stdtrit(df, p)


def nctdtr(df: ArrayLike, noncentrality: ArrayLike, t: ArrayLike) -> Any:
    """Cumulative distribution function of the noncentral t distribution."""
    from scipy import special

    return special.nctdtr(df, noncentrality, t)


def ndtri(p: ArrayLike) -> Any:
    """Quantile `p` of the standard normal distribution."""
    from scipy import special

    return special.ndtri(p)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Any:
    """Regularized incomplete beta function."""
    from scipy import special

    return special.betainc(a, b, x)


def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Any:
    """Inverse of the regularized incomplete beta function."""
    from scipy import special

    return special.betaincinv(a, b, y)


def expit(x: ArrayLike) -> Any:
    """Logistic function, the inverse of `logit`."""
    from scipy import special

    return special.expit(x)


def logit(p: ArrayLike) -> Any:
    """Log-odds of a probability in [0, 1]."""
    from scipy import special

    return special.logit(p)
