"""Models are named for a gap between two regions only after correction for the number of models."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import stats

from auditor.domain import Cell, CellScore, Survey, SurveyCell
from auditor.reports.data.agreement.regions import build_regions_report
from auditor.reports.data.measurement_schema import RegionsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource
from auditor.reports.sections.weaknesses import list_weaknesses
from auditor.storage.audits import Audit
from auditor.surveys import group_countries

WESTERN = ("Germany", "France", "Spain", "Sweden", "Italy", "Canada")
OTHERS = ("Japan", "China", "India", "Iran", "Turkey", "Nigeria")
CELLS = [Cell(country, f"topic {i}") for country in (*WESTERN, *OTHERS) for i in range(8)]
SURVEY = group_countries(
    Survey("own", "t", "s", "{topic} {country}", ("never", "always"), tuple(SurveyCell(cell, 0.0) for cell in CELLS)),
    "western",
)
N_MODELS = 12


def simulate_regions(seed: int, planted_factor: float = 1.0) -> RegionsReport:
    """The regions of an audit of equal models; errors of the first one outside the West are multiplied."""
    rng = np.random.default_rng(seed)
    is_western = np.array([cell.country in WESTERN for cell in CELLS])
    scores = []
    for i in range(N_MODELS):
        by_country, by_topic, by_cell = (
            size * rng.normal(size=shape) for size, shape in ((0.3, (12, 1)), (0.1, (1, 8)), (0.1, (12, 8)))
        )
        errors = (by_country + by_topic + by_cell).ravel()
        if i == 0:
            errors = np.where(is_western, errors / planted_factor, errors * planted_factor)
        scores += [
            CellScore(f"m{i:02}", cell, "direct", float(np.clip(error, -1, 1)), n_ok=1, n_planned=1)
            for cell, error in zip(CELLS, errors, strict=True)
        ]
    source = ReportSource(audit=cast(Audit, None), config=None, survey=SURVEY, scores=scores)
    return build_regions_report(source)


def gap_sentences_of(report: Report, regions: RegionsReport) -> list[str]:
    """The sentences that name models for a gap between regions."""
    sentences = list_weaknesses(report.model_copy(update={"regions": regions}))
    return [sentence for sentence in sentences if sentence.startswith("The mean absolute error is larger in")]


def test_equal_models_are_rarely_named_for_a_gap(report: Report) -> None:
    n_named = n_by_interval = 0
    n_audits = 20
    for seed in range(n_audits):
        regions = simulate_regions(seed)
        n_named += bool(gap_sentences_of(report, regions))
        gaps = [gap.mae_gap for gap in regions.gaps]
        n_by_interval += any((gap.ci_low or 0.0) > 0 or (gap.ci_high or 0.0) < 0 for gap in gaps)
    assert n_named <= stats.binom.ppf(0.99, n_audits, 0.05)
    assert n_by_interval > stats.binom.ppf(0.99, n_audits, 0.05), "the uncorrected intervals name models too often"


def test_a_model_with_a_large_gap_is_named(report: Report) -> None:
    for seed in range(2):
        regions = simulate_regions(seed, planted_factor=8.0)
        [caution] = gap_sentences_of(report, regions)
        assert caution.startswith("The mean absolute error is larger in Non-Western than in Western countries for m00 ")
        assert caution.count("(by ") == 1
