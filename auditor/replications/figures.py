"""All figures that presets name, by name: of the reports of audits, and of the trials on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

from auditor.metrics.intervals.estimate import Estimate
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.logic_figures import LOGIC_FIGURES, LOGIC_GROUP_FIGURES, LOGIC_MODEL_FIGURES
from auditor.replications.semantic_figures import SEMANTIC_FIGURES, SEMANTIC_MODEL_FIGURES
from auditor.replications.survey_figures import (
    EXTREME_FIGURES,
    SURVEY_FIGURES,
    SURVEY_GROUP_FIGURES,
    SURVEY_MODEL_FIGURES,
    TIER_MODEL_FIGURES,
    ExtremeFigure,
)
from auditor.reports.data.report_schema import Report

MEANINGS: Mapping[str, str] = {
    "r": "Pearson’s r with people",
    "r.by_country": "Pearson’s r with people over topics, by country",
    "r.highest": "highest Pearson’s r with people of a model",
    "rho": "Spearman’s rank correlation with people",
    "mae": "mean absolute error, on the scale from -1 to +1",
    "rmse": "root mean square error",
    "bias": "mean of the model’s score minus that of people",
    "delta_r": "r of direct scores minus r of log-probabilities",
    "self_consistency": "mean cosine of the chains of thought on a cell",
    "self_consistency.alignment": "correlation over models of self-consistency and r",
    "variance": "variance of the scores of a cell’s samples",
    "variance.alignment": "correlation over models of that variance and r",
    "peer_agreement": "share of VALID among other models’ verdicts",
    "peer_agreement.alignment": "correlation over models of the share of VALID and r",
    "fleiss_kappa": "Fleiss’ kappa of the judges’ verdicts",
    "conflicts": "conflicts between models, counted by cells or by pairs of models; share that is settled",
    "regions": "mean over models of a figure in the two regions, and the gap between them",
    "tier": "tier of the model by the paper’s limits on r",
    "errors.by_size": "number of cells by the size of the error",
    "w1": "mean Wasserstein distance of shares of answers from people’s, from 0 to 1",
    "w1_near": "share of cells with a Wasserstein distance below 0.2",
    "skill": "skill of shares of answers against the guess that all countries are alike",
    "logic.commutativity": "share of pairs with one decision in both orders",
    "logic.negation": "share of pairs with the opposite decision under the negated question",
    "logic.self_agreement": "share of pairs with one decision in repeated answers",
    "logic.human_agreement": "share of pairs decided as people decide them",
    "logic.transitivity": "share of subsets of that many items without a cycle",
    "logic.pairs": "rank correlation with people of a ranking by PairS",
    "logic.wordings": "correlation of commutativity and agreement with people over wordings",
    "repair": "judgements of people before and after REPAIR: transitivity, commutativity, rows",
    "bleu_nltk": "mean BLEU between answers to paraphrases",
    "rouge_l_stemmed": "mean ROUGE-L between answers to paraphrases",
    "bertscore": "mean BERTScore between answers to paraphrases",
    "sage:alpha=10": "SaGE with alpha = 10: consistency of answers to paraphrases",
    "sage:alpha=1": "SaGE with alpha = 1: consistency of answers to paraphrases",
    "sge": "semantic graph entropy of answers to paraphrases",
    "consistency": "share of repeated answers that support each other, by a judge",
    "temperature": "consistency at a temperature, of answers to the same words or to other words",
    "rules": "consistency before and after an instruction to follow a rule",
    "people": "correlation of a measure of consistency with people’s labels on pairs of answers",
    "people.entropy": "correlation of a measure of consistency with the entropy of people’s labels",
    "people.alpha": "Krippendorff’s alpha of people’s labels",
    "TruthfulQA": "on TruthfulQA: accuracy, consistency, or their correlation over models",
    "HellaSwag": "on HellaSwag: accuracy, consistency, or their correlation over models",
}
"""What figures are, by the longest beginning of their names."""

Figure = TypeVar("Figure")
FigureReader: TypeAlias = Callable[[MeasuredAudit], Estimate]
ModelFigureReader: TypeAlias = Callable[[MeasuredAudit, str], Estimate]
GroupFigureReader: TypeAlias = Callable[[MeasuredAudit, str], Mapping[str, Estimate]]


def _of_report(read: Callable[[Report], Estimate]) -> FigureReader:
    """The reader of an audit for a figure that its report has."""
    return lambda audit: read(audit.report)


def _of_model_in_report(read: Callable[[Report, str], Figure]) -> Callable[[MeasuredAudit, str], Figure]:
    """The reader of an audit and a model for a figure that the audit's report has."""
    return lambda audit, model: read(audit.report, model)


def _read_extreme(extreme: ExtremeFigure, audit: MeasuredAudit) -> Estimate:
    """The figure of the model with the lowest or the highest, with the interval that it has as a model's figure."""
    model = extreme.find_model(audit.report)
    if model is None:
        return Estimate(None, 0, reason="no model has this figure")
    return SURVEY_MODEL_FIGURES[extreme.model_figure](audit.report, model)


FIGURES: Mapping[str, FigureReader] = {
    **{name: _of_report(read) for name, read in SURVEY_FIGURES.items()},
    **{name: partial(_read_extreme, extreme) for name, extreme in EXTREME_FIGURES.items()},
    **LOGIC_FIGURES,
    **SEMANTIC_FIGURES,
}
"""Readers of figures over all models of an audit."""
MODEL_FIGURES: Mapping[str, ModelFigureReader] = {
    **{
        name: _of_model_in_report(read)
        for name, read in {**SURVEY_MODEL_FIGURES, **TIER_MODEL_FIGURES, **LOGIC_MODEL_FIGURES}.items()
    },
    **SEMANTIC_MODEL_FIGURES,
}
"""Readers of figures of one model."""
GROUP_FIGURES: Mapping[str, GroupFigureReader] = {
    name: _of_model_in_report(read) for name, read in {**SURVEY_GROUP_FIGURES, **LOGIC_GROUP_FIGURES}.items()
}
"""Readers of figures of one model by group, such as by country."""


def describe_figure(name: str) -> str:
    """What a figure is, in words; empty for a figure that has none."""
    known = [start for start in MEANINGS if name == start or name.startswith((f"{start}.", f"{start}:"))]
    return MEANINGS[max(known, key=len)] if known else ""
