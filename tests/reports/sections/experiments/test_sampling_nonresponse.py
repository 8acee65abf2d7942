"""The document of the experiment on survey respondents without an answer."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.measurement_schema import NonresponseBoundsRow, NonresponseReport, NonresponseTreatmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Reason, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.experiments.sampling import build_nonresponse_document, describe_nonresponse

BOUNDS = [
    NonresponseBoundsRow(model="alder", method="direct", n=62, mae_best=0.0612, mae_worst=0.3471),
    NonresponseBoundsRow(model="birch", method="direct", n=0, mae_best=None, mae_worst=None, reason="no cell"),
]


def make_nonresponse(report: Report, rankings: dict[str, list[str]], *, holds: bool | None) -> NonresponseReport:
    """A report on treatments that all have the alignment of `report`."""
    return NonresponseReport(
        treatments=[
            NonresponseTreatmentRow(treatment=treatment, alignment=report.alignment, ranking=ranking)
            for treatment, ranking in rankings.items()
        ],
        not_possible={"drop": "no counts.", "impute": "no counts."},
        bounds=BOUNDS,
        ranking_holds=holds,
        reason=None if holds is not None else "fewer than two models",
    )


def test_the_lead_states_whether_the_ranking_depends_on_the_treatment(report: Report) -> None:
    equal = {"as audited": ["a", "b"], "low": ["a", "b"]}
    different = {"as audited": ["a", "b"], "low": ["b", "a"]}
    assert describe_nonresponse(make_nonresponse(report, equal, holds=True)) == (
        "The ranking of models by MAE is the same under all treatments (low): a > b."
    )
    assert describe_nonresponse(make_nonresponse(report, different, holds=False)) == (
        "The ranking of models by MAE depends on the treatment. As audited: a > b. Others: b > a (low)."
    )
    assert "cannot be compared between treatments: fewer than two models." in describe_nonresponse(
        make_nonresponse(report, {"as audited": ["a"]}, holds=None)
    )


def test_every_treatment_has_the_figures_of_every_model(report: Report) -> None:
    rankings = {"as audited": ["alder"], "low": ["alder"]}
    document = build_nonresponse_document("x", make_nonresponse(report, rankings, holds=True))
    agreement, bounds = (block for block in iterate_blocks(document) if isinstance(block, Table))
    [figure] = (block for block in iterate_blocks(document) if isinstance(block, Figure))
    assert figure.table_id == agreement.id
    assert len(agreement.rows) == 2 * len(report.alignment)
    for cells, row in zip(agreement.rows, report.alignment * 2, strict=True):
        assert isinstance(cells, tuple)
        assert cells[2:] == (
            row.pearson_r, row.spearman_rho.value, row.mae, row.rmse.value, row.bias, row.n
        )  # fmt: skip
        r = cells[2]
        assert isinstance(r, Estimate)
        assert f"{row.model}, low" in figure.description
    assert bounds.rows[1] == (bounds.rows[1][0], Reason("no cell", 2), 0)  # type: ignore[index]
    text = render_text(document)
    assert "Not available: drop, impute. Reason: no counts." in text
    assert "0.35" in text


def test_an_audit_without_scores_has_no_table() -> None:
    empty = NonresponseReport(
        treatments=[NonresponseTreatmentRow(treatment="as audited", alignment=[], ranking=[])],
        not_possible={}, bounds=[], ranking_holds=None, reason="fewer than two models",
    )  # fmt: skip
    document = build_nonresponse_document("x", empty)
    assert not [block for block in iterate_blocks(document) if isinstance(block, Table | Figure)]
