"""Consistency by country and by language, gaps between regions, and consistency across languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from auditor.domain import ENGLISH, Survey
from auditor.metrics.averaging import AveragedEstimate
from auditor.metrics.estimate import Tested
from auditor.metrics.group_means import group_mean_difference
from auditor.metrics.paired_difference import paired_difference
from auditor.probes.semantic.figures.score_table import ScoreTable, bounds_of, mean_over_questions
from auditor.probes.semantic.records import SemanticScoringSettings
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_model import FlatRow, ModelName, ReportModel, RowTest, p_column
from auditor.reports.data.report_source import FloatArray
from auditor.reports.document import Column
from auditor.surveys.regions import region_of

LANGUAGE_METRIC_PREFIX, TRANSLATION_METRIC_PREFIX = "languages:", "translations:"
BASELINE_METRICS = ("cosine", "bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed", "bertscore", "bertscore_bert_base")
CULTURE_METRICS = ("sage", "sge", *BASELINE_METRICS)
LEXICAL_METRICS = ("bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed")
"""Measures that compare words and need no encoder."""
NO_REGION = "none"
NO_TRANSLATIONS_REASON = (
    "not measurable: there are no translations of the same answers (probes.semantic.translator names a model that "
    "translates them)"
)


class CountryConsistencyRow(ReportModel):
    """Consistency of one model on the questions about one country, by one measure; n counts questions."""

    model: ModelName
    country: Annotated[str, Column("Country")]
    region: Annotated[str, Column("Region")]
    text: str
    metric: Annotated[str, Column("Measure")]
    consistency: Annotated[AveragedEstimate, Column("Mean", emphasis=True)]


class LanguageConsistencyRow(ReportModel):
    """Consistency of one model in the wordings in one language, by one measure; n counts questions."""

    model: ModelName
    language: Annotated[str, Column("Language")]
    text: str
    metric: Annotated[str, Column("Measure")]
    consistency: Annotated[AveragedEstimate, Column("Mean", emphasis=True)]


class RegionGapRow(FlatRow):
    """Difference of one model's mean consistency between the questions about two regions, by one measure."""

    model: Annotated[str, Column("Model", "name")]
    second: Annotated[str, Column("Region")]
    first: Annotated[str, Column("Compared with")]
    text: str
    metric: Annotated[str, Column("Measure")]
    difference: Annotated[RowTest, Column("Difference", style="signed", emphasis=True), p_column()]
    """Mean over the questions about the second region minus that about the first."""


class LanguagePairRow(ReportModel):
    """Similarity of a model's answers between wordings in two languages, or within one language."""

    model: ModelName
    first: Annotated[str, Column("Languages", key="languages")]
    second: str
    similarity: Annotated[AveragedEstimate, Column("Mean cosine", emphasis=True)]
    """Mean cosine over questions; missing, with the reason, if the encoder does not read both languages."""
    translations: Annotated[AveragedEstimate | None, Column("Translations of the same answers")] = None
    """Mean cosine of answers and their translations: of texts with the same meaning. Null within one language."""
    difference: Annotated[Tested | None, Column("Difference", style="signed"), p_column()] = None
    """Mean of similarity minus translations over the questions with both; null within one language. The adjusted
    p-value is for all models and pairs of languages."""


def build_culture_rows(survey: Survey, models: Sequence[str], table: ScoreTable) -> dict[str, list[Any]]:
    """Build the rows by country, language and region, and across languages, by the fields of `SemanticReport`.

    They are empty where no question is about a country, and where all wordings are in one language.
    """
    region_by_country = _find_regions(survey, table)
    return {
        "countries": list(_build_country_rows(models, table, region_by_country)),
        "by_language": list(_build_language_rows(models, table)),
        "region_gaps": _build_region_gaps(models, table, region_by_country),
        "languages": _adjust_language_pairs(list(_build_language_pairs(models, table))),
    }


def _find_regions(survey: Survey, table: ScoreTable) -> dict[str, str]:
    """Region of each country that questions are about, in order: by the survey's grouping, else the default one."""
    grouped = survey.grouping.region_by_country if survey.grouping is not None else {}
    countries = sorted({question.country for question in table.questions if question.country})
    return {country: grouped.get(country) or region_of(country) or NO_REGION for country in countries}


def _list_measures(table: ScoreTable) -> list[tuple[str, str]]:
    """Text and metric of the measures with scores: the graph entropies of the measured text, then the others."""
    keys = {*table.metrics, (table.settings.measured, table.settings.variant)}
    texts = dict.fromkeys((table.settings.measured, "rot", "answer"))
    return [
        (text, metric)
        for metric in CULTURE_METRICS
        for text in texts
        if (text, metric) in keys and (text == table.settings.measured or metric not in ("sage", "sge"))
    ]


def _build_country_rows(
    models: Sequence[str], table: ScoreTable, region_by_country: Mapping[str, str]
) -> Iterator[CountryConsistencyRow]:
    """One row for each measure, country and model."""
    countries = np.array([question.country for question in table.questions])
    for text, metric in _list_measures(table) if region_by_country else ():
        for country, region in region_by_country.items():
            for model in models:
                values = table.scores_of(model, text, metric)[countries == country]
                mean = mean_over_questions(values, metric=metric)
                yield CountryConsistencyRow(
                    model=model, country=country, region=region, text=text, metric=metric, consistency=mean
                )


def _build_region_gaps(
    models: Sequence[str], table: ScoreTable, region_by_country: Mapping[str, str]
) -> list[RegionGapRow]:
    """One row for each measure, pair of regions and model; p-values are Holm-adjusted over a measure's rows."""
    regions = list(dict.fromkeys(region for region in region_by_country.values() if region != NO_REGION))
    countries = np.array([question.country for question in table.questions])
    questions = np.array([question.id.removesuffix(f" ({question.country})") for question in table.questions])
    region = np.array([region_by_country.get(country, "") for country in countries])
    rows: list[RegionGapRow] = []
    for text, metric in _list_measures(table):
        low, high = bounds_of(metric)
        measure_rows = []
        for first, second in combinations(regions, 2):
            is_compared = (region == first) | (region == second)
            units = {"country": countries[is_compared], "question": questions[is_compared]}
            for model in models:
                difference = group_mean_difference(
                    table.scores_of(model, text, metric)[is_compared],
                    region[is_compared] == second,
                    units,
                    bounds=(low - high, high - low),
                )
                measure_rows.append(
                    RegionGapRow(
                        model=model, first=first, second=second, text=text, metric=metric, difference=difference
                    )
                )
        rows += adjust_rows(measure_rows, "difference", "gaps in consistency between regions")
    return rows


def _build_language_rows(models: Sequence[str], table: ScoreTable) -> Iterator[LanguageConsistencyRow]:
    """One row for each measure, language and model, if there are several languages."""
    languages = sorted({metric.split("@")[1] for _, metric in table.metrics if "@" in metric})
    for text, metric in _list_measures(table) if languages else ():
        for language in languages:
            reason = None if metric in LEXICAL_METRICS else _explain_encoder(table.settings, [language])
            for model in models:
                values = table.scores_of(model, text, f"{metric}@{language}")
                yield LanguageConsistencyRow(
                    model=model,
                    language=language,
                    text=text,
                    metric=metric,
                    consistency=_missing(reason)
                    if reason
                    else mean_over_questions(values, "no question has two usable answers in it", metric=metric),
                )


def _build_language_pairs(models: Sequence[str], table: ScoreTable) -> Iterator[LanguagePairRow]:
    """The mean similarity for each pair of languages and model, beside that of translations of the same answers."""
    text = table.settings.measured
    metrics = sorted(
        metric for kind, metric in table.metrics if kind == text and metric.startswith(LANGUAGE_METRIC_PREFIX)
    )
    for model in models:
        for metric in metrics:
            first, second = metric.removeprefix(LANGUAGE_METRIC_PREFIX).split("-", 1)
            reason = _explain_encoder(table.settings, [first, second])
            similarity = table.scores_of(model, text, metric)
            row = LanguagePairRow(
                model=model,
                first=first,
                second=second,
                similarity=_missing(reason)
                if reason
                else mean_over_questions(similarity, "no question has a usable pair"),
            )
            if first != second:
                floor = table.scores_of(model, text, f"{TRANSLATION_METRIC_PREFIX}{first}-{second}")
                row = row.model_copy(update=_compare_with_translations(similarity, floor, reason))
            yield row


def _adjust_language_pairs(rows: Sequence[LanguagePairRow]) -> list[LanguagePairRow]:
    """Adjust the p-values of the differences between translations and answers for all models and pairs of languages."""
    compared = adjust_rows(
        (row for row in rows if row.difference is not None), "difference", "consistency across languages"
    )
    return [row if row.difference is None else compared.pop(0) for row in rows]


def _compare_with_translations(similarity: FloatArray, floor: FloatArray, reason: str | None) -> dict[str, object]:
    """The figures of a pair of languages that need translations; `reason` is why the encoder cannot compare them."""
    if reason is None and np.isnan(floor).all():
        reason = NO_TRANSLATIONS_REASON
    if reason is not None:
        return {"translations": _missing(reason), "difference": Tested(None, 0, reason=reason)}
    questions = {"question": np.arange(len(floor))}
    return {
        "translations": mean_over_questions(floor, "no answer has a usable translation"),
        "difference": paired_difference(floor, similarity, questions, bounds=(-2.0, 2.0)),
    }


def _explain_encoder(settings: SemanticScoringSettings, languages: Sequence[str]) -> str | None:
    """Why the encoder's vectors say nothing about texts in these languages; None if they do."""
    if settings.reads_several_languages or all(language == ENGLISH for language in languages):
        return None
    return (
        f"not measurable: the encoder {settings.encoder} is not known to read several languages "
        "(probes.semantic.encoder names a multilingual one)"
    )


def _missing(reason: str | None) -> AveragedEstimate:
    """An estimate without a value."""
    return AveragedEstimate(value=None, n=0, reason=reason, averaged="instances")
