"""Findings of papers: those that hold in an audit are told from those that do not, and from those without a test."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast, get_args

import numpy as np
import pytest

from auditor.metrics.answers.semantic import Floats, SizedScores
from auditor.metrics.intervals.correlation import correlation_difference_over_units
from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.intervals.two_way import gap_jackknife, paired_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON
from auditor.metrics.people.over_models import correlate_models
from auditor.probes.logic.figures.schema import LogicCorrelationRow
from auditor.probes.semantic.figures.experiment_rows import difference_over_questions
from auditor.probes.semantic.figures.human_judgements import CorrelationDifferenceRow
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.findings import FINDING_FIGURES, NO_AUDIT, check_findings, judge_findings
from auditor.replications.presets import FindingFigure, list_paper_ids, load_paper
from auditor.reports.data.replication import FindingTest

PAPER = load_paper("evalmoraal")
N_AUDITS = 400 if os.environ.get("AUDITOR_SMALL_FORMS") else 60
MAX_FALSE_SHARE = 0.075
"""Largest share of audits without any effect in which a finding holds; 5% is nominal."""
N_COUNTRIES, N_TOPICS = 12, 8


def judge(tests: dict[str, list[FindingTest]]) -> dict[str, str]:
    """The result of each finding, by the figure that it compares."""
    rows = judge_findings(PAPER.findings, [tests.get(finding.figure, []) for finding in PAPER.findings])
    return {finding.figure: row.result for finding, row in zip(PAPER.findings, rows, strict=True)}


def make_tests(values: Sequence[float], p_value: float) -> list[FindingTest]:
    return [FindingTest(data="WVS", figure=Tested(v, 9, v - 0.1, v + 0.1, p_value=p_value)) for v in values]


def test_every_figure_of_a_finding_has_a_reader_and_a_finding() -> None:
    findings = [finding for name in list_paper_ids() for finding in load_paper(name).findings]
    assert {finding.figure for finding in findings} == set(FINDING_FIGURES) == set(get_args(FindingFigure))


def test_only_a_paper_without_models_has_no_finding() -> None:
    """The consistency score is published as a method: its only figure is that of an example."""
    assert [name for name in list_paper_ids() if not load_paper(name).findings] == ["consistency"]


def test_findings_about_people_compare_the_score_with_measures_of_the_same_texts_and_with_itself_on_answers() -> None:
    values = {("rot", "sage"): 0.9, ("rot", "bleu_nltk"): 0.1, ("answer", "sage"): 0.4, ("answer", "bleu_nltk"): 0.2}
    rows = [
        CorrelationDifferenceRow(
            text=text,
            metric=metric,
            than_text="rot",
            than_metric="sage",
            difference=Tested(0.9 - r, 9, 0.0, 1.0, p_value=0.01),
        )
        for (text, metric), r in values.items()
        if (text, metric) != ("rot", "sage")
    ]
    change = SimpleNamespace(model="m", change=Tested(0.1, 9, 0.0, 0.2, p_value=0.001))
    audit = cast(
        MeasuredAudit, SimpleNamespace(trials={"people": SimpleNamespace(differences=rows), "rules": [change]})
    )

    def read(figure: str) -> list[tuple[str, float]]:
        tests = FINDING_FIGURES[figure](audit)
        return [(test.model or test.pair, round(test.figure.value or 0, 6)) for test in tests]

    assert read("people.advantage") == [("minus bleu_nltk of the rules of thumb", 0.8)]
    assert read("people.advantage_over_answers") == [("minus sage of the answers", 0.5)]
    assert read("rules.change") == [("m", 0.1)]
    nothing = cast(MeasuredAudit, SimpleNamespace(trials={}))
    assert FINDING_FIGURES["people.advantage"](nothing) == FINDING_FIGURES["rules.change"](nothing) == []


def test_findings_about_preferences_read_the_means_over_sets() -> None:
    links = [
        LogicCorrelationRow(
            over=over, averaged=averaged, x=x, y=y, r=correlate_models([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
        )
        for over in ("judges", "wordings, m")
        for averaged in ("instances", "pooled")
        for x, y in (("transitivity (K = 3)", "self-agreement"), ("commutativity", "agreement with people"))
    ]
    report = SimpleNamespace(find=lambda _: SimpleNamespace(links=links))
    audit = cast(MeasuredAudit, SimpleNamespace(report=report))
    for figure in ("transitivity.self_agreement", "commutativity.people"):
        tests = FINDING_FIGURES[figure](audit)
        assert [test.pair for test in tests] == ["over judges", "over wordings, m"]
        assert all(test.figure.p_value is not None for test in tests)


def test_a_finding_holds_only_if_every_test_supports_it_in_its_direction() -> None:
    assert judge({"delta_r": make_tests([0.1, 0.2], 0.001)})["delta_r"] == "holds"
    assert judge({"delta_r": make_tests([0.1, -0.2], 0.001)})["delta_r"] == "does not hold"
    assert judge({"delta_r": make_tests([0.1, 0.2], 0.04)})["delta_r"] == "holds"
    several = {"delta_r": make_tests([0.1], 0.04), "regions.gap": make_tests([0.1], 0.04)}
    assert judge(several)["delta_r"] == "does not hold"  # Holm: 0.08
    assert judge({"variance.alignment": make_tests([-0.5], 0.001)})["variance.alignment"] == "holds"
    without = FindingTest(data="WVS", figure=Tested(0.5, 4, reason="a test needs at least 5 models"))
    [row] = [
        row
        for row in judge_findings(PAPER.findings, [[without] for _ in PAPER.findings])
        if row.id == "consistent-models-agree"
    ]
    assert (row.result, row.reason) == ("cannot be compared", "a test needs at least 5 models")
    assert judge({})["delta_r"] == "cannot be compared"


def test_without_an_audit_nothing_can_be_compared() -> None:
    rows = check_findings(PAPER, [])
    assert {(row.result, row.reason) for row in rows} == {("cannot be compared", NO_AUDIT)}


def simulate_null_audit(rng: np.random.Generator, n_models: int) -> dict[str, list[FindingTest]]:
    """An audit in which both methods and both regions have the same errors, and models differ by chance alone."""
    countries, topics = (index.ravel() for index in np.indices((N_COUNTRIES, N_TOPICS)))
    is_second = countries % 2 == 0
    truth = rng.normal(0, 0.4, N_COUNTRIES)[countries] + rng.normal(0, 0.4, N_TOPICS)[topics]
    truth += rng.normal(0, 0.2, len(truth))

    def answer() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Scores with errors that countries and topics share."""
        errors = rng.normal(0, 0.2, N_COUNTRIES)[countries] + rng.normal(0, 0.2, N_TOPICS)[topics]
        return truth + errors + rng.normal(0, 0.2, len(truth))

    tests: dict[str, list[FindingTest]] = {"delta_r": [], "regions.gap": []}
    for _ in range(n_models):
        direct, logprob = answer(), answer()
        difference = paired_jackknife(PEARSON, direct, logprob, truth, countries, topics)
        gap = gap_jackknife(MAE, direct, truth, countries, topics, is_second)
        tests["delta_r"].append(FindingTest(data="WVS", figure=difference))
        tests["regions.gap"].append(FindingTest(data="WVS", figure=gap))
    if n_models >= 5:
        for figure in ("self_consistency.alignment", "variance.alignment", "peer_agreement.alignment"):
            tests[figure] = [FindingTest(figure=correlate_models(rng.normal(size=n_models), rng.normal(size=n_models)))]
    return tests


def compare_scores(first: Floats, second: Floats, *, metric: str = "") -> FindingTest:
    """The finding of the difference between two scores of questions, each of five answers."""
    sized = (SizedScores(scores, np.full(len(scores), 5.0)) for scores in (first, second))
    return FindingTest(figure=difference_over_questions(*sized, metric=metric))


def simulate_null_paraphrases(rng: np.random.Generator, n_models: int) -> dict[str, list[FindingTest]]:
    """An audit in which all measures agree with people equally, on rules and on answers, and rules change nothing."""
    n_questions = 40
    people = rng.normal(size=n_questions)
    units = {"question": np.arange(n_questions)}

    def differ() -> FindingTest:
        first, second = (people + rng.normal(0, 1, n_questions) for _ in range(2))
        return FindingTest(figure=correlation_difference_over_units(people, first, second, units))

    changes = [rng.normal(0.5, 0.1, (2, n_questions)).clip(0, 1) for _ in range(n_models)]
    return {
        "people.advantage": [differ() for _ in range(3)],
        "people.advantage_over_answers": [differ()],
        "rules.change": [compare_scores(*pair, metric="sage") for pair in changes],
    }


def test_findings_on_paraphrases_seldom_hold_without_an_effect_and_are_found_with_one() -> None:
    rng = np.random.default_rng(58)
    findings = load_paper("sage").findings
    n_false = n_found = 0
    for _ in range(N_AUDITS):
        tests = simulate_null_paraphrases(rng, 2)
        n_false += any(row.result == "holds" for row in judge_findings(findings, [tests[f.figure] for f in findings]))
        before = rng.normal(0.5, 0.1, (2, 100))
        after = before + rng.normal(0.1, 0.1, before.shape)
        pairs = zip(before, after, strict=True)
        planted = {"rules.change": [compare_scores(*pair) for pair in pairs]}
        rows = judge_findings(findings, [(tests | planted)[f.figure] for f in findings])
        n_found += rows[2].result == "holds"
    assert n_false <= MAX_FALSE_SHARE * N_AUDITS
    assert n_found >= 0.9 * N_AUDITS


@pytest.mark.parametrize("n_models", [1, 6])
def test_findings_seldom_hold_without_an_effect(n_models: int) -> None:
    rng = np.random.default_rng(57 + n_models)
    n_false = sum("holds" in judge(simulate_null_audit(rng, n_models)).values() for _ in range(N_AUDITS))
    assert n_false <= MAX_FALSE_SHARE * N_AUDITS
