"""LaTeX tables: names are escaped, intervals are in brackets, and small figures are never zero."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document import BarSegment, Cell, Column, CountShare, LowerBound, Reason, Row, Table
from auditor.reports.number_format import NumberStyle
from auditor.reports.render.table_files import escape_tex, render_latex


def test_tex_commands_in_names_are_escaped() -> None:
    name = "=HYPERLINK(1)\\input{x}$_%&#^~"
    columns = [Column("model", "name"), Column("r", "estimate", show_n=False)]
    rows: list[Row | Sequence[Cell]] = [[name, Estimate(-0.5, 9, reason="few")], ["b", Estimate(0.0, 9, -0.1, 0.1)]]
    text = render_latex([Table("t", "t", "A caption", columns, rows)])
    assert r"\input{x}" not in text
    assert r"\textbackslash{}input\{x\}\$\_\%\&\#" in text
    assert r"& $-0.50$ \\" in text
    assert "$0.00$ [$-0.10$, $0.10$]" in text
    assert text.count(r"\begin{longtable}{lr}") == text.count(r"\end{longtable}") == 1
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


@pytest.mark.parametrize(
    ("value", "style", "digits", "shown"),
    [
        (None, "decimal", 2, "--"),
        (0.0004, "decimal", 2, "$<0.001$"),
        (-0.0004, "decimal", 2, "$>-0.001$"),
        (0.004, "decimal", 2, "$0.004$"),
        (0.0, "decimal", 2, "$0.00$"),
        (-0.0, "decimal", 2, "$0.00$"),
        (3, "decimal", 2, "& 3 "),
        (0.0004, "p_value", 2, "$<0.001$"),
        (0.2, "p_value", 2, "$0.200$"),
        (0.003, "percent", 0, r"$0.3\%$"),
        (0.25, "percent", 0, r"$25\%$"),
        (0.1, "signed", 2, "$+0.10$"),
        (0.0, "signed", 2, "$0.00$"),
        (1234.5, "usd", 2, r"\$1,234.50"),
        (LowerBound(0.5), "usd", 2, r"$\ge$ \$0.5000"),
        (LowerBound(0.5), "decimal", 2, r"$\ge$ $0.50$"),
        (CountShare(1, 2), "decimal", 2, r"50\%"),
        (Estimate(None, 0, reason="few"), "decimal", 2, "--"),
        (Estimate(0.52, 25, 0.31, 0.68), "decimal", 2, "$0.52$ [$0.31$, $0.68$] $n=25$"),
        (Estimate(2, 25, 1, 3), "decimal", 2, "2 [1, 3] $n=25$"),
    ],
)
def test_figures(value: Cell, style: NumberStyle, digits: int, shown: str) -> None:
    columns = [Column("m", "name"), Column("x", "number", style=style, digits=digits)]
    assert shown in render_latex([Table("t", "t", "c", columns, [["a", value]])])


def test_reasons_span_columns_bars_are_left_out_and_totals_are_set_off() -> None:
    columns = [Column("m", "name"), Column("Bar", "bar"), Column("x", "number"), Column("y", "number"), Column("z")]
    rows: list[Row | Sequence[Cell]] = [
        Row(["all", [], 1, 2, "t"], is_total=True),
        ["a", [BarSegment("ok", 1)], Reason("100% few", 2), "b_c"],
    ]
    lines = render_latex([Table("t", "t", "A caption.", columns, rows)]).splitlines()
    assert r"\caption{A caption.}\label{tab:t}\\" in lines
    assert lines[-4:] == [
        r"a & \multicolumn{2}{l}{100\% few} & b\_c \\", r"\midrule", r"all & 1 & 2 & t \\", r"\end{longtable}",
    ]  # fmt: skip


def test_tables_without_rows_are_left_out() -> None:
    assert "longtable}{" not in render_latex([Table("t", "t", "c", [Column("m")], [])])


def test_text_for_tex_is_one_line() -> None:
    assert escape_tex("a\nb  c") == "a b c"
    assert escape_tex("−1 ≥ 1\u202f254") == r"--1 $\ge$ 1\,254"
