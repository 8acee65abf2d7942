"""Sections that compare each model with itself: between samples, between methods of scoring, and between languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.domain import ENGLISH, Purpose
from auditor.reports.charts.interval_plot import CORRELATION_DIFFERENCE_AXIS, SHARE_AXIS
from auditor.reports.data.agreement.cultural_findings import MAX_VARIANCE
from auditor.reports.data.agreement.languages import (
    MIN_REGION_COUNTRIES,
    LanguageAgreementRow,
    LanguageDifferenceRow,
    LanguagesReport,
    MethodDifferenceRow,
    UnevenLanguageRow,
)
from auditor.reports.data.measurement_schema import ConsistencyAlignmentRow, ConsistencyRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, List, Name, Paragraph, Section, Table, Text
from auditor.reports.number_format import format_count, format_number, format_percent, pluralize
from auditor.reports.sections.over_models import CORRELATION_REMARK
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    build_finding,
    build_interval_figure,
    compare_interval,
    compare_test,
    describe_correction,
    describe_estimate,
    join_names,
    join_with_and,
    tabulate,
)
from auditor.reports.sections.requests import SamplingMarks

_METHODS_EXPLANATION = (
    "Log-probabilities also show a model’s preferences: how much more probable a positive end of a sentence is than a "
    "negative one. These scores are rescaled to the full scale within each model. Their r with people can be compared "
    "with that of answers, but their distance from people cannot."
)

# --- samples ------------------------------------------------------------------------------------------------------


def build_consistency_section(report: Report) -> Section | None:
    """Build the section on self-consistency; None where no cell was sampled several times."""
    if not report.self_consistency:
        return None
    labels, marks = SeriesLabels.of(report), SamplingMarks.of(report.sampling, Purpose.DIRECT)
    explanation = (
        "Self-consistency is the mean cosine similarity of the reasoning in the samples of a cell (1: equal). A model "
        "that always reasons alike has a high one, whatever it is asked about: so it is compared with the similarity "
        "of the model’s reasonings about another country and another topic, of about equal length. A variance of the "
        f"score above {MAX_VARIANCE} counts as a weakness."
    )
    figure = build_interval_figure(
        "self-consistency",
        "Self-consistency of each model",
        [(marks.flag(labels.label(row), row.model), row.cosine) for row in report.self_consistency],
        SHARE_AXIS,
        table_id="sample-consistency",
        caption=f"Mean self-consistency over cells, with its 95% CI (higher is more consistent).{marks.flag_remark}",
    )
    table = tabulate(
        "sample-consistency",
        "Self-consistency",
        "Repeated answers (samples) to the question of a cell, over cells with at least two usable samples. “Above "
        "chance” is self-consistency minus the similarity of reasonings about another country and topic; its interval "
        "holds for all rows together. “Same "
        "sign” is the share of samples whose score has the most frequent sign of their cell, “both signs” that of "
        f"cells with samples on both sides of zero.{marks.remark('Figures')}",
        report.self_consistency,
        ConsistencyRow,
        {"model": labels.label, **marks.derived},
        more_columns=marks.columns,
    )
    blocks: list[Block] = [
        Paragraph(_summarize_consistency(report), "finding"),
        Paragraph(explanation, "note"),
        *([figure] if any(row.cosine.value is not None for row in report.self_consistency) else []),
        table,
    ]
    if report.consistency_alignment:
        blocks.append(_build_consistency_alignment_table(report.consistency_alignment))
    return Section("consistency", "How consistent are repeated answers?", blocks, "Consistency")


def _summarize_consistency(report: Report) -> str:
    """The range of self-consistency over the series of scores, and of its level by chance."""
    labels = SeriesLabels.of(report)
    values = sorted(
        (row.cosine.value, labels.label(row)) for row in report.self_consistency if row.cosine.value is not None
    )
    if not values:
        return f"Self-consistency is not available: {report.self_consistency[0].cosine.reason}."
    (low, low_label), (high, high_label) = values[0], values[-1]
    chance = sorted(row.chance.value for row in report.self_consistency if row.chance.value is not None)
    range_of_chance = " to ".join(dict.fromkeys(map(format_number, (chance[0], chance[-1])))) if chance else ""
    by_chance = f"; by chance, it would be {range_of_chance}" if chance else ""
    if len(values) == 1:
        return f"The self-consistency of {low_label} is {format_number(low)}{by_chance}.{_compare_with_chance(report)}"
    ends = (
        f"is {format_number(low)} for every model"
        if format_number(low) == format_number(high)
        else f"ranges from {format_number(low)} ({low_label}) to {format_number(high)} ({high_label})"
    )
    return f"Self-consistency {ends}{by_chance}.{_compare_with_chance(report)}"


def _compare_with_chance(report: Report) -> str:
    """Whose samples are not shown to be more alike than reasonings about other cells; empty without a comparison.

    Each model is said to be above chance at a level that holds for all of them together.
    """
    labels = SeriesLabels.of(report)
    compared = [row for row in report.self_consistency if row.chance.value is not None]
    not_above = [labels.label(row) for row in compared if compare_interval(row.above_chance) != "positive"]
    if not compared:
        return ""
    if not not_above:
        is_partial = any(row.cosine.value is not None for row in report.self_consistency if row not in compared)
        names = f"of {join_with_and(list(map(labels.label, compared)))}" if is_partial else "of a cell"
        return f" Samples {names} are more alike than reasonings about other countries and topics."
    return (
        f" Samples of {join_with_and(not_above)} are not shown to be more alike than reasonings about other countries "
        "and topics, so this figure says nothing about how stable the answers are."
    )


def _build_consistency_alignment_table(rows: Sequence[ConsistencyAlignmentRow]) -> Table:
    """Build the table of the correlations, over models, of consistency with agreement with people."""
    titles = {"cosine": "Self-consistency (cosine)", "variance": "Variance of the score"}
    caption = (
        "Correlations, over models, of self-consistency and of the variance of the scores with r. If consistent models "
        f"agree more with people, the first is positive and the second negative. {CORRELATION_REMARK}"
        if any(row.r.ci_low is not None for row in rows)
        else "Correlations, over models, with r."
    )
    title = "Consistency and agreement with people"
    derived = {"figure": lambda row: titles[row.figure]}
    return tabulate("consistency-alignment", title, caption, rows, ConsistencyAlignmentRow, derived)


# --- methods of scoring -------------------------------------------------------------------------------------------


def build_methods_section(report: Report) -> Section | None:
    """Build the section on answers and log-probabilities; None unless a model has scores by both."""
    if not report.methods:
        return None
    findings = [build_finding(row.model, describe_method_difference(row)) for row in report.methods]
    figure = build_interval_figure(
        "direct-and-logprob",
        "r of answers minus r of log-probabilities, and its 95% CI",
        [(row.model, row.difference) for row in report.methods],
        CORRELATION_DIFFERENCE_AXIS,
        table_id="direct-and-logprob",
        caption=(
            "Difference in r with its 95% CI over countries and topics. To the right of the dashed line, answers agree "
            "better with people than log-probabilities do."
        ),
    )
    title = "Answers compared with log-probabilities"
    table = tabulate(
        "direct-and-logprob",
        title,
        "r with people (higher is better) of answers and of log-probabilities, on the cells with scores by both, and "
        "the difference of answers minus log-probabilities with its 95% CI over countries and topics; n counts cells. "
        "Measure: “echo” uses log-probabilities of the prompt, “continuation” a local model, “choice” the next token "
        "of a chat.",
        report.methods,
        MethodDifferenceRow,
        {"measure": lambda row: ", ".join(row.measures) or None},
    )
    blocks: list[Block] = [List(findings, is_findings=True), Paragraph(_METHODS_EXPLANATION, "note"), figure, table]
    return Section("methods", title, blocks, "Answers and log-probabilities")


def describe_method_difference(row: MethodDifferenceRow) -> str:
    """Describe whether answers agree better with people than log-probabilities do, as a predicate."""
    change = row.difference
    if change.value is None:
        return f"cannot be compared: {change.reason}"
    measures = f" by {', '.join(row.measures)}" if row.measures else ""
    figures = (
        f"r = {format_number(row.direct_r)} for answers, {format_number(row.logprob_r)} for log-probabilities"
        f"{measures}; {describe_estimate('Δr', change, 'cell', style='signed')}"
        f"{describe_correction(change)}"
    )
    findings = {
        "positive": "agrees better with people by its answers than by its log-probabilities",
        "negative": "agrees less with people by its answers than by its log-probabilities",
        "unclear": "shows no statistically distinguishable difference between answers and log-probabilities",
        "neutral": "has a difference of unknown uncertainty",
    }
    return f"{findings[compare_test(change)]} ({figures})"


# --- languages ----------------------------------------------------------------------------------------------------


def build_languages_section(report: Report) -> Section | None:
    """Build the section on languages; None if English is the only configured language."""
    languages = report.languages
    if languages is None or languages.configured == [ENGLISH]:
        return None
    table = tabulate(
        "languages",
        "Difference between languages",
        "Mean score in the second language minus that in the first, over the cells in which the two are different "
        "languages; n counts cells. A positive difference is more permissive. Intervals are 95% CIs over countries and "
        "topics. A difference whose interval includes zero is not statistically distinguishable from zero.",
        languages.differences,
        LanguageDifferenceRow,
    )
    blocks: list[Block] = [
        Paragraph(_summarize_languages(languages), "finding"),
        List([*describe_languages(languages)]),
        *([table] if languages.differences else []),
        *_compare_language_agreement(languages),
    ]
    return Section("languages", "Effect of the language", blocks, "Languages")


def _compare_language_agreement(languages: LanguagesReport) -> Iterator[Block]:
    """Yield the finding and the table on agreement with people in two languages; nothing without a comparison."""
    if not languages.agreement:
        return
    differing = [row for row in languages.agreement if row.mae.is_significant]
    findings: list[Text] = [
        [
            f"{'Farther from' if (row.mae.value or 0.0) > 0 else 'Closer to'} people in “{row.second}” than in "
            f"“{row.first}”: ",
            Name(row.model),
            f", {row.region or 'all countries'} "
            f"({describe_estimate('difference in MAE', row.mae, 'cell', digits=3, style='signed')}).",
        ]
        for row in differing
    ]
    yield (
        List(findings)
        if findings
        else Paragraph(
            "No model’s distance from people differs between languages beyond chance, after correction for all rows."
        )
    )
    small = (
        f" Not compared: {', '.join(languages.small_regions)} (fewer than {MIN_REGION_COUNTRIES} countries)."
        if languages.small_regions
        else ""
    )
    yield tabulate(
        "language-agreement",
        "Agreement with people by language",
        "Figure in the second language minus that in the first, over the cells with a score in both; n counts cells. "
        "MAE: a positive difference is farther from people. Concordance and r: a positive difference is closer. 95% "
        f"CIs are over countries and topics.{small}",
        languages.agreement,
        LanguageAgreementRow,
        {"region": lambda row: row.region or "all countries"},
    )


def _summarize_languages(languages: LanguagesReport) -> str:
    """Count the differences between languages that are distinguishable from zero, without a correction."""
    tested = [row for row in languages.differences if row.difference.ci_low is not None]
    if not tested:
        return "The effect of the language cannot be tested: there is no 95% CI of a difference."
    n_clear = sum(compare_interval(row.difference) != "unclear" for row in tested)
    return (
        f"{format_count(n_clear)} of {pluralize(len(tested), 'difference')} between languages exclude zero; about one "
        "in 20 does by chance alone."
    )


def describe_languages(languages: LanguagesReport) -> Iterator[Text]:
    """Yield the countries asked in each language, fallbacks to English, exclusions, and models with uneven answers."""
    groups = [(f"Asked in “{use.language}”", use.countries) for use in languages.asked]
    groups += [
        ("Asked in English, since their main languages have no prompts", languages.fell_back),
        (
            "Asked once and excluded from every difference, since the configured languages are the same there",
            languages.once,
        ),
        (
            "The share of usable answers differs between languages, so some mean scores are based on fewer answers",
            [f"{row.model} ({_format_usable_shares(row)})" for row in languages.uneven],
        ),
    ]
    return ([f"{label}: ", *join_names(names), "."] for label, names in groups if names)


def _format_usable_shares(row: UnevenLanguageRow) -> str:
    """List the share of usable answers of a model in each language, such as "en 98%, ar 71%"."""
    return ", ".join(f"{code} {format_percent(ok, planned)}" for code, (ok, planned) in row.answers.items())
