"""The paper's tables: all are written, CSV reads back exactly, and LaTeX escapes names."""

from __future__ import annotations

import csv
import io
import re

import pytest

from auditor.reports.data.report_schema import Report
from auditor.reports.pages.paper_tables import (
    PaperTable,
    build_paper_tables,
    escape_tex,
    render_paper_csv,
    render_paper_files,
    render_paper_latex,
)


def test_every_table_of_the_paper_is_written(report: Report) -> None:
    names = {name for name, _ in render_paper_files(report)}
    assert names >= {
        "alignment.csv", "tiers.csv", "peer_agreement.csv", "conflicts.csv", "regions.csv", "regional_gap.csv",
        "topics.csv", "countries.csv", "coverage.csv", "tables.tex",
    }  # fmt: skip
    assert "direct_and_logprob.csv" not in names  # one method only
    assert all(re.fullmatch(r"[a-z_]+\.(csv|tex)", name) for name in names)


def test_csv_reads_back_in_full_precision(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(dict(render_paper_files(report))["alignment.csv"])))
    assert [row["model"] for row in rows] == [row.model for row in report.alignment]
    assert [float(row["r"]) for row in rows] == [row.pearson_r for row in report.alignment]


def test_coverage_adds_up_in_every_breakdown(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(dict(render_paper_files(report))["coverage.csv"])))
    assert {row["by"] for row in rows} == {"all", "model", "judge", "country", "topic"}
    for row in rows:
        lost = [int(n) for name, n in row.items() if name not in ("by", "name", "what", "planned", "ok", "missing")]
        assert int(row["planned"]) == int(row["ok"]) + sum(lost) + int(row["missing"])
    planned = {(row["by"], row["what"]): 0 for row in rows}
    for row in rows:
        planned[row["by"], row["what"]] += int(row["planned"])
    assert planned["country", "direct samples"] == planned["all", "direct samples"]


def test_every_row_is_as_long_as_its_heading(report: Report) -> None:
    for table in build_paper_tables(report):
        assert {len(row) for row in table.rows} <= {len(table.columns)}


def test_spreadsheet_formulas_and_tex_commands_in_names_are_escaped() -> None:
    name = "=HYPERLINK(1)\\input{x}$_%&#^~"
    table = PaperTable(
        "t", "A caption", ["model", "r", "r_low", "r_high"], [[name, -0.5, -0.61, None], ["b", 0.0, -0.1, 0.1]]
    )
    assert next(csv.reader(io.StringIO(render_paper_csv(table).split("\n", 1)[1])))[0].startswith("'=")
    text = render_paper_latex([table])
    assert r"\input{x}" not in text
    assert r"\textbackslash{}input\{x\}\$\_\%\&\#" in text
    assert "$0.00$ [$-0.10$, $0.10$]" in text
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "--"), (0.0004, "$<0.001$"), (-0.0004, "$>-0.001$"), (0.004, "$0.004$"), (3, "3")]
)
def test_small_figures_are_never_zero(value: float | None, shown: str) -> None:
    assert shown in render_paper_latex([PaperTable("t", "c", ["p"], [[value]])])


def test_text_for_tex_is_one_line() -> None:
    assert escape_tex("a\nb  c") == "a b c"
