"""Gaps in consistency between regions, over countries and questions."""

from __future__ import annotations

from auditor.metrics.distributions.groups import group_mean_difference
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.culture_worlds import CULTURE_DESIGNS, CULTURE_WORLDS, CultureSample


def _gap(sample: CultureSample) -> Interval:
    units = {"country": sample.country, "question": sample.question}
    return to_interval(group_mean_difference(sample.scores, sample.is_second, units, bounds=(-2.0, 2.0)))


def _gap_over_answers(sample: CultureSample) -> Interval:
    """Student's interval of the second region's mean around the gap, as if all answers were independent."""
    first_mean = float(sample.scores[~sample.is_second].mean())
    value, low, high = naive.student_interval(sample.scores[sample.is_second] - first_mean)
    return value, low, high


CULTURE_FIGURES = (Figure("consistency gap between regions", _gap, _gap_over_answers, "Student's, over questions"),)

CULTURE_STUDY = Study("cultures", __name__, CULTURE_FIGURES, CULTURE_WORLDS, CULTURE_DESIGNS)
