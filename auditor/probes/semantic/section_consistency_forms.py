"""The score in the forms that papers and their programs use, side by side, and of the questions themselves."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.metrics.estimate import Estimate
from auditor.probes.semantic.figures.schema import ScoreFormRow, SemanticReport
from auditor.probes.semantic.section_consistency_measures import SCORED_TEXT_LABELS, name_metric
from auditor.reports.document import Block, Cell, Column, Disclosure, Paragraph, Table
from auditor.reports.sections.phrasing import describe_estimate

ALPHA_TITLES = {
    None: "Score",
    10.0: "α = 10 (released program)",
    1.0: "α = 1 (paper’s text)",
}
FORMS_TITLE = "The score in its published forms"


def build_form_blocks(semantic: SemanticReport) -> Iterator[Block]:
    """Describe the score of the questions themselves, and tabulate the published forms where there are any."""
    if semantic.questions_only is not None:
        name = f"{name_metric(semantic.variant)} of the questions themselves"
        remark = (
            "Here the wordings are scored as if they were answers. The authors of SGE take this as the upper bound, "
            "but answers that are more alike than the wordings exceed it."
        )
        yield Paragraph(f"{describe_estimate(name, semantic.questions_only, 'question')}. {remark}", "note")
    if semantic.forms:
        yield Disclosure(FORMS_TITLE, [_tabulate_forms(semantic)])


def _tabulate_forms(semantic: SemanticReport) -> Table:
    """One row for each model and kind of text, one column for each exponent."""
    values_by_row: dict[tuple[str, str], dict[float | None, Estimate]] = {}
    for row in semantic.forms:
        values_by_row.setdefault((row.model, _name_texts(row)), {})[row.alpha] = row.value
    alphas = list(dict.fromkeys(row.alpha for row in semantic.forms))
    columns = [Column("Model", "name"), Column("Texts", "text")]
    columns += [Column(ALPHA_TITLES[alpha], "estimate") for alpha in alphas]
    rows: list[list[Cell]] = [
        [model or "–", texts, *(values.get(alpha) for alpha in alphas)]
        for (model, texts), values in values_by_row.items()
    ]
    caption = (
        f"{name_metric(semantic.variant)} of the same texts in each form, with 95% CI; n counts questions. The "
        "released program of SaGE weighs rules of thumb with 0.2 and answers with 0.8. Other rows have one kind of "
        "text only."
    )
    return Table("paraphrase-forms", FORMS_TITLE, caption, columns, rows)


def _name_texts(row: ScoreFormRow) -> str:
    """The texts that a form compares, with their weights if they are mixed."""
    if row.text != "mix" or row.rot_weight is None:
        return SCORED_TEXT_LABELS[row.text]
    return f"rules of thumb ({row.rot_weight:g}) and answers ({1 - row.rot_weight:g})"
