"""Every loss is counted by its cause; failures quote providers as text, lost samples have bounds, refusals a share."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.metrics.intervals.estimate import BoundedEstimate, ShareEstimate
from auditor.reports.data.coverage.build import ReaskRow, RefusalRow, RefusalsReport
from auditor.reports.data.coverage.counts import FinishReasonRow
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseFigures
from auditor.reports.data.failures import FailureGroup, FailuresReport, UnusableModel
from auditor.reports.data.measurement_schema import RegionGapRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.sections.coverage import (
    MAX_PLOTTED_ROWS,
    build_coverage_section,
    build_failures_section,
    build_lost_samples_section,
    build_refusals_section,
    list_lost_sample_cautions,
)
from tests.reports.sections.node_text import (
    assert_consistent,
    blocks_of,
    findings_of,
    tables_of,
    text_of,
    titled_cells_of,
)
from tests.support.known import known
from tests.support.report_changes import change


def test_the_counts_of_a_bar_are_those_of_all_planned_answers(report: Report) -> None:
    changed = change(report, coverage__total__each__planned=1000, coverage__total__each__missing=7)
    table = tables_of(build_coverage_section(changed))["coverage-total"]
    bars: list[Any] = [row["Breakdown"] for row in titled_cells_of(table)]
    assert [[segment.n for segment in bar] for bar in bars] == [
        [row.ok, *row.losses.values(), 7] for row in changed.coverage.total
    ]


def test_groups_without_missing_answers_are_one_sentence(report: Report) -> None:
    full: dict[str, Any] = {"losses": {}, "missing": 0}
    groups = {
        f"coverage__{name}": [row.model_copy(update=full | {"ok": row.planned}) for row in rows]
        for name, rows in (("judges", report.coverage.judges), ("countries", report.coverage.countries))
    }
    section = build_coverage_section(change(report, **groups))
    assert list(tables_of(section)) == ["coverage-total", "coverage-by-model", "coverage-by-topic"]
    assert "All planned answers of each judge and country are usable." in text_of(section)


def test_undocumented_finish_reasons_and_marked_traces_are_stated(report: Report) -> None:
    changed = change(
        report,
        coverage__undocumented_finish_reasons=[FinishReasonRow(name="alder", reason="eos<b>", answers=2)],
        coverage__shortened_traces={"birch": 1200, "cedar": 1},
        coverage__addressing_traces={"birch": 1},
    )
    text = text_of(build_coverage_section(changed))
    assert "Some finish reasons are not documented: alder: “eos<b>” (2 answers)." in text
    assert "1\u202f201 traces longer than probes.review.max_trace_chars (birch: 1\u202f200, cedar: 1)." in text
    assert "1 usable trace (birch: 1). To read them: auditor traces --addressing-judge." in text


EVIL = "<script>alert(1)</script> \u202eInsufficient balance"


def report_failures(report: Report, *, not_listed: int = 0, **unusable: bool) -> Report:
    """A report with two groups of failures; models without a usable answer, and whether they are judges."""
    group = FailureGroup(
        name="alder", model="openai/alder-1", purposes=["direct"], outcome="client_error", status=402, message=EVIL,
        requests=5, unusable=3, first_at="1", last_at="2", how_to_fix="Set `rpm`.", payload=None,
    )  # fmt: skip
    models = [
        UnusableModel(name=name, is_judge=is_judge, planned=3, reason="HTTP 402: no money.", how_to_fix="")
        for name, is_judge in unusable.items()
    ]
    failures = FailuresReport(
        groups=[group, change(group, name="birch", status=None, how_to_fix="")], not_listed=not_listed,
        requests_not_listed=9 * not_listed, unusable=3, unusable_models=models,
    )  # fmt: skip
    return change(report, failures=failures)


def test_failures_have_the_message_the_known_fix_and_the_number_of_further_ones(report: Report) -> None:
    section = build_failures_section(report_failures(report, alder=False, fir=True))
    assert_consistent(section)
    assert findings_of(section) == [
        (f"{name} has no usable {noun}: HTTP 402: no money.", "negative")
        for name, noun in (("alder", "answer"), ("fir", "verdict"))
    ]
    assert "10 requests failed." in text_of(section)
    assert "3 calls have no usable answer" in text_of(section)
    assert "auditor errors" not in text_of(section)
    text = text_of(build_failures_section(report_failures(report, not_listed=2)))
    assert "28 requests failed." in text
    assert f"To list 2 further reasons of 18 failed requests: auditor errors {report.audit.name}" in text


UNITS = ("country", "topic")
R = BoundedEstimate(0.6, 40, 0.25, 0.8, resampled=UNITS, bound_low=0.4, bound_high=0.7)
MAE = BoundedEstimate(0.2, 40, 0.1, 0.5, resampled=UNITS, bound_low=0.15, bound_high=0.4)
BIAS = BoundedEstimate(0.0, 40, -0.3, 0.2, resampled=UNITS, bound_low=-0.2, bound_high=0.1)
WORST_CASE = WorstCaseFigures(pearson_r=R, mae=MAE, bias=BIAS)
FEW = BoundedEstimate(0.2, 40, reason="too few topics", bound_low=0.15, bound_high=0.6)
UNBOUNDED = BoundedEstimate(None, 40, reason="nothing is known")


def all_three(figure: BoundedEstimate) -> WorstCaseFigures:
    return WorstCaseFigures(pearson_r=figure, mae=figure, bias=figure)


def with_losses(report: Report, *shares: float, last: WorstCaseFigures = WORST_CASE) -> Report:
    """The report with one series for each share of lost samples; bounds above 5%, which the last may have others of."""
    rows = [
        change(
            report.alignment[0], model=f"model {i}",
            lost_samples=LostSamples(planned=100, lost=round(100 * share), share=share),
            worst_case=(last if i == len(shares) - 1 else WORST_CASE) if share > 0.05 else None,
        )
        for i, share in enumerate(shares)
    ]  # fmt: skip
    return change(report, alignment=rows, regions__rows=[], regions__gaps=[])


ENDS = "(ends of the 95% CIs)"


@pytest.mark.parametrize(
    ("shares", "last", "warning"),
    [
        (
            (0.02, 0.12), WORST_CASE,
            "12% of the planned samples of model 1 have no usable score, and may differ from the others. Whatever the "
            "missing scores are, the correlation (r) lies between 0.25 and 0.80 and the mean absolute error between "
            f"0.10 and 0.50 {ENDS}.",
        ),
        (
            (0.3,), all_three(FEW),
            "the correlation (r) lies between 0.15 and 0.60 and the mean absolute error between 0.15 and 0.60 (without "
            "sampling error).",
        ),
        ((1.0,), all_three(UNBOUNDED), "no bounds are available: nothing is known."),
        (
            (0.06, 0.4, 0.1, 0.2, 0.3, 0.01, 0.08),
            change(WORST_CASE, pearson_r=BoundedEstimate(0.6, 40, -0.1, 0.7, bound_low=0, bound_high=1)),
            "6% to 40% of the planned samples of model 1, model 4, model 3, model 2 and 2 more models have no usable "
            "score, and may differ from the others. Whatever the missing scores are, each correlation (r) lies between "
            f"−0.10 and 0.80 and each mean absolute error between 0.10 and 0.50 {ENDS}. “What if the lost samples "
            "differ?” has each model.",
        ),
        (
            (0.2, 0.3), all_three(UNBOUNDED),
            f"each mean absolute error between 0.10 and 0.50 {ENDS}. For 1 of these models, bounds are not available: "
            "nothing is known. “What if the lost samples differ?” has each model.",
        ),
        (
            (0.2, 0.3), all_three(FEW),
            "each correlation (r) lies between 0.15 and 0.80 and each mean absolute error between 0.10 and 0.60 (ends "
            "of the 95% CIs where available",
        ),
    ],
)  # fmt: skip
def test_a_warning_names_the_range_of_lost_samples(
    report: Report, shares: tuple[float, ...], last: WorstCaseFigures, warning: str
) -> None:
    [text] = list_lost_sample_cautions(with_losses(report, *shares, last=last))
    assert warning in text


def test_a_few_lost_samples_give_no_warning_and_no_section(report: Report) -> None:
    small = with_losses(report, 0.02, 0.05)
    assert list(list_lost_sample_cautions(small)) == []
    assert build_lost_samples_section(small) is None


def test_gaps_of_unknown_sign_between_the_same_regions_are_one_warning(report: Report) -> None:
    [gap, *_] = report.regions.gaps

    def unknown_gap(model: str, low: float, high: float) -> RegionGapRow:
        bounds = BoundedEstimate(0.1, 40, -0.5, 0.5, resampled=UNITS, bound_low=low, bound_high=high)
        return change(gap, model=model, worst_case__mae=bounds)

    gaps = [unknown_gap("a", -0.2, 0.3), unknown_gap("b", -0.4, 0.1)]
    lossy = change(with_losses(report), regions__gaps=gaps)
    assert list(list_lost_sample_cautions(lossy)) == [
        f"Because of lost samples, it is not known in which of two regions, {gap.first} or {gap.second}, the mean "
        "absolute error of a, b is larger: the difference lies between −0.40 and +0.30."
    ]
    rows = [change(row, countries=4) for row in report.regions.rows if row.region == gap.second]
    assert not list(list_lost_sample_cautions(change(lossy, regions__rows=rows))), "a region of 4 is not compared"


def refusal_rows(value: float, names: str, n_largest: int = 1) -> list[RefusalRow]:
    """Rows of which the first have this share of refusals, and the others half of it."""
    shares = [value if i < n_largest else value / 2 for i in range(len(names.split()))]
    return [
        RefusalRow(name=name, share=ShareEstimate(share, 200, share / 2, share * 2))
        for name, share in zip(names.split(), shares, strict=True)
    ]


def refusals_of(value: float, n_topics: int = 1, n_largest: int = 1) -> RefusalsReport:
    """Refusals with these shares of one model, of two countries and of topics."""
    topics = " ".join(f"topic-{i}" for i in range(n_topics))
    return RefusalsReport(
        total=ShareEstimate(value, 200, value / 2, value * 2), models=refusal_rows(value, "m"),
        countries=refusal_rows(value, "Egypt Japan", n_largest), topics=refusal_rows(value, topics, n_largest),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n_largest", "finding"),
    [
        (1, "Refusals are most frequent for topic-0 (12.5%: 25 of 200 answers) and Egypt (12.5%: 25 of 200 answers)."),
        (2, "Refusals are most frequent for topic-0, topic-1 (12.5% each)."),
        (6, "Refusals are most frequent for topic-0, topic-1, topic-2, topic-3 and 2 more (12.5% each)."),
        (15, "Overall, 12.5% of 200 answers are refusals (95% CI 6.2% to 25.0%)."),
    ],
)
def test_groups_are_named_for_refusals_only_if_they_have_more_than_others(
    report: Report, n_largest: int, finding: str
) -> None:
    refusals = refusals_of(0.125, 15, n_largest)
    text = text_of(
        build_refusals_section(change(report, refusals=change(refusals, models=refusal_rows(0.125, "a b c", 2))))
    )
    assert "a, b refuse most often (12.5% each). Overall, " in text
    assert finding in text
    assert ("most frequent" in text) is (n_largest < 15)


def test_the_share_of_refusals_and_the_most_refused_groups_are_stated(report: Report) -> None:
    section = known(build_refusals_section(change(report, refusals=refusals_of(0.125, MAX_PLOTTED_ROWS + 5))))
    assert "12.5% of 200 answers are refusals (95% CI 6.2% to 25.0%)." in text_of(section)
    [figure, _] = blocks_of(section, Figure)
    assert figure.description.count("topic") == MAX_PLOTTED_ROWS


def test_no_refusal_and_a_missing_interval_are_stated(report: Report) -> None:
    none = known(build_refusals_section(change(report, refusals=refusals_of(0.0), repairs=[])))
    assert [text_of(block) for block in none.blocks] == ["There are no refusals among 200 answers.finding"]
    few = ShareEstimate(0.5, 4, reason="an interval needs 5 cells")
    repairs = [ReaskRow(model="alder", asked=3, read=2)]
    text = text_of(build_refusals_section(change(report, refusals__total=few, repairs=repairs)))
    assert "50.0% of 4 answers are refusals (no 95% CI: an interval needs 5 cells)." in text
    assert "alder: 3 answers could not be read at first" in text
    assert "2 then had a score" in text
    assert not blocks_of(none, Table)
