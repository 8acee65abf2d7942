"""The study clusters countries by the rule of reports."""

from __future__ import annotations

import numpy as np

from auditor.reports.data.report_source import MIN_ZONES as MIN_ZONES_OF_REPORTS
from benchmarks.coverage.harder_figures import MIN_ZONES, cluster
from benchmarks.coverage.worlds.harder_worlds import HARDER_DESIGNS, RELATED_WORLDS


def test_zones_are_clusters_from_six_on() -> None:
    assert MIN_ZONES == MIN_ZONES_OF_REPORTS
    of_a_map = RELATED_WORLDS[1]
    samples = [of_a_map.draw(HARDER_DESIGNS[0], np.random.default_rng(seed)) for seed in range(40)]
    units = {(len(np.unique(sample.zone)) >= MIN_ZONES, cluster(sample).unit) for sample in samples}
    assert units == {(True, "zone"), (False, "country")}
