"""The tables of the EvalMORAAL paper (arXiv 2510.05942) computed from a report."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import Outcome
from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, Column, Section, Table


def build_paper_tables(report: Report) -> list[Table]:
    """Build the tables of the paper, with intervals and n; without rows where nothing was measured.

    Intervals of r and MAE, and p-values, are over countries and topics; they are missing where these are too few.
    """
    columns = [*_names("cut_offs", "method"), *_numbers("tier", "min_r"), *_names("models")]
    rows = [
        (row.cut_offs, row.method, row.tier, row.min_r, ", ".join(row.models))
        for row in (report.over_models.cut_off_tiers if report.over_models else ())
    ]
    return [
        _build_accuracy_table(report),
        _build_alignment_table(report),
        _build_methods_table(report),
        _build_tiers_table(report),
        _build_table("cut-off-tiers", "Tiers of models by fixed cut-offs of r", columns, rows),
        _build_over_models_table(report),
        _build_self_consistency_table(report),
        _build_peer_agreement_table(report),
        _build_judge_agreement_table(report),
        _build_correlations_table(report),
        _build_conflicts_table(report),
        _build_regions_table(report),
        _build_region_gaps_table(report),
        _build_group_errors_table("topics", "topic", report.topics),
        _build_group_errors_table("countries", "country", report.countries),
        _build_coverage_table(report),
    ]


def group_model_tables(report: Report) -> Section | None:
    """Build a section with agreement with people, and with peers, of each model; None without scores.

    It belongs to documents that have several audits; a report has these figures in other sections.
    """
    tables = [table for table in (_build_alignment_table(report), _build_peer_agreement_table(report)) if table.rows]
    return Section("models", "Figures of each model", tables) if tables else None


def _build_table(table_id: str, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Table:
    """Build a table whose label is its caption."""
    return Table(table_id, caption, caption, columns, rows)


def _names(*keys: str) -> list[Column]:
    """Columns of names, by their keys in CSV."""
    return [Column(key.replace("_", " "), "name", key) for key in keys]


def _numbers(*keys: str) -> list[Column]:
    """Columns of numbers, by their keys in CSV."""
    return [Column(key.replace("_", " "), "number", key) for key in keys]


def _estimates(*keys: str, interval_key: str = "", digits: int = 2) -> list[Column]:
    """Columns of estimates, by their keys in CSV; their n has a column of its own."""
    return [
        Column(key.replace("_", " "), "estimate", key, digits, show_n=False, interval_key=interval_key) for key in keys
    ]


def _join_interval(
    value: float | None, low: float | None, high: float | None, n: int, reason: str | None = None
) -> Estimate:
    """Build an estimate from a value and an interval that the report has in fields of their own."""
    return Estimate(value, n, low, high, reason or ("not available" if None in (value, low, high) else None))


def _build_accuracy_table(report: Report) -> Table:
    """Tabulate the accuracy of each model on a task, with its p-value of chance, and the errors of scores."""
    rows = report.task.models if report.task else []
    columns = [
        *_names("model"), *_numbers("n"), *_estimates("accuracy"), Column("chance", "number", "chance"),
        Column("p", "number", style="p_value"), *_estimates("commonest", "sample_agreement"),
        *_numbers("usable", "planned"),
    ]  # fmt: skip
    cells: list[tuple[Cell, ...]] = [
        (
            row.model, row.accuracy.n, row.accuracy, row.chance, row.accuracy.p_value, row.commonest,
            row.sample_agreement, row.usable, row.planned,
        )
        for row in rows
    ]  # fmt: skip
    if any(row.score for row in rows):
        columns += _estimates("r", "spearman_rho", "mae", "bias", "spread")
        cells = [
            (*cells_of_row, score.pearson_r, score.spearman_rho, score.mae, score.bias, score.spread)
            for row, cells_of_row in zip(rows, cells, strict=True)
            if (score := row.score)
        ]
    return _build_table("accuracy", "Accuracy on the task", columns, cells)


def _build_alignment_table(report: Report) -> Table:
    """Tabulate r, with its interval and p-value, and errors; one row for each series of scores."""
    columns = [
        *_names("model", "method"), *_numbers("n"), *_estimates("r"), Column("p", "number", style="p_value"),
        *_estimates("spearman_rho"), *_estimates("mae"), *_estimates("rmse"),
    ]  # fmt: skip
    rows = [
        (
            row.model, row.method, row.n, row.pearson_r, row.pearson_r.p_value, row.spearman_rho,
            row.mae, row.rmse,
        )
        for row in report.alignment
    ]  # fmt: skip
    return _build_table("alignment", "Agreement with people: Pearson’s r, and errors", columns, rows)


def _build_methods_table(report: Report) -> Table:
    """Tabulate the difference of r between direct and log-probability scores; one row for each model."""
    columns = [
        *_names("model"), *_numbers("r_direct", "r_logprob"), *_estimates("delta_r", interval_key="delta"),
        *_numbers("n"),
    ]  # fmt: skip
    rows = [(row.model, row.direct_r, row.logprob_r, row.difference, row.difference.n) for row in report.methods]
    caption = "Direct scores compared with log-probability scores: difference of r on the cells with both"
    return _build_table("direct-and-logprob", caption, columns, rows)


def _build_tiers_table(report: Report) -> Table:
    """Tabulate the tiers; one row for each ranking and model. The interval of a tier is that of the rank."""
    columns = [
        *_names("scope", "method", "by"), *_estimates("tier", interval_key="rank", digits=0), *_names("model"),
        *_numbers("value"), *_estimates("from_best"), *_numbers("may_be_best", "n"),
    ]  # fmt: skip
    rows = [
        (
            ranking.scope, ranking.method, ranking.by,
            _join_interval(row.tier, row.rank_low, row.rank_high, ranking.cells, ranking.reason), row.model,
            row.value, row.from_best, None if row.may_be_best is None else int(row.may_be_best), ranking.cells,
        )
        for ranking in report.tiers
        for row in ranking.rows
    ]  # fmt: skip
    return _build_table("tiers", "Tiers of models, with the 95% interval of each rank", columns, rows)


def _build_over_models_table(report: Report) -> Table:
    """Tabulate means, standard deviations and ranges over models; one row for each figure, method and region."""
    columns = [
        *_names("figure", "method", "region"), *_estimates("mean"), *_numbers("sd", "lowest"), *_names("lowest_model"),
        *_numbers("highest"), *_names("highest_model"), *_numbers("models"),
    ]  # fmt: skip
    rows = [
        (
            row.figure, row.method, row.region, row.summary.mean, row.summary.standard_deviation, row.summary.lowest,
            row.summary.lowest_model, row.summary.highest, row.summary.highest_model, row.summary.mean.n,
        )
        for row in (report.over_models.figures if report.over_models else ())
    ]  # fmt: skip
    return _build_table("over-models", "Figures over models: means, standard deviations and ranges", columns, rows)


def _build_self_consistency_table(report: Report) -> Table:
    """Tabulate how alike the samples of a cell are; one row for each model and method."""
    columns = [*_names("model", "method"), *_estimates("self_consistency", "variance"), *_numbers("cells")]
    rows = [(row.model, row.method, row.cosine, row.variance, row.variance.n) for row in report.self_consistency]
    return _build_table("self-consistency", "Self-consistency and variance of the samples of a cell", columns, rows)


def _build_peer_agreement_table(report: Report) -> Table:
    """Tabulate peer agreement and r of direct scores, the only ones with reasoning for judges to review."""
    r_by_model = {row.model: row.pearson_r.value for row in report.alignment if row.method == "direct"}
    columns = [*_names("model"), *_estimates("agreement"), *_numbers("verdicts", "r")]
    rows = [(row.model, row.agreement, row.given, r_by_model.get(row.model)) for row in report.peer_agreement]
    return _build_table("peer-agreement", "Peer agreement and agreement with people", columns, rows)


def _build_judge_agreement_table(report: Report) -> Table:
    """Tabulate the agreement of the judges beyond chance; one row for each coefficient."""
    panel = report.panel
    coefficients = {
        "fleiss_kappa": panel.fleiss_kappa, "krippendorff_alpha": panel.krippendorff_alpha, "gwet_ac1": panel.gwet_ac1,
    }  # fmt: skip
    rows = [(name, estimate, estimate.n) for name, estimate in coefficients.items() if estimate.value is not None]
    columns = [*_names("coefficient"), *_estimates("agreement"), *_numbers("n")]
    return _build_table("judge-agreement", "Agreement of the judges beyond chance", columns, rows)


def _build_correlations_table(report: Report) -> Table:
    """Tabulate the correlations over models of other figures with r against people; one row for each figure."""
    columns = [
        *_names("figure", "method"), *_estimates("r"), Column("p", "number", style="p_value"), *_numbers("models"),
    ]  # fmt: skip
    figures = [("peer_agreement", row.method, row.r) for row in report.panel.peer_alignment]
    figures += [(row.figure, row.method, row.r) for row in report.consistency_alignment]
    rows = [(figure, method, r, r.p_value, r.models) for figure, method, r in figures]
    return _build_table("correlations", "Correlation of other figures with r, over models", columns, rows)


def _build_conflicts_table(report: Report) -> Table:
    """Tabulate the number of conflicts by state; one row for each kind of conflict."""
    states = list(report.conflicts.states)
    rows: list[list[Cell]] = [
        [row.kind, row.total, *(row.states.get(state, 0) for state in states)] for row in report.conflicts.kinds
    ]
    return _build_table(
        "conflicts", "Conflicts by kind and state", [*_names("kind"), *_numbers("total", *states)], rows
    )


def _build_regions_table(report: Report) -> Table:
    """Tabulate r and MAE by region; one row for each series of scores and region."""
    columns = [*_names("model", "method", "region"), *_numbers("countries", "n"), *_estimates("r", "mae")]
    rows = [
        (
            row.model, row.method, row.region, row.countries, row.n,
            row.pearson_r, row.mae,
        )
        for row in report.regions.rows
    ]  # fmt: skip
    return _build_table("regions", f"Agreement by region ({report.regions.title})", columns, rows)


def _build_region_gaps_table(report: Report) -> Table:
    """Tabulate differences of MAE and of r between two regions (second minus first); one row for each gap."""
    columns = [
        *_names("model", "method", "first", "second"), *_estimates("mae_gap", interval_key="gap"), *_numbers("n"),
        *_estimates("r_gap"),
    ]  # fmt: skip
    rows = [
        (gap.model, gap.method, gap.first, gap.second, gap.mae_gap, gap.mae_gap.n, gap.r_gap)
        for gap in report.regions.gaps
    ]
    return _build_table("regional-gap", "Differences of mean absolute error and of r between regions", columns, rows)


def _build_group_errors_table(table_id: str, group: str, error_rows: Sequence[GroupErrorRow]) -> Table:
    """Tabulate MAE, bias and r; one row for each topic or country and series of scores."""
    columns = [*_names(group, "model", "method"), *_numbers("n"), *_estimates("mae", "bias", "r")]
    rows = [(row.name, row.model, row.method, row.n, row.mae, row.bias, row.pearson_r) for row in error_rows]
    return _build_table(table_id, f"Mean absolute error, bias and r by {group}", columns, rows)


def _build_coverage_table(report: Report) -> Table:
    """Tabulate coverage in total and by model, judge, country and topic: planned = ok + all losses + missing."""
    coverage, causes = report.coverage, [outcome.value for outcome in Outcome if outcome is not Outcome.OK]
    breakdowns = {
        "all": coverage.total, "model": coverage.models, "judge": coverage.judges, "country": coverage.countries,
        "topic": coverage.topics,
    }  # fmt: skip
    columns = [*_names("by", "name", "what"), *_numbers("planned", "ok", *causes, "missing")]
    rows = [
        (
            breakdown, row.name, row.counted_label, row.planned, row.ok,
            *(row.losses.get(cause, 0) for cause in causes), row.missing,
        )
        for breakdown, coverage_rows in breakdowns.items()
        for row in coverage_rows
    ]  # fmt: skip
    return _build_table("coverage", "Coverage: planned, usable and lost answers", columns, rows)
