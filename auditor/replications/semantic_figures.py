"""Figures of audits with the probe `semantic`, and of the trials on them. Nothing is computed here.

Names of figures: a metric and the texts that it compares, such as `rouge_l_stemmed.rot`, after the trial if there is
one. Metrics and texts have the names of `QuestionScore`; `mix` is `RELEASED_MIX`. SaGE has its exponent in its name,
since the authors' program and their text differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.records import RELEASED_MIX
from auditor.replications.survey_figures import NOT_MEASURED, from_correlation

if TYPE_CHECKING:
    from auditor.replications.definitions import MeasuredAudit

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
