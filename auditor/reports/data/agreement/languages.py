"""Languages that models were asked in, and differences between languages and between methods of scoring."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Annotated

import numpy as np

from auditor.config import AuditConfig, DirectProbe
from auditor.domain import ENGLISH, NATIVE, Cell, LogprobMeasure, Method, Outcome, Trace
from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.paired import PairedTable, pair_verdicts, paired_differences_over_units
from auditor.metrics.intervals.two_way import paired_jackknife
from auditor.metrics.people.alignment import BIAS, CONCORDANCE, MAE, PEARSON
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.coverage.lost_samples import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.data.report_model import ModelName, ReportModel, p_column
from auditor.reports.data.report_source import FloatArray, ReportSource, cell_units
from auditor.reports.document import Column
from auditor.storage import results
from auditor.storage.database import Database
from auditor.surveys.regions import get_grouping

MIN_REGION_COUNTRIES = 5
"""Regions with fewer countries asked in both languages are not compared."""
MIN_USABLE_SHARE_GAP = 0.05
"""Smaller differences between shares of usable answers are not reported."""
AnswersByLanguage = dict[str, dict[tuple[Cell, int], bool]]
"""For each language, whether each answer has a score, by cell and number of the sample."""


class LanguageCountriesRow(ReportModel):
    """Countries that models were asked about in one language."""

    language: str
    """ISO 639-1 code."""
    countries: list[str]


class LanguageDifferenceRow(ReportModel):
    """One model asked in two languages."""

    model: ModelName
    first: Annotated[str, Column("First language")]
    second: Annotated[str, Column("Second language")]
    """Languages as the configuration names them; `native` differs by country."""
    difference: Annotated[Estimate, Column("Difference in score", style="signed")]
    """Mean score in the second minus that in the first, over cells where the two are different languages."""


class LanguageAgreementRow(ReportModel):
    """Agreement of one model with people in two languages, over the cells with a score in both.

    A cell's score is the mean of equally many samples in both languages, since the noise of few samples lowers r.
    Differences are the figure in the second language minus that in the first; their adjusted p-values are for all rows.
    """

    model: ModelName
    first: Annotated[str, Column("First language")]
    second: Annotated[str, Column("Second language")]
    region: Annotated[str | None, Column("Region", "name")]
    """Null for all countries together."""
    countries: Annotated[int, Column("Countries")]
    """Countries with a score in both languages."""
    mae: Annotated[Tested, Column("Difference in MAE", digits=3, style="signed", emphasis=True)]
    concordance: Annotated[Tested, Column("Difference in concordance", digits=3, style="signed", show_n=False)]
    pearson_r: Annotated[Tested, Column("Difference in r", digits=3, style="signed", show_n=False)]


class UnevenLanguageRow(ReportModel):
    """A model whose share of usable answers differs between languages."""

    model: str
    answers: dict[str, tuple[int, int]]
    """For each language: answers with a score, and answers asked for."""


class LanguagesReport(ReportModel):
    """The languages of an audit."""

    configured: list[str]
    asked: list[LanguageCountriesRow]
    fell_back: list[str]
    """Countries asked in English under `native`, since none of their main languages has prompts."""
    once: list[str]
    """Countries where all configured languages are the same one: asked once, and left out of the differences."""
    differences: list[LanguageDifferenceRow]
    """Each further language against the first, by model; empty with one language."""
    agreement: list[LanguageAgreementRow]
    """The same pairs of languages by agreement with people: over all countries, and in each region with at least five
    countries."""
    small_regions: list[str]
    """Regions with fewer countries, which are not compared."""
    uneven: list[UnevenLanguageRow]
    """Models whose shares of usable answers in two languages differ by more than 5 points on the cells asked in both,
    and beyond chance, after correction for all models and pairs of languages (Holm)."""


def build_languages_report(db: Database, source: ReportSource) -> LanguagesReport | None:
    """Build the section on languages; None where no model was asked about countries."""
    config = source.config
    if config is None or config.task is not None or not config.probes.direct:
        return None
    countries_by_language: dict[str, list[str]] = defaultdict(list)
    for country in source.countries:
        for code in config.languages_in(source.survey.native.get(country, ())):
            countries_by_language[code].append(country)
    with_native_language = [country for country in source.countries if source.survey.native.get(country)]
    is_multilingual = len(config.languages) > 1
    traces = results.load_traces(db, source.audit.id) if is_multilingual else []
    samples = _stack_samples(traces, source, config) if is_multilingual else None
    agreement, small_regions = ([], []) if samples is None else _compare_agreement(samples, source, config)
    return LanguagesReport(
        configured=list(config.languages),
        asked=[
            LanguageCountriesRow(language=code, countries=countries)
            for code, countries in countries_by_language.items()
        ],
        fell_back=[country for country in source.countries if country not in with_native_language]
        if NATIVE in config.languages
        else [],
        once=[
            country
            for country in source.countries
            if is_multilingual and len(config.languages_in(source.survey.native.get(country, ()))) == 1
        ],
        differences=[] if samples is None else _build_difference_rows(_average(samples), source, config),
        agreement=agreement,
        small_regions=small_regions,
        uneven=_find_uneven_models(traces, source.models, config.direct),
    )


def load_language_scores(db: Database, source: ReportSource) -> FloatArray | None:
    """Mean direct scores by language, shape (languages, models, cells); None where one language was configured."""
    config = source.config
    if config is None or config.task is not None or not config.probes.direct or len(config.languages) < 2:
        return None
    return _average(_stack_samples(results.load_traces(db, source.audit.id), source, config))


def _find_uneven_models(traces: Sequence[Trace], models: Sequence[str], probe: DirectProbe) -> list[UnevenLanguageRow]:
    """Find models whose shares of usable answers differ between languages; one row per such model."""
    answers_by_model: dict[str, AnswersByLanguage] = {model: defaultdict(dict) for model in models}
    for trace in traces:
        if trace.model in answers_by_model:
            is_usable = trace.outcome is Outcome.OK and trace.score is not None
            _, rank = probe.split_sample(trace.sample)
            answers_by_model[trace.model][trace.language][trace.cell, rank] = is_usable
    uneven = _select_uneven(answers_by_model)
    return [
        UnevenLanguageRow(
            model=model,
            answers={code: (sum(answers.values()), len(answers)) for code, answers in sorted(by_language.items())},
        )
        for model, by_language in answers_by_model.items()
        if model in uneven
    ]


def _select_uneven(answers_by_model: Mapping[str, AnswersByLanguage]) -> set[str]:
    """Select the models with two languages whose shares differ by more than 5 points and beyond chance.

    Two languages are compared on the cells that were asked in both, whatever else differs between their countries.
    p-values are corrected for all models and pairs of languages (Holm).
    """
    compared: list[str] = []
    tables: list[PairedTable] = []
    for model, by_language in answers_by_model.items():
        for first, second in combinations(by_language.values(), 2):
            if shared := sorted(first.keys() & second.keys()):
                units = cell_units(cell for cell, _ in shared)
                compared.append(model)
                tables.append(pair_verdicts([first[key] for key in shared], [second[key] for key in shared], units))
    differences = adjust_tests(paired_differences_over_units(tables), "usable answers by language")
    return {
        model
        for model, difference in zip(compared, differences, strict=True)
        if difference.is_significant and abs(difference.value or 0.0) > MIN_USABLE_SHARE_GAP
    }


def _build_difference_rows(
    mean_scores: FloatArray, source: ReportSource, config: AuditConfig
) -> list[LanguageDifferenceRow]:
    """Compute the mean score in each further language minus that in the first, paired by cell, for each model."""
    languages = config.languages
    rows = []
    for position, (i, model) in product(range(1, len(languages)), enumerate(source.models)):
        compared = (mean_scores[position, i], mean_scores[0, i])
        # Bias against a truth of zero is the mean score, so that its paired difference is that of mean scores.
        truth_and_places = (np.zeros(len(source.cells)), source.cluster_countries(*compared), source.topic_index)
        difference = paired_jackknife(BIAS, *compared, *truth_and_places)
        rows.append(
            LanguageDifferenceRow(model=model, first=languages[0], second=languages[position], difference=difference)
        )
    return rows


def _compare_agreement(
    samples: FloatArray, source: ReportSource, config: AuditConfig
) -> tuple[list[LanguageAgreementRow], list[str]]:
    """Compare agreement with people in each further language and in the first, over all countries and by region.

    Returns:
        The rows, and the regions with too few countries for a row of any model.
    """
    region_by_country = get_grouping(source.survey).region_by_country
    regions = list(dict.fromkeys(region_by_country[name] for name in source.countries if name in region_by_country))
    region_by_cell = np.array([region_by_country.get(cell.country, "") for cell in source.cells], dtype=np.str_)
    rows = []
    for position in range(1, len(config.languages)):
        for i, model in enumerate(source.models):
            n_samples = (~np.isnan(samples[[0, position], i])).sum(axis=-1).min(axis=0)
            first, second = _average(samples[[0, position], i], n_samples)
            is_scored = ~np.isnan(first) & ~np.isnan(second) & ~np.isnan(source.survey_scores)
            for region in (None, *regions):
                is_compared = is_scored & (np.True_ if region is None else region_by_cell == region)
                n_countries = len(np.unique(source.country_index[is_compared]))
                if region is not None and n_countries < MIN_REGION_COUNTRIES:
                    continue
                truth = np.where(is_compared, source.survey_scores, np.nan)
                places = (source.cluster_countries(first, second, truth), source.topic_index)
                mae, concordance, r = (
                    paired_jackknife(statistic, second, first, truth, *places)
                    for statistic in (MAE, CONCORDANCE, PEARSON)
                )
                rows.append(
                    LanguageAgreementRow(
                        model=model,
                        first=config.languages[0],
                        second=config.languages[position],
                        region=region,
                        countries=n_countries,
                        mae=mae,
                        concordance=concordance,
                        pearson_r=r,
                    )
                )
    for field in ("mae", "concordance", "pearson_r"):
        rows = adjust_rows(rows, field, f"{field} by language and region")
    compared = {row.region for row in rows}
    return rows, [region for region in regions if region not in compared]


def _stack_samples(traces: Sequence[Trace], source: ReportSource, config: AuditConfig) -> FloatArray:
    """Arrange scores of samples, shape (languages, models, cells, samples), with languages as configured.

    Of several languages that stand for `native`, samples take turns. nan without a score, and in a further language
    where it is the same as the first one.
    """
    model_index = {name: i for i, name in enumerate(source.models)}
    cell_index = {cell: j for j, cell in enumerate(source.cells)}
    positions_by_country = {
        country: _language_positions(config, source.survey.native.get(country, ())) for country in source.countries
    }
    n_codes = max((len(positions) for positions in positions_by_country.values()), default=1)
    shape = (len(config.languages), len(source.models), len(source.cells), n_codes * config.direct.samples)
    samples = np.full(shape, np.nan)
    for trace in traces:
        if trace.cell in cell_index and trace.outcome is Outcome.OK and trace.score is not None:
            positions_by_code = positions_by_country[trace.cell.country]
            _, rank = config.direct.split_sample(trace.sample)
            slot = rank * n_codes + list(positions_by_code).index(trace.language)
            for position in positions_by_code[trace.language]:
                samples[position, model_index[trace.model], cell_index[trace.cell], slot] = trace.score
    return samples


def _average(samples: FloatArray, n_samples: np.ndarray | None = None) -> FloatArray:
    """Mean over the last axis, nan without a sample; `n_samples`: only of so many usable ones, from the first on."""
    is_used = ~np.isnan(samples)
    if n_samples is not None:
        is_used &= is_used.cumsum(axis=-1) <= n_samples[..., None]
    counts = is_used.sum(axis=-1)
    return np.where(counts > 0, np.where(is_used, samples, 0.0).sum(axis=-1) / np.maximum(counts, 1), np.nan)


def _language_positions(config: AuditConfig, native_languages: Sequence[str]) -> dict[str, list[int]]:
    """Map each language code of a country to the positions in `config.languages` that it belongs to.

    `native` stands for the country's main languages. A code of the first configured language belongs to no further
    one, so that a language is never compared with itself.
    """
    codes_by_position = [
        (tuple(native_languages) or (ENGLISH,)) if name == NATIVE else (name,) for name in config.languages
    ]
    positions_by_code: dict[str, list[int]] = defaultdict(list)
    for position, codes in enumerate(codes_by_position):
        for code in codes:
            if position == 0 or code not in codes_by_position[0]:
                positions_by_code[code].append(position)
    return positions_by_code


class MethodDifferenceRow(ReportModel):
    """One model's r with people by direct questions minus its r by log-probabilities, over the cells that have both."""

    model: ModelName
    direct_r: Annotated[float | None, Column("r of answers")]
    """r of the direct scores, over the same cells."""
    logprob_r: Annotated[float | None, Column("r of log-probabilities")]
    measures: Annotated[list[str], Column("Measure", key="measure")]
    """Measures that the log-probabilities were read with; empty where none could be read."""
    difference: Annotated[Tested, Column("Difference in r", style="signed", emphasis=True), p_column()]
    """Paired difference; interval over countries and topics."""


def compare_methods(source: ReportSource) -> list[MethodDifferenceRow]:
    """Compare the two methods for each model that has scores by both; empty where only one was asked for."""
    column_by_series = {key: i for i, key in enumerate(source.columns)}
    model_columns = [
        (model, column_by_series[Method.DIRECT.value, model], column_by_series[Method.LOGPROB.value, model])
        for model in source.models
        if {(Method.DIRECT.value, model), (Method.LOGPROB.value, model)} <= column_by_series.keys()
    ]
    rows = [_build_method_row(source, *columns) for columns in model_columns]
    return adjust_rows(rows, "difference", "answers compared with log-probabilities")


def _build_method_row(source: ReportSource, model: str, direct_column: int, logprob_column: int) -> MethodDifferenceRow:
    """Compute the paired difference in r of one model, with the reason if either method has no r."""
    direct_scores, logprob_scores = source.score_matrix[direct_column], source.score_matrix[logprob_column]
    is_shared = ~(np.isnan(direct_scores) | np.isnan(logprob_scores) | np.isnan(source.survey_scores))
    places = (source.cluster_countries(direct_scores, logprob_scores, source.survey_scores), source.topic_index)
    correlations = [
        pearson(scores[is_shared], source.survey_scores[is_shared]) for scores in (direct_scores, logprob_scores)
    ]
    difference = paired_jackknife(PEARSON, direct_scores, logprob_scores, source.survey_scores, *places)
    measures_used = {
        score.measure
        for score in source.scores
        if (score.method, score.model) == (Method.LOGPROB.value, model) and score.measure
    }
    score_reasons = [missing_score_reason(source, column) for column in (logprob_column, direct_column)]
    correlation_reasons = [
        f"{method_label}: {missing_r_reason(correlation)}"
        for method_label, correlation in zip(("direct", "log-probability"), correlations, strict=True)
        if correlation.value is None
    ]
    missing_reason = next((reason for reason in (*score_reasons, "; ".join(correlation_reasons)) if reason), None)
    return MethodDifferenceRow(
        model=model,
        measures=[m.value for m in LogprobMeasure if m in measures_used],
        difference=with_missing_reason(difference, missing_reason),
        direct_r=correlations[0].value,
        logprob_r=correlations[1].value,
    )
