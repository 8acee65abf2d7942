"""Figures by attributes of models: groups, trends, and audits that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from auditor.config import AuditConfig
from auditor.domain import CellScore, canonical_json
from auditor.metrics.people.over_models import SummaryOverModels
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.agreement.over_models import AttributesReport, build_attributes_report
from auditor.reports.data.build import build_report
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.schema import DifferenceReport
from auditor.reports.data.differences.series_pairs import SeriesTarget
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.reports.document import Document
from auditor.reports.output import render_document
from auditor.reports.sections.differences_document import build_difference_document
from auditor.reports.sections.over_models import NO_TREND, build_attributes_section
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import survey_of
from tests.reports.sections.node_text import text_of
from tests.support.known import known
from tests.support.report_changes import change
from tests.support.synthetic_audit import NAMES
from tests.support.whole_reports import save_designs

SIZES = np.logspace(8, 11, 8)


def configure(n_models: int = 8, **attributes: object) -> AuditConfig:
    """A configuration of models of one family with growing numbers of parameters."""
    models = [
        {
            "name": f"m{i}", "model": f"openai/m{i}", "family": "pythia",
            "attributes": {"parameters": float(SIZES[i]), "tuning": "base" if i % 2 else "instruct", **attributes},
        }
        for i in range(n_models)
    ]  # fmt: skip
    return AuditConfig.model_validate({"name": "a", "survey": {"source": "wvs7-sample"}, "models": models})


CONFIG = configure()


@pytest.mark.parametrize(("slope", "is_named"), [(2.0, True), (0.0, False)])
def test_a_family_in_which_consistency_grows_is_named_and_one_in_which_it_does_not_is_not(
    slope: float, is_named: bool
) -> None:
    """Eight models; two standard deviations between models per decade, or none. Two other figures do not grow."""
    n_audits, counts, deviation = 200, np.zeros(2, dtype=np.intp), 0.1
    n_covered, widths = 0, []
    for seed in range(n_audits):
        rng = np.random.default_rng(seed)
        names = [f"m{i}" for i in range(8)]
        mae, r = (dict(zip(names, rng.normal(0.3, 0.1, 8).tolist(), strict=True)) for _ in range(2))
        growing = deviation * (rng.normal(0, 1, 8) + slope * np.log10(SIZES))
        consistency = dict(zip(names, growing.tolist(), strict=True))
        report = known(
            build_attributes_report([CONFIG], {"mae": mae, "pearson_r": r, "semantic_consistency": consistency})
        )
        named = {row.figure for row in report.trends if row.slope.is_significant}
        counts += "semantic_consistency" in named, bool(named - {"semantic_consistency"} if is_named else named)
        trend = next(row.slope for row in report.trends if row.figure == "semantic_consistency")
        n_covered += known(trend.ci_low) <= deviation * slope <= known(trend.ci_high)
        widths.append(known(trend.ci_high) - known(trend.ci_low))
    known_width = 2 * 1.96 * deviation / np.sqrt(8 * np.log10(SIZES).var())  # of an estimator that knows the noise
    assert n_covered >= 0.92 * n_audits
    assert np.mean(widths) <= 1.5 * known_width
    assert counts[1] <= 0.075 * n_audits
    assert counts[0] >= 0.9 * n_audits if is_named else counts[0] <= 0.075 * n_audits


def test_figures_are_grouped_by_label_year_and_power_of_ten() -> None:
    off_the_line = (0.01, 0.01, -0.01, -0.01, -0.01, -0.01, 0.01, 0.01)  # with 0 on average for each tuning
    by_model = {f"m{i}": i / 10 + off_the_line[i] for i in range(8)}
    figures: dict[str, Mapping[str, float | None]] = {"mae": by_model, "accuracy": {}, "corrected_r": {"m0": None}}
    report = known(build_attributes_report([configure(released="2025-03-01")], figures))
    means = {(row.attribute, row.value): row.summary.mean for row in report.figures}
    for key, value, n in (
        (("tuning", "instruct"), 0.3, 4),
        (("tuning", "base"), 0.4, 4),
        (("released", "2025"), 0.35, 8),
    ):
        assert means[key].value == pytest.approx(value)
        assert means[key].n == n
    assert [value for attribute, value in means if attribute == "parameters"] == [
        "below 1B", "1B to 10B", "10B to 100B", "100B and more",
    ]  # fmt: skip
    [trend] = report.trends
    assert (trend.family, trend.slope.n) == ("pythia", 8)
    assert "MAE rises with the number of parameters within the family pythia (" in text_of(
        build_attributes_section(report)
    )


def test_models_with_equal_scores_count_once_in_figures_of_agreement(db: Database) -> None:
    config = configure(3, released="2025-03-01")
    survey = survey_of({(country, topic): 0.1 for country in ("Ghana", "Japan") for topic in ("a", "b")})
    audit = audits.save_audit(
        db, name="a", config=canonical_json(config.model_dump(mode="json")), config_hash=config.hash, survey=survey,
        environment={},
    )  # fmt: skip
    errors = {"m0": 0.2, "m1": 0.2, "m2": 0.5}
    scores = [
        CellScore(model, cell, "direct", score + error, n_ok=1, n_planned=1)
        for model, error in errors.items()
        for cell, score in survey.scores.items()
    ]
    save_records(db, audit.id, scores)
    report = known(build_report(db, "a").attributes)
    [mean] = [row.summary.mean for row in report.figures if (row.attribute, row.figure) == ("released", "mae")]
    assert mean.n == 2
    assert mean.value == pytest.approx(0.35)
    by_tuning = {
        row.value: row.summary.mean for row in report.figures if (row.attribute, row.figure) == ("tuning", "mae")
    }
    assert (by_tuning["instruct"].n, by_tuning["base"].n) == (2, 1)  # m1, with the scores of m0, is the only base model


def test_models_of_no_common_family_have_no_trend_and_the_page_says_what_is_missing() -> None:
    models = [change(model, family=model.name) for model in CONFIG.models]
    report = known(
        build_attributes_report([change(CONFIG, models=models)], {"mae": {f"m{i}": i / 10 for i in range(8)}})
    )
    assert report.trends == []
    page = render_document(Document("Audit", "a", "", [build_attributes_section(report)]), "markdown")
    assert "no family has two of the models. Set `family`" in page
    assert "parameters 100M" in page


def test_below_six_models_there_is_no_trend_and_without_attributes_no_section() -> None:
    report = known(build_attributes_report([configure(5)], {"mae": {f"m{i}": i / 10 for i in range(5)}}))
    assert [row.slope.value for row in report.trends] == [None]
    bare = change(CONFIG, models=[change(m, attributes={}) for m in CONFIG.models])
    assert build_attributes_report([bare, None], {"mae": {"m0": 0.1}}) is None


def test_a_report_and_a_comparison_have_figures_by_attribute(
    db: Database, whole_report: Callable[[str], Report]
) -> None:
    report = whole_report("designs")
    errors = [row.mae.value or 0.0 for row in report.alignment]
    assert find_mae_of_base_models(report).mean.value == pytest.approx(np.mean(errors))
    assert {row.slope.n for row in read_attributes(report).trends} == {7}
    assert "corrected_r" in {row.figure for row in read_attributes(report).figures}
    unclear = [row for row in read_attributes(report).trends if not row.slope.is_significant]
    for trends, is_named in ((read_attributes(report).trends, True), (unclear, False)):
        text = text_of(build_attributes_section(change(read_attributes(report), trends=trends)))
        assert ("r falls with the number of parameters within the family pythia (" in text) is is_named
        assert (NO_TREND in text) is not is_named
    for name, seed in (("first", 1), ("second", 2)):
        save_designs(db, samples=1, seed=seed, name=name)
    mae = [
        {row.model: row.mae.value or 0.0 for row in compute_alignment(load_source(db, name))}
        for name in ("first", "second")
    ]
    differences = compare_targets(db, [SeriesTarget("first", None), SeriesTarget("second", None)])
    both = find_mae_of_base_models(differences)
    assert both.mean.n == 7  # a model of both audits counts once
    assert both.mean.value == pytest.approx(np.mean([(mae[0][m] + mae[1][m]) / 2 for m in NAMES[:7]]))
    assert "Figures by attribute" in render_document(build_difference_document(differences), "text")


def find_mae_of_base_models(report: Report | DifferenceReport) -> SummaryOverModels:
    """The MAE over models whose attribute `tuning` is `base`."""
    [row] = [row for row in read_attributes(report).figures if (row.value, row.figure) == ("base", "mae")]
    return row.summary


def read_attributes(report: Report | DifferenceReport) -> AttributesReport:
    """The part of a report on attributes."""
    return known(report.attributes)
