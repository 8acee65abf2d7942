"""Rows of the experiments on consistency, counts of their answers, and differences of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field

from auditor.domain import Outcome
from auditor.metrics.answers.semantic import SizedScores
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.items import AveragedEstimate
from auditor.metrics.intervals.paired import paired_difference
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.probes.semantic.figures.schema import ScoreTable, SemanticDifferenceRow, bounds_of, mean_over_questions
from auditor.probes.semantic.records import MORAL_PURPOSE
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_model import (
    P_VALUE_KEYS,
    R_KEYS,
    FlatRow,
    ModelName,
    PublishedAs,
    ReportModel,
    RowTest,
    p_column,
)
from auditor.reports.data.requests import INCOMPARABLE_REASON, SamplingReport
from auditor.reports.document import Column
from auditor.reports.number_format import format_span

NO_EQUAL_SIZE_REASON = "no question has as many usable answers of one as of the other"


def difference_over_questions(first: SizedScores, second: SizedScores, *, metric: str = "") -> Tested:
    """Mean of second minus first, with an interval over questions.

    The scores of a question are of equally many usable texts: with alpha = 10, two unrelated answers have a higher
    score than five, so that a model which refuses would seem the more consistent one.

    Args:
        first, second: scores of the same questions.
        metric: of both; see `mean_over_questions`.
    """
    low, high = bounds_of(metric)
    values = np.where(first.sizes == second.sizes, first.values, np.nan)
    units = {"question": np.arange(len(values))}
    difference = paired_difference(values, second.values, units, bounds=(low - high, high - low))
    if difference.value is None and np.isfinite(first.values + second.values).any():
        return Tested(None, 0, reason=NO_EQUAL_SIZE_REASON)
    return difference


def build_difference_rows(
    models: Sequence[str], table: ScoreTable, sampling: SamplingReport
) -> list[SemanticDifferenceRow]:
    """Compare each pair of models on the questions with a score from both; p-values are Holm-adjusted.

    Pairs with different sampling settings are listed without figures, and are no test that Holm's method counts.
    """
    pairs = sorted(
        combinations(models, 2), key=lambda pair: not sampling.are_comparable(pair[0], pair[1], MORAL_PURPOSE)
    )
    rows = [
        SemanticDifferenceRow(
            first=first,
            second=second,
            difference=difference_over_questions(table.sized_scores_of(first), table.sized_scores_of(second))
            if sampling.are_comparable(first, second, MORAL_PURPOSE)
            else Tested(None, 0, reason=INCOMPARABLE_REASON),
        )
        for first, second in pairs
    ]
    return adjust_rows(rows, "difference", "differences in consistency")


class AnswerCountRow(ReportModel):
    """Answers that an experiment asked one model for, in one setting; planned = ok + all losses."""

    setting: str
    """`same_words` or `other_words`; `before` or `after` an instruction to follow a rule; empty for choices."""
    text: str
    """`answer`, or `rot` (rules of thumb)."""
    planned: int
    ok: int
    losses: dict[str, int]
    """Answers that cannot be used, by outcome."""


class TextMeasure(ReportModel):
    """One measure of one kind of text; n counts questions."""

    metric: Annotated[str, Column("Measure")]
    """`sage`, `sge`, `sage:alpha=1` (SaGE with another exponent), `cosine`, or one of `rivals`."""
    text: Annotated[str, Column("Texts")]
    """`answer`, `rot` (rules of thumb), `mix`, or `mix:0.2` as in the released program of SaGE."""


class MeasureByWordingRow(TextMeasure):
    """One measure at one temperature."""

    same_words: Annotated[AveragedEstimate, Column("Same wording")]
    other_words: Annotated[AveragedEstimate, Column("Other wordings")]
    difference: Annotated[Estimate, Column("Other minus same", style="signed", emphasis=True)]
    """`other_words` minus `same_words`; the interval is not adjusted for the number of measures."""


class MeasureByRuleRow(TextMeasure):
    """One measure before and after a rule to follow."""

    before: Annotated[AveragedEstimate, Column("Without a rule")]
    after: Annotated[AveragedEstimate, Column("With a rule")]
    change: Annotated[Estimate, Column("Change", style="signed", emphasis=True)]
    """`after` minus `before`; the interval is not adjusted for the number of measures."""


class SemanticTemperatureRow(FlatRow):
    """One model at one temperature; n counts questions."""

    model: ModelName
    temperature: Annotated[float, Column("Temperature")]
    same_words: Annotated[AveragedEstimate, Column("Same wording")]
    """Consistency over repeated answers to the original question, asked as often as there are wordings."""
    other_words: Annotated[AveragedEstimate, Column("Other wordings")]
    """Consistency over one answer to each wording."""
    difference: Annotated[RowTest, Column("Other minus same", style="signed", emphasis=True), p_column("p"), p_column()]
    """`other_words` minus `same_words`, on the questions that have both."""
    measures: list[MeasureByWordingRow] = Field(default_factory=list)
    """By every measure of the audit, its own score included."""
    questions: int | None = None
    """Questions that were asked."""
    counts: list[AnswerCountRow] = Field(default_factory=list)


class RuleFollowingRow(FlatRow):
    """One model before and after an instruction to follow a rule of thumb; n counts questions."""

    model: ModelName
    before: Annotated[AveragedEstimate, Column("Without a rule")]
    after: Annotated[AveragedEstimate, Column("With a rule")]
    change: Annotated[RowTest, Column("Change", style="signed", emphasis=True), p_column("p"), p_column()]
    rules_file: str | None = None
    """Name of the file of rules; null where each model followed its own first rule."""
    rules_sha256: str | None = None
    """Hash of that file's content."""
    measures: list[MeasureByRuleRow] = Field(default_factory=list)
    """By every measure of the audit, its own score included."""
    questions: int | None = None
    """Questions that were asked: those with a rule."""
    counts: list[AnswerCountRow] = Field(default_factory=list)


class TaskConsistencyRow(ReportModel):
    """Consistency of a model's reasons by one measure, and its correlation with accuracy over models."""

    text: str
    """`answer`: the reasons."""
    metric: Annotated[str, Column("Measure")]
    """As in `MeasureByWordingRow`."""
    consistency: Annotated[AveragedEstimate, Column("Consistency")]
    """Mean over questions; n counts questions."""
    over_models: ModelCorrelation | None = None
    """Pearson's r of mean consistency by this measure and accuracy over the models; the same for all models."""


class ConsistencyAccuracyRow(FlatRow):
    """One model on questions with a known answer; n of both estimates counts questions."""

    model: ModelName
    accuracy: Annotated[AveragedEstimate, Column("Accuracy")]
    """Mean over questions of the share of correct answers among usable ones."""
    scored: Literal["reasons", "choices"] = "reasons"
    """What the consistency is of: the stated reasons, or the texts of the chosen answers."""
    consistency: Annotated[AveragedEstimate, Column("Consistency")]
    """Mean consistency score of these texts."""
    r: Annotated[Tested, PublishedAs(R_KEYS | P_VALUE_KEYS), Column("r", emphasis=True), p_column("p")]
    """Pearson's r of consistency and accuracy over questions, with an interval over other questions; n counts those
    that have both."""
    over_models: ModelCorrelation | None = None
    """Pearson's r of mean consistency and accuracy over the models; the same in all rows."""
    measures: list[TaskConsistencyRow] = Field(default_factory=list)
    """By every measure of the audit, its own score included."""
    questions: int | None = None
    """Questions that were asked."""
    wordings: tuple[int, int] | None = None
    """Fewest and most wordings in which a question was asked."""
    paraphraser: str | None = None
    """The model that wrote wordings of questions that had none in the file; null where it wrote none."""
    counts: list[AnswerCountRow] = Field(default_factory=list)

    @property
    def asked_wordings(self) -> int | str | None:
        """The number of wordings of each question; its ends, such as `2 to 5`, if questions have different numbers."""
        return None if self.wordings is None else format_span(*self.wordings)

    @property
    def wordings_author(self) -> str:
        """Who wrote the wordings, as far as it is known: a model, or the author of the file."""
        return self.paraphraser or "the file's author"


MeasureRow = TypeVar("MeasureRow", MeasureByWordingRow, MeasureByRuleRow)
Scores = Mapping[tuple[str, str], SizedScores]
"""Scores over the questions in order, by text and metric."""


def compare_measures(row_class: type[MeasureRow], first: Scores, second: Scores) -> list[MeasureRow]:
    """Compare two settings by every measure of both; the last three fields of a row are both means and the change."""
    *_, first_name, second_name, change_name = row_class.model_fields
    return [
        row_class.model_validate(
            {
                "text": text,
                "metric": metric,
                first_name: mean_over_questions(first[text, metric].values, metric=metric),
                second_name: mean_over_questions(second[text, metric].values, metric=metric),
                change_name: difference_over_questions(first[text, metric], second[text, metric], metric=metric),
            }
        )
        for text, metric in first
        if (text, metric) in second
    ]


def count_losses(counts: Mapping[str, int]) -> dict[str, int]:
    """Lost items by outcome, in the order of the outcomes; usable ones, and outcomes without any, are left out."""
    return {
        outcome.value: counts[outcome.value]
        for outcome in Outcome
        if outcome is not Outcome.OK and counts.get(outcome.value)
    }


def build_count_rows(outcomes_by_setting: Mapping[str, Mapping[str, Mapping[Outcome, int]]]) -> list[AnswerCountRow]:
    """Build one row for each setting and kind of text.

    Args:
        outcomes_by_setting: number of texts with each outcome, by setting and kind of text.
    """
    return [
        AnswerCountRow(
            setting=setting,
            text=text,
            planned=sum(outcomes.values()),
            ok=outcomes.get(Outcome.OK, 0),
            losses=count_losses({outcome.value: n for outcome, n in outcomes.items()}),
        )
        for setting, outcomes_by_text in outcomes_by_setting.items()
        for text, outcomes in outcomes_by_text.items()
    ]
