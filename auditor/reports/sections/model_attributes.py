"""Section on figures by the attributes of models, and trends over their number of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.config.installed_probes import list_built_in_probes
from auditor.metrics.model_trend import MIN_TREND_MODELS
from auditor.reports.data.agreement.model_attributes import (
    AttributeFigureRow,
    AttributesReport,
    AttributeTrendRow,
    ModelAttributesRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, Name, Paragraph, Section, Text
from auditor.reports.number_format import describe_estimate
from auditor.reports.sections.tables import tabulate

TITLES: Mapping[str, str] = {
    "mae": "MAE",
    "concordance": "Concordance",
    "pearson_r": "r",
    "corrected_r": "r without sampling noise",
    "self_consistency": "Self-consistency (cosine)",
    "accuracy": "Share of right answers",
}
NO_TREND = "No figure is shown to change with the number of parameters, after correction for all trends."


def build_model_attributes_section(report: Report) -> Section | None:
    """Build the section of an audit's report; None where no model has attributes."""
    return None if report.attributes is None else build_attributes_section(report.attributes)


def build_attributes_section(attributes: AttributesReport) -> Section:
    """Build the section: what changes with size, the trends, and figures by attribute."""
    blocks: list[Block] = [*_build_trends(attributes.trends)]
    derived = {"figure": lambda row: _name_figure(row.figure)}
    blocks.append(
        tabulate(
            "attribute-figures",
            "Figures by attribute",
            "Each model counts once. The 95% CI of a mean is over other models like these; n counts models. Models "
            "that differ in one attribute may differ in others.",
            attributes.figures,
            AttributeFigureRow,
            derived,
        )
    )
    blocks.append(
        tabulate(
            "model-attributes",
            "Attributes of the models",
            "As configured.",
            attributes.models,
            [Column("Model", "name"), Column("Family", "name"), Column("Attributes")],
            {"attributes": _list_attributes},
        )
    )
    return Section("attributes", "Figures by attributes of models", blocks, "Attributes")


def _build_trends(trends: list[AttributeTrendRow]) -> Iterator[Block]:
    """Yield the finding and the table of trends; nothing without numbers of parameters."""
    if not trends:
        return
    findings: list[Text] = [
        [
            f"{_name_figure(row.figure)} {'rises' if (row.slope.value or 0.0) > 0 else 'falls'} with the number of "
            "parameters within ",
            *(["families"] if row.family is None else ["the family ", Name(row.family)]),
            f" ({describe_estimate('change per tenfold', row.slope, 'model', digits=3, style='signed')}).",
        ]
        for row in trends
        if row.slope.is_significant
    ]
    is_measured = any(row.slope.value is not None for row in trends)
    missing = f"There is no trend over the number of parameters: it needs {MIN_TREND_MODELS} models of a family."
    yield List(findings) if findings else Paragraph(NO_TREND if is_measured else missing, "finding")
    yield tabulate(
        "attribute-trends",
        "Trends over the number of parameters",
        "Change of a figure from a model to one of its family with ten times as many parameters. Without a family: all "
        "families together, each with an intercept of its own. 95% CIs are over other models of these families; n "
        "counts models.",
        trends,
        AttributeTrendRow,
        {"figure": lambda row: _name_figure(row.figure)},
    )


def _name_figure(figure: str) -> str:
    """The title of a figure: of this list, or as a built-in probe declares it."""
    return TITLES.get(figure) or next(
        probe.attribute_figures[figure] for probe in list_built_in_probes() if figure in probe.attribute_figures
    )


def _list_attributes(row: ModelAttributesRow) -> str:
    """The attributes of a model, such as "parameters 7e+09, tuning instruct"."""
    return ", ".join(
        f"{key} {value:,.6g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.attributes.items()
    )
