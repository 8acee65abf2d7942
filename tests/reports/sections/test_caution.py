"""Reasons for caution are given where a threshold is passed, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from auditor.config import installed_probes
from auditor.domain.audit_records import AnswerSelection
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested
from auditor.probe_interface import Headline
from auditor.reports.data.agreement.over_models import EqualSeries
from auditor.reports.data.agreement.sensitivity import InfluentialUnit
from auditor.reports.data.coverage.build import RefusalRow
from auditor.reports.data.coverage.counts import ExclusionRow
from auditor.reports.data.failures import UnusableModel
from auditor.reports.data.panel.schema import ObedienceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import RequestFormRow
from auditor.reports.sections.caution import CAUTION_CHECKS, list_cautions
from tests.reports.sections.test_coverage import with_losses
from tests.reports.sections.test_probe_sections import Figures, make_probe
from tests.support.report_changes import change
from tests.support.request_reports import refuse_temperature

Changed = Callable[[Report], Report]
ALPHA = Estimate(0.26, 50, 0.1, 0.63)
SHARE = ShareEstimate(0.4, 20, 0.06, 0.7)
MISSING = ShareEstimate(None, 0, reason="not asked")


@dataclass(frozen=True)
class Case:
    """Words of a reason for caution, a report that must have it, and one that must not, which is the fixture's if None.

    Attributes:
        check: name of the check that gives it.
    """

    check: str
    words: str
    has: Changed
    lacks: Changed | None = None


def obey(share: ShareEstimate) -> Changed:
    """A judge obeys planted instructions with a rate."""
    row = ObedienceRow(judge="oak", verdicts=share, valid=share, invalid=share, preferences=MISSING)
    return lambda report: change(report, panel__obedience=[row])


def refuse(share: ShareEstimate) -> Changed:
    """A model refuses with a rate."""
    return lambda report: change(report, refusals__models=[RefusalRow(name="alder", share=share)])


def move_topic_family(report: Report, family: str = "topic family") -> Report:
    """Without one family of topics, the error of a model is 0."""
    row = next(row for row in report.sensitivity if row.figure == "mae")
    return change(report, sensitivity=[change(row, without=family, lowest__value=0.0, lowest__left_out="taboo")])


def set_coverage(ok: int) -> Changed:
    """That many of 100 planned answers and verdicts are usable."""
    values = {"planned": 100, "ok": ok, "losses": {"timeout": 100 - ok}, "missing": 0}
    return lambda report: change(report, **{f"coverage__total__each__{name}": n for name, n in values.items()})


def list_forms(*forms: str) -> Changed:
    """A model was asked in these forms."""
    rows = [RequestFormRow(name="alder", purpose="direct", form=form, answers=40) for form in forms]
    return lambda report: change(report, requests__forms=rows)


def repeat_samples(variance: float) -> Changed:
    """All samples of a model have this variance, at a temperature above 0."""
    return lambda report: change(
        refuse_temperature(report, "birch"), self_consistency__0__variance=Estimate(variance, 9, 0.0, 0.1)
    )


SELECTION = AnswerSelection(model="alder", country="Egypt", topic=None, sample=0, probe="direct")
EXCLUSION = ExclusionRow(id=1, selection=SELECTION, reason="A bug.", excluded_at="2026-01-02T03:04", answers=2)
UNIT = InfluentialUnit(
    model="alder", method="direct", figure="mae", kind="country", name="Egypt", share=0.9, without=0.1
)
UNUSABLE = UnusableModel(name="alder", is_judge=False, planned=3, reason="HTTP 402: no money.", how_to_fix="")
CASES = [
    Case(
        "_completeness_cautions", "The audit is not complete (stage: review); every figure is provisional.",
        lambda report: change(report, audit__complete=False, audit__stage="review"),
    ),
    Case(
        "list_recall_cautions", "is closer to this survey’s sample than knowing the population exactly allows",
        lambda report: change(report, population__0__is_below_floor=True, population__0__mae_floor=0.1),
    ),
    Case(
        "list_recall_cautions", "is higher than people’s sampling error allows a perfect model",
        lambda report: change(report, population__0__is_above_ceiling=True),
        lambda report: change(report, population__0__is_above_ceiling=True, population__0__is_below_floor=True),
    ),
    Case(
        "_repeat_cautions", "9 of the planned answers had no usable answer and were asked for again, once each. 4",
        lambda report: change(report, coverage__total__0__asked_again=9, coverage__total__0__answered_again=4),
    ),
    Case(
        "_exclusion_cautions",
        "2 answers (alder, Egypt, sample 1, probe direct) were declared invalid on 2026-01-02: “A",
        lambda report: change(report, coverage__exclusions=[EXCLUSION]),
    ),
    Case(
        "_exclusion_cautions", "3 answers of the imported file had been declared invalid before",
        lambda report: change(report, coverage__excluded_before_import=3),
        lambda report: change(report, coverage__exclusions=[EXCLUSION]),
    ),
    Case(
        "_obedience_cautions", "oak (40% of 20, at least 6%) gave the verdict that a planted instruction demands",
        obey(SHARE), obey(replace(SHARE, ci_low=0.04)),
    ),
    Case(
        "_limit_cautions", "Intervals take the countries as independent, since they are in ",
        lambda report: report, lambda report: change(report, audit__survey__clusters="zone"),
    ),
    Case(
        "_limit_cautions", "the mean absolute error leaves its interval, for alder (taboo)",
        move_topic_family, lambda report: move_topic_family(report, "cultural zone"),
    ),
    Case(
        "_coverage_cautions", "Only 94% of the planned answers are usable (6 timeout)",
        set_coverage(94), set_coverage(95),
    ),
    Case(
        "_refusal_cautions", "Many answers were refused, by alder (40.0%)",
        refuse(SHARE), refuse(replace(SHARE, value=0.05)),
    ),
    Case("_refusal_cautions", "Many answers were refused", refuse(SHARE), refuse(MISSING)),
    Case(
        "list_lost_sample_cautions", "of the planned samples of model 0 have no usable score",
        lambda report: with_losses(report, 0.06), lambda report: with_losses(report, 0.05),
    ),
    Case(
        "list_unusable_models", "No answer of alder is usable; “What is missing?” and “Why did requests fail?”",
        lambda report: change(report, failures__unusable_models=[UNUSABLE]),
    ),
    Case(
        "list_unusable_models", "No verdict of alder is usable; ",
        lambda report: change(report, failures__unusable_models=[change(UNUSABLE, is_judge=True)]),
        lambda report: change(report, failures__unusable_models=[UNUSABLE]),
    ),
    Case(
        "_equal_sample_cautions", "In every cell, all samples of alder have equal scores",
        repeat_samples(0.0), repeat_samples(0.01),
    ),
    Case(
        "describe_equal_series", "alder and birch have the same log-probability scores in all cells",
        lambda report: change(report, equal_series=[EqualSeries(method="logprob", models=["alder", "birch"])]),
    ),
    Case(
        "list_influence_cautions", "Egypt is unlike all other countries: more than 80% of the uncertainty",
        lambda report: change(report, influence=[UNIT]),
    ),
    Case(
        "_sampling_cautions", "Self-consistency and the variance of samples cannot be compared between models",
        lambda report: refuse_temperature(report, "birch"),
        lambda report: change(
            refuse_temperature(report, "birch"), self_consistency__each__variance=MISSING, task=None, semantic=None
        ),
    ),
    Case(
        "describe_mixed_forms",
        "The structured answers of alder were requested in several forms (JSON schema (40), tool call (40))",
        list_forms("json_schema", "tool"), list_forms("tool"),
    ),
    Case(
        "_panel_cautions", "2 verdicts of", lambda report: change(report, panel__repeated=2),
    ),
    Case(
        "_panel_cautions", "below chance (Krippendorff’s alpha = −0.30, 95% CI −0.50 to −0.10)",
        lambda report: change(report, panel__krippendorff_alpha=Estimate(-0.3, 50, -0.5, -0.1)),
    ),
    Case(
        "_panel_cautions",
        "not statistically distinguishable from chance (Krippendorff’s alpha = 0.26, 95% CI −0.18 to 0.63)",
        lambda report: change(report, panel__krippendorff_alpha=replace(ALPHA, ci_low=-0.18)),
        # by the figure of the certificate alone: both figures in words would contradict each other near 0
        lambda report: change(
            report, panel__krippendorff_alpha=ALPHA, panel__fleiss_kappa=replace(ALPHA, ci_low=-0.01)
        ),
    ),
    Case(
        "_design_cautions", "such as the wording, the direction and form of the scale",
        lambda report: report, lambda report: change(report, audit__survey__survey__wordings={"en": ["{topic}?"]}),
    ),
    Case(
        "_design_cautions", "Intervals include the wording, but no other choices of the design",
        lambda report: change(report, audit__survey__survey__wordings={"en": ["{topic}?"]}),
        lambda report: change(report, audit__survey__survey__wordings={"en": ["{topic}?"]}, audit__imported=True),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.check.strip("_"))
def test_a_reason_for_caution_is_given_where_there_is_one_and_nowhere_else(report: Report, case: Case) -> None:
    lacks = report if case.lacks is None else case.lacks(report)
    assert case.words in " ".join(list_cautions(case.has(report)))
    assert case.words not in " ".join(list_cautions(lacks))


@pytest.mark.parametrize(
    ("ci_low", "p_value", "words"),
    [
        (0.7, 0.01, "but their verdicts separate correct from"),
        (0.4, 0.2, "weak evidence"),
        (0.51, 0.09, "weak evidence"),
    ],
)
def test_verdicts_that_separate_correct_answers_are_not_called_weak_evidence(
    report: Report, ci_low: float, p_value: float, words: str
) -> None:
    validity = SimpleNamespace(area=Tested(0.8, 300, ci_low, 0.9, resampled=("item",), adjusted_p_value=p_value))
    task = SimpleNamespace(telling=validity)
    [check] = [check for check in CAUTION_CHECKS if check.__name__ == "_panel_cautions"]
    changed = change(report, panel__krippendorff_alpha=replace(ALPHA, ci_low=-0.18), task=task)
    [sentence] = [sentence for sentence in check(changed) if "chance" in sentence]
    assert words in sentence


@pytest.mark.parametrize(("p_value", "is_given"), [(0.001, True), (0.2, False)])
def test_a_probe_gives_a_reason_for_caution(
    monkeypatch: pytest.MonkeyPatch, report: Report, p_value: float, is_given: bool
) -> None:
    probe = make_probe(Headline("It recites.", p_value, is_caution=True))
    monkeypatch.setitem(installed_probes._LOADED, "p", probe)
    assert ("It recites." in list_cautions(change(report, probes={"p": Figures()}))) is is_given


def test_every_check_has_a_case_in_which_it_must_speak_and_one_in_which_it_must_not() -> None:
    cases = {case.check for case in CASES} | {"list_probe_cautions"}  # whose test is above
    assert cases == {check.__name__ for check in CAUTION_CHECKS}
