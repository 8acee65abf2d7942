"""Tables as CSV and LaTeX files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import BarSegment, Cell, Column, CountShare, LowerBound, Name, Reason, Row, Table
from auditor.reports.number_format import NumberStyle
from auditor.reports.render.table_files import escape_tex, render_csv, render_latex


def read_csv(table: Table) -> list[list[str]]:
    """The lines of a table's CSV."""
    return list(csv.reader(io.StringIO(render_csv(table))))


def test_estimates_have_columns_for_their_interval_and_n() -> None:
    columns = [
        Column("Model", "name"), Column("Spearman ρ", "estimate"), Column("Δ", "estimate", "delta_r", show_n=False),
        Column("Tier", "estimate", interval_key="rank", show_n=False),
    ]  # fmt: skip
    rho = Estimate(0.1 + 0.2, 25, -1 / 3, 2 / 3)
    delta = Estimate(0.5, 4, reason="too few")
    header, *rows = read_csv(
        Table("t", "t", "", columns, [["a", rho, delta, Estimate(1, 4, 1, 2)], ["b", None, None, None]])
    )
    assert header == [
        "model", "spearman_ρ", "spearman_ρ_low", "spearman_ρ_high", "spearman_ρ_n", "delta_r", "delta_r_low",
        "delta_r_high", "tier", "rank_low", "rank_high",
    ]  # fmt: skip
    assert rows[0] == ["a", *map(str, (0.1 + 0.2, -1 / 3, 2 / 3, 25, 0.5)), "", "", "1", "1", "2"]
    assert rows[1] == ["b", *[""] * 10]


def test_the_interval_of_shares_for_the_measured_cells_has_columns() -> None:
    columns = [Column("Model", "name"), Column("Share", "estimate"), Column("r", "estimate", show_n=False)]
    share = ShareEstimate(0.5, 9, 0.2, 0.8, cells_ci_low=0.4, cells_ci_high=0.6)
    header, *rows = read_csv(
        Table("t", "t", "", columns, [["a", share, share], ["b", Reason("none", 2)], ["c", None, None]])
    )
    assert header[1:7] == ["share", "share_low", "share_high", "share_n", "share_cells_low", "share_cells_high"]
    assert header[7:] == ["r", "r_low", "r_high", "r_cells_low", "r_cells_high"]
    assert rows[0][1:] == ["0.5", "0.2", "0.8", "9", "0.4", "0.6", "0.5", "0.2", "0.8", "0.4", "0.6"]
    assert rows[1] == ["b", *[""] * 11]
    [header, _] = read_csv(Table("t", "t", "", columns[:2], [["a", Estimate(0.5, 9, 0.2, 0.8)]]))
    assert header == ["model", "share", "share_low", "share_high", "share_n"]


def test_no_two_columns_have_one_name() -> None:
    columns = [
        Column("Model", "name"), Column("MAE", "estimate", show_n=False), Column("p", "number", "adjusted_p_value"),
        Column("Bias", "estimate", show_n=False), Column("p of bias", "number", "adjusted_p_value"),
        Column(Name("model"), "number"), Column(Name("model"), "number"),
    ]  # fmt: skip
    [header, _] = read_csv(Table("t", "t", "", columns, [["a", None, 0.5, None, 0.1, 1, 2]]))
    assert header == [
        "model", "mae", "mae_low", "mae_high", "adjusted_p_value", "bias", "bias_low", "bias_high",
        "bias_adjusted_p_value", "bias_model", "model_2",
    ]  # fmt: skip


def test_shares_are_fractions_and_bars_are_left_out() -> None:
    columns = [Column("Model", "name"), Column("Usable", "share"), Column("Bar", "bar"), Column("USD", "number")]
    rows: list[Row | Sequence[Cell]] = [
        ["a", CountShare(1, 8), [BarSegment("ok", 3)], LowerBound(0.25)],
        ["b", CountShare(0, 0), None, 3],
        ["c", Reason("no answers", 2), 1.5],
        Row([None, CountShare(1, 8), [], None], is_total=True),
    ]
    assert read_csv(Table("t", "t", "", columns, rows)) == [
        ["model", "usable", "usd"], ["a", "0.125", ">= 0.25"], ["b", "", "3"], ["c", "", "1.5"], ["", "0.125", ""],
    ]  # fmt: skip


def test_formulas_in_names_are_escaped() -> None:
    columns = [Column("Model", "name"), Column(Name("=1+1"), "number"), Column("!?", "number")]
    header, row = read_csv(Table("t", "t", "", columns, [["=HYPERLINK(1)\n2", -0.5, 1]]))
    assert header == ["model", "'=1+1", "column_3"]
    assert row == ["'=HYPERLINK(1) 2", "-0.5", "1"]


def test_a_column_of_intervals_has_their_ends() -> None:
    columns = [Column("Model", "name"), Column("95% CI", "interval", "mae")]
    rows: list[list[Cell]] = [["a", Estimate(0.5, 9, 0.25, 0.75)], ["b", Estimate(0.5, 9, reason="too few")]]
    assert read_csv(Table("t", "t", "", columns, rows)) == [
        ["model", "mae_low", "mae_high"], ["a", "0.25", "0.75"], ["b", "", ""],
    ]  # fmt: skip


def test_tex_commands_in_names_are_escaped() -> None:
    name = "=HYPERLINK(1)\\input{x}$_%&#^~"
    columns = [Column("model", "name"), Column("r", "estimate", show_n=False)]
    rows: list[Row | Sequence[Cell]] = [[name, Estimate(-0.5, 9, reason="few")], ["b", Estimate(0.0, 9, -0.1, 0.1)]]
    text = render_latex([Table("t", "t", "A caption", columns, rows)])
    assert r"\input{x}" not in text
    for words in (r"\textbackslash{}input\{x\}\$\_\%\&\#", r"& $-0.50$ \\", "$0.00$ [$-0.10$, $0.10$]"):
        assert words in text
    assert text.count(r"\begin{longtable}{lr}") == text.count(r"\end{longtable}") == 1
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[2pt]gpt", r"{}[2pt]gpt & 1 \\"),  # else the name of the row before ends with the option "2pt"
        ("*gpt*", r"{}*gpt* & 1 \\"),
        ("org--gpt---2", r"org-{}-gpt-{}-{}-2 & 1 \\"),
        ("it's ''so''", r"it's '{}'so'{}' & 1 \\"),
        ("why?`", r"why?{}` & 1 \\"),
    ],
)
def test_names_are_set_in_tex_as_they_are(name: str, shown: str) -> None:
    columns = [Column("model", "name"), Column("n", "number")]
    lines = render_latex([Table("t", "t", "A caption", columns, [["a", 1], [name, 1]])]).splitlines()
    assert shown in lines


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
        (0.0007, "p_value", 2, "$<0.001$"),
        (0.0, "p_value", 2, "$<0.001$"),
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
