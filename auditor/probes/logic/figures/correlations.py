"""Correlations between figures of logical consistency, over judges and over each judge's wordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.averaging import AVERAGINGS, Averaging
from auditor.metrics.model_correlation import correlate_models
from auditor.probes.logic.figures.schema import LogicCorrelationRow, LogicRow
from auditor.reports.data.coverage.missing_scores import replace_reason
from auditor.reports.data.panel.verdict_matrix import find_family
from auditor.reports.data.report_source import ReportSource

MIN_ROWS = 3


class _Figures(NamedTuple):
    """The figures of one judge or wording that are correlated; None where there is no value."""

    transitivity: float | None
    self_agreement: float | None
    commutativity: float | None
    human_agreement: float | None


def build_correlation_rows(
    source: ReportSource, rows: Sequence[LogicRow], wording_rows: Sequence[LogicRow]
) -> list[LogicCorrelationRow]:
    """Correlate figures over judges, and over each judge's wordings; nothing over fewer than three of them."""
    families = [find_family(source.config, row.judge) for row in rows]
    links = list(_correlate_rows("judges", rows, "judge", families))
    for judge in (row.judge for row in rows):
        rows_of_judge = [row for row in wording_rows if row.judge == judge]
        links += _correlate_rows(f"wordings, {judge}", rows_of_judge, "wording")
    return links


def _correlate_rows(
    unit_label: str, rows: Sequence[LogicRow], unit: str, families: Sequence[str | None] | None = None
) -> Iterator[LogicCorrelationRow]:
    """Correlate transitivity with self-agreement, and commutativity with agreement with people.

    Args:
        unit_label: names the rows.
        unit: what a row is of, `judge` or `wording`.
        families: of the judges.
    """
    if len(rows) < MIN_ROWS:
        return
    # The first transitivity figure: the first configured K, uncalibrated.
    transitivity_label = f"transitivity (K = {rows[0].transitivity[0].k})"
    for averaged in AVERAGINGS:
        figures = [_select_figures(row, averaged) for row in rows]
        for x_name, y_name, pairs in (
            (transitivity_label, "self-agreement", [(f.transitivity, f.self_agreement) for f in figures]),
            ("commutativity", "agreement with people", [(f.commutativity, f.human_agreement) for f in figures]),
        ):
            x, y = np.array(pairs, dtype=float).T
            r = replace_reason(
                correlate_models(x, y, families, unit=unit),
                {
                    "x constant": f"all {unit}s have the same {x_name}",
                    "y constant": f"all {unit}s have the same {y_name}",
                    "x and y constant": f"all {unit}s have the same {x_name} and the same {y_name}",
                },
            )
            yield LogicCorrelationRow(over=unit_label, averaged=averaged, x=x_name, y=y_name, r=r)


def _select_figures(row: LogicRow, averaged: Averaging) -> _Figures:
    """The figures of one row, as means over sets or pooled."""
    transitivity, shares = row.transitivity[0], row.instances if averaged == "instances" else row
    return _Figures(
        (transitivity.instances if averaged == "instances" else transitivity.share).value,
        shares.self_agreement.value,
        shares.commutativity.value,
        shares.human_agreement.value,
    )
