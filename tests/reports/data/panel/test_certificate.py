"""The panel’s certificate claims no more than its intervals and adjusted tests support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested, TestedShare
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import Evidence, JudgeDifference, missing_difference
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.reports.data.judge_quality.schema import JudgeAccuracyRow
from auditor.reports.data.panel.certificate import CERTIFICATE, JudgeEvidence, write_certificate
from auditor.reports.data.panel.schema import (
    BlindingCheckRow,
    FaultDetectionRow,
    JudgePairRow,
    JudgeRow,
    PairVerdict,
    PeerAlignmentRow,
    VotingRuleRow,
)
from auditor.reports.data.report_schema import Report
from tests.support.report_changes import change, construct_part

Changes = Mapping[str, Any]
SHARE = ShareEstimate(0.5, 50, 0.4, 0.6)


def certify(report: Report, changes: Changes, kind: str | None = None, *, is_task: bool = False) -> str:
    """The certificate of the report after changes by path, or its sentences of one kind."""
    changed = change(report, **{path: value for path, value in changes.items() if path != "is_task"})
    evidence = JudgeEvidence(changed.panel, changed.judge_quality, is_task=changes.get("is_task", is_task))
    return " ".join(write_certificate(evidence) if kind is None else CERTIFICATE[kind](evidence))


def alpha(value: float | None, low: float | None = None, high: float | None = None) -> Changes:
    if low is None:
        reason = "an interval needs at least 5 countries and 5 topics, but there are 4 topics"
        return {"panel__krippendorff_alpha": Estimate(value, 50, reason=reason)}
    return {"panel__krippendorff_alpha": Estimate(value, 50, low, high, resampled=("country", "topic"))}


def make_test(value: float, p_value: float | None = 0.001) -> Tested:
    """An estimate whose interval excludes 0 for absolute values above 0.1."""
    return Tested(value, 50, value - 0.1, value + 0.1, p_value=p_value, adjusted_p_value=p_value)


def accuracy(p_value: float) -> Changes:
    """The balanced accuracy of one judge, by people's labels."""
    figure = Tested(0.8, 50, 0.7, 0.9, p_value=p_value, adjusted_p_value=p_value)
    return {"judge_quality__judges": [construct_part(JudgeAccuracyRow, judge="oak", balanced_accuracy=figure)]}


def alpha_change(first: Tested) -> Changes:
    """The change of alpha without the first judge; without another it does not change."""
    return {"panel__judges__each__alpha_change": make_test(0.0, 1.0), "panel__judges__0__alpha_change": first}


def pair(verdict: PairVerdict, *, same_model: bool = False) -> Changes:
    """Two judges with this finding."""
    row = JudgePairRow(
        first="oak", second="yew", agreement=SHARE, error_correlation=0.4, excess=make_test(0.4), verdict=verdict,
        same_model=same_model, same_family=None, same_prompt=None,
    )  # fmt: skip
    return {"panel__copying__pairs": [row], "panel__copying__labels": 300}


def effective(n: int, **changes: Any) -> Changes:
    """An effective number of judges, from that many labels."""
    figures = {"effective_judges": Estimate(2.5, n, 2.0, 3.0), "effective_of": ["oak", "yew"], "label_source": "x"}
    return {f"panel__copying__{name}": value for name, value in {**figures, **changes}.items()}


def faults(*p_values: float, value: float = 0.3) -> Changes:
    """Injected faults, each detected with such a difference from the false alarms."""
    rows = [
        FaultDetectionRow(judge="oak", fault=f"fault {i}", detected=SHARE, false_alarms=SHARE, difference=test)
        for i, test in enumerate(make_test(value, p_value) for p_value in p_values)
    ]
    return {"panel__faults": rows}


def guesses(value: float, *p_values: float, attribute: str = "topic") -> Changes:
    """Guesses with this share of hits; chance is 0.5."""
    tests = (
        TestedShare(value, 50, value - 0.1, value + 0.1, p_value=p_value, adjusted_p_value=p_value)
        for p_value in p_values
    )
    return {"panel__guesses": [BlindingCheckRow(judge="oak", what=attribute, hits=hits, chance=0.5) for hits in tests]}


def vote(**changes: Any) -> VotingRuleRow:
    """The outcomes by one voting rule."""
    values = {"rule": "copies split", "valid": 60, "invalid": 30, "open": 10, "differs": SHARE, "weights": {}}
    return VotingRuleRow.model_validate({**values, **changes})


def peers(value: float | None, p_value: float | None, *more_methods: str) -> Changes:
    """Correlations over models, one a method."""
    ends = {"reason": "few models"} if value is None else {"ci_low": value - 0.1, "ci_high": value + 0.1}
    r = ModelCorrelation(value, 8, **ends, p_value=p_value, models=8)
    return {"panel__peer_alignment": [PeerAlignmentRow(method=method, r=r) for method in ("direct", *more_methods)]}


FIELDS = [name for name, field in JudgeRow.model_fields.items() if field.annotation is JudgeDifference]


def bias(field: str | None, p_value: float = 0.001, evidence: Evidence = "panel") -> Changes:
    """One difference of the first judge, and no other."""
    missing = {f"panel__judges__each__{name}": missing_difference("not measured") for name in FIELDS}
    shown = JudgeDifference(
        0.2, 90, 0.1, 0.3, resampled=("country", "topic"), evidence=evidence, p_value=p_value, adjusted_p_value=p_value
    )
    return missing if field is None else {**missing, f"panel__judges__0__{field}": shown}


NONE: Changes = {}
CASES: list[tuple[str, str, Changes, Changes]] = [
    (
        "accuracy", "verdicts on single traces are reliable beyond chance from oak (balanced accuracy = 0.80, 95% CI "
        "0.70 to 0.90).", accuracy(0.001), accuracy(0.2),
    ),
    (
        "accuracy", "Labels do not show that verdicts are better than chance from oak (balanced accuracy = 0.80",
        accuracy(0.2), accuracy(0.001),
    ),
    (
        "agreement", "The judges agree well (Krippendorff’s alpha = 0.90, 95% CI 0.85 to 0.95, 50 traces): verdicts on "
        "single traces are consistent. Only labels by people show whether they are right. The interval is for other "
        "countries and topics like these.", alpha(0.9, 0.85, 0.95), alpha(0.9, 0.79, 0.95),
    ),
    ("agreement", "consistent enough for tentative conclusions. Only", alpha(0.75, 0.7, 0.8), alpha(0.75, 0.66, 0.8)),
    ("agreement", "too little to rely on verdicts on single traces", alpha(0.4, 0.2, 0.6), alpha(0.4, -0.1, 0.6)),
    ("agreement", "too little to rely on verdicts on single traces", alpha(0.4, 0.2, 0.66), alpha(0.75, 0.2, 0.95)),
    (
        "agreement", "The judges agree beyond chance, but are not shown to agree well enough to rely on verdicts on "
        "single traces (", alpha(0.75, 0.2, 0.95), alpha(0.4, 0.2, 0.66),
    ),
    ("agreement", "not shown to agree beyond chance", alpha(0.05, -0.1, 0.2), alpha(0.05, 0.01, 0.2)),
    ("agreement", "How consistent the verdicts are is not known: Krippendorff’s alpha is 0.40", alpha(0.4), NONE),
    ("agreement", "not available: an interval needs at least 5 countries", alpha(None), alpha(0.4)),
    (
        "disagreeing judges", "alder disagrees more with the other judges than they do with each other. Without it, "
        "Krippendorff’s alpha is higher by 0.20 (95% CI 0.10 to 0.30; p = 0.040, corrected for 3 judges).",
        alpha_change(make_test(0.2, 0.04)), alpha_change(make_test(0.2, 0.06)),
    ),
    (
        "disagreeing judges", "disagrees more", alpha_change(make_test(0.2)), alpha_change(make_test(-0.2)),
    ),
    (
        "prevalence", "93% of the verdicts are VALID, so kappa and alpha are low even if judges rarely differ. Gwet’s "
        "AC1 is", {"panel__prevalence": make_test(0.93)}, {"panel__prevalence": make_test(0.84)},
    ),
    (
        "prevalence", "All verdicts are VALID, so kappa and alpha cannot be computed. Gwet’s AC1 is",
        {"panel__prevalence": make_test(1.0)}, {"panel__prevalence": make_test(0.996)},
    ),
    (
        "prevalence", "> 99% of the verdicts are VALID, so", {"panel__prevalence": make_test(0.996)},
        {"panel__prevalence": make_test(0.84)},
    ),
    (
        "prevalence", "85% of the verdicts are INVALID", {"panel__prevalence": make_test(0.15)},
        {"panel__prevalence": make_test(0.16)},
    ),
    (
        "majority", "finds 50% of 120 traces VALID and 25% INVALID. 25% have no majority",
        {"panel__votes": [vote()], "panel__unjudged": 20}, {"panel__votes": [vote()], "panel__unjudged": 0},
    ),
    ("majority", "No verdict is available, so all traces are left", {"panel__votes": []}, NONE),
    (
        "copied outcomes", "Copies outvote the other judges on 3 traces and 2 conflicts. With one vote for each group",
        {"panel__copying__traces_settled_by_copies": 3, "panel__copying__conflicts_settled_by_copies": 2},
        {"panel__copying__traces_settled_by_copies": 0, "panel__copying__conflicts_settled_by_copies": 0},
    ),
    (
        "copying", "more alike than those of other pairs: oak and yew (excess correlation = 0.40, 95% CI 0.30 to "
        "0.50). This was tested on 300 labelled traces",
        pair("errors more alike"), pair("independent as far as shown"),
    ),
    (
        "copying", "Copies: oak and yew give equal verdicts on at least 99% of 200 or more traces.",
        pair("copies"), pair("errors more alike"),
    ),
    (
        "copying", "With only one judge of each such group, the panel’s Krippendorff’s alpha = 0.20",
        {"panel__copying__alpha_without_alike": make_test(0.2)}, {"panel__copying__alpha_without_alike": None},
    ),
    (
        "copying", "Judges that share one vote: oak, fir and yew; elm and ash. This applies to all voting rules except",
        {"panel__copying__groups": [["oak", "fir", "yew"], ["elm", "ash"]]}, {"panel__copying__groups": []},
    ),
    (
        "copying", "are not known without labelled traces. Verdicts alone cannot show this. `auditor experiment "
        "planted --sample 100` makes labelled traces.", NONE, {"is_task": True},
    ),
    (
        "copying", "As votes are counted, 2 judges of the panel are worth 2.5 judges with independent errors (95% CI "
        "2.0 to 3.0). This was estimated on 400 labelled traces (x).", effective(400), NONE,
    ),
    ("copying", "With fewer than 400 labels, a judge that shares 30%", effective(399), effective(400)),
    (
        "copying", "oak and yew are the same model. Only labelled traces can show",
        pair("cannot be told from verdicts", same_model=True), pair("copies", same_model=True),
    ),
    (
        "assignment", "Each trace was assigned to 2 judges, and each judge to equally many traces of each model.",
        {"panel__judges_per_trace": 2}, {"panel__judges_per_trace": None},
    ),
    (
        "adaptive panel", "The adaptive panel saved 4 calls out of 10 assignments (40%).",
        {"panel__adaptive": True, "panel__seats": 10, "panel__asked": 6}, {"panel__seats": 10, "panel__asked": 6},
    ),
    ("faults", "Detection of errors was not tested", NONE, {"is_task": True}),
    (
        "faults", "Detection beyond false alarms is shown for 1 of 2 pairs of a judge and an injected fault. Not shown "
        "to be detected: fault 1 (oak).", {"is_task": True, **faults(0.01, 0.06)}, faults(0.01, 0.01),
    ),
    ("faults", "is shown for 0 of 1 pair of", faults(0.01, value=-0.3), faults(0.01)),
    (
        "faults", "The panel detects each kind of injected fault. P-values are adjusted for 2 tests (Holm).",
        faults(0.01, 0.01), faults(0.01, 0.06),
    ),
    ("blinding", "Blinding was not tested.", NONE, {"is_task": True}),
    (
        "blinding", "no judge is shown to guess the country, topic or author better than chance. P-values are adjusted "
        "for 2 tests (Holm).", {"is_task": True, **guesses(0.8, 0.06, 0.2)}, guesses(0.8, 0.04, 0.2),
    ),
    ("blinding", "shown to guess the author better", guesses(0.2, 0.001, attribute="author"), guesses(0.2, 0.001)),
    (
        "blinding", "Blinding is incomplete. Guesses better than chance: oak, the topic (80%, 95% CI 70% to 90%, "
        "chance 50%).", guesses(0.8, 0.04), guesses(0.2, 0.04),
    ),
    ("biases", "No bias of the judges was tested.", bias(None), bias("leniency", 0.9)),
    (
        "biases", "No judge is shown to have a bias (none of 1 test). P-values are adjusted for 1 test (Holm).",
        bias("leniency", 0.06), bias("leniency", 0.04),
    ),
    (
        "biases", "Biases beyond chance: alder is more lenient than the median judge on the same traces (+20 "
        "percentage points, 95% CI +10 to +30, p = 0.040). A difference from the median judge is",
        bias("leniency", 0.04), bias("leniency", 0.06),
    ),
    ("biases", "than the known truth", bias("leniency", evidence="truth"), bias("leniency")),
    (
        "biases", "Associations: alder says VALID more often for longer traces (",
        bias("verbosity", 0.04, "association"), bias("verbosity", 0.06, "association"),
    ),
    (
        "biases", "is statistically distinguishable from zero (none of 1 test).",
        bias("verbosity", 0.06, "association"), bias("verbosity", 0.04, "association"),
    ),
    (
        "voting rules", "The result of the voting rule “copies split” is not available: few votes.",
        {"panel__votes": [vote(), vote(reason="few votes")]}, {"panel__votes": [vote(reason="few votes")]},
    ),
    (
        "voting rules", "“copies split” (copies share one vote) contradicts the plain majority on 25 of 50 traces, and "
        "leaves 10 without a verdict.", {"panel__votes": [vote(), vote()]}, {"panel__votes": [vote()]},
    ),
    ("peer alignment", "It is not known whether judges prefer models", peers(None, None), peers(0.8, 0.2)),
    (
        "peer alignment", "No relation between the share of VALID and agreement with people (by direct) is shown",
        peers(0.8, 0.06, "logprob"), peers(0.8, 0.04, "logprob"),
    ),
    ("peer alignment", "Judges prefer models that agree with people (", peers(0.8, 0.04), peers(0.8, 0.06)),
    ("peer alignment", "models that disagree with", peers(-0.8, 0.04), peers(0.8, 0.04)),
]  # fmt: skip
"""Kinds of sentences: words, changes after which a report must have them, and changes after which it must not."""


@pytest.mark.parametrize(("kind", "words", "has", "lacks"), CASES)
def test_a_sentence_is_written_where_it_is_due_and_nowhere_else(
    report: Report, kind: str, words: str, has: Changes, lacks: Changes
) -> None:
    assert words in certify(report, has, kind)
    assert words in certify(report, has)
    assert words not in certify(report, lacks)


def test_every_kind_of_sentence_has_a_case() -> None:
    assert list(dict.fromkeys(kind for kind, *_ in CASES)) == list(CERTIFICATE)


def test_without_judges_nothing_is_certified_and_agreement_alone_makes_nothing_reliable(report: Report) -> None:
    assert certify(report, {"panel__judges": []}) == ""
    assert "reliable" not in certify(report, alpha(0.99, 0.98, 1.0))


def difference(value: float, p_value: float, evidence: Evidence) -> JudgeDifference:
    return JudgeDifference(
        value, 90, value - 0.1, value + 0.1, resampled=("country", "topic"), evidence=evidence, p_value=p_value
    )


def rows_with(report: Report, differences: list[dict[str, JudgeDifference]]) -> list[JudgeRow]:
    """Rows of judges a, b, ... with these differences only, and p-values adjusted over all of them."""
    adjusted = iter(adjust_tests((c for by_field in differences for c in by_field.values()), "bias"))
    missing = {field: missing_difference("not measured") for field in FIELDS}
    return [
        report.panel.judges[0].model_copy(
            update={"judge": name, **missing, **{field: next(adjusted) for field in by_field}}
        )
        for name, by_field in zip("abcde", differences, strict=False)
    ]


def describe_rows(report: Report, rows: list[JudgeRow]) -> list[str]:
    """The sentences on the biases of these judges."""
    return list(CERTIFICATE["biases"](JudgeEvidence(change(report.panel, judges=rows))))


def test_biases_and_associations_are_separate_sentences(report: Report) -> None:
    rows = rows_with(
        report,
        [
            {"leniency": difference(0.2, 0.001, "panel"), "verbosity": difference(0.3, 0.0001, "association")},
            {"leniency": difference(0.2, 0.03, "panel"), "verbosity": difference(-0.3, 0.2, "association")},
            {"padding": difference(-0.15, 0.0, "experiment")},
        ],
    )
    biases, associations = describe_rows(report, rows)
    assert "c says VALID less often when the same trace is padded (−15 percentage points, 95% CI −25 to −5" in biases
    assert "a is more lenient than the median judge on the same traces (+20 percentage points" in biases
    assert "95% CI +10 to +30, p = 0.001, adjusted p = 0.003)" in biases
    assert "if more than half of the judges have none" in biases
    assert "b is" not in biases  # 0.03 is not significant among five tests
    assert "do not show a bias" in associations
    assert "a says VALID more often for longer traces" in associations
    assert "b says" not in associations
    assert all("adjusted for 5 tests (Holm)" in sentence for sentence in (biases, associations))


@pytest.mark.parametrize(
    ("field", "evidence", "words"),
    [
        ("leniency", "truth", "a says VALID less often than the known truth of the same answers"),
        ("verbosity_against_truth", "truth", "a favours shorter traces beyond what the truth of the answers explains"),
        ("own_family", "association", "a is stricter with its own model family"),
        ("order", "association", "a is stricter in the later half of its verdicts"),
    ],
)
def test_each_difference_has_a_phrase(report: Report, field: str, evidence: Evidence, words: str) -> None:
    *others, sentence = describe_rows(report, rows_with(report, [{field: difference(-0.2, 0.0001, evidence)}]))
    assert words in sentence
    assert others == (["No bias of the judges was tested."] if evidence == "association" else [])
    assert ("more than half" in sentence) == (evidence == "panel")


def test_tests_of_biases_and_associations_are_counted_apart(report: Report) -> None:
    rows = rows_with(
        report,
        [
            {"leniency": difference(0.2, 0.9, "panel"), "verbosity": difference(0.3, 0.8, "association")},
            {"verbosity": difference(0.1, 0.7, "association"), "order": difference(0.1, 0.6, "association")},
        ],
    )
    biases, associations = describe_rows(report, rows)
    assert biases.startswith("No judge is shown to have a bias (none of 1 test).")
    assert associations.startswith(
        "No association of verdicts with length or order is statistically distinguishable from zero (none of 3 tests)"
    )
    assert all("adjusted for 4 tests (Holm)" in sentence for sentence in (biases, associations))


def test_calls_that_an_unfinished_audit_has_still_to_make_are_not_saved(report: Report) -> None:
    panel = change(report, **{"panel__adaptive": True, "panel__seats": 10, "panel__asked": 6}).panel
    for is_complete in (True, False):
        sentences = write_certificate(JudgeEvidence(panel, is_complete=is_complete))
        assert any("saved 4 calls" in sentence for sentence in sentences) is is_complete
