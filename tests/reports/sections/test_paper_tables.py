"""The paper's tables: all are written, and CSV reads back exactly under the columns' published names."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from auditor.imports.task_answers import import_task_answers
from auditor.reports.data.report_schema import Report
from auditor.reports.report_files import render_paper_files
from auditor.run import open_audit
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.hostile_report import hostile_report

COLUMNS = {
    "alignment": (
        "model method n r r_low r_high p spearman_rho spearman_rho_low spearman_rho_high mae mae_low mae_high "
        "rmse rmse_low rmse_high"
    ),
    "tiers": "scope method by tier rank_low rank_high model value from_best from_best_low from_best_high may_be_best n",
    "peer_agreement": (
        "model agreement agreement_low agreement_high agreement_cells_low agreement_cells_high verdicts r"
    ),
    "self_consistency": (
        "model method self_consistency self_consistency_low self_consistency_high variance variance_low variance_high "
        "cells"
    ),
    "judge_agreement": "coefficient agreement agreement_low agreement_high n",
    "correlations": "figure method r r_low r_high p models",
    "regions": "model method region countries n r r_low r_high mae mae_low mae_high",
    "regional_gap": "model method first second mae_gap gap_low gap_high n r_gap r_gap_low r_gap_high",
    "topics": "topic model method n mae mae_low mae_high bias bias_low bias_high r r_low r_high",
    "countries": "country model method n mae mae_low mae_high bias bias_low bias_high r r_low r_high",
    "cut_off_tiers": "cut_offs method tier min_r models",
    "over_models": ("figure method region mean mean_low mean_high sd lowest lowest_model highest highest_model models"),
}


def read_table(report: Report, name: str) -> list[dict[str, str]]:
    """Rows of one of the paper's CSV files."""
    return list(csv.DictReader(io.StringIO(dict(render_paper_files(report))[f"{name}.csv"])))


def test_columns_have_their_published_names(report: Report) -> None:
    for name, columns in COLUMNS.items():
        assert list(read_table(report, name)[0]) == columns.split()


def test_csv_reads_back_in_full_precision(report: Report) -> None:
    rows = read_table(report, "alignment")
    assert [row["model"] for row in rows] == [row.model for row in report.alignment]
    for row, alignment in zip(rows, report.alignment, strict=True):
        r, mae = alignment.pearson_r, alignment.mae
        expected = [r.value, r.ci_low, r.ci_high, mae.value, mae.ci_low, mae.ci_high]
        assert [float(row[key]) for key in ("r", "r_low", "r_high", "mae", "mae_low", "mae_high")] == expected
    tiers = [(row["tier"], row["rank_low"], row["rank_high"]) for row in read_table(report, "tiers")]
    assert tiers == [
        tuple("" if number is None else str(number) for number in (row.tier, row.rank_low, row.rank_high))
        for ranking in report.tiers
        for row in ranking.rows
    ]


def test_reports_without_figures_and_with_hostile_names_have_tables(db: Database) -> None:
    for report in (
        hostile_report(db),
        import_scores(db, {("Japan", "divorce"): 0.1}, {("m", "Japan", "divorce"): None}),
    ):
        files = dict(render_paper_files(report))
        assert "coverage.csv" in files
        assert r"\input" not in files["tables.tex"]
        assert not re.search(r"\bNone\b|\bnan\b", "".join(files.values()))


def test_a_task_has_a_table_of_accuracy(tmp_path: Path, storage: str) -> None:
    (tmp_path / "items.csv").write_text("id,question,truth\n1,How good?,5\n2,And this?,8\n", encoding="utf-8")
    (tmp_path / "answers.csv").write_text("model,id,answer\na,1,6\na,2,2\nb,1,5\nb,2,\n", encoding="utf-8")
    import_task_answers(
        tmp_path / "answers.csv", audit="quiz", items=tmp_path / "items.csv", storage=storage,
        answer_format={"answer": "score", "range": (0, 10), "tolerance": 1},
    )  # fmt: skip
    files = dict(render_paper_files(open_audit("quiz", storage=storage).report()))
    rows = list(csv.DictReader(io.StringIO(files["accuracy.csv"])))
    assert [(row["model"], row["n"], row["accuracy"], row["mae"], row["usable"], row["planned"]) for row in rows] == [
        ("a", "2", "0.5", "3.5", "2", "2"), ("b", "1", "1.0", "0.0", "1", "2")
    ]  # fmt: skip
    assert "Accuracy on the task" in files["tables.tex"]
