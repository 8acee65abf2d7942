"""The section on judges and people: its sentences have the figures of the report, and say what labels are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from auditor.config import LabelSection
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.labels.annotator_test import alternative_annotator_test
from auditor.reports.data.agreement.cultural_findings import Shortfall, ShortfallsReport
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.panel.certificate import JudgeEvidence, describe_accuracy, write_certificate
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.reports.document import Document, Section
from auditor.reports.output import render_document
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.judge_quality import (
    build_judge_quality_section,
    describe_panel_accuracy,
    suggest_labels,
)
from auditor.reports.sections.page_one import build_summary_section
from auditor.reports.sections.panel import build_panel_section
from auditor.reports.sections.weaknesses import list_weaknesses
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.reports.sections.node_text import assert_consistent, tables_of, text_of
from tests.support.known import known
from tests.support.planted_labels import plant_labels, plant_truth
from tests.support.report_changes import change

FULL: dict[str, Any] = {"n_each": 40, "raters": 3, "rater_error": 0.05, "unsure_share": 0.1}


@pytest.fixture(scope="module")
def source(population: tuple[Database, Audit]) -> ReportSource:
    """Records of the synthetic audit, whose judges also state their confidence."""
    loaded = load_source(population[0], population[1].name)
    confidence = np.random.default_rng(0).uniform(0.5, 1, len(loaded.votes))
    return replace(loaded, votes=replace(loaded.votes, confidence=confidence))


def label(report: Report, source: ReportSource, **settings: Any) -> Report:
    """The report with planted labels."""
    truth = plant_truth(source.votes, settings.pop("error_rate", 0.1))
    labelled = replace(source, label_records=plant_labels(source.votes, truth, **settings))
    return change(report, judge_quality=build_judge_quality(labelled))


@pytest.fixture(scope="module")
def full(report: Report, source: ReportSource) -> Report:
    """The report with labels by three raters; read-only."""
    return label(report, source, **FULL)


def section_of(report: Report) -> Section:
    return known(build_judge_quality_section(report))


def test_without_labels_one_line_names_the_command(report: Report) -> None:
    assert build_judge_quality_section(report) is None
    n = known(report.judge_quality).suggested_labels
    line = text_of(suggest_labels(report))
    assert f"auditor review population --sample {n}" in line
    assert line in text_of(build_panel_section(report))


def test_labels_that_are_all_unsure_are_not_passed_over(report: Report, source: ReportSource) -> None:
    labelled = label(report, source, n_each=10, unsure_share=1.0)
    n = known(labelled.judge_quality).unsure
    assert n > 0
    assert build_judge_quality_section(labelled) is None
    assert text_of(suggest_labels(labelled)).startswith(f"People labelled {n} traces, all as unsure. This report does")
    assert "unsure" not in text_of(suggest_labels(report))


def test_few_labels_are_counted_in_one_line_with_the_command(report: Report, source: ReportSource) -> None:
    full = plant_labels(source.votes, plant_truth(source.votes, 0.1))
    few = replace(source, label_records=replace(full, labels=full.labels[:3]))
    labelled = report.model_copy(update={"judge_quality": build_judge_quality(few)})
    n = max(known(labelled.judge_quality).suggested_labels, known(labelled.judge_quality).sampled)
    [block] = section_of(labelled).blocks
    line = text_of(block)
    assert line.removesuffix("body") == (
        f"3 of about {n} labels: too few to say how often the judges agree with people. To continue: "
        f"auditor review population --sample {n}."
    )
    assert line in text_of(build_summary_section(labelled))


def test_each_judge_has_a_sentence_with_its_figures_and_raters_their_limit_with_its_interval(full: Report) -> None:
    section, quality = section_of(full), known(full.judge_quality)
    text = text_of(section)
    for row in quality.judges:
        assert f"{row.judge} agrees with people on {100 * known(row.accuracy.value):.0f}% of the traces" in text
    assert f"Two raters agree on {100 * known(known(quality.ceiling).agreement.value):.0f}% of" in text
    assert "random rater of this pool" in text
    assert f"Raters are unsure about {quality.unsure} traces" in text
    limit = known(quality.ceiling).max_accuracy
    ends = f"95% CI {100 * known(limit.ci_low):.0f}% to {100 * known(limit.ci_high):.0f}%"
    assert f"on more than {100 * known(limit.value):.0f}% ({ends}" in text
    assert_consistent(section)


def test_pages_show_how_far_unsure_raters_could_move_the_figures(full: Report) -> None:
    quality, section = known(full.judge_quality), section_of(full)
    pages = [render_document(Document("t", "t", "", [section]), form) for form in ("html", "markdown", "text")]
    bounds = [
        *((row.accuracy_if_unsure_disagree, row.accuracy_if_unsure_agree) for row in quality.judges if row.unsure),
        *((row.corrected_if_unsure_invalid, row.corrected_if_unsure_valid) for row in quality.models if row.unsure),
    ]
    assert bounds
    for low, high in bounds:
        for page in pages:
            assert f"{known(low):.2f} to {known(high):.2f}" in page.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("kind", "name"), [("crowd", "a crowd worker"), ("expert", "an expert"), ("skilled", "a skilled rater")]
)
def test_the_configured_kind_of_rater_decides(
    report: Report, full: Report, source: ReportSource, kind: str, name: str
) -> None:
    config = change(known(source.config), labels=LabelSection.model_validate({"rater_kind": kind}))
    labelled = full if kind == "crowd" else label(report, replace(source, config=config), **FULL)  # the default
    section = section_of(labelled)
    text = text_of(section)
    assert text.count(": it wins against") == len(source.judge_names)
    for row in known(labelled.judge_quality).replacement:
        verb = f"may replace {name}" if row.test.passed else f"is not shown to be able to replace {name}"
        assert row.rater_kind != kind or f"{row.judge} {verb}: it wins" in text
    assert len(tables_of(section)["replacement-test"].rows) == 3 * len(source.judge_names)


def test_one_of_many_judges_may_replace_a_rater_only_given_their_number(full: Report) -> None:
    quality = known(full.judge_quality)
    row = next(row for row in quality.replacement if row.rater_kind == "crowd")
    humans = np.random.default_rng(0).integers(0, 2, (3, 40)).astype(float)
    passed = alternative_annotator_test(humans, humans[0], epsilon=0.9)
    assert passed.passed
    tests = [replace(passed, p_values=np.full(3, p_value)) for p_value in (0.001, *[0.02] * 5)]
    rows = [row.model_copy(update={"judge": f"judge{i}", "test": test}) for i, test in enumerate(tests)]
    text = text_of(section_of(change(full, judge_quality=change(quality, replacement=rows))))
    assert "judge0 may replace a crowd worker: it wins" in text
    for i in range(1, 6):
        assert f"judge{i} is not shown to be able to replace a crowd worker given the number of judges: it wins" in text


def test_the_summary_says_by_how_much_the_judges_were_off(report: Report, source: ReportSource) -> None:
    labelled = label(report, source, error_rate=0.0, **FULL)
    quality = known(labelled.judge_quality)
    sentence = f"{abs(100 * known(known(quality.excess).value)):.0f} percentage points"
    assert sentence in text_of(build_summary_section(labelled))
    assert "Can the judges be trusted?" not in text_of(build_summary_section(report))


@pytest.mark.parametrize(
    ("excess", "sentence"),
    [
        (Estimate(0.06, 60, 0.01, 0.11),
         "The judges find traces VALID 6 percentage points more often than people do (95% CI +1 to +11, "),
        (Estimate(-0.06, 60, -0.11, -0.01),
         "The judges find traces VALID 6 percentage points less often than people do (95% CI −11 to −1, "),
        (Estimate(-0.06, 60, -0.15, 0.04),
         "The judges’ share of VALID is not shown to differ from people’s: −6 percentage points (95% CI −15 to +4, "),
        (Estimate(0.06, 9, reason="too few"),
         "The judges’ share of VALID is not shown to differ from people’s: +6 percentage points (no 95% CI: too few, "),
    ],
)  # fmt: skip
def test_a_difference_from_people_is_claimed_only_with_its_whole_interval(
    full: Report, excess: Estimate, sentence: str
) -> None:
    assert sentence in text_of(section_of(change(full, judge_quality__excess=excess)))


def test_missing_labels_are_counted(report: Report, full: Report, source: ReportSource) -> None:
    text = text_of(section_of(label(report, source, n_each=12)))
    assert "Comparisons and checks use the judges’ own shares until each model has 30 labels" in text
    assert "No trace was labelled by two raters" in text
    assert "It is not tested whether one correction holds for all models" in text
    assert "the test needs 3 labels of each trace, and 60 labels more of them at least" in text
    assert "Comparisons and checks use the corrected shares." in text_of(section_of(full))


def test_judges_are_reliable_only_by_labels_which_show_their_accuracy(report: Report, source: ReportSource) -> None:
    """Labels that follow the majority, and labels that have nothing to do with the verdicts."""
    good, useless = (label(report, source, error_rate=rate, n_each=60) for rate in (0.05, 0.55))
    for labelled, is_better in ((good, True), (useless, False)):
        quality = known(labelled.judge_quality)
        assert [row.is_better_than_chance for row in quality.judges] == [is_better] * len(quality.judges)
        assert known(quality.panel).is_better_than_chance is is_better
        assert {row.balanced_accuracy.test_family for row in quality.judges} == {"balanced accuracies"}
        [sentence] = describe_accuracy(quality)
        assert ("are reliable beyond chance" in sentence) is is_better
        assert write_certificate(JudgeEvidence(labelled.panel, quality))[0] == sentence
        page, section = build_summary_section(labelled), build_judge_quality_section(labelled)
        assert text_of(known(section).blocks[0]).startswith(sentence)
        assert "Compared with its best judge" in text_of(known(section).blocks[1])
        panel = known(build_panel_section(labelled))
        assert text_of(panel.blocks[0]).startswith(sentence)  # accuracy before agreement
        assert sentence in text_of(page)
        cautions = [text for text in list_cautions(labelled) if "better than chance" in text]
        assert len(cautions) == (not is_better)


def test_no_shortfall_is_listed_from_verdicts_that_are_no_better_than_chance(
    report: Report, source: ReportSource
) -> None:
    figure = Estimate(0.3, 100, 0.2, 0.4, resampled=("country", "topic"))
    row = Shortfall(model="alder", method="direct", threshold="valid share", topic=None, figure=figure)
    low = ShortfallsReport(compared=1, rows=[row])
    for error_rate, is_listed in ((0.05, True), (0.55, False)):
        labelled = change(label(report, source, error_rate=error_rate, n_each=60), shortfalls=low)
        assert any("verdicts are VALID" in text for text in list_weaknesses(labelled)) is is_listed


@pytest.mark.parametrize(
    ("n_missing", "phrase"), [(1, ", on the traces that both decide, this is "), (0, ", this is ")]
)
def test_a_best_judge_that_decides_fewer_traces_than_the_majority_is_compared_on_these(
    full: Report, n_missing: int, phrase: str
) -> None:
    quality = known(full.judge_quality)
    panel = known(quality.panel)
    majority, gain = panel.accuracy.majority, panel.accuracy.gain
    accuracy = panel.accuracy._replace(
        majority=replace(majority, n=quality.labels), gain=replace(gain, n=quality.labels - n_missing)
    )
    [sentence] = describe_panel_accuracy(change(quality, panel=change(panel, accuracy=accuracy)))
    assert f"its best judge, {panel.best_judge}{phrase}" in sentence
