"""The section on baselines states the ceiling, r within topics and each baseline, as the intervals support."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.data.measurement_schema import (
    BaselineRow,
    CeilingRow,
    GainRow,
    NonresponseBoundsRow,
    NonresponseReport,
    NonresponseTreatmentRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Paragraph, Section, Table
from auditor.reports.number_format import format_signed
from auditor.reports.sections.baselines import (
    build_baselines_section,
    describe_ceiling,
    describe_gain,
    list_guess_findings,
    summarize_guesses,
)
from auditor.storage.database import Database
from tests.reports.hostile_report import hostile_report
from tests.reports.sections.node_text import text_of


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.2, 0.1, 0.3, "captures differences between countries (r within topics = 0.20, 95% CI 0.10 to"),
        (0.2, -0.1, 0.3, "is not shown to capture differences"),
        (-0.2, -0.3, -0.1, "is negatively correlated with the differences"),
        (
            0.2,
            None,
            None,
            "may or may not capture differences between countries (r within topics = 0.20, 9 cells, no 95% CI: ",
        ),
        (None, None, None, "cannot be tested on differences between countries: too few"),
    ],
)
def test_knowledge_of_countries_is_described_by_its_interval(
    value: float | None, low: float | None, high: float | None, text: str
) -> None:
    estimate = Tested(value=value, n=9, ci_low=low, ci_high=high, reason=None if low else "too few")
    assert text in describe_gain(GainRow(model="m", method="direct", within_topics=estimate))


def test_the_ceiling_is_stated_with_the_reliability_or_the_reason(report: Report) -> None:
    assert describe_ceiling(report) == (
        "The highest attainable r is not available: 'population' is neither a built-in survey nor an existing file."
    )
    reliabilities = [Estimate(0.81, 100, 0.8, 0.82), Estimate(0.49, 100, 0.4, 0.5)]
    rows = [
        CeilingRow(scope=scope, reliability=reliability, largest_r=0.9)
        for scope, reliability in zip(("all", "within topics"), reliabilities, strict=True)
    ]
    assert describe_ceiling(report.model_copy(update={"ceiling": rows})) == (
        "A perfect model is expected to reach at most r = 0.90. The survey’s split-half reliability is "
        "0.81 over all cells (95% CI 0.80 to 0.82) and 0.49 within topics (95% CI 0.40 "
        "to 0.50)."
    )


def test_the_table_has_every_baseline_next_to_r_within_topics(report: Report) -> None:
    section = build_baselines_section(report)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, Table))
    gains = {row.model: row.within_topics for row in report.gain or []}
    baselines = {
        model: [e for row in report.baselines if row.model == model for e in (row.pearson_r, row.mae)]
        for model in gains
    }
    assert table.rows == [[model, gain, *baselines[model]] for model, gain in gains.items()]
    titles = [str(column.title) for column in table.columns]
    assert titles[:4] == ["Model", "r within topics", "Topic mean: r", "Topic mean: MAE"]
    assert len(titles) == len(baselines["alder"]) + 2


def test_nonresponse_is_a_subsection(report: Report) -> None:
    ranking = [row.model for row in report.alignment]
    treatments = [
        NonresponseTreatmentRow(treatment=treatment, alignment=report.alignment, ranking=ranking)
        for treatment in ("as audited", "drop")
    ]
    bounds = NonresponseBoundsRow(model="alder", method="direct", n=40, mae_best=0.1, mae_worst=0.4)
    nonresponse = NonresponseReport(
        treatments=treatments,
        not_possible={"impute": "no respondents"},
        bounds=[bounds],
        ranking_holds=True,
        reason=None,
    )
    section = build_baselines_section(report.model_copy(update={"nonresponse": nonresponse}))
    assert section is not None
    subsection = section.blocks[-1]
    assert isinstance(subsection, Section)
    assert isinstance(subsection.blocks[0], Paragraph)
    assert "the same under all treatments (drop): alder > birch > cedar." in str(subsection.blocks[0].content)
    tables = {block.id: block for block in subsection.blocks if isinstance(block, Table)}
    assert len(tables["nonresponse-bounds"].rows) == 1
    estimates = [row.pearson_r for row in report.alignment]
    assert tables["nonresponse-treatments"].rows == [["as audited", *estimates], ["drop", *estimates]]


def test_no_section_without_scores_and_hostile_names_can_be_built(report: Report, db: Database) -> None:
    assert build_baselines_section(report.model_copy(update={"alignment": []})) is None
    assert build_baselines_section(hostile_report(db))


def make_baseline(report: Report, difference: float, adjusted_p: float | None, mae: float, **more: str) -> BaselineRow:
    """A baseline row with this difference in MAE, with an interval if it is tested."""
    width = None if adjusted_p is None else 0.05
    low, high = (None, None) if width is None else (difference - width, difference + width)
    update = {
        "mae": Estimate(mae, 40, mae - 0.05, mae + 0.05),
        "mae_difference": Tested(
            difference, 40, low, high, "too few" if width is None else None, p_value=0.01, adjusted_p_value=adjusted_p
        ),
        **more,
    }
    return report.baselines[0].model_copy(update=update)


@pytest.mark.parametrize(
    ("rows", "status", "text"),
    [
        (
            ((-0.1, 0.01, 0.2), (-0.3, 0.02, 0.4)),
            "positive",
            "is closer to people than every simple guess (difference in",
        ),
        (((-0.1, 0.01, 0.2), (-0.3, 0.2, 0.4)), "unclear", "is not shown to be closer to people than the best simple"),
        (((0.1, 0.01, 0.2), (-0.3, 0.01, 0.4)), "negative", "is further from people than the best simple guess"),
        (((0.1, None, 0.2), (-0.3, None, 0.4)), "neutral", "may or may not be closer to people than the best simple"),
    ],
)
def test_a_model_is_compared_with_the_best_guess_after_correction(
    report: Report, rows: tuple[tuple[float, float | None, float], ...], status: str, text: str
) -> None:
    baselines = [make_baseline(report, *row) for row in rows]
    [finding] = list_guess_findings(report.model_copy(update={"baselines": baselines}))
    assert finding.status == status
    assert text in text_of(finding.content)
    assert f"difference in mean absolute error = {format_signed(rows[0][0])}" in text_of(finding.content)


def test_the_models_that_beat_every_guess_are_counted(report: Report) -> None:
    better = [make_baseline(report, -0.1, 0.01, 0.2, model=name) for name in ("a", "b")]
    unclear = make_baseline(report, -0.1, 0.5, 0.2, model="c")
    for rows, text in (
        (better, "Both models are closer to people than every simple guess."),
        ([*better, unclear], "2 of the 3 models are shown to be closer to people than every simple guess."),
        ([better[0], unclear], "One of the 2 models is shown to be closer to people than every simple guess."),
        ([unclear], "The model is not shown to be closer to people than every simple guess."),
        ([make_baseline(report, -0.1, None, 0.2)], "Whether a model is better than a simple guess cannot be tested"),
    ):
        assert summarize_guesses(report.model_copy(update={"baselines": rows})).startswith(text)
