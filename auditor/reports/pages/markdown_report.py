"""The report as Markdown: the same figures as the page, as tables. Whatever others wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.reports.agreement.tiers import TierRow, preference
from auditor.reports.logic import markdown as logic_markdown
from auditor.reports.measurement_schema import AlignmentRow, PlaceRow
from auditor.reports.pages import alignment_wording, markdown_evidence, sentences
from auditor.reports.pages.markdown_format import escape, estimated, tabled
from auditor.reports.pages.number_format import NONE, count, interval, number, p_value, share
from auditor.reports.pages.report_view import View
from auditor.reports.report_schema import Report
from auditor.reports.semantic import markdown as semantic_markdown
from auditor.reports.task import markdown as task_markdown


def render_markdown(report: Report) -> str:
    """The text."""
    view = View(report)
    parts = [
        *_answer(report, view),
        *task_markdown.section(report.task, escape, tabled, estimated),
        *_preferences(report),
        *_worth(report, view),
        *_regions(report, view),
        *_methods(report),
        *_languages(view),
        *_places(report, view),
        *_consistency(report, view),
    ]
    parts += [
        *semantic_markdown.section(report.semantic, escape, tabled, estimated),
        *logic_markdown.section(report.logic, escape, tabled, estimated),
        *markdown_evidence.panel(report),
        *markdown_evidence.conflicts(report),
        *markdown_evidence.refusals(report),
        *markdown_evidence.coverage(report),
        *markdown_evidence.cost(report),
        *markdown_evidence.made(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


# --- sections ---------------------------------------------------------------------------------------------------


def _answer(report: Report, view: View) -> Iterable[str]:
    yield f"# {escape(report.audit.name)}: {sentences.what(report)}"
    if report.audit.survey.title:
        yield f"Measured against {escape(report.audit.survey.title)}."
    yield "\n".join(f"- {name}: {value}" for value, name in sentences.facts(report))
    if not report.audit.survey.title:
        return
    yield "## How well do they agree with people?"
    yield alignment_wording.headline(report.alignment)
    yield "\n".join(f"- **{escape(column.label)}** {escape(answer.text)}." for column, answer in view.ranked)
    yield escape(alignment_wording.order(report.alignment) or "")
    signs = alignment_wording.signs(report)
    if signs:
        yield "**What speaks against trusting it**"
        yield "\n".join(f"- {escape(sign)}" for sign in signs)
    if view.columns:
        head = [
            "Model",
            "r",
            "95% interval (Fisher)",
            "95% interval (countries and topics)",
            "r without sampling noise",
            "Highest r",
            "p",
        ]
        head += ["Spearman ρ", "MAE", "RMSE", "Bias", "Cells", "Dropped"]
        yield tabled(head, [[column.label, *_alignment(answer.row)] for column, answer in view.ranked])


def _alignment(row: AlignmentRow) -> list[str]:
    r = number(row.pearson_r) if row.pearson_r is not None else f"not measurable: {row.reason}"
    errors = [number(row.mae), number(row.rmse), estimated(row.bias)]
    crossed = row.crossed.pearson_r
    between = [
        interval(row.ci_low, row.ci_high),
        interval(crossed.ci_low, crossed.ci_high) if crossed.ci_low is not None else str(crossed.reason),
    ]
    return [
        r,
        *between,
        escape(alignment_wording.corrected(row)),
        number(row.ceiling),
        p_value(row.crossed_p_value),
        number(row.spearman_rho),
        *errors,
        count(row.n),
        count(row.n_dropped),
    ]


def _preferences(report: Report) -> Iterable[str]:
    if report.tiers:
        yield "## Which model to prefer, and where"
        yield "\n".join(f"- {escape(preference(part))}" for part in report.tiers if part.by == "MAE")
        for part in report.tiers:
            yield escape(
                f"{part.scope[0].upper()}{part.scope[1:]} ({part.method}), by {part.by}, {part.cells} shared cells."
            )
            yield tabled(["Model", "Tier", part.by, "Rank (95%)", "First in"], map(_tier, part.rows))


def _tier(row: TierRow) -> list[str]:
    ranks = NONE if row.rank_low is None else f"{row.rank_low} to {row.rank_high}"
    first = NONE if row.first is None else share(round(1000 * row.first), 1000)
    return [row.model, NONE if row.tier is None else str(row.tier), number(row.value), ranks, first]


def _worth(report: Report, view: View) -> Iterable[str]:
    if not view.columns:
        return
    yield "## What is that worth?"
    yield escape(sentences.ceiling(report))
    told = [(view.label(method, model), text) for method, model, text in sentences.knowledge(report)]
    yield "\n".join(f"- **{escape(label)}** {escape(text)}." for label, text in told)
    yield sentences.BASELINES
    yield tabled(
        ["Model", "Compared with", "r of that", "MAE of that"],
        [
            [column.label, b.baseline, estimated(b.pearson_r), estimated(b.mae)]
            for column, _, rows in view.worth
            for b in rows
        ],
    )
    if report.nonresponse is not None:
        yield escape(sentences.nonresponse(report.nonresponse))
        head = ["Model", "MAE at best", "MAE at worst", "Cells"]
        bounds = report.nonresponse.bounds
        rows = [(view.label(b.method, b.model), number(b.mae_best), number(b.mae_worst), count(b.n)) for b in bounds]
        yield tabled(head, rows)


def _regions(report: Report, view: View) -> Iterable[str]:
    if not report.regions.rows:
        return
    yield f"## {escape(report.regions.title)}"
    yield tabled(
        ["Model", "Region", "Countries", "MAE", "r", "95% interval", "Cells"],
        [
            [
                view.label(r.method, r.model), r.region, count(r.countries), estimated(r.mae),
                number(r.pearson_r) if r.pearson_r is not None else f"not measurable: {r.reason}",
                interval(r.ci_low, r.ci_high), count(r.n),
            ]
            for r in report.regions.rows
        ],
    )  # fmt: skip
    if report.regions.gaps:
        yield escape(sentences.regions(report))
        yield tabled(
            ["Model", "Between", "Gap in MAE"],
            [
                [view.label(g.method, g.model), sentences.gap(g), f"{estimated(g.mae_gap)}{sentences.bounds(g)}"]
                for g in report.regions.gaps
            ],
        )
    if report.regions.ungrouped:
        yield f"Not grouped, and in no row above: {escape(', '.join(report.regions.ungrouped))}."


def _places(report: Report, view: View) -> Iterable[str]:
    for title, table in (("Topics", view.topic_table), ("Countries", view.country_table)):
        if table.rows and view.distant:
            yield f"## {title}"
            yield "Mean absolute difference from people, worst first, with its 95% interval and number of cells."
            head = [title.removesuffix("s") if title == "Topics" else "Country", *(c.label for c in view.distant)]
            yield tabled(head, [[name, *(_place(row) for row in rows)] for name, rows in table.rows])


def _place(row: PlaceRow) -> str:
    return estimated(row.mae)


def _consistency(report: Report, view: View) -> Iterable[str]:
    if report.self_consistency:
        yield "## Consistency of each model with itself"
        yield tabled(
            ["Model", "Self-consistency (cosine)", "Variance of the score", "Same sign", "Cells on both sides of zero"],
            [
                [
                    view.label(r.method, r.model),
                    estimated(r.cosine),
                    estimated(r.variance, 3),
                    estimated(r.sign_agreement),
                    estimated(r.straddling),
                ]
                for r in report.self_consistency
            ],
        )


def _methods(report: Report) -> Iterable[str]:
    if report.methods:
        yield "## Asked, and by log-probabilities"
        yield sentences.METHODS
        yield "\n".join(f"- **{escape(model)}** {escape(text)}." for model, text in sentences.methods(report))
        yield tabled(
            ["Model", "r asked", "r by log-probabilities", "Read from", "Δr"],
            [
                [r.model, number(r.direct_r), number(r.logprob_r), ", ".join(r.measures), estimated(r.difference)]
                for r in report.methods
            ],
        )


def _languages(view: View) -> Iterable[str]:
    part = view.languages
    if part is None:
        return
    yield "## Languages"
    yield "\n".join(f"- {escape(told)}: {escape(', '.join(who))}." for told, who in sentences.languages(part))
    if part.differences:
        yield tabled(
            ["Model", "Languages", "Difference of scores"],
            [[r.model, f"{r.second} less {r.first}", estimated(r.difference)] for r in part.differences],
        )


# --- pieces -----------------------------------------------------------------------------------------------------
