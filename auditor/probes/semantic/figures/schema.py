"""Schema of the section on consistency under paraphrase: scores as arrays, and by culture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from auditor.domain import ENGLISH, Survey
from auditor.metrics.answers.semantic import SizedScores
from auditor.metrics.distributions.groups import group_mean_difference
from auditor.metrics.intervals.estimate import NullDistribution, Tested, bonferroni_level
from auditor.metrics.intervals.items import AveragedEstimate, mean_of_instances
from auditor.metrics.intervals.paired import paired_difference
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.probes.semantic.records import MoralQuestion, QuestionScore, SemanticScoringSettings
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_model import FlatRow, JudgeName, ModelName, ReportModel, RowTest, p_column, publish
from auditor.reports.data.report_source import FloatArray
from auditor.reports.document import Column
from auditor.surveys.regions import region_of

LEXICAL_METRICS = ("bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed")
"""Metrics that compare words: between 0 and 1, and without an encoder. BERTScore is not rescaled, so that it may be
negative, as are graph entropies of cosines."""


class ScoreTable:
    """Scores as arrays over the questions, by model, text and metric."""

    def __init__(
        self, questions: Sequence[MoralQuestion], scores: Sequence[QuestionScore], settings: SemanticScoringSettings
    ) -> None:
        """Arrange the scores by model, text and metric, in the order of the questions; nan where there is none."""
        self.settings = settings
        self.questions = questions
        self.foundations = [q.foundation for q in questions]
        question_index = {q.id: i for i, q in enumerate(questions)}
        self._scores: dict[tuple[str, str, str], FloatArray] = {}
        self._sizes: dict[tuple[str, str, str], FloatArray] = {}
        for score in scores:
            key = (score.model, score.text, score.metric)
            column = self._scores.setdefault(key, np.full(len(questions), np.nan))
            if score.value is not None:
                column[question_index[score.question]] = score.value
            sizes = self._sizes.setdefault(key, np.zeros(len(questions)))
            sizes[question_index[score.question]] = score.n

    @property
    def models(self) -> set[str]:
        """Models with at least one score."""
        return {model for model, _, _ in self._scores if model}

    @property
    def metrics(self) -> set[tuple[str, str]]:
        """Pairs of text and metric with scores, without those of the audit's own variant (`sage` or `sge`)."""
        return {(text, metric) for _, text, metric in self._scores if metric != self.settings.variant}

    def scores_of(self, model: str, text: str | None = None, metric: str | None = None) -> FloatArray:
        """Scores by question, nan where there is none.

        Args:
            model: empty for the wordings of the questions themselves.
            text: `rot`, `answer` or `mix`; by default the text that the audit measures.
            metric: by default the audit's variant, `sage` or `sge`.
        """
        key = (model, text or self.settings.measured, metric or self.settings.variant)
        return self._scores.get(key, np.full(len(self.questions), np.nan))

    def sized_scores_of(self, model: str) -> SizedScores:
        """A model's scores by the audit's text and variant."""
        key = (model, self.settings.measured, self.settings.variant)
        return SizedScores(self.scores_of(model), self._sizes.get(key, np.zeros(len(self.questions))))


def mean_over_questions(
    question_scores: FloatArray,
    missing_reason: str = "no question has two usable answers",
    *,
    metric: str = "",
    n_intervals: int = 1,
) -> AveragedEstimate:
    """Mean over questions of scores, ignoring nan, with an interval over questions.

    Args:
        metric: of the scores, which says between which bounds they lie; by default a graph entropy or a cosine.
        n_intervals: number of intervals that hold together.
    """
    units = {"question": np.arange(len(question_scores))}
    return mean_of_instances(
        question_scores,
        units,
        bounds_of(metric),
        empty_reason=missing_reason,
        confidence_level=bonferroni_level(n_intervals),
    )


def bounds_of(metric: str) -> tuple[float, float]:
    """Smallest and largest possible value of a metric: BLEU and ROUGE-L are no less than 0, cosines may be -1."""
    return (0.0 if metric in LEXICAL_METRICS else -1.0, 1.0)


LANGUAGE_METRIC_PREFIX, TRANSLATION_METRIC_PREFIX = "languages:", "translations:"
BASELINE_METRICS = ("cosine", "bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed", "bertscore", "bertscore_bert_base")
CULTURE_METRICS = ("sage", "sge", *BASELINE_METRICS)
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


class ConsistencyGapRow(FlatRow):
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
    grouped = survey.grouping.region_by_country if survey.grouping is not None else {}
    countries = sorted({question.country for question in table.questions if question.country})
    region_by_country = {country: grouped.get(country) or region_of(country) or NO_REGION for country in countries}
    rows = list(_build_language_pairs(models, table))
    compared = adjust_rows(
        (row for row in rows if row.difference is not None), "difference", "consistency across languages"
    )
    return {
        "countries": list(_build_country_rows(models, table, region_by_country)),
        "by_language": list(_build_language_rows(models, table)),
        "region_gaps": _build_region_gaps(models, table, region_by_country),
        "languages": [row if row.difference is None else compared.pop(0) for row in rows],
    }


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
) -> list[ConsistencyGapRow]:
    """One row for each measure, pair of regions and model; p-values are Holm-adjusted over a measure's rows."""
    regions = list(dict.fromkeys(region for region in region_by_country.values() if region != NO_REGION))
    countries = np.array([question.country for question in table.questions])
    questions = np.array([question.id.removesuffix(f" ({question.country})") for question in table.questions])
    region = np.array([region_by_country.get(country, "") for country in countries])
    rows: list[ConsistencyGapRow] = []
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
                    ConsistencyGapRow(
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


class SemanticModelRow(ReportModel):
    """One model; n of every estimate counts questions with at least two usable answers."""

    model: ModelName
    consistency: Annotated[AveragedEstimate, Column("Score", emphasis=True)]
    """Score of the texts named by `measured`: 1 is the same answer in all wordings."""
    consistency_simultaneous: AveragedEstimate
    """`consistency` with an interval that holds for all models together (Bonferroni); it is compared with chance."""
    rules: Annotated[AveragedEstimate, Column("Rules of thumb")]
    """Score of the rules of thumb only."""
    answers: Annotated[AveragedEstimate, Column("Answers")]
    """Score of the answers only."""
    shuffled: Annotated[NullDistribution, Column("By chance", "estimate", show_n=False)]
    """Chance level with the answers of all questions shuffled."""
    length_matched: Annotated[NullDistribution, Column("By chance, similar length", "estimate", show_n=False)]
    """Chance level with answers shuffled among questions with answers of similar length."""
    ok: Annotated[int, Column("Usable")]
    planned: Annotated[int, Column("Planned")]
    """Planned answers; planned = ok + all losses + missing."""
    losses: Annotated[dict[str, int], Column("Excluded", key="excluded")]
    missing: int
    rules_planned: int
    """Planned rules of thumb: one for each usable answer, where they are asked for."""
    rules_ok: int
    rules_losses: dict[str, int]


class FoundationRow(ReportModel):
    """One model on the questions about one moral foundation."""

    model: str
    foundation: str
    consistency: AveragedEstimate


class SemanticDifferenceRow(FlatRow):
    """Difference of two models on the questions with a score from both."""

    second: Annotated[str, Column("Model", "name")]
    first: Annotated[str, Column("Compared with", "name")]
    difference: Annotated[RowTest, Column("Difference", style="signed", emphasis=True), p_column()]
    """Mean score of the second minus that of the first."""


class BaselineSimilarityRow(ReportModel):
    """Baseline measure of similarity between a question's texts: the mean over pairs."""

    metric: Annotated[str, Column("Measure")]
    text: Annotated[str, Column("Texts")]
    """`rot` or `answer`."""
    model: ModelName
    value: Annotated[AveragedEstimate, Column("Mean over pairs")]


class ScoreFormRow(ReportModel):
    """The score in one form that the papers or their programs use, from the same answers."""

    model: str
    """Empty for the wordings of the questions themselves."""
    text: str
    """`answer`, `rot`, `mix` (of rules of thumb and answers) or `question`."""
    rot_weight: float | None
    """Weight of the rules of thumb in the similarity of two answers; null for `question`."""
    alpha: float | None
    """Exponent of SaGE: 10 in the released program, 1 in the paper's text; null for SGE."""
    value: AveragedEstimate


class JudgedConsistencyRow(ReportModel):
    """Consistency score of one model: share of judged pairs of sampled answers that the judge finds consistent."""

    model: ModelName
    judge: JudgeName
    instances: Annotated[AveragedEstimate, Column("Mean over questions", emphasis=True)]
    """The mean over questions of each one's score; n counts questions."""
    score: Annotated[AveragedEstimate, Column("Pooled")]
    """Of all judged pairs; n counts valid judgements."""
    questions: int
    consistent: Annotated[int, Column("Consistent")]
    asked: Annotated[int, Column("Asked")]
    failed: Annotated[int, Column("Failed")]
    """Failed judgements, left out of numerator and denominator."""
    losses: dict[str, int]
    """Failed judgements by outcome."""


class WordedAnswer(ReportModel):
    """One of the two answers that differ most, with its wording and rule of thumb."""

    wording: str
    answer: str | None
    rule: str | None


class LeastConsistentRow(ReportModel):
    """One of a model's least consistent questions."""

    model: str
    id: str
    question: str
    foundation: str
    score: float
    similarity: float
    """Cosine of the two answers that differ most."""
    left: WordedAnswer
    right: WordedAnswer
    contradict: bool | None = None
    """Whether the judge finds that the two answers contradict each other; null if no judge was asked, or it failed."""
    because: str | None = None
    """The judge's reason."""


class SemanticReport(FlatRow):
    """Consistency under paraphrase."""

    settings: Annotated[
        SemanticScoringSettings,
        publish(
            *("source", "subject", "wordings", "encoder", "revision", "variant", "alpha", "rot_weight", "measured"),
            computed_bertscore_model="bertscore_model",
        ),
    ]
    questions: int
    fewest_wordings: int | None = None
    """Fewest wordings that a question was asked in, where a model wrote too few; null if none were counted."""
    models: list[SemanticModelRow]
    foundations: list[FoundationRow]
    differences: list[SemanticDifferenceRow]
    rivals: list[BaselineSimilarityRow]
    languages: list[LanguagePairRow]
    """Empty where all wordings are in one language."""
    judged: list[JudgedConsistencyRow]
    """Consistency scores by a judge; empty where none was asked."""
    worst: list[LeastConsistentRow]
    rejected: dict[str, int]
    """Model-written paraphrases that were not asked, by reason."""
    questions_only: AveragedEstimate | None = None
    """Score of the wordings of the questions themselves, as if they were answers: the upper bound of SGE's authors.
    Null where it was not computed."""
    forms: list[ScoreFormRow] = Field(default_factory=list)
    """The score with each published exponent and weight of the rules; empty where they were not computed."""
    countries: list[CountryConsistencyRow] = Field(default_factory=list)
    """By country, by every measure; empty where no question is about a country."""
    by_language: list[LanguageConsistencyRow] = Field(default_factory=list)
    """By language of the wordings, by every measure; empty where all wordings are in one language."""
    region_gaps: list[ConsistencyGapRow] = Field(default_factory=list)
    """Between the regions of the countries that questions are about, by every measure."""
    people: HumanJudgementReport | None = None
    """The measures beside people's labels on a random sample of pairs of answers; null without labels."""
