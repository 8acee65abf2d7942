"""Render the report as Markdown: the figures of the HTML page as tables. Text from models and users is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.reports.data.agreement.tiers import TierRow, describe_preference
from auditor.reports.data.measurement_schema import AlignmentRow, GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.logic import markdown as logic_markdown
from auditor.reports.number_format import (
    MISSING_SYMBOL,
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)
from auditor.reports.pages import alignment_wording, markdown_evidence, sentences
from auditor.reports.pages.markdown_format import escape_markdown, format_estimate_with_n, markdown_table
from auditor.reports.pages.report_view import ReportView
from auditor.reports.semantic import markdown as semantic_markdown
from auditor.reports.task import markdown as task_markdown


def render_markdown(report: Report) -> str:
    """Render the report as Markdown."""
    view = ReportView(report)
    blocks = [
        *_agreement_section(report, view),
        *task_markdown.render_task_section(report.task, escape_markdown, markdown_table, format_estimate_with_n),
        *_tiers_section(report),
        *_baselines_section(report, view),
        *_regions_section(report, view),
        *_methods_section(report),
        *_languages_section(view),
        *_group_errors_section(report, view),
        *_consistency_section(report, view),
    ]
    blocks += [
        *semantic_markdown.render_semantic_section(
            report.semantic, escape_markdown, markdown_table, format_estimate_with_n
        ),
        *logic_markdown.render_logic_section(report.logic, escape_markdown, markdown_table, format_estimate_with_n),
        *markdown_evidence.panel_markdown(report),
        *markdown_evidence.conflicts_markdown(report),
        *markdown_evidence.refusals_markdown(report),
        *markdown_evidence.coverage_markdown(report),
        *markdown_evidence.cost_markdown(report),
        *markdown_evidence.provenance_markdown(report),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


# --- sections ---------------------------------------------------------------------------------------------------


def _agreement_section(report: Report, view: ReportView) -> Iterable[str]:
    """Yield the title and key figures, then for a survey the paragraphs and the table on agreement with people."""
    yield f"# {escape_markdown(report.audit.name)}: {sentences.audit_description(report)}"
    if report.audit.survey.title:
        yield f"Measured against {escape_markdown(report.audit.survey.title)}."
    yield "\n".join(f"- {name}: {value}" for value, name in sentences.key_figures(report))
    if not report.audit.survey.title:
        return
    yield "## How well do they agree with people?"
    yield alignment_wording.alignment_headline(report.alignment)
    yield "\n".join(
        f"- **{escape_markdown(column.label)}** {escape_markdown(statement.text)}."
        for column, statement in view.ranked_alignments
    )
    yield escape_markdown(alignment_wording.ranking_sentence(report.alignment) or "")
    cautions = alignment_wording.reasons_for_caution(report)
    if cautions:
        yield "**What speaks against trusting it**"
        yield "\n".join(f"- {escape_markdown(caution)}" for caution in cautions)
    if view.columns:
        header = [
            "Model",
            "r",
            "95% interval (Fisher)",
            "95% interval (countries and topics)",
            "r without sampling noise",
            "Highest r",
            "p",
        ]
        header += ["Spearman ρ", "MAE", "RMSE", "Bias", "Cells", "Dropped"]
        yield markdown_table(
            header, [[column.label, *_alignment_cells(statement.row)] for column, statement in view.ranked_alignments]
        )


def _alignment_cells(row: AlignmentRow) -> list[str]:
    """Table cells of one row of the alignment table, without the model's label."""
    r_cell = format_number(row.pearson_r) if row.pearson_r is not None else f"not measurable: {row.reason}"
    error_cells = [format_number(row.mae), format_number(row.rmse), format_estimate_with_n(row.bias)]
    two_way_r = row.crossed.pearson_r
    interval_cells = [
        format_interval(row.ci_low, row.ci_high),
        format_interval(two_way_r.ci_low, two_way_r.ci_high) if two_way_r.ci_low is not None else str(two_way_r.reason),
    ]
    return [
        r_cell,
        *interval_cells,
        escape_markdown(alignment_wording.format_corrected_r(row)),
        format_number(row.ceiling),
        format_p_value(row.crossed_p_value),
        format_number(row.spearman_rho),
        *error_cells,
        format_count(row.n),
        format_count(row.n_dropped),
    ]


def _tiers_section(report: Report) -> Iterable[str]:
    """Yield a sentence per ranking by MAE, then a table per ranking of models; none without rankings."""
    if report.tiers:
        yield "## Which model to prefer, and where"
        yield "\n".join(
            f"- {escape_markdown(describe_preference(ranking))}" for ranking in report.tiers if ranking.by == "MAE"
        )
        for ranking in report.tiers:
            yield escape_markdown(
                f"{ranking.scope[0].upper()}{ranking.scope[1:]} ({ranking.method}), by {ranking.by}, "
                f"{ranking.cells} shared cells."
            )
            yield markdown_table(
                ["Model", "Tier", ranking.by, "Rank (95%)", "First in"], map(_tier_cells, ranking.rows)
            )


def _tier_cells(row: TierRow) -> list[str]:
    """Table cells of one model in a ranking: name, tier, value, 95% range of the rank, share of resamples led."""
    rank_range = MISSING_SYMBOL if row.rank_low is None else f"{row.rank_low} to {row.rank_high}"
    first_share = MISSING_SYMBOL if row.first is None else format_percent(round(1000 * row.first), 1000)
    return [
        row.model,
        MISSING_SYMBOL if row.tier is None else str(row.tier),
        format_number(row.value),
        rank_range,
        first_share,
    ]


def _baselines_section(report: Report, view: ReportView) -> Iterable[str]:
    """Yield the paragraphs and tables on the ceiling of r, baselines and nonresponse; none without scores."""
    if not view.columns:
        return
    yield "## What is that worth?"
    yield escape_markdown(sentences.ceiling_sentence(report))
    labelled_sentences = [
        (view.column_label(method, model), text) for method, model, text in sentences.within_topic_sentences(report)
    ]
    yield "\n".join(f"- **{escape_markdown(label)}** {escape_markdown(text)}." for label, text in labelled_sentences)
    yield sentences.BASELINES_INTRODUCTION
    yield markdown_table(
        ["Model", "Compared with", "r of that", "MAE of that"],
        [
            [
                column.label,
                baseline.baseline,
                format_estimate_with_n(baseline.pearson_r),
                format_estimate_with_n(baseline.mae),
            ]
            for column, _, baselines in view.baseline_comparisons
            for baseline in baselines
        ],
    )
    if report.nonresponse is not None:
        yield escape_markdown(sentences.nonresponse_sentence(report.nonresponse))
        header = ["Model", "MAE at best", "MAE at worst", "Cells"]
        bounds = report.nonresponse.bounds
        rows = [
            (
                view.column_label(bounds_row.method, bounds_row.model),
                format_number(bounds_row.mae_best),
                format_number(bounds_row.mae_worst),
                format_count(bounds_row.n),
            )
            for bounds_row in bounds
        ]
        yield markdown_table(header, rows)


def _regions_section(report: Report, view: ReportView) -> Iterable[str]:
    """Yield the paragraphs and tables on errors by region and the gaps between regions; none without regions."""
    if not report.regions.rows:
        return
    yield f"## {escape_markdown(report.regions.title)}"
    yield markdown_table(
        ["Model", "Region", "Countries", "MAE", "r", "95% interval", "Cells"],
        [
            [
                view.column_label(row.method, row.model), row.region, format_count(row.countries),
                format_estimate_with_n(row.mae),
                format_number(row.pearson_r) if row.pearson_r is not None else f"not measurable: {row.reason}",
                format_interval(row.ci_low, row.ci_high), format_count(row.n),
            ]
            for row in report.regions.rows
        ],
    )  # fmt: skip
    if report.regions.gaps:
        yield escape_markdown(sentences.region_gap_sentence(report))
        yield markdown_table(
            ["Model", "Between", "Gap in MAE"],
            [
                [
                    view.column_label(gap.method, gap.model),
                    sentences.gap_label(gap),
                    f"{format_estimate_with_n(gap.mae_gap)}{sentences.gap_bounds_text(gap)}",
                ]
                for gap in report.regions.gaps
            ],
        )
    if report.regions.ungrouped:
        yield f"Not grouped, and in no row above: {escape_markdown(', '.join(report.regions.ungrouped))}."


def _group_errors_section(report: Report, view: ReportView) -> Iterable[str]:
    """Yield a heading and a table of MAE for topics, then countries; series with rescaled scores are left out."""
    for title, table in (("Topics", view.topic_table), ("Countries", view.country_table)):
        if table.rows and view.columns_with_errors:
            yield f"## {title}"
            yield "Mean absolute difference from people, worst first, with its 95% interval and number of cells."
            header = [
                title.removesuffix("s") if title == "Topics" else "Country",
                *(column.label for column in view.columns_with_errors),
            ]
            yield markdown_table(header, [[name, *(_error_cell(row) for row in rows)] for name, rows in table.rows])


def _error_cell(row: GroupErrorRow) -> str:
    """Table cell of one MAE: the value, its interval and n, or why it is missing."""
    return format_estimate_with_n(row.mae)


def _consistency_section(report: Report, view: ReportView) -> Iterable[str]:
    """Yield the table on how consistent each model's samples are; none where this was not measured."""
    if report.self_consistency:
        yield "## Consistency of each model with itself"
        yield markdown_table(
            ["Model", "Self-consistency (cosine)", "Variance of the score", "Same sign", "Cells on both sides of zero"],
            [
                [
                    view.column_label(row.method, row.model),
                    format_estimate_with_n(row.cosine),
                    format_estimate_with_n(row.variance, 3),
                    format_estimate_with_n(row.sign_agreement),
                    format_estimate_with_n(row.straddling),
                ]
                for row in report.self_consistency
            ],
        )


def _methods_section(report: Report) -> Iterable[str]:
    """Yield the paragraphs and the table that compare direct with log-probability scores; none without both."""
    if report.methods:
        yield "## Asked, and by log-probabilities"
        yield sentences.METHODS_INTRODUCTION
        yield "\n".join(
            f"- **{escape_markdown(model)}** {escape_markdown(text)}."
            for model, text in sentences.method_sentences(report)
        )
        yield markdown_table(
            ["Model", "r asked", "r by log-probabilities", "Read from", "Δr"],
            [
                [
                    row.model,
                    format_number(row.direct_r),
                    format_number(row.logprob_r),
                    ", ".join(row.measures),
                    format_estimate_with_n(row.difference),
                ]
                for row in report.methods
            ],
        )


def _languages_section(view: ReportView) -> Iterable[str]:
    """Yield the paragraphs and the table on differences between languages; none if English is the only language."""
    languages = view.languages
    if languages is None:
        return
    yield "## Languages"
    yield "\n".join(
        f"- {escape_markdown(sentence)}: {escape_markdown(', '.join(countries))}."
        for sentence, countries in sentences.language_sentences(languages)
    )
    if languages.differences:
        yield markdown_table(
            ["Model", "Languages", "Difference of scores"],
            [
                [row.model, f"{row.second} less {row.first}", format_estimate_with_n(row.difference)]
                for row in languages.differences
            ],
        )
