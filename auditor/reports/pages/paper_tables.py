"""The tables of the paper, out of a report: each as rows of text and numbers, for CSV and for LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.domain import Outcome
from auditor.reports.measurement_schema import Estimate, GroupErrorRow
from auditor.reports.report_schema import Report
from auditor.text_safety import escape_formula, escape_invisible

PaperCell = str | int | float | None


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table: the name of its file, its caption, a heading and rows; None is a figure that there is none of."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[PaperCell]]


def build_paper_tables(report: Report) -> list[PaperTable]:
    """The tables of EvalMORAAL (arXiv 2510.05942), with intervals and n; without rows where nothing was measured.

    Intervals of r and MAE, and p, are over countries and topics, and empty where there are too few of them.
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
    return [estimate.value, estimate.ci_low, estimate.ci_high]


def _alignment_table(report: Report) -> PaperTable:
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
        r, error = row.crossed.pearson_r, row.crossed.mae
        head: list[PaperCell] = [
            row.model,
            row.method,
            row.n,
            row.pearson_r,
            r.ci_low,
            r.ci_high,
            row.crossed_p_value,
            row.spearman_rho,
        ]
        rows.append([*head, row.mae, error.ci_low, error.ci_high, row.rmse])
    return PaperTable("alignment", "Agreement with people: Pearson's r, and errors", columns, rows)


def _methods_table(report: Report) -> PaperTable:
    columns = ["model", "r_direct", "r_logprob", "delta_r", "delta_low", "delta_high", "n"]
    rows = [
        [row.model, row.direct_r, row.logprob_r, *_estimate_cells(row.difference), row.difference.n]
        for row in report.methods
    ]
    caption = "Direct scores against log-probability scores: the difference of r on the cells that have both"
    return PaperTable("direct_and_logprob", caption, columns, rows)


def _tiers_table(report: Report) -> PaperTable:
    columns = ["scope", "method", "by", "tier", "model", "value", "rank_low", "rank_high", "first_share", "n"]
    rows: list[list[PaperCell]] = [
        [p.scope, p.method, p.by, r.tier, r.model, r.value, r.rank_low, r.rank_high, r.first, p.cells]
        for p in report.tiers
        for r in p.rows
    ]
    return PaperTable("tiers", "Tiers of models, with the 95% interval of each rank", columns, rows)


def _peer_agreement_table(report: Report) -> PaperTable:
    """Peer agreement beside alignment, of direct scores, since it is their reasoning that is judged."""
    r = {row.model: row.pearson_r for row in report.alignment if row.method == "direct"}
    columns = ["model", "agreement", "agreement_low", "agreement_high", "verdicts", "r"]
    rows = [[row.model, *_estimate_cells(row.agreement), row.given, r.get(row.model)] for row in report.peer_agreement]
    return PaperTable("peer_agreement", "Peer agreement beside alignment", columns, rows)


def _conflicts_table(report: Report) -> PaperTable:
    part = report.conflicts
    rows: list[list[PaperCell]] = [[k.kind, k.total, *(k.states.get(s, 0) for s in part.states)] for k in part.kinds]
    return PaperTable("conflicts", "Conflicts by kind and how they stand", ["kind", "total", *part.states], rows)


def _regions_table(report: Report) -> PaperTable:
    columns = ["model", "method", "region", "countries", "n", "r", "r_low", "r_high", "mae", "mae_low", "mae_high"]
    rows = [
        [r.model, r.method, r.region, r.countries, r.n, r.pearson_r, r.ci_low, r.ci_high, *_estimate_cells(r.mae)]
        for r in report.regions.rows
    ]
    return PaperTable("regions", f"Agreement by region ({report.regions.title})", columns, rows)


def _region_gaps_table(report: Report) -> PaperTable:
    columns = ["model", "method", "first", "second", "mae_gap", "gap_low", "gap_high", "n"]
    rows = [
        [g.model, g.method, g.first, g.second, *_estimate_cells(g.mae_gap), g.mae_gap.n] for g in report.regions.gaps
    ]
    return PaperTable("regional_gap", "Difference of mean absolute error between regions", columns, rows)


def _group_errors_table(name: str, caption: str, group_column: str, error_rows: Sequence[GroupErrorRow]) -> PaperTable:
    columns = [group_column, "model", "method", "n", "mae", "mae_low", "mae_high", "bias", "bias_low", "bias_high"]
    rows = [[p.name, p.model, p.method, p.n, *_estimate_cells(p.mae), *_estimate_cells(p.bias)] for p in error_rows]
    return PaperTable(name, caption, columns, rows)


# --- forms ------------------------------------------------------------------------------------------------------


def _coverage_table(report: Report) -> PaperTable:
    """All of it, from every side: planned = ok + every loss + missing."""
    part, losses = report.coverage, [o.value for o in Outcome if o is not Outcome.OK]
    sides = (
        ("all", part.total), ("model", part.models), ("judge", part.judges), ("country", part.countries),
        ("topic", part.topics),
    )  # fmt: skip
    rows: list[list[PaperCell]] = [
        [by, r.name, r.counted_label, r.planned, r.ok, *(r.losses.get(cause, 0) for cause in losses), r.missing]
        for by, side in sides
        for r in side
    ]
    columns = ["by", "name", "what", "planned", "ok", *losses, "missing"]
    return PaperTable("coverage", "Coverage: what was planned, what is usable and what was lost", columns, rows)


def render_paper_csv(table: PaperTable) -> str:
    """Full precision, an empty cell where there is no figure; no text that a spreadsheet would run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(
        ["" if v is None else escape_formula(escape_invisible(v)) if isinstance(v, str) else v for v in row]
        for row in table.rows
    )
    return out.getvalue()


def render_paper_latex(tables: Sequence[PaperTable]) -> str:
    r"""All tables for \input, set with booktabs and longtable; two digits, an interval in brackets."""
    head = "% Needs \\usepackage{booktabs,longtable}.\n"
    return head + "\n".join(_render_longtable(table) for table in tables if table.rows)


def _render_longtable(table: PaperTable) -> str:
    names = [c for c in table.columns if not c.endswith(("_low", "_high"))]
    kept = [i for i, c in enumerate(table.columns) if c in names]
    ends = {
        i: (
            table.columns.index(f"{_interval_column_stem(c)}_low"),
            table.columns.index(f"{_interval_column_stem(c)}_high"),
        )
        for i, c in enumerate(table.columns)
        if f"{_interval_column_stem(c)}_low" in table.columns
        and f"{_interval_column_stem(c)}_high" in table.columns
        and c in names
    }
    is_text = [any(isinstance(row[i], str) for row in table.rows) for i in kept]
    heading = " & ".join(escape_tex(name.replace("_", " ")) for name in names) + r" \\"
    lines = [
        r"\begin{longtable}{" + "".join("l" if text else "r" for text in is_text) + "}",
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
        cells = [_latex_cell(row[i], *(row[j] for j in ends.get(i, ()))) for i in kept]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\end{longtable}"]) + "\n"


def _interval_column_stem(column: str) -> str:
    """What the ends of a column's interval are called after."""
    return {"delta_r": "delta", "mae_gap": "gap", "tier": "rank"}.get(column, column)


def _latex_cell(value: PaperCell, *interval_ends: PaperCell) -> str:
    shown = escape_tex(value) if isinstance(value, str) else _latex_number(value)
    between = [_latex_number(end) for end in interval_ends if end is not None]
    return f"{shown} [{between[0]}, {between[1]}]" if len(between) == 2 else shown


def _latex_number(value: PaperCell) -> str:
    if value is None:
        return "--"
    if isinstance(value, float):
        digits = 2 if abs(value) >= 0.005 or value == 0 else 3
        tiny = digits == 3 and abs(value) < 0.0005
        return f"${'-' if value < 0 else ''}<0.001$".replace("-<", ">-") if tiny else f"${value + 0.0:.{digits}f}$"
    return str(value)


_TEX_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\u2019": "'", "\u2212": "--",
}  # fmt: skip


def escape_tex(text: str) -> str:
    """A text in which nothing is a command of TeX."""
    return re.sub(
        r"[\\&%$#_{}~^<>|\u2019\u2212]", lambda m: _TEX_ESCAPES[m.group()], " ".join(escape_invisible(text).split())
    )


def render_paper_files(report: Report) -> list[tuple[str, str]]:
    """Name and text of each file: a CSV for every table that has rows, and all of them in one TeX file."""
    tables = [table for table in build_paper_tables(report) if table.rows]
    return [
        *((f"{table.name}.csv", render_paper_csv(table)) for table in tables),
        ("tables.tex", render_paper_latex(tables)),
    ]
