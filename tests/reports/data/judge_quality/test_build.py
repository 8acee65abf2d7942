"""Figures of judges from planted labels: equal to those that the metrics give directly, and near the planted truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from auditor.config.sections import PanelSection
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.judges.accuracy import judge_quality
from auditor.metrics.labels.prediction_powered import prediction_powered_mean
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.judge_quality.labelled_traces import merge_small_strata
from auditor.reports.data.judge_quality.schema import JudgeQualityReport, TransportRow
from auditor.reports.data.report_source import LabelRecords, ReportSource, load_source
from auditor.storage.database import open_database
from tests.support.known import known
from tests.support.planted_labels import find_majorities, plant_labels, plant_truth
from tests.support.synthetic_audit import populate

Build = Callable[..., JudgeQualityReport]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ReportSource:
    folder = tmp_path_factory.mktemp("labels")
    with open_database(f"sqlite:///{folder}/audit.db") as db:
        return load_source(db, populate(db, models=4, countries=12, topics=8).name)


def build(source: ReportSource, **settings: Any) -> JudgeQualityReport:
    """The figures with planted labels."""
    truth = plant_truth(source.votes, settings.pop("error_rate", 0.1))
    records = plant_labels(source.votes, truth, **settings)
    report = known(build_judge_quality(replace(source, label_records=records)))
    return report


def columns_of(source: ReportSource, labels: LabelRecords, judge: str | None = None) -> tuple[Any, Any, Any]:
    """Verdicts of a judge or the panel's shares, labels, and strata of the traces with a verdict; one rater."""
    people = {unit.parts: float(label.value == "VALID") for label in labels.labels for unit in (label.unit,)}
    strata = {unit.parts: "/".join(stratum) for unit, stratum in labels.frame}
    verdicts: dict[Any, list[int]] = {}
    for vote in source.votes:
        if judge in (None, vote.judge):
            verdicts.setdefault((vote.model, vote.country, vote.topic, str(vote.sample)), []).append(vote.valid)
    keys = sorted(verdicts)
    return (
        np.array([np.mean(verdicts[key]) for key in keys]),
        np.array([people.get(key, np.nan) for key in keys]),
        np.array([strata[key] for key in keys]),
    )


def test_without_labels_only_their_number_is_suggested(source: ReportSource) -> None:
    report = known(build_judge_quality(source))
    assert (report.labels, report.judges, report.ceiling, report.reason) == (0, [], None, None)
    assert 4 * 30 <= report.suggested_labels <= 4 * 65
    assert report.traces == len(source.votes.traces)


def test_figures_of_a_judge_are_those_of_the_metrics(source: ReportSource) -> None:
    labels = plant_labels(source.votes, plant_truth(source.votes, 0.1), n_each=40)
    report = known(build_judge_quality(replace(source, label_records=labels)))
    for row in report.judges:
        verdicts, people, strata = columns_of(source, labels, row.judge)
        expected = judge_quality(verdicts, people, strata=strata)
        for name in ("sensitivity", "specificity", "accuracy", "kappa"):
            assert are_equal(getattr(row, name), getattr(expected, name)), name
        corrected = prediction_powered_mean(verdicts, people, strata=strata, bounds=(0, 1))
        assert row.excess.value == pytest.approx(verdicts.mean() - (corrected.value or 0))
        assert row.excess.ci_low == pytest.approx(verdicts.mean() - (corrected.ci_high or 0))
        assert row.labels == int((~np.isnan(people)).sum())
        bounds = [row.accuracy_if_unsure_disagree, row.accuracy_if_unsure_agree]
        assert bounds == pytest.approx([row.accuracy.value] * 2)


def test_corrected_shares_are_those_of_the_metrics_and_cover_the_truth(source: ReportSource) -> None:
    truth = plant_truth(source.votes, 0.2)
    labels = plant_labels(source.votes, truth, n_each=30)
    report = known(build_judge_quality(replace(source, label_records=labels)))
    assert [row.model for row in report.models] == source.models
    n_covered = 0
    for row in report.models:
        shares, people, strata = columns_of(source, labels)
        is_of_model = np.char.startswith(strata, f"{row.model}/")
        expected = prediction_powered_mean(
            shares[is_of_model], people[is_of_model], strata=strata[is_of_model], bounds=(0, 1)
        )
        assert are_equal(row.corrected, expected)
        assert row.judges.value == pytest.approx(shares[is_of_model].mean())
        assert row.missing_labels == 0
        n_covered += covers(
            row.corrected, float(np.mean([valid for key, valid in truth.items() if key[0] == row.model]))
        )
    assert n_covered >= 3
    assert set(report.corrected_shares) == set(source.models)
    assert len(report.differences) == 6


def are_equal(first: Estimate, second: Estimate) -> bool:
    """Whether two estimates are equal but for rounding; both have an interval."""
    figures = [(e.value, e.ci_low, e.ci_high) for e in (first, second)]
    return figures[0] == pytest.approx(figures[1]) and (first.n, first.reason) == (second.n, second.reason)


def covers(estimate: Estimate, truth: float) -> bool:
    assert estimate.ci_low is not None, estimate.reason
    return bool(estimate.ci_low <= truth <= known(estimate.ci_high))


def test_unsure_labels_are_counted_and_bound_the_figures(source: ReportSource) -> None:
    report = build(source, n_each=30, unsure_share=0.2)
    assert 0.1 * 240 < report.unsure < 0.3 * 240
    for row in report.models:
        assert (
            known(row.corrected_if_unsure_invalid) < known(row.corrected.value) < known(row.corrected_if_unsure_valid)
        )
        assert row.unsure > 0
    for judge in report.judges:
        low, high = judge.accuracy_if_unsure_disagree, judge.accuracy_if_unsure_agree
        assert known(low) < known(judge.accuracy.value) < known(high)


def test_too_few_labels_are_counted_and_nothing_is_decided_with_them(source: ReportSource) -> None:
    report = build(source, n_each=12)
    assert [row.missing_labels for row in report.models] == [11, 6, 6, 6]  # the first has 7 INVALID traces
    assert report.corrected_shares == {}
    assert report.differences == []
    assert [(row.dimension, row.groups) for row in report.refused_splits] == [("model", 4), ("topic", 8)]
    assert report.refused_splits[0].missing == 29
    by_model = next(row for row in report.transport if row.dimension == "model")
    assert (by_model.largest_excess.p_value, by_model.missing) == (None, 29)


def test_people_who_agree_set_no_limit_and_random_ones_do(source: ReportSource) -> None:
    alike, noisy = (build(source, n_each=20, raters=2, rater_error=error).ceiling for error in (0.0, 0.15))
    assert (known(alike).agreement.value, known(alike).max_accuracy.value) == (1.0, 1.0)
    # Two raters who each err on 15% agree on 0.85² + 0.15² = 74.5%, and the truth is right on 85%.
    assert covers(known(noisy).agreement, 0.745)
    assert covers(known(noisy).max_accuracy, 0.85)
    single = known(build(source, n_each=10).ceiling)
    assert single.agreement.reason == "no trace has labels of two raters"


def test_a_judge_like_people_may_replace_one_and_labels_that_are_missing_are_counted(source: ReportSource) -> None:
    rows = build(source, n_each=40, raters=3, rater_error=0.25, error_rate=0.0).replacement
    assert {row.rater_kind for row in rows} == {"expert", "skilled", "crowd"}
    experts = [row for row in rows if row.rater_kind == "expert"]
    assert all(row.test.passed is not None and row.missing == 0 for row in experts)
    assert any(row.test.passed for row in experts)
    few = build(source, n_each=40, raters=2).replacement[0]
    assert (few.test.passed, few.missing) == (None, 30)
    assert "30 items with labels by at least 3 raters" in (few.test.reason or "")


def test_errors_that_differ_by_model_are_found(source: ReportSource) -> None:
    worst = source.models[0]
    truth = {key: valid and key[0] != worst for key, valid in find_majorities(source.votes).items()}
    records = plant_labels(source.votes, truth, n_each=40)
    report = known(build_judge_quality(replace(source, label_records=records)))
    by_model = next(row for row in report.transport if row.dimension == "model")
    assert by_model.largest_group == worst
    assert known(by_model.largest_excess.p_value) < 0.001
    lenient = {row.model: row.excess.value or 0 for row in report.models}
    assert lenient[worst] > 0.5
    split = [row for row in report.splits if row.dimension == "model" and row.group == worst]
    assert split
    assert all((row.difference.value or 0) < -0.3 and (row.difference.adjusted_p_value or 1) < 0.05 for row in split)


def test_errors_that_differ_by_language_are_found_or_the_missing_labels_are_counted(source: ReportSource) -> None:
    worst_country = source.votes.traces[0][1]
    languages = ["ja" if key[1] == worst_country else "en" for key in source.votes.traces]
    in_two_languages = replace(source, votes=replace(source.votes, languages=languages))
    truth = {key: valid and key[1] != worst_country for key, valid in find_majorities(source.votes).items()}

    def test_transport(n_each: int) -> TransportRow:
        records = plant_labels(source.votes, truth, n_each=n_each)
        report = known(build_judge_quality(replace(in_two_languages, label_records=records)))
        return next(row for row in report.transport if row.dimension == "language")

    decided, undecided = test_transport(200), test_transport(4)
    assert decided.groups == ["en", "ja"]
    assert known(decided.largest_excess.p_value) < 0.001
    assert undecided.largest_excess.p_value is None
    assert undecided.missing > 0
    assert undecided.reason == "the test needs 30 labels of each language"


def test_small_strata_are_merged_unless_nothing_of_them_is_labelled() -> None:
    strata = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3])
    labelled = np.array([1, 1, 0, 1, 0, 1, 1, 0, 0], dtype=bool)
    may_merge = np.ones(9, dtype=bool)
    assert merge_small_strata(strata, labelled, may_merge).tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    may_merge[8] = False
    assert merge_small_strata(strata, labelled, may_merge).tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2]
    census = np.array([0, 1, 1, 1])
    assert merge_small_strata(census, np.array([1, 1, 1, 0], dtype=bool), np.ones(4, dtype=bool)).tolist() == [
        0, 1, 1, 1,
    ]  # fmt: skip


def test_labels_of_traces_outside_the_sample_are_counted_and_not_used(source: ReportSource) -> None:
    records = plant_labels(source.votes, plant_truth(source.votes, 0.1), n_each=20)
    shorter = replace(records, sample=records.sample[5:])
    report = known(build_judge_quality(replace(source, label_records=shorter)))
    assert (report.not_used, report.labels) == (5, len(records.labels) - 5)


def test_labels_that_cannot_be_used_have_a_reason(source: ReportSource) -> None:
    records = replace(plant_labels(source.votes, plant_truth(source.votes, 0.1)), reason="traces were changed")
    report = known(build_judge_quality(replace(source, label_records=records)))
    assert (report.labels, report.reason, report.judges) == (0, "traces were changed", [])
    assert report.not_used == len(records.labels)


def test_all_verdicts_of_an_adaptive_panel_decide_its_majority(source: ReportSource) -> None:
    """The third judge of each trace is asked only if the first two differ; then its verdict decides."""
    records, votes, config = plant_labels(source.votes, plant_truth(source.votes, 0.1)), source.votes, source.config
    by_trace = np.argsort(votes.trace_index, kind="stable")
    place = np.empty(len(votes), dtype=np.intp)
    starts = np.searchsorted(votes.trace_index[by_trace], votes.trace_index)
    place[by_trace] = np.arange(len(votes))
    adaptive = replace(
        source,
        votes=replace(votes, always=place - starts < 2),
        config=known(config).model_copy(update={"panel": PanelSection(adaptive=True)}),
        label_records=records,
    )
    full = known(known(build_judge_quality(replace(source, label_records=records))).panel)
    row = known(known(build_judge_quality(adaptive)).panel)
    assert are_equal(row.accuracy.majority, full.accuracy.majority)
    assert row.balanced_accuracy.value == full.balanced_accuracy.value
