"""Experiments on consistency as pages: temperature, a rule to follow, right answers, and people's judgements."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.experiments.page_building import beyond, figure, figures, page, plot, whose
from auditor.reports.pages.number_format import count, interval, number, p_value, plural, signed
from auditor.reports.pages.report_page import Chapter, Grid, Page
from auditor.reports.pages.svg_charts import SHARE
from auditor.reports.semantic.experiment_schema import AccuracyRow, CorrelationRow, PeoplePart, RuleRow, TemperatureRow


def temperature_page(audit: str, rows: Sequence[TemperatureRow]) -> Page:
    """Whether other words change more than the dice do."""
    seen = [r for r in rows if r.difference.value is not None]
    moved = [f"{r.model} at {r.temperature:g}" for r in seen if beyond(r.difference) < 0]
    more = "more with other words than with the dice"
    answer = whose(moved, len(seen), "settings", f"change {more}", f"none is shown to change {more}")
    method = (
        "The same words asked several times, beside several wordings asked once each: how alike the answers are, "
        "by the audit's score of consistency. Below 0 other words change more than chance in the answers does. n "
        "counts questions."
    )
    grid = Grid(
        "Consistency at each temperature; p by a sign-flip test, not corrected.",
        ["Model", "Temperature", "Same words", "Other words", "Other less same", "n", "p"],
        [
            [r.model, f"{r.temperature:g}", *figures(r.same_words, r.other_words, r.difference), p_value(r.p_value)]
            for r in rows
        ],
    )
    named = ((f"{r.model} at {r.temperature:g}", r.difference) for r in rows)
    plots = plot(named, None, "difference", "Consistency under other words less under the same")
    chapter = Chapter("At each temperature", [method], plots=plots, grids=[grid])
    return page(audit, "words against dice", [answer], [chapter], "There was nothing to compare.")


def rules_page(audit: str, rows: Sequence[RuleRow]) -> Page:
    """Whether a rule of its own makes a model more consistent."""
    seen = [r for r in rows if r.change.value is not None]
    answers = (
        whose([r.model for r in seen if beyond(r.change) > 0], len(seen), "models", "are more consistent with a rule",
              "none is shown to be more consistent with a rule of its own"),
        whose([r.model for r in seen if beyond(r.change) < 0], len(seen), "models", "are less so", "none is less so"),
    )  # fmt: skip
    grid = Grid(
        "Consistency before and after a model is told to follow its own first rule of thumb; p by a sign-flip test, "
        "not corrected. n counts questions.",
        ["Model", "Before", "With a rule", "Change", "n", "p"],
        [[r.model, *figures(r.before, r.after, r.change), p_value(r.p_value)] for r in rows],
    )
    plots = plot(((r.model, r.change) for r in rows), None, "difference", "Consistency with a rule less without")
    chapter = Chapter("With and without", plots=plots, grids=[grid])
    return page(audit, "a rule to follow", answers, [chapter], "There was nothing to compare.")


def accuracy_page(audit: str, rows: Sequence[AccuracyRow]) -> Page:
    """Whether models are right where they are consistent."""
    told = [
        f"{r.model}: r = {number(r.r)} ({interval(r.ci_low, r.ci_high)}; {plural(r.n, 'question')})."
        if r.r is not None
        else f"{r.model}: cannot be told ({r.reason})."
        for r in rows
    ]
    grid = Grid(
        "Accuracy and consistency, and how far one goes with the other over questions.",
        ["Model", "Accuracy", "Consistency", "r", "95% interval", "p", "Questions"],
        [
            [
                r.model, figure(r.accuracy), figure(r.consistency), number(r.r) if r.r is not None else str(r.reason),
                interval(r.ci_low, r.ci_high), p_value(r.p_value), count(r.n),
            ]
            for r in rows
        ],
    )  # fmt: skip
    plots = plot(((r.model, r.accuracy) for r in rows), SHARE, "share", "Share of answers that are right")
    chapter = Chapter("On questions with a known answer", plots=plots, grids=[grid])
    return page(audit, "right where consistent?", told, [chapter], "No model has an answer to these questions.")


def judgements_page(audit: str, part: PeoplePart) -> Page:
    """Which measure of consistency goes with what people say."""
    known = [c for c in part.correlations if c.r is not None]
    best = max(known, key=lambda c: c.r or 0.0, default=None)
    answer = (
        f"Of {plural(len(known), 'measure')}, {best.metric} of {best.text} goes with people's judgements most: "
        f"r = {number(best.r)} ({interval(best.ci_low, best.ci_high)})."
        if best
        else ""
    )
    rests = (
        f"{plural(part.judgements, 'judgement')} on {plural(part.questions, 'question')}; Krippendorff’s alpha of the "
        f"raters {figure(part.alpha)}; entropy of the judgements on a question {figure(part.entropy)} bits."
    )
    grid = Grid(
        "Each measure beside people: r with the share of judgements that find two answers alike, and with how torn "
        "people are. n counts models' questions.",
        ["Measure", "Of", "r with people", "95% interval", "r with entropy", "n"],
        [_correlation(c) for c in part.correlations],
    )
    differences = [
        f"r of {d.than_metric} of {d.than_text} less {d.metric} of {d.text}: "
        + (d.reason or f"{signed(d.difference)} ({interval(d.ci_low, d.ci_high)}, p {p_value(d.p_value)}).")
        for d in part.differences
    ]
    chapter = Chapter("Each measure", [rests], differences, grids=[grid])
    none = "No measure can be held against these judgements."
    return page(audit, "measures beside people", [answer], [chapter], none)


def _correlation(c: CorrelationRow) -> list[str]:
    r = number(c.r) if c.r is not None else c.reason or number(None)
    return [c.metric, c.text, r, interval(c.ci_low, c.ci_high), number(c.r_entropy), count(c.n)]
