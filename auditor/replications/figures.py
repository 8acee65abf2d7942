"""All figures that presets name, by name: of the reports of audits, and of the trials on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from math import floor
from typing import Any, Literal, TypeAlias, TypeVar

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import Averaging
from auditor.metrics.logic.ranking_methods import PAIRS_CALIBRATED, PAIRS_GREEDY
from auditor.metrics.logic.transitivity import PartialTransitivity
from auditor.probes.logic.figures.build import MAX_RANKED_ITEMS, MIN_ASKED_SHARE, MIN_RANKED_ITEMS
from auditor.probes.logic.figures.schema import LogicReport, LogicRow
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.records import RELEASED_MIX
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.survey_figures import (
    EXTREME_FIGURES,
    NOT_MEASURED,
    SURVEY_FIGURES,
    SURVEY_GROUP_FIGURES,
    SURVEY_MODEL_FIGURES,
    TIER_MODEL_FIGURES,
    ExtremeFigure,
    from_correlation,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_percent

TEMPERATURES = (0.0, 0.5, 1.0)
"""Of the experiment on temperatures."""
TEXTS = ("answer", "rot")
TASKS = ("TruthfulQA", "HellaSwag")
"""Trials on questions with known answers."""
LEXICAL_METRICS = ("bleu_nltk", "rouge_l_stemmed")
BERTSCORES = ("bertscore_bert_base", "bertscore")
"""Names of BERTScore: from the published weights, and from those of the sentence encoder."""
SAGE_METRICS = {"sage:alpha=10": ("sage:alpha=10", "sage"), "sage:alpha=1": ("sage:alpha=1",)}
"""Metrics with the exponents 10 and 1: `sage` has the audit's own exponent, which these presets set to 10."""
MISSING = Estimate(None, 0, reason=NOT_MEASURED)


def _read_semantic(audit: MeasuredAudit) -> SemanticReport:
    report = audit.report.find(SemanticReport)
    assert report is not None  # the audits of these presets have the probe
    return report


def _explain_missing(audit: MeasuredAudit, model: str, text: str) -> Estimate:
    """The reason of the audit's own score of a model's texts, if it has none either: then no form of it has."""
    for row in _read_semantic(audit).models:
        score = {"answer": row.answers, "rot": row.rules, "mix": row.consistency}[text]
        if row.model == model and score.value is None:
            return score
    return MISSING


# --- an audit's report ---------------------------------------------------------------------------------------------


def _read_similarity(audit: MeasuredAudit, model: str, *, metrics: Iterable[str], text: str) -> Estimate:
    """Mean over questions of the first of the metrics that the audit measured."""
    rows = {(row.metric, row.text): row.value for row in _read_semantic(audit).rivals if row.model == model}
    return next((rows[metric, text] for metric in metrics if (metric, text) in rows), MISSING)


def _read_form(audit: MeasuredAudit, model: str, *, text: str, alpha: float | None) -> Estimate:
    """SaGE with an exponent, or SGE (None); `model` is empty for the wordings of the questions themselves."""
    rows = (row for row in _read_semantic(audit).forms if (row.model, row.text, row.alpha) == (model, text, alpha))
    return next((row.value for row in rows), None) or _explain_missing(audit, model, text)


def _read_questions_only(audit: MeasuredAudit, _model: str) -> Estimate:
    """Score of the questions' wordings themselves, the same for every model."""
    return _read_semantic(audit).questions_only or MISSING


def _read_judged(audit: MeasuredAudit, model: str, *, figure: str) -> Estimate:
    """Consistency score of one model: its mean over questions (`instances`), or of all pairs (`score`)."""
    rows = [row for row in _read_semantic(audit).judged if row.model == model]
    return getattr(rows[0], figure) if rows else _explain_missing(audit, model, "answer")


def _read_only_judged(audit: MeasuredAudit) -> Estimate:
    """Consistency score of the only model of an audit."""
    [model] = audit.config.models
    return _read_judged(audit, model.name, figure="score")


REPORT_FIGURES: Mapping[str, Callable[[MeasuredAudit, str], Estimate]] = {
    **{
        f"{metric}.{text}": partial(_read_similarity, metrics=(metric,), text=text)
        for metric, text in product(LEXICAL_METRICS, TEXTS)
    },
    **{f"bertscore.{text}": partial(_read_similarity, metrics=BERTSCORES, text=text) for text in TEXTS},
    **{
        f"{name}.{text}": partial(_read_form, text=text, alpha=alpha)
        for (name, alpha), text in product((("sage:alpha=10", 10.0), ("sage:alpha=1", 1.0)), (*TEXTS, "mix"))
    },
    **{f"sge.{text}": partial(_read_form, text=text, alpha=None) for text in TEXTS},
    "sge.questions": _read_questions_only,
    "consistency.instances": partial(_read_judged, figure="instances"),
    "consistency.pooled": partial(_read_judged, figure="score"),
}


# --- trials --------------------------------------------------------------------------------------------------------


def _find_measure(rows: Iterable[Any], metrics: Iterable[str], text: str) -> Any:
    """The row of a trial's measure: of the first of the metrics that there is one of; None if there is none."""
    by_key = {(row.metric, row.text): row for row in rows}
    return next((by_key[metric, text] for metric in metrics if (metric, text) in by_key), None)


def _read_temperature(
    audit: MeasuredAudit, model: str, *, temperature: float, wordings: str, metrics: Iterable[str]
) -> Estimate:
    """A measure of answers at one temperature, to the same words or to other words."""
    rows = [row for row in audit.trials["temperature"] if (row.model, row.temperature) == (model, temperature)]
    measure = _find_measure(rows[0].measures, metrics, "answer") if rows else None
    return MISSING if measure is None else getattr(measure, wordings)


def _read_rule_following(
    audit: MeasuredAudit, model: str, *, stage: str, metrics: Iterable[str], text: str
) -> Estimate:
    """A measure before or after an instruction to follow a rule."""
    rows = [row for row in audit.trials["rules"] if row.model == model]
    measure = _find_measure(rows[0].measures, metrics, text) if rows else None
    return MISSING if measure is None else getattr(measure, stage)


def _read_human_correlation(audit: MeasuredAudit, *, metrics: Iterable[str], text: str) -> Estimate:
    """Correlation of a measure with the share of pairs that people find alike, over models and questions."""
    row = _find_measure(audit.trials["people"].correlations, metrics, text)
    return MISSING if row is None else row.r


def _read_entropy_correlation(audit: MeasuredAudit, *, metrics: Iterable[str], text: str) -> Estimate:
    """Correlation of a measure with the entropy of people's judgements over pairs, over models and questions."""
    row = _find_measure(audit.trials["people"].correlations, metrics, text)
    return MISSING if row is None else row.r_pair_entropy or MISSING


def _read_accuracy(audit: MeasuredAudit, model: str, *, task: str) -> Estimate:
    """Accuracy of one model on a task whose answers are known."""
    rows = [row for row in audit.trials[task] if row.model == model]
    return rows[0].accuracy if rows else MISSING


def _read_task_consistency(audit: MeasuredAudit, model: str, *, task: str, metrics: Iterable[str]) -> Estimate:
    """Mean consistency of one model's reasons on such a task, by one measure."""
    rows = [row for row in audit.trials[task] if row.model == model]
    measure = _find_measure(rows[0].measures, metrics, "answer") if rows else None
    return MISSING if measure is None else measure.consistency


def _read_accuracy_correlation(audit: MeasuredAudit, *, task: str, metrics: Iterable[str]) -> Estimate:
    """Correlation of consistency and accuracy over models, which the row of each model has."""
    rows = audit.trials[task]
    measure = _find_measure(rows[0].measures, metrics, "answer") if rows else None
    return MISSING if measure is None else from_correlation(measure.over_models)


METRICS_BY_NAME: Mapping[str, tuple[str, ...]] = {
    **{metric: (metric,) for metric in LEXICAL_METRICS},
    "bertscore": BERTSCORES,
    **SAGE_METRICS,
}
TRIAL_FIGURES: Mapping[str, Callable[[MeasuredAudit, str], Estimate]] = {
    **{
        f"temperature.{wordings}.{temperature:g}.{name}": partial(
            _read_temperature, temperature=temperature, wordings=wordings, metrics=metrics
        )
        for (name, metrics), temperature, wordings in product(
            METRICS_BY_NAME.items(), TEMPERATURES, ("same_words", "other_words")
        )
    },
    **{
        f"rules.{stage}.{name}.{text}": partial(_read_rule_following, stage=stage, metrics=metrics, text=text)
        for (name, metrics), stage, text in product(METRICS_BY_NAME.items(), ("before", "after"), TEXTS)
    },
    **{
        f"rules.{stage}.{name}.mix": partial(_read_rule_following, stage=stage, metrics=metrics, text=RELEASED_MIX)
        for (name, metrics), stage in product(SAGE_METRICS.items(), ("before", "after"))
    },
    **{f"{task}.accuracy": partial(_read_accuracy, task=task) for task in TASKS},
    **{
        f"{task}.{name}.consistency": partial(_read_task_consistency, task=task, metrics=metrics)
        for task, (name, metrics) in product(TASKS, SAGE_METRICS.items())
    },
}
PEOPLE_READERS = (("people", _read_human_correlation), ("people.entropy", _read_entropy_correlation))
SEMANTIC_FIGURES: Mapping[str, Callable[[MeasuredAudit], Estimate]] = {
    **{
        f"{trial}.{name}.{text}": partial(read, metrics=metrics, text=text)
        for (trial, read), (name, metrics), text in product(PEOPLE_READERS, METRICS_BY_NAME.items(), TEXTS)
    },
    **{
        f"{trial}.{name}.mix": partial(read, metrics=metrics, text=RELEASED_MIX)
        for (trial, read), (name, metrics) in product(PEOPLE_READERS, SAGE_METRICS.items())
    },
    **{
        f"{task}.{name}.over_models": partial(_read_accuracy_correlation, task=task, metrics=metrics)
        for task, (name, metrics) in product(TASKS, SAGE_METRICS.items())
    },
    "people.alpha": lambda audit: audit.trials["people"].alpha,
    "consistency.example": _read_only_judged,
}
"""Readers of figures over all models, by the names that presets use."""
SEMANTIC_MODEL_FIGURES: Mapping[str, Callable[[MeasuredAudit, str], Estimate]] = {**REPORT_FIGURES, **TRIAL_FIGURES}
"""Readers of figures of one model, by the names that presets use."""


GroupShare = Literal["commutativity", "human_agreement"]


def _read_by_wording(report: Report, model: str, *, share: GroupShare) -> dict[str, Estimate]:
    """A share as the mean over sets, by wording of the question."""
    rows = [row for row in logic.wordings if row.judge == model] if (logic := report.find(LogicReport)) else []
    figures = ((row.wording, getattr(row.instances, share)) for row in rows if row.wording is not None)
    return {
        f"wording {wording + 1}": Estimate(
            figure.value, figure.n, figure.ci_low, figure.ci_high, figure.reason, figure.resampled
        )
        for wording, figure in figures
    }


LOGIC_GROUP_FIGURES: Mapping[str, Callable[[Report, str], Mapping[str, Estimate]]] = {
    "logic.commutativity.by_wording": partial(_read_by_wording, share="commutativity"),
    "logic.human_agreement.by_wording": partial(_read_by_wording, share="human_agreement"),
}
"""Readers of a model's figures by wording, by the names that presets use."""


NOT_RANKED = (
    f"no set of {MIN_RANKED_ITEMS} to {MAX_RANKED_ITEMS} items has at least {MIN_ASKED_SHARE:.0%} of its pairs asked "
    "in both orders"
)
COUNT_OF_DATA = "a count of the data"
MAX_SHARE_UNITS = 10_000
"""Steps that shares are rounded down to, so that a share below 1 is never 100%."""
MAX_K = 8
"""Largest subset whose transitivity figure 9 shows."""
Share = Literal["commutativity", "negation", "self_agreement", "human_agreement"]
StageColumn = Literal["transitivity", "commutativity", "rows", "rows_per_set"]


def _find_row(report: Report, model: str) -> LogicRow | None:
    """The figures of a model's comparisons; None if it made none."""
    rows = logic.judges if (logic := report.find(LogicReport)) else []
    return next((row for row in rows if row.judge == model), None)


def _to_estimate(estimate: Estimate, remark: str = "") -> Estimate:
    """An estimate without the further fields of its kind, and with a remark if there is a value."""
    reason = estimate.reason if estimate.value is None else "; ".join(filter(None, (estimate.reason, remark))) or None
    return Estimate(estimate.value, estimate.n, estimate.ci_low, estimate.ci_high, reason, estimate.resampled)


def _with_pairs_present(estimate: PartialTransitivity) -> Estimate:
    """Transitivity with the share of pairs that are present, if it is not all: a missing pair cannot be in a cycle."""
    present = estimate.pairs_present
    if present is None or present == 1:
        return _to_estimate(estimate)
    percent = format_percent(floor(present * MAX_SHARE_UNITS), MAX_SHARE_UNITS)
    return _to_estimate(estimate, f"{percent} of the pairs have a preference")


def _read_share(report: Report, model: str, *, share: Share, is_pooled: bool) -> Estimate:
    """A share of a model's comparisons, as the mean over sets or pooled."""
    row = _find_row(report, model)
    if row is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    return _to_estimate(getattr(row if is_pooled else row.instances, share))


def _read_transitivity(report: Report, model: str, *, k: int, is_pooled: bool) -> Estimate:
    """The share of a model's subsets of k items without a cycle, by the comparisons there are, in one order each."""
    row = _find_row(report, model)
    entries = [entry for entry in row.transitivity if entry.k == k and not entry.calibrated] if row else []
    if not entries:
        return Estimate(None, 0, reason=NOT_MEASURED)
    return _with_pairs_present(entries[0].partial if is_pooled else entries[0].partial_instances)


def _read_ranking(report: Report, model: str, *, method: str) -> Estimate:
    """Mean over sets of Spearman's rho of a ranking with people's scores."""
    rows = logic.rankings if (logic := report.find(LogicReport)) else []
    estimates = [row.people for row in rows if (row.judge, row.method) == (model, method)]
    return estimates[0] if estimates else Estimate(None, 0, reason=NOT_RANKED)


def _read_wordings_correlation(report: Report, model: str, *, averaged: Averaging) -> Estimate:
    """Correlation over wordings of a model's commutativity with its agreement with people."""
    links = logic.links if (logic := report.find(LogicReport)) else []
    over = f"wordings, {model}"
    correlations = [link.r for link in links if (link.over, link.x, link.averaged) == (over, "commutativity", averaged)]
    return _to_estimate(correlations[0]) if correlations else Estimate(None, 0, reason="it needs three wordings")


def _read_stage(audit: MeasuredAudit, *, stage: str, is_negated: bool, column: StageColumn) -> Estimate:
    """A figure of people's comparisons at a stage of REPAIR; n counts sets."""
    repair = audit.trials["repair"]
    for summary in repair["stages"]:
        if (summary.stage, summary.negated) == (stage, is_negated):
            figures: dict[StageColumn, Estimate] = {
                "transitivity": _with_pairs_present(summary.transitivity),
                "commutativity": _to_estimate(summary.commutativity),
                "rows": Estimate(summary.rows, repair["sets"], reason=COUNT_OF_DATA),
                "rows_per_set": summary.rows_per_set,
            }
            return figures[column]
    return Estimate(None, 0, reason=NOT_MEASURED)


_STAGES = {
    "raw": ("raw", False),
    "perturbed": ("perturbed", False),
    "repaired": ("repaired", False),
    "repaired.negated": ("repaired", True),
}
_STAGE_COLUMNS: tuple[StageColumn, ...] = ("transitivity", "commutativity", "rows", "rows_per_set")

LOGIC_FIGURES: Mapping[str, Callable[[MeasuredAudit], Estimate]] = {
    f"repair.{name}.{column}": partial(_read_stage, stage=stage, is_negated=is_negated, column=column)
    for name, (stage, is_negated) in _STAGES.items()
    for column in _STAGE_COLUMNS
    if column != "commutativity" or stage == "repaired"  # people compared each pair in one order
}
"""Readers of figures of people's comparisons, by the names that presets use."""

LOGIC_MODEL_FIGURES: Mapping[str, Callable[[Report, str], Estimate]] = {
    **{
        f"logic.{share}{suffix}": partial(_read_share, share=share, is_pooled=bool(suffix))
        for share in ("commutativity", "negation", "self_agreement", "human_agreement")
        for suffix in ("", ".pooled")
    },
    **{
        f"logic.transitivity.{k}{suffix}": partial(_read_transitivity, k=k, is_pooled=bool(suffix))
        for k in range(3, MAX_K + 1)
        for suffix in ("", ".pooled")
    },
    "logic.pairs": partial(_read_ranking, method=PAIRS_GREEDY),
    "logic.pairs.calibrated": partial(_read_ranking, method=PAIRS_CALIBRATED),
    "logic.wordings": partial(_read_wordings_correlation, averaged="instances"),
    "logic.wordings.pooled": partial(_read_wordings_correlation, averaged="pooled"),
}
"""Readers of a report's figures of one model's comparisons, by the names that presets use."""


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
