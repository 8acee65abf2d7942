"""Models with different sampling settings are no subject of a test, of a comparison or of an experiment."""

from __future__ import annotations

import pytest

from auditor.domain import Purpose
from auditor.exports.tracker_runs import build_runs
from auditor.reports.data.build import build_report
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.report_source import load_source
from auditor.reports.data.sampling import REFUSED_REASON, build_temperature_rows, compare_sample_sizes
from auditor.reports.sections.differences_document import build_difference_document
from auditor.reports.sections.experiments.sampling import build_sampling_document
from auditor.storage.database import Database
from tests.reports.sections.node_text import assert_consistent, tables_of, text_of
from tests.support.request_reports import DEFAULT_LABEL, change_answers, direct_keys
from tests.support.synthetic_audit import populate


async def populate_refused(db: Database, name: str = "refused", *, refusing: str = "alder") -> None:
    """An audit of two models, of which one was asked without the temperature."""
    populate(db, models=2, name=name)
    for model in ("alder", "birch"):
        await change_answers(db, direct_keys(db, model), altered="temperature" if model == refusing else "")


async def test_a_comparison_of_audits_says_that_settings_differ(db: Database) -> None:
    await populate_refused(db)
    comparison = compare_targets(db, [parse_target("refused")])
    assert [series.sampling for series in comparison.series] == [DEFAULT_LABEL, "temperature 0.7"]
    assert [pair.sampling_settings_differ for pair in comparison.pairs] == [True]
    opening = text_of(build_difference_document(comparison).opening)
    assert f"alder ({DEFAULT_LABEL}) and birch (temperature 0.7) were asked with different sampling settings" in opening


async def test_a_comparison_of_equal_settings_has_no_such_caution(db: Database) -> None:
    await populate_refused(db, refusing="none")
    comparison = compare_targets(db, [parse_target("refused")])
    assert [pair.sampling_settings_differ for pair in comparison.pairs] == [False]
    assert "sampling settings" not in text_of(build_difference_document(comparison).opening)


async def test_an_experiment_has_no_figure_at_a_temperature_that_was_refused(db: Database) -> None:
    await populate_refused(db)
    refused, honoured = build_temperature_rows(load_source(db, "refused"), 0.7)
    assert (refused.r.reason, refused.mae.reason, refused.spread) == (REFUSED_REASON, REFUSED_REASON, None)
    assert honoured.r.value is not None
    assert honoured.spread is not None


async def test_an_experiment_on_samples_marks_the_scatter(db: Database) -> None:
    await populate_refused(db)
    experiment = compare_sample_sizes(db, load_source(db, "refused"), [2])
    assert [row.sampling for row in experiment.rows] == [DEFAULT_LABEL, "temperature 0.7"]
    document = build_sampling_document(experiment)
    assert_consistent(document)
    assert tables_of(document)["settings"].columns[-1].title == "Sampling"


async def test_a_tracker_gets_no_self_consistency_of_a_refusing_model(db: Database) -> None:
    await populate_refused(db)
    _, [refused, honoured] = build_runs(build_report(db, "refused"))
    assert "self_consistency" not in refused.metrics
    assert "sample_variance" not in refused.metrics
    assert refused.params["sampling"] == DEFAULT_LABEL
    assert honoured.metrics["sample_variance"] > 0


@pytest.mark.parametrize("purpose", [Purpose.REVIEW, Purpose.declare("logic")])
async def test_only_sampled_answers_have_settings(db: Database, purpose: Purpose) -> None:
    await populate_refused(db)
    assert build_report(db, "refused").sampling.labels(purpose) == {}
