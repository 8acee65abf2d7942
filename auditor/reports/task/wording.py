"""What the figures of a task say in plain words, no stronger than their intervals allow."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import AnswerKind
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count, interval, number, plural, signed
from auditor.reports.task.schema import TaskItemPart, TaskModelRow, TaskPart, TellingPart

KINDS = {
    AnswerKind.SCORE: "a number in a range",
    AnswerKind.CHOICE: "one of several options",
    AnswerKind.EXACT: "a few words or a number",
}
INTERVALS = (
    "Intervals are over items: answers of several samples, models and judges to one item rise and fall together, so "
    "that they count for less than their number."
)
LISTED = 60
"""Items in the tables; JSON has all."""
CHANCE = 0.5


def about(part: TaskPart) -> str:
    """What was asked."""
    known = sum(item.truth is not None for item in part.items)
    between = f" from {part.range[0]:g} to {part.range[1]:g}" if part.range else ""
    if known == len(part.items):
        truth = "The right answer to each is known."
    elif known:
        truth = f"The right answer is known to {count(known)} of them; accuracy is of these alone."
    else:
        truth = "No right answer is known, so that nothing is said of accuracy."
    near = f" A number within {part.tolerance:g} of it is right." if part.tolerance is not None and known else ""
    samples = plural(part.samples, "sample")
    return (
        f"{plural(len(part.items), 'item')} of {part.source}, each answered with {KINDS[part.kind]}{between}, "
        f"{samples} by each model. {truth}{near}"
    )


def models(part: TaskPart) -> list[tuple[str, str]]:
    """Model, and how often it is right or how near; best first, those without a figure last."""
    ranked = sorted(part.models, key=lambda row: -2.0 if row.accuracy.value is None else -row.accuracy.value)
    if any(row.accuracy.value is not None for row in part.models):
        ranked = sorted(part.models, key=lambda row: 2.0 if row.accuracy.value is None else -row.accuracy.value)
    return [(row.model, _model(row, part.chance)) for row in ranked]


def _model(row: TaskModelRow, chance: float | None) -> str:
    told = [text for text in (_accuracy(row, chance), _score(row)) if text]
    same = row.sample_agreement
    if same.value is not None and row.score is None:
        told.append(f"two samples on an item give the same answer {percent(same.value)} of the time")
    return "; ".join(told) or f"cannot be compared with the truth: {row.accuracy.reason}"


def _accuracy(row: TaskModelRow, chance: float | None) -> str:
    found = row.accuracy
    if found.value is None:
        return "" if row.score is not None else f"accuracy is not known: {found.reason}"
    told = f"is right in {percent(found.value)} of {plural(found.n, 'answer')} ({span(found)})"
    if chance is not None and found.ci_low is not None and found.ci_high is not None:
        if found.ci_low > chance:
            told += f", more often than by chance ({percent(chance)})"
        elif found.ci_high < chance:
            told += f", less often than by chance ({percent(chance)})"
        else:
            told += f", which cannot be told from chance ({percent(chance)})"
    if row.usable < row.planned and row.bound_low is not None:
        told += (
            f"; {count(row.planned - row.usable)} of {count(row.planned)} samples cannot be used: whatever these were, "
            f"it lies between {percent(row.bound_low)} and {percent(row.bound_high)}"
        )
    return told


def _score(row: TaskModelRow) -> str:
    if row.score is None:
        return ""
    off, r = row.score.mae, row.score.pearson_r
    if off.value is None:
        return f"distance from the truth is not known: {off.reason}"
    told = f"lies {number(off.value)} from the truth on average ({span(off, 1)}, {plural(off.n, 'item')})"
    if r.value is not None:
        told += f", with r = {number(r.value)} ({span(r, 1)})"
    return told


def telling(part: TellingPart) -> list[str]:
    """Whether peers' verdicts tell right answers from wrong ones, a sentence for each way to look at it."""
    told = []
    if part.area is not None:
        told.append(_area(part.area, "a right and a wrong answer"))
    if part.area_within is not None:
        told.append(_area(part.area_within, "a right and a wrong answer to one and the same item"))
    by = {row.said: row.accuracy for row in part.verdicts}
    if part.difference is not None and part.difference.value is not None:
        sides = " and ".join(f"{percent(by[said].value)} of those called {said}" for said in ("VALID", "INVALID"))
        told.append(f"Right are {sides}: a difference of {points(part.difference)}.")
    if part.closeness is not None:
        told.append(_correlation(part.closeness, "The nearer an answer is to the truth, the more VALID it is called"))
    told.append(_correlation(part.models, "Models that peers find more often VALID are better"))
    return told


def _area(found: Estimate, what: str) -> str:
    if found.value is None:
        return f"Pairs of {what}: {found.reason}."
    figures = (
        f"Of {what}, the right one has the larger share of VALID verdicts {percent(found.value)} of the time "
        f"({span(found)}; ties count half, 50% is chance)"
    )
    if found.ci_low is None or found.ci_high is None:
        return f"{figures}."
    if found.ci_low > CHANCE:
        return f"{figures}: peers' verdicts tell right from wrong."
    if found.ci_high < CHANCE:
        return f"{figures}: peers' verdicts point the wrong way."
    return f"{figures}: that cannot be told from chance."


def _correlation(found: Estimate, what: str) -> str:
    if found.value is None:
        return f"{what}? Cannot be said: {found.reason}."
    if found.ci_low is None or found.ci_high is None:
        return f"{what}? r = {number(found.value)}, over {count(found.n)}; no interval: {found.reason}."
    yes = "yes" if found.ci_low > 0 else "no, the other way round" if found.ci_high < 0 else "cannot be told"
    return f"{what}? {yes.capitalize()}: r = {number(found.value)} ({span(found, 1)}), over {count(found.n)}."


def hardest(part: TaskPart) -> Sequence[TaskItemPart]:
    """The items that are listed, those answered wrongly most often first."""
    return sorted(part.items, key=lambda item: 2.0 if item.right is None else item.right.value or 0.0)[:LISTED]


def percent(value: float | None) -> str:
    """A share in percent."""
    return "–" if value is None else f"{number(100 * value, 0)}%"


def span(found: Estimate, scale: float = 100) -> str:
    """The interval in words, as percent or as it is, or why there is none."""
    if found.ci_low is None or found.ci_high is None:
        return f"no interval: {found.reason}"
    if scale == 1:
        return f"95% interval {interval(found.ci_low, found.ci_high)}"
    return f"95% interval {interval(scale * found.ci_low, scale * found.ci_high, 0)}%"


def points(found: Estimate) -> str:
    """A difference of shares, in percentage points."""
    value = 100 * (found.value or 0.0)
    return f"{signed(value, 0)} points ({span(found).removesuffix('%')})"


def answer_of(item: TaskItemPart, model: str) -> str:
    """A model's commonest answer to an item."""
    return item.answers.get(model) or "–"
