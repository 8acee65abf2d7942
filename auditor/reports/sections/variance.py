"""The section on where the uncertainty comes from, and what to buy next."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from auditor.reports.data.agreement.variance import VarianceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Column, List, Paragraph, Section
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.reports.sections.tables import tabulate

_EXPLANATION = (
    "The variance of each figure is divided among its sources: which countries and topics were asked, what is peculiar "
    "to single cells, and the randomness of answers. The division is an estimate of its own: with few countries or "
    "topics it is rough. Wording is not among the sources, since all samples have the same."
)
PLURALS = {"sample": "samples a cell", "topic": "topics", "country": "countries"}


def build_variance_section(report: Report) -> Section | None:
    """Build the section on the sources of uncertainty; None where no figure has one."""
    rows = [row for row in report.variance if row.shares is not None]
    if not rows:
        return None
    labels = SeriesLabels.of(report)
    advice = [f"{labels.label(row)}: {describe_purchase(row)}" for row in rows if row.figure == "MAE"]
    derived: Mapping[str, Callable[[VarianceRow], Cell]] = {
        "model": labels.label,
        "negative": lambda row: ", ".join(row.negative) or None,
    }
    columns = [
        Column("Model", "name"),
        Column("Figure", "text", "figure"),
        Column("Standard error", "number", "std_error", 3, emphasis=True),
        *(
            Column(title, "number", f"shares.{source}", 0, "percent")
            for title, source in (
                ("Samples", "sample"), ("Cells", "cell"), ("Topics", "topic"), ("Countries", "country"),
                ("Languages", "language"),
            )
        ),
        Column("Set to 0", "text", "negative"),
    ]  # fmt: skip
    table = tabulate(
        "variance",
        "Where the uncertainty comes from",
        "Share of the variance of each figure by source. Standard error: implied by the sources. Samples: a dash where "
        "cells have one sample, whose randomness is then in the column of cells. Languages: a dash where there is one. "
        "Set to 0: sources whose estimate was negative, which are too small to be seen.",
        rows,
        columns,
        derived,
    )
    blocks: list[Block] = [Paragraph(_EXPLANATION), *([List(advice)] if advice else []), table]
    return Section("variance", "Where does the uncertainty come from?", blocks, "Uncertainty")


def describe_purchase(row: VarianceRow) -> str:
    """State what halves the standard error at the least cost, as a predicate of the model's figure."""
    error = f"the standard error of its {row.figure} is {format_number(row.std_error, 3)}"
    if row.to_halve is None or row.cheapest is None:
        return (
            f"{error}. Neither more samples nor more topics nor more countries alone would halve it: it takes more "
            "topics and more countries."
        )
    size = getattr(row.to_halve, row.cheapest)
    current = {"sample": round(row.samples), "topic": row.topics, "country": row.countries}[row.cheapest]
    return (
        f"{error}. About {size} {PLURALS[row.cheapest]} in place of {current} would halve it at the least cost"
        f"{_list_alternatives(row)}."
    )


def _list_alternatives(row: VarianceRow) -> str:
    """The other ways to halve the standard error, in brackets; empty where there is none."""
    others = [
        f"{pluralize(size, 'topic') if kind == 'topic' else pluralize(size, 'country', 'countries')}"
        if kind != "sample"
        else f"{size} samples a cell"
        for kind, size in (row.to_halve.model_dump() if row.to_halve else {}).items()
        if size is not None and kind != row.cheapest
    ]
    return f" (or {' or '.join(others)})" if others else ""
