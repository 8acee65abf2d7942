"""Special functions of scipy, imported at first use: the import takes as long as numpy's, and most commands need none.

The functions have scipy's names, arguments and results; arrays are broadcast.
"""

from __future__ import annotations

from typing import Any


def stdtr(df: Any, t: Any) -> Any:
    """Cumulative distribution function of Student's t with `df` degrees of freedom."""
    from scipy import special

    return special.stdtr(df, t)


def stdtrit(df: Any, p: Any) -> Any:
    """Quantile `p` of Student's t with `df` degrees of freedom."""
    from scipy import special

    return special.stdtrit(df, p)


def nctdtr(df: Any, noncentrality: Any, t: Any) -> Any:
    """Cumulative distribution function of the noncentral t distribution."""
    from scipy import special

    return special.nctdtr(df, noncentrality, t)


def ndtr(x: Any) -> Any:
    """Cumulative distribution function of the standard normal distribution."""
    from scipy import special

    return special.ndtr(x)


def ndtri(p: Any) -> Any:
    """Quantile `p` of the standard normal distribution."""
    from scipy import special

    return special.ndtri(p)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Regularized incomplete beta function."""
    from scipy import special

    return special.betainc(a, b, x)


def betaincinv(a: Any, b: Any, y: Any) -> Any:
    """Inverse of the regularized incomplete beta function."""
    from scipy import special

    return special.betaincinv(a, b, y)


def expit(x: Any) -> Any:
    """Logistic function, the inverse of `logit`."""
    from scipy import special

    return special.expit(x)


def logit(p: Any) -> Any:
    """Log-odds of a probability in [0, 1]."""
    from scipy import special

    return special.logit(p)
