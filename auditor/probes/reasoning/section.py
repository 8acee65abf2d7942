"""What the report says about reasoning: the section, its tables, and the sentence on page one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import auditor.probes as ap
from auditor.probes.reasoning.figures import ReasoningFigures, ReasoningRow
from auditor.probes.reasoning.settings import Form

SECTION_ID = "reasoning"
FORMS: dict[Form, str] = {"prefill": "Steps as the beginning of the answer", "notes": "Steps as notes in the question"}
AXIS_TITLE = "Slope on the donor’s score (0: ignores, 1: follows)"
READING = (
    "Slopes and ways: 0 ignores a change, 1 follows it, beyond the control. Way to the opposite: norms are called "
    "wrong. Area over the curve: share of cells with another judgement without the last steps; changed by paraphrase "
    "or dots: with steps in other words, or none. Control’s distance: to the recorded score."
)
REJECTION = (
    "A slope of 0 does not show that the reasoning has no effect: the model may have noticed that norms are wrong, and "
    "rejected them."
)
COUNTS = (
    ap.Column("Model", "name"),
    *(ap.Column(title, "number") for title in ("Cells", "Answers", "Refused", "Failed", "Without donor")),
)
MAX_NAMED = 3


def build_section(title: str, figures: ReasoningFigures) -> ap.Section:
    """Build the section: one figure and one table for each form, since the forms are never pooled or ranked."""
    blocks: list[ap.Block] = [ap.Paragraph(sentence, "finding") for sentence in describe_slopes(figures)]
    blocks += [ap.Paragraph(_describe_design(figures)), ap.Paragraph(READING)]
    for form, rows in _by_form(figures):
        blocks += [_build_plot(form, rows), ap.tabulate(f"reasoning-{form}", FORMS[form], "", rows, ReasoningRow)]
    blocks += [ap.Paragraph(sentence) for sentence in _describe_shares(figures)]
    if hidden := [row.model for row in figures.rows if row.hidden_reasoning]:
        blocks.append(ap.Paragraph(f"Hidden reasoning comes before the stated steps of {', '.join(hidden)}.", "note"))
    blocks.append(ap.Disclosure("Answers", [ap.tabulate("reasoning-answers", "Answers", "", figures.rows, COUNTS)]))
    if figures.unmeasured:
        names = "; ".join(f"{model.model}: {model.reason}" for model in figures.unmeasured)
        blocks.append(ap.Paragraph(f"Not measured: {names}.", "note"))
    blocks.append(
        ap.Paragraph(["Whether judges notice changed steps: ", ap.Code("auditor experiment planted"), "."], "note")
    )
    return ap.Section(SECTION_ID, title, blocks, "Stated reasoning")


def describe_slopes(figures: ReasoningFigures) -> Iterator[str]:
    """Say of each form which models follow exchanged norms, as far as it is shown."""
    for form, rows in _by_form(figures):
        following = [row for row in rows if row.slope.is_significant and (row.slope.value or 0.0) > 0]
        place = "With steps as the beginning of the answer" if form == "prefill" else "With steps as notes"
        if following:
            named = "; ".join(f"{row.model} ({ap.describe_estimate('', row.slope)})" for row in following[:MAX_NAMED])
            more = f"; and {len(following) - MAX_NAMED} more" if len(following) > MAX_NAMED else ""
            yield f"{place}, scores follow exchanged norms: {named}{more}."
        elif any(row.slope.p_value is not None for row in rows):
            yield f"{place}, no model is shown to follow exchanged norms."
        elif any(row.slope.value is not None for row in rows):
            yield f"{place}, whether scores follow exchanged norms is not known: no slope has a 95% CI."
    if any(row.slope.value is not None and not row.slope.is_significant for row in figures.rows):
        yield REJECTION


def _describe_design(figures: ReasoningFigures) -> str:
    """Describe what was changed."""
    n_cells = max((row.cells for row in figures.rows), default=0)
    answers = "" if figures.samples == 1 else f" {figures.samples} times"
    return (
        f"In {ap.pluralize(n_cells, 'cell')}, recorded steps were changed or, as a control, put back; the model gave "
        f"the score from there{answers}. Donors of norms are its answers on the topic for other countries, at least "
        "0.5 apart."
    )


def _by_form(figures: ReasoningFigures) -> Iterator[tuple[Form, list[ReasoningRow]]]:
    """Yield the forms that models got the steps in, with their rows."""
    for form in FORMS:
        if rows := [row for row in figures.rows if row.form == form]:
            yield form, rows


def _build_plot(form: Form, rows: Sequence[ReasoningRow]) -> ap.Figure:
    """Plot the slopes of the models of one form."""
    return ap.build_interval_figure(
        f"reasoning-slopes-{form}",
        "Slopes on the donor’s score",
        [(row.model, row.slope) for row in rows],
        AXIS_TITLE,
        table_id=f"reasoning-{form}",
        caption="95% CIs are for other countries and topics.",
    )


def _describe_shares(figures: ReasoningFigures) -> Iterator[str]:
    """Say which share of cells follows, where cells are shown to differ."""
    for row in figures.rows:
        if row.following_share is not None and row.following_share.value is not None:
            share = ap.describe_estimate("", row.following_share)
            yield f"{row.model} follows the donor in some cells and not in others: share that follows {share}."


def write_headline(figures: ReasoningFigures) -> ap.Headline | None:
    """Name the models whose scores are shown to follow exchanged norms, by form; the p-value is that of all of them."""
    following = [row for row in figures.rows if row.slope.is_significant and (row.slope.value or 0.0) > 0]
    if not following:
        return None
    named = [
        f"{', '.join(f'{row.model} by {row.slope.value:.2f}' for row in rows[:MAX_NAMED])}"
        f"{f' and {len(rows) - MAX_NAMED} more' if len(rows) > MAX_NAMED else ''}, {FORMS[form].lower()}"
        for form, rows in _by_form(figures.model_copy(update={"rows": following}))
    ]
    p_value = max(row.slope.adjusted_p_value or 0.0 for row in following)
    scale = "as a share of the way to the score they led to"
    return ap.Headline(f"Scores follow the stated norms when they are exchanged, {scale}: {'; '.join(named)}.", p_value)


def compare_figures(title: str, first: ReasoningFigures, second: ReasoningFigures) -> ap.Section:
    """Show the slopes of two audits side by side, for models that got the steps in the same form."""
    earlier = {(row.model, row.form): row.slope for row in first.rows}
    columns = [
        ap.Column("Model", "name"),
        ap.Column("Slope in the first audit", "estimate", key="first"),
        ap.Column("In the second", "estimate", key="second"),
    ]
    tables: list[ap.Block] = [
        ap.Table(
            f"reasoning-{form}",
            FORMS[form],
            "",
            columns,
            [[row.model, earlier.get((row.model, row.form)), row.slope] for row in rows],
        )
        for form, rows in _by_form(second)
    ]
    return ap.Section(SECTION_ID, title, tables)
