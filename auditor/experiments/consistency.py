"""Means of consistency over questions, for the experiments on moral questions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.averaging import AveragedEstimate, mean_of_instances
from auditor.metrics.paired_difference import PairedDifference, paired_difference

Floats = NDArray[np.float64]
CONSISTENCY_BOUNDS = (-1.0, 1.0)
"""Smallest and largest possible consistency."""


def mean_over_questions(scores: Floats) -> AveragedEstimate:
    """Mean consistency, shape (questions,), nan where there is none, with an interval over other questions."""
    return mean_of_instances(
        scores, {"question": np.arange(len(scores))}, CONSISTENCY_BOUNDS, empty_reason="no question has a value"
    )


def difference_over_questions(first: Floats, second: Floats) -> PairedDifference:
    """Mean of second minus first, shape (questions,) each, with an interval over other questions."""
    bounds = (CONSISTENCY_BOUNDS[0] - CONSISTENCY_BOUNDS[1], CONSISTENCY_BOUNDS[1] - CONSISTENCY_BOUNDS[0])
    return paired_difference(first, second, {"question": np.arange(len(first))}, bounds=bounds)
