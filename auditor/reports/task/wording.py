"""Sentences and table cells on the figures of a task, no stronger than their intervals allow."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import AnswerKind
from auditor.metrics.estimate import Estimate
from auditor.reports.data.task.schema import PeerValidityReport, TaskItemReport, TaskModelRow, TaskReport
from auditor.reports.number_format import format_count, format_interval, format_number, format_signed, pluralize

ANSWER_KIND_LABELS = {
    AnswerKind.SCORE: "a number in a range",
    AnswerKind.CHOICE: "one of several options",
    AnswerKind.EXACT: "a few words or a number",
}
INTERVALS_NOTE = (
    "Intervals are over items: answers of several samples, models and judges to one item rise and fall together, so "
    "that they count for less than their number."
)
MAX_LISTED_ITEMS = 60
"""Items listed in tables; the JSON report lists all."""
CHANCE_AUC = 0.5


def describe_task(task: TaskReport) -> str:
    """Describe the task: items, answer format, samples and known answers."""
    n_known = sum(item.truth is not None for item in task.items)
    range_phrase = f" from {task.range[0]:g} to {task.range[1]:g}" if task.range else ""
    if n_known == len(task.items):
        truth_sentence = "The right answer to each is known."
    elif n_known:
        truth_sentence = f"The right answer is known to {format_count(n_known)} of them; accuracy is of these alone."
    else:
        truth_sentence = "No right answer is known, so that nothing is said of accuracy."
    tolerance_sentence = (
        f" A number within {task.tolerance:g} of it is right." if task.tolerance is not None and n_known else ""
    )
    samples = pluralize(task.samples, "sample")
    return (
        f"{pluralize(len(task.items), 'item')} of {task.source}, each answered with "
        f"{ANSWER_KIND_LABELS[task.kind]}{range_phrase}, {samples} by each model. {truth_sentence}{tolerance_sentence}"
    )


def describe_models(task: TaskReport) -> list[tuple[str, str]]:
    """Describe each model's accuracy or distance from the truth, best first, models without a figure last.

    Returns:
        Pairs of model name and text.
    """
    ranked = sorted(task.models, key=lambda row: -2.0 if row.accuracy.value is None else -row.accuracy.value)
    if any(row.accuracy.value is not None for row in task.models):
        ranked = sorted(task.models, key=lambda row: 2.0 if row.accuracy.value is None else -row.accuracy.value)
    return [(row.model, _describe_model(row, task.chance)) for row in ranked]


def _describe_model(row: TaskModelRow, chance: float | None) -> str:
    """Describe one model's accuracy, distance from the truth and agreement between samples."""
    statements = [text for text in (_describe_accuracy(row, chance), _describe_score(row)) if text]
    agreement = row.sample_agreement
    if agreement.value is not None and row.score is None:
        statements.append(f"two samples on an item give the same answer {format_percent(agreement.value)} of the time")
    return "; ".join(statements) or f"cannot be compared with the truth: {row.accuracy.reason}"


def _describe_accuracy(row: TaskModelRow, chance: float | None) -> str:
    """Describe one model's accuracy, against chance where it is known, and its bounds if samples are unusable."""
    accuracy = row.accuracy
    if accuracy.value is None:
        return "" if row.score is not None else f"accuracy is not known: {accuracy.reason}"
    description = (
        f"is right in {format_percent(accuracy.value)} of {pluralize(accuracy.n, 'answer')} "
        f"({describe_interval(accuracy)})"
    )
    if chance is not None and accuracy.ci_low is not None and accuracy.ci_high is not None:
        if accuracy.ci_low > chance:
            description += f", more often than by chance ({format_percent(chance)})"
        elif accuracy.ci_high < chance:
            description += f", less often than by chance ({format_percent(chance)})"
        else:
            description += f", which cannot be told from chance ({format_percent(chance)})"
    if row.usable < row.planned and row.bound_low is not None:
        description += (
            f"; {format_count(row.planned - row.usable)} of {format_count(row.planned)} samples cannot be used: "
            f"whatever these were, it lies between {format_percent(row.bound_low)} and {format_percent(row.bound_high)}"
        )
    return description


def _describe_score(row: TaskModelRow) -> str:
    """Describe the mean distance of one model's scores from the truth; empty for answers that are not scores."""
    if row.score is None:
        return ""
    mae, r = row.score.mae, row.score.pearson_r
    if mae.value is None:
        return f"distance from the truth is not known: {mae.reason}"
    distance_phrase = (
        f"lies {format_number(mae.value)} from the truth on average ({describe_interval(mae, 1)}, "
        f"{pluralize(mae.n, 'item')})"
    )
    if r.value is not None:
        distance_phrase += f", with r = {format_number(r.value)} ({describe_interval(r, 1)})"
    return distance_phrase


def describe_peer_validity(peer_validity: PeerValidityReport) -> list[str]:
    """Describe how well peer verdicts separate right from wrong answers, one sentence per figure."""
    sentences = []
    if peer_validity.area is not None:
        sentences.append(_describe_auc(peer_validity.area, "a right and a wrong answer"))
    if peer_validity.area_within is not None:
        sentences.append(
            _describe_auc(peer_validity.area_within, "a right and a wrong answer to one and the same item")
        )
    accuracy_by_label = {row.said: row.accuracy for row in peer_validity.verdicts}
    if peer_validity.difference is not None and peer_validity.difference.value is not None:
        shares = " and ".join(
            f"{format_percent(accuracy_by_label[label].value)} of those called {label}"
            for label in ("VALID", "INVALID")
        )
        sentences.append(f"Right are {shares}: a difference of {format_points(peer_validity.difference)}.")
    if peer_validity.closeness is not None:
        sentences.append(
            _describe_correlation(
                peer_validity.closeness, "The nearer an answer is to the truth, the more VALID it is called"
            )
        )
    sentences.append(_describe_correlation(peer_validity.models, "Models that peers find more often VALID are better"))
    return sentences


def _describe_auc(auc: Estimate, pair_label: str) -> str:
    """Describe how often the right answer of a pair has the larger share of VALID verdicts.

    `pair_label` names the two answers compared.
    """
    if auc.value is None:
        return f"Pairs of {pair_label}: {auc.reason}."
    figures = (
        f"Of {pair_label}, the right one has the larger share of VALID verdicts {format_percent(auc.value)} of the "
        f"time ({describe_interval(auc)}; ties count half, 50% is chance)"
    )
    if auc.ci_low is None or auc.ci_high is None:
        return f"{figures}."
    if auc.ci_low > CHANCE_AUC:
        return f"{figures}: peers' verdicts tell right from wrong."
    if auc.ci_high < CHANCE_AUC:
        return f"{figures}: peers' verdicts point the wrong way."
    return f"{figures}: that cannot be told from chance."


def _describe_correlation(correlation: Estimate, claim: str) -> str:
    """Answer a claim by the interval of a correlation: yes, the other way round, or undecided.

    `claim` is a sentence without its full stop that holds if the correlation is positive.
    """
    if correlation.value is None:
        return f"{claim}? Cannot be said: {correlation.reason}."
    if correlation.ci_low is None or correlation.ci_high is None:
        return (
            f"{claim}? r = {format_number(correlation.value)}, over {format_count(correlation.n)}; no interval: "
            f"{correlation.reason}."
        )
    answer = (
        "yes" if correlation.ci_low > 0 else "no, the other way round" if correlation.ci_high < 0 else "cannot be told"
    )
    return (
        f"{claim}? {answer.capitalize()}: r = {format_number(correlation.value)} "
        f"({describe_interval(correlation, 1)}), over {format_count(correlation.n)}."
    )


def select_hardest_items(task: TaskReport) -> Sequence[TaskItemReport]:
    """Select at most `MAX_LISTED_ITEMS` items, those answered wrongly most often first.

    Items of unknown correctness come last: their key is above any share.
    """
    return sorted(task.items, key=lambda item: 2.0 if item.right is None else item.right.value or 0.0)[
        :MAX_LISTED_ITEMS
    ]


def format_percent(share: float | None) -> str:
    """Format a share as a percentage; a dash for None."""
    return "–" if share is None else f"{format_number(100 * share, 0)}%"


def describe_interval(estimate: Estimate, scale: float = 100) -> str:
    """Describe the 95% interval, or the reason why there is none.

    Args:
        scale: 100 shows percent, 1 the values as they are.
    """
    if estimate.ci_low is None or estimate.ci_high is None:
        return f"no interval: {estimate.reason}"
    if scale == 1:
        return f"95% interval {format_interval(estimate.ci_low, estimate.ci_high)}"
    return f"95% interval {format_interval(scale * estimate.ci_low, scale * estimate.ci_high, 0)}%"


def format_points(difference: Estimate) -> str:
    """Format a difference of shares in percentage points, with its interval."""
    value = 100 * (difference.value or 0.0)
    return f"{format_signed(value, 0)} points ({describe_interval(difference).removesuffix('%')})"


def item_answer(item: TaskItemReport, model: str) -> str:
    """Return a model's most common answer to an item; a dash without one."""
    return item.answers.get(model) or "–"
