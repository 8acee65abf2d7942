"""Lost samples are counted by cell and give bounds; a missing figure has the recorded cause as its reason."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.domain import Cell, CellScore, LogprobMeasure, Outcome
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.agreement.cultural_findings import compute_country_errors
from auditor.reports.data.agreement.regions import build_regions_report
from auditor.reports.data.build import build_report
from auditor.reports.data.coverage.lost_samples import LostSamples, count_samples, has_large_loss, loss_differs
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.reports.output import render_report
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from tests.reports.conftest import save_rows, survey_of
from tests.support.known import known

COUNTRIES = ["Germany", "France", "Spain", "Sweden", "Canada", "Japan", "Egypt", "Kenya", "Mexico", "Brazil"]
TOPICS = [f"topic {i}" for i in range(6)]


def load_imported_audit(db: Database, n_ok: dict[str, int], method: str = "direct") -> ReportSource:
    """An audit of one model with five planned samples a cell, of which `n_ok` by country are usable (else all)."""
    rng = np.random.default_rng(0)
    truth = {(country, topic): float(rng.uniform(-0.6, 0.6)) for country in COUNTRIES for topic in TOPICS}
    survey = survey_of(truth)
    scores = []
    for cell, score in survey.scores.items():
        usable = n_ok.get(cell.country, 5)
        value = score + float(rng.normal(0, 0.2)) if usable else None
        scores.append(CellScore("m", cell, method, value, n_ok=usable, n_planned=5))
    return save_rows(db, survey, scores)


def test_samples_inside_cells_are_counted(population: tuple[Database, Audit], report: Report) -> None:
    source = load_source(*(population[0], population[1].name))
    for column, counts in enumerate(count_samples(source)):
        model = source.columns[column][1]
        [coverage] = [row for row in report.coverage.models if (row.name, row.stage) == (model, "direct")]
        lost = counts.count_lost()
        assert (lost.planned, lost.lost) == (coverage.planned, coverage.planned - coverage.ok)
        assert lost == report.alignment[column].lost_samples
        n_ok = sum(n.n for n in source.trace_counts if (n.model, n.outcome) == (model, Outcome.OK.value))
        assert counts.usable.sum() == n_ok


def test_each_row_has_its_share_and_bounds_above_five_percent(db: Database) -> None:
    source = load_imported_audit(db, {"Germany": 3, "Japan": 4})
    [row] = compute_alignment(source)
    assert row.lost_samples == LostSamples(planned=300, lost=18, share=18 / 300)
    assert (row.n_dropped, row.worst_case is not None) == (0, True)
    assert row.worst_case is not None
    assert row.worst_case.mae.value == row.mae.value
    assert row.worst_case.pearson_r.value == row.pearson_r.value
    for figure in (row.worst_case.mae, row.worst_case.pearson_r, row.worst_case.bias):
        assert (figure.bound_low or 0.0) < (figure.value or 0.0) < (figure.bound_high or 0.0)
        assert (figure.ci_low or -2.0) < (figure.bound_low or 0.0)
        assert figure.n == 60
    # Two of five samples of Germany's cells and one of five of Japan's may be 1 or -1.
    shift = 6 * (2 / 5 + 1 / 5) / 60
    assert row.worst_case.bias.bound_high == pytest.approx(
        float(np.mean(source.score_matrix[0] * _usable_share(source) - source.survey_scores)) + shift
    )
    by_country = {place.name: place.lost_samples.lost for place in compute_country_errors(source)}
    assert by_country == {country: {"Germany": 12, "Japan": 6}.get(country, 0) for country in COUNTRIES}
    by_region = {region.region: region for region in build_regions_report(source).rows}
    assert by_region["Western"].lost_samples.lost == 12
    assert by_region["Western"].worst_case is not None
    assert by_region["Non-Western"].lost_samples.share == pytest.approx(6 / 150)
    assert by_region["Non-Western"].worst_case is None


def _usable_share(source: ReportSource) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The share of usable samples of each cell."""
    [counts] = count_samples(source)
    return np.asarray(counts.usable / counts.planned, dtype=np.float64)


def test_gaps_have_bounds_where_shares_differ_or_many_are_lost(db: Database) -> None:
    [gap] = build_regions_report(load_imported_audit(db, {"Germany": 3})).gaps
    assert gap.first_lost_samples.share == pytest.approx(0.08)
    assert gap.second_lost_samples.share == 0.0
    assert known(gap.worst_case).mae.ci_low is not None
    assert known(gap.worst_case).pearson_r.ci_low is not None
    assert gap.r_gap.value is None or gap.r_gap.ci_low is not None
    [full] = build_regions_report(load_imported_audit(db, {})).gaps
    assert full.worst_case is None
    assert None not in (full.mae_gap.ci_low, full.r_gap.ci_low)


def test_log_probabilities_have_no_bounds(db: Database) -> None:
    [row] = compute_alignment(load_imported_audit(db, {"Germany": 0}, method="logprob"))
    assert row.lost_samples.share == pytest.approx(0.1)
    assert known(row.worst_case).pearson_r.bound_low is None
    assert "log-probabilities" in str(known(row.worst_case).pearson_r.reason)


def test_thresholds() -> None:
    none, five, six, eleven = (LostSamples(planned=100, lost=lost, share=lost / 100) for lost in (0, 5, 6, 11))
    unknown = LostSamples(planned=0, lost=0, share=None)
    assert [has_large_loss(lost) for lost in (none, five, six, unknown)] == [False, False, True, False]
    assert [loss_differs(five, other) for other in (none, six, eleven)] == [False, False, True]


CELLS = [(c, t) for c in ("Germany", "Japan", "Nigeria", "Brazil", "Egypt") for t in "vwxyz"]
TRUTH = {cell: (i % 7 - 3) / 4 for i, cell in enumerate(CELLS)}
RAW: dict[str, list[float | None]] = {
    "flat": [0.3] * 25, "once": [0.3] + [None] * 24, "half": [None] * 25, "mute": [None] * 25,
}  # fmt: skip
EXPECTED_REASONS = {
    "flat": "differ equally on every cell", "once": "only one cell has all its comparisons",
    "half": "no cell has all its comparisons", "mute": "log-probabilities cannot be measured",
}  # fmt: skip


@pytest.fixture(scope="module")
def unscaled(tmp_path_factory: pytest.TempPathFactory) -> Report:
    rows = [CellScore("level", Cell(*cell), "direct", 0.5, n_ok=1, n_planned=1) for cell in CELLS]
    rows += [CellScore(m, Cell(*cell), "direct", TRUTH[cell], n_ok=1, n_planned=1) for m in RAW for cell in CELLS]
    for model, values in RAW.items():
        measure = None if model == "mute" else LogprobMeasure.CHOICE
        rows += [
            CellScore(model, Cell(*cell), "logprob", None, n_ok=0, n_planned=10, raw=value, measure=measure)
            for cell, value in zip(CELLS, values, strict=True)
        ]
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('unscaled')}/audit.db") as db:
        return build_report(db, save_rows(db, survey_of(TRUTH), rows).audit.name)


def test_scores_that_could_not_be_scaled_have_the_recorded_reason_in_every_section(unscaled: Report) -> None:
    for row in unscaled.alignment:
        if row.method == "logprob":
            assert EXPECTED_REASONS[row.model] in str(row.pearson_r.reason)
    for place in (*unscaled.topics, *unscaled.countries):
        if place.method == "logprob":
            assert EXPECTED_REASONS[place.model] in str(place.mae.reason)
    for region in unscaled.regions.rows:
        if region.method == "logprob":
            assert EXPECTED_REASONS[region.model] in str(region.pearson_r.reason)
    for both in unscaled.methods:
        assert EXPECTED_REASONS[both.model] in str(both.difference.reason)
    assert "fewer than 3 pairs" not in render_report(unscaled, "markdown") + render_report(unscaled, "html")


def test_a_model_with_constant_scores_has_a_reason_in_alignment_and_in_tiers(unscaled: Report) -> None:
    [level] = [row for row in unscaled.alignment if row.model == "level"]
    assert level.pearson_r.reason == "the model gives every cell the same score"
    by_r = next(part for part in unscaled.tiers if part.by == "r" and part.method == "direct")
    assert by_r.reason == "level has no r on the cells that all have: it gives every cell the same score"
