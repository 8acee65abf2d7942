"""The report as Markdown: the same figures as the page, as tables. Whatever others wrote is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditor.reports import logic_markdown, semantic_markdown, sentences, task_markdown, words
from auditor.reports.coverage_parts import CoverageRow
from auditor.reports.measures import AlignmentRow, Estimate, PlaceRow
from auditor.reports.model import ConflictRow, Report, Side
from auditor.reports.numbers import NONE, count, interval, number, p_value, share, usd
from auditor.reports.panel_tables import panel_tables
from auditor.reports.savings import told
from auditor.reports.served import remarks
from auditor.reports.tiers import TierRow, preference
from auditor.reports.views import View
from auditor.text import visible

_ACTIVE = re.compile(r"[\\`*_\[\]<|~]|&(?=[#\w])|:(?=//)|@(?=\w)|(?<=www)\.", re.IGNORECASE)
_AT_START = re.compile(r"^(\s*)([-+](?=\s|$)|[-=]{2,}|[#>])|^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)


def render_markdown(report: Report) -> str:
    """The text."""
    view = View(report)
    parts = [
        *_answer(report, view),
        *task_markdown.section(report.task, escape, _table, _estimate),
        *_preferences(report),
        *_worth(report, view),
        *_regions(report, view),
        *_methods(report),
        *_languages(view),
        *_places(report, view),
        *_consistency(report, view),
    ]
    parts += [
        *semantic_markdown.section(report.semantic, escape, _table, _estimate),
        *logic_markdown.section(report.logic, escape, _table, _estimate),
        *_panel(report),
        *_conflicts(report),
        *_refusals(report),
        *_coverage(report),
        *_cost(report),
        *_made(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """A text on one line in which nothing is Markdown or HTML."""
    return _escape(" ".join(visible(text).split()))


def quote(text: str) -> str:
    """A text of several lines as a block quote in which nothing is Markdown or HTML."""
    lines = _escape(visible(text).strip()).splitlines()
    return "\n".join(f"> {line.strip()}".rstrip() for line in lines)


def _escape(text: str) -> str:
    """Backslashes before what would act anywhere, and before what would act at the start of a line."""
    escaped = _ACTIVE.sub(lambda m: "\\" + m.group(), text)
    return _AT_START.sub(lambda m: f"{m[1] or ''}{m[3] or ''}\\{m[2] or m[4]}", escaped)


# --- sections ---------------------------------------------------------------------------------------------------


def _answer(report: Report, view: View) -> Iterable[str]:
    yield f"# {escape(report.audit.name)}: {sentences.what(report)}"
    if report.audit.survey.title:
        yield f"Measured against {escape(report.audit.survey.title)}."
    yield "\n".join(f"- {name}: {value}" for value, name in sentences.facts(report))
    if not report.audit.survey.title:
        return
    yield "## How well do they agree with people?"
    yield words.headline(report.alignment)
    yield "\n".join(f"- **{escape(column.label)}** {escape(answer.text)}." for column, answer in view.ranked)
    yield escape(words.order(report.alignment) or "")
    signs = words.signs(report)
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
        yield _table(head, [[column.label, *_alignment(answer.row)] for column, answer in view.ranked])


def _alignment(row: AlignmentRow) -> list[str]:
    r = number(row.pearson_r) if row.pearson_r is not None else f"not measurable: {row.reason}"
    errors = [number(row.mae), number(row.rmse), _estimate(row.bias)]
    crossed = row.crossed.pearson_r
    between = [
        interval(row.ci_low, row.ci_high),
        interval(crossed.ci_low, crossed.ci_high) if crossed.ci_low is not None else str(crossed.reason),
    ]
    return [
        r,
        *between,
        escape(words.corrected(row)),
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
            yield _table(["Model", "Tier", part.by, "Rank (95%)", "First in"], map(_tier, part.rows))


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
    yield _table(
        ["Model", "Compared with", "r of that", "MAE of that"],
        [
            [column.label, b.baseline, _estimate(b.pearson_r), _estimate(b.mae)]
            for column, _, rows in view.worth
            for b in rows
        ],
    )
    if report.nonresponse is not None:
        yield escape(sentences.nonresponse(report.nonresponse))
        head = ["Model", "MAE at best", "MAE at worst", "Cells"]
        bounds = report.nonresponse.bounds
        rows = [(view.label(b.method, b.model), number(b.mae_best), number(b.mae_worst), count(b.n)) for b in bounds]
        yield _table(head, rows)


def _regions(report: Report, view: View) -> Iterable[str]:
    if not report.regions.rows:
        return
    yield f"## {escape(report.regions.title)}"
    yield _table(
        ["Model", "Region", "Countries", "MAE", "r", "95% interval", "Cells"],
        [
            [
                view.label(r.method, r.model), r.region, count(r.countries), _estimate(r.mae),
                number(r.pearson_r) if r.pearson_r is not None else f"not measurable: {r.reason}",
                interval(r.ci_low, r.ci_high), count(r.n),
            ]
            for r in report.regions.rows
        ],
    )  # fmt: skip
    if report.regions.gaps:
        yield escape(sentences.regions(report))
        yield _table(
            ["Model", "Between", "Gap in MAE"],
            [
                [view.label(g.method, g.model), sentences.gap(g), f"{_estimate(g.mae_gap)}{sentences.bounds(g)}"]
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
            yield _table(head, [[name, *(_place(row) for row in rows)] for name, rows in table.rows])


def _place(row: PlaceRow) -> str:
    return _estimate(row.mae)


def _consistency(report: Report, view: View) -> Iterable[str]:
    if report.self_consistency:
        yield "## Consistency of each model with itself"
        yield _table(
            ["Model", "Self-consistency (cosine)", "Variance of the score", "Same sign", "Cells on both sides of zero"],
            [
                [
                    view.label(r.method, r.model),
                    _estimate(r.cosine),
                    _estimate(r.variance, 3),
                    _estimate(r.sign_agreement),
                    _estimate(r.straddling),
                ]
                for r in report.self_consistency
            ],
        )


def _methods(report: Report) -> Iterable[str]:
    if report.methods:
        yield "## Asked, and by log-probabilities"
        yield sentences.METHODS
        yield "\n".join(f"- **{escape(model)}** {escape(text)}." for model, text in sentences.methods(report))
        yield _table(
            ["Model", "r asked", "r by log-probabilities", "Read from", "Δr"],
            [
                [r.model, number(r.direct_r), number(r.logprob_r), ", ".join(r.measures), _estimate(r.difference)]
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
        yield _table(
            ["Model", "Languages", "Difference of scores"],
            [[r.model, f"{r.second} less {r.first}", _estimate(r.difference)] for r in part.differences],
        )


def _panel(report: Report) -> Iterable[str]:
    if not report.panel.judges:
        return
    yield "## The panel"
    yield sentences.kappa(report)
    aspects = sentences.aspects(report)
    yield _table(
        ["Model", "Verdicts", "VALID", "Peer agreement", *aspects.values()],
        [
            [r.model, count(r.given), count(r.valid), *(_estimate(getattr(r, n)) for n in ("agreement", *aspects))]
            for r in report.peer_agreement
        ],
    )
    yield "**What this panel can and cannot settle**"
    yield "\n".join(f"- {escape(sentence)}" for sentence in report.panel.certificate)
    for table in panel_tables(report.panel):
        yield escape(table.caption)
        yield _table(table.head, [[f if isinstance(f, str) else _estimate(f) for f in row] for row in table.rows])


def _conflicts(report: Report) -> Iterable[str]:
    part = report.conflicts
    if not report.audit.survey.title and report.task is None:
        return
    yield "## Conflicts"
    yield escape(sentences.conflicts(report))
    yield "\n".join(f"- {escape(sentence)}" for sentence in sentences.method_conflicts(report))
    if not part.total:
        return
    yield escape(sentences.voting(report))
    yield _table(
        ["Kind", *(sentences.STATES[state] for state in part.states), "all"],
        [[row.kind, *map(count, row.states.values()), count(row.total)] for row in part.kinds],
    )
    if part.not_listed:
        yield f"The {len(part.largest)} largest; {count(part.not_listed)} smaller ones are not listed."
    for row in part.largest:
        yield f"### {escape(sentences.cell(row))} ({row.kind}, {sentences.STATES[row.state]})"
        yield _conflict(row)


def _conflict(row: ConflictRow) -> str:
    sides = [part for side in (row.left, row.right) for part in _side(side)]
    notes = [f"Note: {escape(note)}" for note in row.notes]
    return "\n\n".join([escape(sentences.conflict(row)), *sides, *notes])


def _side(side: Side) -> Iterable[str]:
    yield f"**{escape(side.model)}** says {escape(sentences.position(side))}:"
    yield quote(side.reasoning + (" […]" if side.shortened else "")) if side.reasoning else "No reasoning is stored."


def _coverage(report: Report) -> Iterable[str]:
    part = report.coverage
    if not part.total:
        return
    yield "## Coverage"
    yield _coverage_table("What", part.total)
    for title, rows in (
        ("Model", part.models),
        ("Judge", part.judges),
        ("Country", part.countries),
        ("Topic" if report.task is None else "Item", part.topics),
    ):
        if rows:
            yield _coverage_table(title, rows)


def _coverage_table(title: str, rows: Sequence[CoverageRow]) -> str:
    causes = list(dict.fromkeys(name for row in rows for name in row.losses))
    table = []
    for row in rows:
        lost = [count(row.losses.get(cause, 0)) for cause in causes]
        names = [row.name or row.what, *([row.what] if row.name else [])]
        table.append([*names, count(row.planned), count(row.ok), share(row.ok, row.planned), *lost, count(row.missing)])
    head = [title, *(["What"] if rows and rows[0].name else []), "Planned", "Usable", "Share"]
    return _table([*head, *(cause.replace("_", " ") for cause in causes), "not recorded"], table)


def _refusals(report: Report) -> Iterable[str]:
    told, part = sentences.refusals(report), report.refusals
    if told is None or part is None:
        return
    topic = "Topic" if report.task is None else "Item"
    yield "## Refusals"
    yield escape(told)
    yield "\n".join(f"- {escape(line)}." for line in sentences.repairs(report))
    if part.total.value:
        for title, rows in (("Model", part.models), (topic, part.topics), ("Country", part.countries)):
            if rows:
                yield _table([title, "Share refused"], [[r.name, _estimate(r.share, 3)] for r in rows])


def _cost(report: Report) -> Iterable[str]:
    yield "## Cost"
    yield sentences.cost(report)
    if report.savings:
        yield "\n".join(f"- {escape(told(row))}" for row in report.savings)
    if report.cost.rows:
        yield _table(
            ["Model", "For", "Calls", "Requests", "Answers", "Tokens in", "Kept", "Tokens out", "USD", "Unpriced"],
            [
                [
                    row.name or "", row.purpose or "", *map(count, (row.calls, row.attempts, row.answers)),
                    count(row.prompt_tokens), sentences.kept(row), count(row.completion_tokens),
                    usd(row.usd, row.lower_bound), count(row.unpriced),
                ]
                for row in report.cost.rows
            ],
        )  # fmt: skip


def _made(report: Report) -> Iterable[str]:
    survey = report.audit.survey
    yield "## How this was made"
    if survey.title:
        yield f"The question put to models: “{escape(survey.wording)}”."
        yield f"Source of the people’s scores: {escape(survey.source)}"
    yield from map(escape, sentences.rephrased(report))
    models = [[m.name, m.model or "scores were imported", _yes(m.audited), _yes(m.judge)] for m in report.audit.models]
    yield _table(["Name", "Provider and model", "Audited", "Judge"], models)
    yield from map(escape, remarks(report.served))
    yield _table(["Setting", "Value"], sentences.settings(report))


# --- pieces -----------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell if i == 1 else escape(cell) for cell in line) + " |" for i, line in enumerate(lines)
    )


def _estimate(estimate: Estimate, digits: int = 2) -> str:
    if estimate.value is None:
        return f"not measurable: {estimate.reason}"
    between = (
        interval(estimate.ci_low, estimate.ci_high, digits) if estimate.ci_low is not None else str(estimate.reason)
    )
    return f"{number(estimate.value, digits)} ({between}; n {count(estimate.n)})"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
