"""The section on consistency under paraphrase."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from auditor.config.probe_section import KeyFinding
from auditor.metrics.intervals.estimate import Estimate, NullDistribution, bound_p_value
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.probes.semantic.figures.schema import (
    BaselineSimilarityRow,
    ConsistencyGapRow,
    CountryConsistencyRow,
    JudgedConsistencyRow,
    LanguageConsistencyRow,
    LanguagePairRow,
    LeastConsistentRow,
    ScoreFormRow,
    SemanticDifferenceRow,
    SemanticModelRow,
    SemanticReport,
)
from auditor.probes.semantic.records import MORAL_PURPOSE
from auditor.probes.semantic.section_measures import (
    PUBLISHED_AGREEMENT,
    SCORED_TEXT_LABELS,
    describe_labels,
    name_measure,
    name_metric,
    tabulate_judgements,
)
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Cell,
    Column,
    CountShare,
    Disclosure,
    Figure,
    List,
    ListItem,
    Name,
    Paragraph,
    Quote,
    Section,
    Status,
    Table,
    Tag,
)
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.phrasing import (
    DerivedCells,
    build_finding,
    build_interval_figure,
    describe_estimate,
    describe_interval,
    find_first_finding,
    list_counts,
    tabulate,
    tabulate_matrix,
)
from auditor.reports.sections.requests import SamplingMarks
from auditor.reports.sections.run_summary import build_summary_columns

ALPHA_TITLES = {
    None: "Score",
    10.0: "α = 10 (released program)",
    1.0: "α = 1 (paper’s text)",
}
FORMS_TITLE = "The score in its published forms"


def build_form_blocks(semantic: SemanticReport) -> Iterator[Block]:
    """Describe the score of the questions themselves, and tabulate the published forms where there are any."""
    if semantic.questions_only is not None:
        name = f"{name_metric(semantic.settings.variant)} of the questions themselves"
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
        f"{name_metric(semantic.settings.variant)} of the same texts in each form, with 95% CI; n counts questions. "
        "The released program of SaGE weighs rules of thumb with 0.2 and answers with 0.8. Other rows have one kind of "
        "text only."
    )
    return Table("paraphrase-forms", FORMS_TITLE, caption, columns, rows)


def _name_texts(row: ScoreFormRow) -> str:
    """The texts that a form compares, with their weights if they are mixed."""
    if row.text != "mix" or row.rot_weight is None:
        return SCORED_TEXT_LABELS[row.text]
    return f"rules of thumb ({row.rot_weight:g}) and answers ({1 - row.rot_weight:g})"


def build_judged_blocks(semantic: SemanticReport, marks: SamplingMarks) -> list[Block]:
    """Build the blocks of an audit that measured the consistency score alone."""
    each = "each of " if semantic.questions > 1 else ""
    text = (
        f"Several answers to {each}{pluralize(semantic.questions, name_question(semantic))}, all in the original "
        "wording. A judge compares them: a consistent model’s answers support each other."
    )
    findings = [_describe_judged_row(row) for row in semantic.judged]
    lists = [List(findings, is_findings=True)] if findings else []
    return [Paragraph(text), *lists, *build_judged_tables(semantic, marks)]


def _describe_judged_row(row: JudgedConsistencyRow) -> ListItem:
    """State the consistency score of one model by one judge."""
    if row.instances.value is None:
        return build_finding(row.model, f"has no consistency score by {row.judge}: {row.instances.reason}", "unclear")
    interval, n_text = describe_interval(row.instances), pluralize(row.instances.n, "question")
    figures = f"{n_text}, {interval}" if row.instances.ci_low is None else f"{interval}, {n_text}"
    score = f"has the consistency score {format_number(row.instances.value)} by {row.judge} ({figures})"
    return build_finding(row.model, score, "unclear")


def name_question(semantic: SemanticReport) -> str:
    """Name a question by its subject."""
    return "moral question" if semantic.settings.subject == "moral" else "question"


def build_judged_tables(semantic: SemanticReport, marks: SamplingMarks) -> Iterator[Table]:
    """Build the table of consistency as a judge sees it; none where no judge was asked."""
    if semantic.judged:
        caption = (
            "Share of pairs of answers to the same wording in which a judge finds the second supported by the first, "
            "with 95% CI over questions. Mean over questions: each question has equal weight. Pooled: each pair has "
            "equal weight. Failed judgements are excluded. The last three columns count pairs."
        )
        title, rows, columns = "Consistency found by a judge", semantic.judged, JudgedConsistencyRow
        yield tabulate("paraphrase-judged", title, caption, rows, columns, marks.derived, more_columns=marks.columns)


MODEL_TABLE_ID = "paraphrase-scores"
MAX_PRINTED_QUESTIONS = 20
"""Least consistent questions that are printed; the page has all."""


def build_semantic_section(report: Report) -> Section | None:
    """Build the section; None where nothing was measured."""
    semantic = report.find(SemanticReport)
    if semantic is None:
        return None
    marks = SamplingMarks.of(report.sampling, MORAL_PURPOSE)
    blocks: list[Block]
    if not semantic.settings.wordings:
        blocks = build_judged_blocks(semantic, marks)
        return Section("semantic", "Consistency of repeated answers", blocks, "Consistency")
    blocks = [Paragraph(_describe_questions(semantic))]
    if semantic.models:
        blocks.append(List([describe_model(row) for row in semantic.models], is_findings=True))
        blocks += [_build_figure(semantic.models, marks), _build_model_table(semantic.models, marks)]
    blocks += build_form_blocks(semantic)
    blocks += [*_build_comparison_tables(semantic, marks), *_build_culture_tables(semantic, marks)]
    blocks += build_judged_tables(semantic, marks)
    if semantic.people is not None:
        blocks.append(_build_people_section(semantic.people))
    if semantic.rejected:
        rejections = list_counts(semantic.rejected)
        blocks.append(Paragraph(f"Paraphrases by a model that were rejected and not asked: {rejections}.", "note"))
    if semantic.worst:
        blocks.append(_build_least_consistent_section(semantic.worst))
    return Section("semantic", "Consistency under paraphrase", blocks, "Paraphrase")


def _describe_questions(semantic: SemanticReport) -> str:
    """Describe the questions asked and the meaning of the score."""
    settings = semantic.settings
    weights = (
        f" (weights {settings.rot_weight:g} and {1 - settings.rot_weight:g})" if settings.measured == "mix" else ""
    )
    alpha = f" with α = {settings.alpha:g}" if settings.variant == "sage" else ""
    questions = pluralize(semantic.questions, name_question(semantic))
    subject = "morals" if settings.subject == "moral" else "one subject"
    return (
        f"{questions}, each asked in {_count_wordings(semantic)}. "
        "A consistent model answers all wordings of a question alike. The score is "
        f"{name_measure(settings.variant, settings.measured)}{weights}{alpha}, by the encoder {settings.encoder}. It "
        "is 1 if all texts have the same meaning, and about 0 if they have nothing in common. Texts about "
        f"{subject} are similar even across questions, so the score by chance is shown too."
    )


def _count_wordings(semantic: SemanticReport) -> str:
    """The number of wordings of a question; of those with fewer than planned, the fewest."""
    settings = semantic.settings
    fewest = settings.wordings if semantic.fewest_wordings is None else semantic.fewest_wordings
    if fewest >= settings.wordings:
        return pluralize(settings.wordings, "wording")
    return f"at least {fewest} of {settings.wordings} planned wordings"


def describe_model(row: SemanticModelRow) -> ListItem:
    """Compare one model's score with the score by chance, by the interval that holds for all models together."""
    score, chance, simultaneous = row.consistency, _best_chance_estimate(row), row.consistency_simultaneous
    if score.value is None:
        return build_finding(row.model, f"has no score: {score.reason}", "unclear")
    figures = f"score {format_number(score.value)}, {describe_interval(score)}, {pluralize(score.n, 'question')}"
    status: Status = "unclear"
    if chance.value is None or chance.ci_high is None:
        text = f"cannot be compared with chance ({figures}; by chance not available: {chance.reason})"
    else:
        figures += f"; by chance {format_number(chance.value)}"
        if simultaneous.ci_low is None:
            text = f"has no interval to compare with chance ({figures})"
        elif simultaneous.ci_low > chance.ci_high:
            text, status = f"is more consistent than expected by chance ({figures})", "positive"
        else:
            text = f"is not shown to be more consistent than expected by chance ({figures})"
    return build_finding(row.model, text, status)


def _best_chance_estimate(row: SemanticModelRow) -> Estimate:
    """The score by chance among answers of similar length, or else among all answers."""
    return _chance_estimate(row.length_matched if row.length_matched.mean is not None else row.shuffled)


def _chance_estimate(chance: NullDistribution) -> Estimate:
    """A score by chance, with the range of 95% of the shuffles in place of an interval."""
    is_complete = None not in (chance.mean, chance.low, chance.high)
    reason = chance.reason or (None if is_complete else "not computed")
    return Estimate(chance.mean, chance.questions, chance.low, chance.high, reason)


def _build_figure(rows: Sequence[SemanticModelRow], marks: SamplingMarks) -> Figure:
    """Plot each model's score, and below it the score by chance."""
    scores = [
        entry
        for row in rows
        for entry in (
            (marks.flag(row.model, row.model), row.consistency),
            ("by chance", _best_chance_estimate(row)),
        )
    ]
    caption = (
        "Mean score over questions, with 95% CI. Below each model: the score by chance, from answers to different "
        f"questions, with the range of 95% of the shuffles.{marks.flag_remark}"
    )
    title = "Consistency under paraphrase, mean score"
    return build_interval_figure("paraphrase-plot", title, scores, SHARE_AXIS, table_id=MODEL_TABLE_ID, caption=caption)


def _build_model_table(rows: Sequence[SemanticModelRow], marks: SamplingMarks) -> Table:
    """Build the table with each model's scores, scores by chance, and coverage."""
    caption = (
        "Score (higher is more consistent), with 95% CI; n counts questions with at least two usable answers. By "
        "chance: mean score of answers to different questions, with the range of 95% of the shuffles. Similar length: "
        f"only answers of similar length are shuffled. Usable and planned count answers.{marks.remark('Scores')}"
    )
    derived: DerivedCells[SemanticModelRow] = {
        **marks.derived,
        "shuffled": lambda row: _chance_estimate(row.shuffled),
        "length_matched": lambda row: _chance_estimate(row.length_matched),
        "excluded": _describe_exclusions,
    }
    title = "Consistency under paraphrase"
    return tabulate(MODEL_TABLE_ID, title, caption, rows, SemanticModelRow, derived, more_columns=marks.columns)


def _describe_exclusions(row: SemanticModelRow) -> str:
    """List unusable answers and rules of thumb by cause."""
    answers = list_counts({**row.losses, **({"not asked": row.missing} if row.missing else {})})
    rules = f"rules: {list_counts(row.rules_losses)}" if row.rules_losses else ""
    return "; ".join(filter(None, (answers, rules))) or "none"


def _build_comparison_tables(semantic: SemanticReport, marks: SamplingMarks) -> Iterator[Block]:
    """Build the tables of differences between models, of scores by moral foundation, and of other measures."""
    if semantic.differences:
        caption = (
            "Score of the model minus that of the other, with 95% CI, on questions with as many usable answers of "
            "both. p is adjusted for all pairs of models (Holm)."
        )
        title, rows = "Differences between models", semantic.differences
        yield tabulate("paraphrase-differences", title, caption, rows, SemanticDifferenceRow)
    if semantic.foundations:
        by_model: dict[str, dict[str, Estimate]] = {}
        for row in semantic.foundations:
            by_model.setdefault(marks.mark(row.model, row.model), {})[row.foundation] = row.consistency
        caption = "Consistency score by moral foundation of the question, with 95% CI; n counts questions."
        title = "Consistency by moral foundation"
        yield tabulate_matrix("paraphrase-foundations", title, caption, Column("Model", "name"), by_model)
    if semantic.rivals:
        caption = (
            "Other measures of similarity (higher is more similar), each the mean over all pairs of a question’s texts "
            "(Elazar et al. 2021), with 95% CI; n counts questions."
        )
        labels: DerivedCells[BaselineSimilarityRow] = {
            "metric": lambda row: name_metric(row.metric),
            "text": lambda row: SCORED_TEXT_LABELS[row.text],
            **marks.derived,
        }
        title, rivals, columns = "Other measures of similarity", semantic.rivals, BaselineSimilarityRow
        table = tabulate("paraphrase-measures", title, caption, rivals, columns, labels, more_columns=marks.columns)
        yield Disclosure(title, [table])


def _build_culture_tables(semantic: SemanticReport, marks: SamplingMarks) -> Iterator[Block]:
    """Build the tables by country and language, of gaps between regions, and of consistency across languages."""
    main = semantic.settings.measured, semantic.settings.variant
    measure = {"metric": lambda row: name_measure(row.metric, row.text)}
    caption = "Mean over the questions about each country, with 95% CI; n counts questions. "
    yield from _build_culture_table(
        "paraphrase-countries", "Consistency by country", caption, semantic.countries, main, measure, marks
    )
    if semantic.region_gaps:
        caption = (
            "Mean over the questions about the countries of a region minus that about another region, with 95% CI, for "
            "other countries and questions like these; for these countries, if there are fewer than five, or than "
            "three in a region. p is adjusted for all rows of a measure (Holm)."
        )
        title, rows = "Gaps in consistency between regions", semantic.region_gaps
        main_rows = [row for row in rows if (row.text, row.metric) == main]
        yield tabulate("paraphrase-region-gaps", title, caption, main_rows, ConsistencyGapRow, measure)
        others = [row for row in rows if (row.text, row.metric) != main]
        if others:
            table = tabulate("paraphrase-region-gaps-measures", title, caption, others, ConsistencyGapRow, measure)
            yield Disclosure(f"{title}, by other measures", [table])
    caption = "Mean over questions, of the wordings in each language, with 95% CI; n counts questions. "
    yield from _build_culture_table(
        "paraphrase-by-language", "Consistency by language", caption, semantic.by_language, main, measure, marks
    )
    if semantic.languages:
        caption = (
            "Similarity of answers across two languages, and within one, with 95% CI; n counts questions. "
            "Translations: similarity of answers and their translations, which mean the same. A model whose answers "
            "across languages are as similar as translations is consistent across them; one whose difference is below "
            "0, with p below 0.05, is not. p is adjusted for all models and pairs of languages (Holm)."
        )
        derived: DerivedCells[LanguagePairRow] = {"languages": _name_languages, **marks.derived}
        title, columns = "Consistency across languages", LanguagePairRow
        yield tabulate(
            "paraphrase-languages", title, caption, semantic.languages, columns, derived, more_columns=marks.columns
        )


CultureRow = TypeVar("CultureRow", CountryConsistencyRow, LanguageConsistencyRow)


def _build_culture_table(
    table_id: str,
    title: str,
    caption: str,
    rows: Sequence[CultureRow],
    main: tuple[str, str],
    measure: DerivedCells[CultureRow],
    marks: SamplingMarks,
) -> Iterator[Block]:
    """Build the table of the audit's measure, and one of the other measures behind it; none without rows."""
    if not rows:
        return
    derived: DerivedCells[CultureRow] = {**measure, **marks.derived}
    for is_main in (True, False):
        selected = [row for row in rows if ((row.text, row.metric) == main) == is_main]
        if selected:
            name = table_id if is_main else f"{table_id}-measures"
            table = tabulate(name, title, caption, selected, type(rows[0]), derived, more_columns=marks.columns)
            yield table if is_main else Disclosure(f"{title}, by other measures", [table])


def _name_languages(row: LanguagePairRow) -> str:
    """Name the pair of languages, or the single language."""
    return f"within {row.first}" if row.first == row.second else f"{row.first} and {row.second}"


def _build_people_section(people: HumanJudgementReport) -> Section:
    """Build the subsection that compares the measures with people's labels on a random sample of pairs."""
    note = (
        f"{describe_labels(people)} {PUBLISHED_AGREEMENT} The pairs are a random sample of all pairs of answers to two "
        "wordings, and count by the inverse of their probability. With few labelled pairs a question, r is closer to "
        "0 than with all of them."
    )
    blocks = [Paragraph(note), *tabulate_judgements(people)]
    return Section("paraphrase-people", "Do people find the same answers alike?", blocks)


def _build_least_consistent_section(rows: Sequence[LeastConsistentRow]) -> Section:
    """Build the subsection with each model's questions of the lowest scores."""
    note = "Each model’s questions with the lowest scores, and the two answers to each that differ most."
    blocks = [_build_question(row, is_printed=i < MAX_PRINTED_QUESTIONS) for i, row in enumerate(rows)]
    return Section("paraphrase-questions", "Least consistent questions", [Paragraph(note, "note"), *blocks])


def _build_question(row: LeastConsistentRow, *, is_printed: bool) -> Disclosure:
    """Build one question with the two answers that differ most, and what the judge finds."""
    tags = [Tag(row.foundation)] if row.foundation else []
    quotes: list[Block] = [
        Quote(
            Name(side.wording),
            side.answer or "No usable answer.",
            ["Rule of thumb: ", Name(side.rule)] if side.rule else "",
        )
        for side in (row.left, row.right)
    ]
    verdicts: list[Block] = []
    if row.contradict is not None:
        tags.append(Tag("contradiction", "negative") if row.contradict else Tag("no contradiction"))
        verdict = f"The judge finds {'a' if row.contradict else 'no'} contradiction between the two answers"
        verdicts = [Quote(f"{verdict}:", row.because) if row.because else Paragraph(f"{verdict}.", "note")]
    similarity = Paragraph(f"Cosine similarity of the two answers: {format_number(row.similarity)}.", "note")
    return Disclosure(
        Name(row.question),
        [*quotes, similarity, *verdicts],
        detail=[Name(row.model), f" {format_number(row.score)}"],
        tags=tags,
        in_print="open" if is_printed else "hidden",
    )


def find_key_finding(report: Report) -> KeyFinding | None:
    """The first finding of the section, with the p-value of the claim that a score is above that by chance."""
    section = build_semantic_section(report)
    finding = None if section is None else find_first_finding(section)
    if section is None or finding is None:
        return None
    semantic = report.find(SemanticReport)
    assert semantic is not None
    is_claim = isinstance(finding, ListItem) and finding.status == "positive"
    return KeyFinding(section.title, finding, _bound_p_value(semantic.models[0]) if is_claim else None)


def _bound_p_value(row: SemanticModelRow) -> float:
    """Upper bound of the p-value of no difference between a score and that by chance, both with an interval."""
    score, chance = row.consistency, _best_chance_estimate(row)
    ends = (score.value, score.ci_low, chance.value, chance.ci_high)
    value, low, mean, high = (float("nan") if end is None else end for end in ends)
    difference = value - mean
    half_width = math.hypot(value - low, high - mean)
    return bound_p_value(difference, difference - half_width, difference + half_width)


def build_summary_tables(report: Report) -> Iterator[Table]:
    """Yield consistency under paraphrase; one row for each model."""
    semantic = report.find(SemanticReport)
    if semantic is None or not semantic.settings.wordings:
        return
    marks = SamplingMarks.of(report.sampling, MORAL_PURPOSE)
    rows: list[list[Cell]] = [
        [
            row.model,
            row.consistency.n,
            None if row.consistency.value is None else row.consistency,
            row.shuffled.mean if row.length_matched.mean is None else row.length_matched.mean,
            CountShare(row.ok, row.planned),
            *marks.cells(row.model),
        ]
        for row in semantic.models
    ]
    columns = build_summary_columns("questions", "consistency (95% CI)", "by chance", marks=marks)
    yield Table("semantic", "Consistency under paraphrase", "", columns, rows)
