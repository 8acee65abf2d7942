"""The tables of the EvalMORAAL paper (arXiv 2510.05942) computed from a report, as CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.domain import Outcome
from auditor.metrics.estimate import Estimate
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.text_safety import escape_formula, escape_invisible

PaperCell = str | int | float | None


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table: its file name without suffix, caption, column names and rows; None is a missing figure."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[PaperCell]]


def build_paper_tables(report: Report) -> list[PaperTable]:
    """Build the tables of EvalMORAAL (arXiv 2510.05942), with intervals and n; without rows where nothing was measured.

    Intervals of r and MAE, and p-values, are over countries and topics; they are missing where these are too few.
    """
    return [
        _alignment_table(report),
        _methods_table(report),
        _tiers_table(report),
        _peer_agreement_table(report),
        _conflicts_table(report),
        _regions_table(report),
        _region_gaps_table(report),
        _group_errors_table("topics", "Mean absolute error and bias by topic", "topic", report.topics),
        _group_errors_table("countries", "Mean absolute error and bias by country", "country", report.countries),
        _coverage_table(report),
    ]


def _estimate_cells(estimate: Estimate) -> list[PaperCell]:
    """Cells of an estimate: value, lower end and upper end of its interval; None where missing."""
    return [estimate.value, estimate.ci_low, estimate.ci_high]


def _alignment_table(report: Report) -> PaperTable:
    """Build the table of r, with its interval and p-value, and errors; one row per series of scores."""
    columns = [
        "model",
        "method",
        "n",
        "r",
        "r_low",
        "r_high",
        "p",
        "spearman_rho",
        "mae",
        "mae_low",
        "mae_high",
        "rmse",
    ]
    rows: list[list[PaperCell]] = []
    for row in report.alignment:
        two_way_r, two_way_mae = row.crossed.pearson_r, row.crossed.mae
        first_cells: list[PaperCell] = [
            row.model,
            row.method,
            row.n,
            row.pearson_r,
            two_way_r.ci_low,
            two_way_r.ci_high,
            row.crossed_p_value,
            row.spearman_rho,
        ]
        rows.append([*first_cells, row.mae, two_way_mae.ci_low, two_way_mae.ci_high, row.rmse])
    return PaperTable("alignment", "Agreement with people: Pearson's r, and errors", columns, rows)


def _methods_table(report: Report) -> PaperTable:
    """Build the table of the difference of r between direct and log-probability scores; one row per model."""
    columns = ["model", "r_direct", "r_logprob", "delta_r", "delta_low", "delta_high", "n"]
    rows = [
        [row.model, row.direct_r, row.logprob_r, *_estimate_cells(row.difference), row.difference.n]
        for row in report.methods
    ]
    caption = "Direct scores against log-probability scores: the difference of r on the cells that have both"
    return PaperTable("direct_and_logprob", caption, columns, rows)


def _tiers_table(report: Report) -> PaperTable:
    """Build the table of tiers; one row per ranking and model."""
    columns = ["scope", "method", "by", "tier", "model", "value", "rank_low", "rank_high", "first_share", "n"]
    rows: list[list[PaperCell]] = [
        [
            ranking.scope,
            ranking.method,
            ranking.by,
            row.tier,
            row.model,
            row.value,
            row.rank_low,
            row.rank_high,
            row.first,
            ranking.cells,
        ]
        for ranking in report.tiers
        for row in ranking.rows
    ]
    return PaperTable("tiers", "Tiers of models, with the 95% interval of each rank", columns, rows)


def _peer_agreement_table(report: Report) -> PaperTable:
    """Peer agreement and alignment of direct scores, the only ones with reasoning for judges to review."""
    r_by_model = {row.model: row.pearson_r for row in report.alignment if row.method == "direct"}
    columns = ["model", "agreement", "agreement_low", "agreement_high", "verdicts", "r"]
    rows = [
        [row.model, *_estimate_cells(row.agreement), row.given, r_by_model.get(row.model)]
        for row in report.peer_agreement
    ]
    return PaperTable("peer_agreement", "Peer agreement beside alignment", columns, rows)


def _conflicts_table(report: Report) -> PaperTable:
    """Build the table that counts conflicts by state; one row per kind of conflict."""
    conflicts = report.conflicts
    rows: list[list[PaperCell]] = [
        [kind_row.kind, kind_row.total, *(kind_row.states.get(state, 0) for state in conflicts.states)]
        for kind_row in conflicts.kinds
    ]
    return PaperTable("conflicts", "Conflicts by kind and how they stand", ["kind", "total", *conflicts.states], rows)


def _regions_table(report: Report) -> PaperTable:
    """Build the table of r and MAE by region; one row per series of scores and region."""
    columns = ["model", "method", "region", "countries", "n", "r", "r_low", "r_high", "mae", "mae_low", "mae_high"]
    rows = [
        [
            row.model,
            row.method,
            row.region,
            row.countries,
            row.n,
            row.pearson_r,
            row.ci_low,
            row.ci_high,
            *_estimate_cells(row.mae),
        ]
        for row in report.regions.rows
    ]
    return PaperTable("regions", f"Agreement by region ({report.regions.title})", columns, rows)


def _region_gaps_table(report: Report) -> PaperTable:
    """Build the table of differences of MAE between two regions (second minus first); one row per gap."""
    columns = ["model", "method", "first", "second", "mae_gap", "gap_low", "gap_high", "n"]
    rows = [
        [gap.model, gap.method, gap.first, gap.second, *_estimate_cells(gap.mae_gap), gap.mae_gap.n]
        for gap in report.regions.gaps
    ]
    return PaperTable("regional_gap", "Difference of mean absolute error between regions", columns, rows)


def _group_errors_table(name: str, caption: str, group_column: str, error_rows: Sequence[GroupErrorRow]) -> PaperTable:
    """Build a table of MAE and bias; one row per topic or country and series of scores."""
    columns = [group_column, "model", "method", "n", "mae", "mae_low", "mae_high", "bias", "bias_low", "bias_high"]
    rows = [
        [row.name, row.model, row.method, row.n, *_estimate_cells(row.mae), *_estimate_cells(row.bias)]
        for row in error_rows
    ]
    return PaperTable(name, caption, columns, rows)


def _coverage_table(report: Report) -> PaperTable:
    """Coverage in total and by model, judge, country and topic: planned = ok + all losses + missing."""
    coverage, loss_causes = report.coverage, [outcome.value for outcome in Outcome if outcome is not Outcome.OK]
    breakdowns = (
        ("all", coverage.total), ("model", coverage.models), ("judge", coverage.judges),
        ("country", coverage.countries), ("topic", coverage.topics),
    )  # fmt: skip
    rows: list[list[PaperCell]] = [
        [
            breakdown,
            row.name,
            row.counted_label,
            row.planned,
            row.ok,
            *(row.losses.get(cause, 0) for cause in loss_causes),
            row.missing,
        ]
        for breakdown, coverage_rows in breakdowns
        for row in coverage_rows
    ]
    columns = ["by", "name", "what", "planned", "ok", *loss_causes, "missing"]
    return PaperTable("coverage", "Coverage: what was planned, what is usable and what was lost", columns, rows)


# --- CSV and LaTeX ----------------------------------------------------------------------------------------------


def render_paper_csv(table: PaperTable) -> str:
    """Render a table as CSV with full precision; missing figures are empty, and formulas in texts are escaped."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(
        [
            "" if cell is None else escape_formula(escape_invisible(cell)) if isinstance(cell, str) else cell
            for cell in row
        ]
        for row in table.rows
    )
    return buffer.getvalue()


def render_paper_latex(tables: Sequence[PaperTable]) -> str:
    r"""Render all tables with rows for \input, with booktabs and longtable; two decimals, intervals in brackets."""
    requirements = "% Needs \\usepackage{booktabs,longtable}.\n"
    return requirements + "\n".join(_render_longtable(table) for table in tables if table.rows)


def _render_longtable(table: PaperTable) -> str:
    """Render one table as a LaTeX longtable; an interval is put in the cell of its estimate."""
    shown_columns = [column for column in table.columns if not column.endswith(("_low", "_high"))]
    shown_indices = [index for index, column in enumerate(table.columns) if column in shown_columns]
    interval_indices = {
        index: (
            table.columns.index(f"{_interval_column_stem(column)}_low"),
            table.columns.index(f"{_interval_column_stem(column)}_high"),
        )
        for index, column in enumerate(table.columns)
        if f"{_interval_column_stem(column)}_low" in table.columns
        and f"{_interval_column_stem(column)}_high" in table.columns
        and column in shown_columns
    }
    text_flags = [any(isinstance(row[index], str) for row in table.rows) for index in shown_indices]
    heading = " & ".join(escape_tex(name.replace("_", " ")) for name in shown_columns) + r" \\"
    lines = [
        r"\begin{longtable}{" + "".join("l" if is_text else "r" for is_text in text_flags) + "}",
        rf"\caption{{{escape_tex(table.caption)}.}}\label{{tab:{table.name.replace('_', '-')}}}\\",
        r"\toprule",
        heading,
        r"\midrule",
        r"\endfirsthead",
        r"\toprule",
        heading,
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
    ]
    for row in table.rows:
        cells = [
            _latex_cell(row[index], *(row[end_index] for end_index in interval_indices.get(index, ())))
            for index in shown_indices
        ]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\end{longtable}"]) + "\n"


def _interval_column_stem(column: str) -> str:
    """Prefix of the `_low` and `_high` columns that hold the interval of a column."""
    return {"delta_r": "delta", "mae_gap": "gap", "tier": "rank"}.get(column, column)


def _latex_cell(value: PaperCell, *interval_ends: PaperCell) -> str:
    """Format a cell for LaTeX, followed by its interval in brackets if both ends are known."""
    figure = escape_tex(value) if isinstance(value, str) else _latex_number(value)
    ends = [_latex_number(end) for end in interval_ends if end is not None]
    return f"{figure} [{ends[0]}, {ends[1]}]" if len(ends) == 2 else figure


def _latex_number(value: PaperCell) -> str:
    """Format a number for LaTeX: two decimals, three near 0, "<0.001" or ">-0.001" if tiny; "--" for None."""
    if value is None:
        return "--"
    if isinstance(value, float):
        digits = 2 if abs(value) >= 0.005 or value == 0 else 3
        is_tiny = digits == 3 and abs(value) < 0.0005
        return f"${'-' if value < 0 else ''}<0.001$".replace("-<", ">-") if is_tiny else f"${value + 0.0:.{digits}f}$"
    return str(value)


_TEX_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\u2019": "'", "\u2212": "--",
}  # fmt: skip


def escape_tex(text: str) -> str:
    """Escape a text for TeX, on one line."""
    return re.sub(
        r"[\\&%$#_{}~^<>|\u2019\u2212]",
        lambda match: _TEX_ESCAPES[match.group()],
        " ".join(escape_invisible(text).split()),
    )


def render_paper_files(report: Report) -> list[tuple[str, str]]:
    """Render the paper's files as (name, text): a CSV for every table that has rows, and one TeX file with all."""
    tables = [table for table in build_paper_tables(report) if table.rows]
    return [
        *((f"{table.name}.csv", render_paper_csv(table)) for table in tables),
        ("tables.tex", render_paper_latex(tables)),
    ]
