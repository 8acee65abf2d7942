"""Figures of the probe `memory`: what the JSON report has under `probes.memory`, and how it is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from math import hypot
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

import auditor.probes as ap
from auditor.metrics.intervals.estimate import is_constant
from auditor.probes.memory.published import (
    CONTINUATION,
    MADE_UP_SAMPLE,
    MIN_COUNTRIES,
    ORDINARY,
    RECALL,
    UNKNOWN,
    FigureKey,
    Figures,
    find_siblings,
    is_before,
    load_figures,
    name_publication,
    read_items,
    split_wording,
)
from auditor.probes.memory.recall import POINTS, Floats, compare_with_targets, hits, kernel_shares
from auditor.probes.memory.settings import MemorySettings

TOLERANCES: tuple[Literal["rounding", "5 points"], ...] = ("rounding", "5 points")
ASKED_WAVE, OTHER_WAVE = "asked wave", "other wave"
MIN_CELLS = 20
MIN_WAVES_PER_SIDE = 2
Mask = NDArray[np.bool_]
SIGNIFICANCE_LEVEL = 0.05
VERBATIM_SHARE = 0.8
"""Share of the second half of a wording, in one run of words, from which on it is continued verbatim."""
TEST_FAMILY = "recall of published figures"


ANSWERS_TABLE, AGREEMENT_TABLE, RELEASE_TABLE = "memory-answers", "memory-agreement", "memory-release"


class RecallRow(ap.ReportModel):
    """Hits of a model's answers on one target."""

    target: str
    """The figures that the answers are compared with: those of the `asked wave`, of the `other wave` if there are two,
    or of another wave by its name, whichever was asked for."""
    tolerance: Literal["rounding", "5 points"]
    hits: ap.Estimate
    """Share of the answers within the tolerance, in [0, 1]; answers that are UNKNOWN are no hits."""
    chance: ap.Estimate
    """The same without recall, by the errors of the model's ordinary answers."""
    excess: ap.Tested
    """`hits` minus `chance`. The p-value is one-sided, and adjusted for all targets, tolerances and models."""


class ModelMemory(ap.ReportModel):
    """The figures of one model."""

    model: Annotated[str, ap.Column("Model", "name")]
    asked: Annotated[int, ap.Column("Asked", table=ANSWERS_TABLE)]
    """Published figures that it was asked for."""
    figures: Annotated[int, ap.Column("Figures", table=ANSWERS_TABLE)]
    """Answers that are a number."""
    unknown: Annotated[int, ap.Column("Unknown", table=ANSWERS_TABLE)]
    """Answers that are UNKNOWN."""
    failed: Annotated[dict[str, int], ap.Column("Lost", "number", key="lost", table=ANSWERS_TABLE)]
    """Lost answers, by outcome."""
    ordinary_error: Annotated[ap.Estimate, ap.Column("Ordinary error", table=ANSWERS_TABLE)]
    """Mean absolute error of its ordinary answers, in points."""
    recall: list[RecallRow]
    is_recall_shown: bool
    recalled: str | None
    """Target and tolerance of the row with the smallest p-value, if recall is shown."""
    p_value: float | None
    """Smallest p-value of the model, adjusted for targets and tolerances; null without a test."""
    reason: str | None
    """Why there is no test."""
    made_up: ap.Estimate
    """Share of made-up topics for which it gives a figure, in [0, 1]."""
    agreement: Annotated[ap.Estimate, ap.Column("r", table=AGREEMENT_TABLE)]
    """r of its ordinary scores with people's, over the cells whose figures it was asked for."""
    agreement_without_recall: Annotated[
        ap.Estimate, ap.Column("r without recall", emphasis=True, table=AGREEMENT_TABLE)
    ]
    """The same after its answers on published figures are taken out of both (partial correlation)."""
    agreement_not_recalled: Annotated[ap.Estimate, ap.Column("r where not recalled", table=AGREEMENT_TABLE)]
    """r over the cells whose figure it missed by more than 5 points, or did not know."""
    before_release: Annotated[ap.Estimate, ap.Column("Before", table=RELEASE_TABLE)]
    """Share of hits within rounding beyond chance, in waves before its release."""
    after_release: Annotated[ap.Estimate, ap.Column("After", table=RELEASE_TABLE)]
    release_difference: Annotated[ap.Estimate, ap.Column("Difference", table=RELEASE_TABLE)]
    """Before minus after."""
    continued: ap.Estimate
    """Share of official wordings that it continues verbatim, in [0, 1]."""


class MemoryFigures(ap.ReportModel):
    """Whether models recite a published table: the JSON report under `probes.memory`."""

    publication: str
    is_made_up: bool
    """Whether the figures are those of the worked example, which nobody has published."""
    waves: list[str]
    models: list[ModelMemory]


class Answers:
    """What one model answered to both questions about each published figure; nan where it gave no number."""

    def __init__(self, keys: Sequence[FigureKey], figures: Figures, values: Mapping[tuple[Any, int], Any]) -> None:
        self.keys = keys
        self.published = np.array([figures[key].value for key in keys])
        self.half_unit = np.array([figures[key].half_unit for key in keys])
        self.ordinary, self.recalled = (
            np.array([_as_number(values.get((key, sample))) for key in keys]) for sample in (ORDINARY, RECALL)
        )
        self.is_unknown = np.array([values.get((key, RECALL)) == UNKNOWN for key in keys], dtype=np.bool_)
        siblings = find_siblings(keys, figures)
        waves = sorted({wave for others in siblings for wave in others})
        self.siblings = {
            wave: np.array([others[wave].value if wave in others else np.nan for others in siblings]) for wave in waves
        }
        if len(waves) == 2:  # one test of both waves has more power than one of each
            first, second = self.siblings.values()
            self.siblings = {OTHER_WAVE: np.where(np.isnan(first), second, first)}

    @property
    def is_paired(self) -> Mask:
        """Whether the model gave a number to both questions."""
        return np.asarray(~(np.isnan(self.ordinary) | np.isnan(self.recalled)))

    @property
    def is_answered(self) -> Mask:
        """Whether it gave a number, or said that it does not know the figure."""
        return np.asarray(~np.isnan(self.recalled) | self.is_unknown)

    def units(self, mask: Mask) -> Any:
        """The countries and topics of some of the figures, which intervals resample."""
        return ap.cell_units([key.cell for key, is_used in zip(self.keys, mask, strict=True) if is_used])


def _as_number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")


def compute_figures(
    audit: ap.ProbeAudit[MemorySettings], results: Sequence[ap.ProbeResult], keys: Sequence[FigureKey]
) -> MemoryFigures:
    """Compute the figures of all models.

    Args:
        keys: the published figures that were asked for.
    """
    source = audit.config.survey.source if audit.config.survey else None
    figures = load_figures(audit.settings, audit.survey, source)
    items = read_items(audit.settings.items) if audit.settings.items else {}
    scores = {(row.model, row.cell): row.score for row in audit.load_scores() if row.method == "direct"}
    people = audit.people
    rows = []
    for section in audit.config.models:
        answered = [result for result in results if _is_of(result, section.name) and len(result.unit) > 2]
        values = {(FigureKey(*result.unit), result.sample): result.value for result in answered}
        answers = Answers(keys, figures, values)
        cell_scores = [(scores.get((section.name, key.cell)), people.get(key.cell)) for key in keys]
        pairs = np.array([[np.nan if x is None else x for x in pair] for pair in cell_scores], dtype=np.float64)
        released = section.attributes.get("released")
        rows.append(
            measure_model(
                section.name, answers, pairs.reshape(-1, 2), _orient(answers, figures),
                released=None if released is None else str(released),
                seed=audit.config.seed, n_models=len(audit.models),
                made_up=_measure_made_up(values),
                continued=_measure_continuations(section.name, results, items),
                failed=Counter(
                    str(r.outcome) for r in results if r.model == section.name and r.outcome is not ap.Outcome.OK
                ),
            )
        )  # fmt: skip
    return MemoryFigures(
        publication=name_publication(audit.settings),
        is_made_up=audit.settings.published == "made-up",
        waves=sorted({key.wave for key in keys}),
        models=rows,
    )


def _is_of(result: ap.ProbeResult, model: str) -> bool:
    return result.model == model and result.outcome is ap.Outcome.OK


def measure_model(
    model: str,
    answers: Answers,
    scores: Floats,
    oriented: Floats,
    *,
    released: str | None,
    seed: int,
    n_models: int,
    made_up: ap.Estimate,
    continued: ap.Estimate,
    failed: Mapping[str, int],
) -> ModelMemory:
    """Compute the figures of one model.

    Args:
        scores: shape (n, 2): the model's ordinary score of each cell, and people's.
        oriented: shape (n,): its answers on published figures, as standard scores that rise with acceptance.
        released: date of its release; None if unknown.
        n_models: models of the audit, for which p-values are adjusted.
    """
    paired = answers.is_paired
    rows, reason = find_hits(answers, seed, n_models)
    best = min(rows, key=lambda row: row.excess.adjusted_p_value or 0.0) if rows else None
    p_value = None if best is None else best.excess.adjusted_p_value
    is_shown = p_value is not None and p_value <= SIGNIFICANCE_LEVEL
    errors = np.abs(answers.ordinary - answers.published)[paired]
    missed = answers.is_answered & ~(np.abs(answers.recalled - answers.published) <= POINTS + answers.half_unit)
    before, after, difference = compare_releases(answers, released)
    return ModelMemory(
        model=model,
        asked=len(answers.keys),
        figures=int((~np.isnan(answers.recalled)).sum()),
        unknown=int(answers.is_unknown.sum()),
        failed=dict(sorted(failed.items())),
        ordinary_error=ap.mean_over_units(
            errors, answers.units(paired), (0, np.inf), empty_reason="no ordinary answer"
        ),
        recall=rows,
        is_recall_shown=is_shown,
        recalled=f"{best.target}, {best.tolerance}" if best is not None and is_shown else None,
        p_value=p_value,
        reason=reason,
        made_up=made_up,
        agreement=estimate_correlation(scores, None, answers),
        agreement_without_recall=estimate_correlation(scores, oriented, answers),
        agreement_not_recalled=estimate_correlation(np.where(missed[:, None], scores, np.nan), None, answers),
        before_release=before,
        after_release=after,
        release_difference=difference,
        continued=continued,
    )


# --- recall -----------------------------------------------------------------------------------------------------------


def find_hits(answers: Answers, seed: int, n_models: int) -> tuple[list[RecallRow], str | None]:
    """Test the answers against the asked wave and every other; without a test, the reason."""
    paired = answers.is_paired
    n_countries = len({key.country for key, is_used in zip(answers.keys, paired, strict=True) if is_used})
    if paired.sum() < MIN_CELLS or n_countries < MIN_COUNTRIES:
        return [], (
            f"both questions have a figure on {ap.pluralize(int(paired.sum()), 'cell')} of "
            f"{ap.pluralize(n_countries, 'country', 'countries')}, and {MIN_CELLS} cells "
            f"of {MIN_COUNTRIES} countries are needed"
        )
    siblings = {
        wave: values for wave, values in answers.siblings.items() if (~np.isnan(values[paired])).sum() >= MIN_CELLS
    }
    targets = np.array([answers.published, *siblings.values()])
    keys = [key for key, is_used in zip(answers.keys, paired, strict=True) if is_used]
    tests = compare_with_targets(
        answers.ordinary[paired], answers.recalled[paired], targets[:, paired], answers.half_unit[paired],
        [key.country for key in keys], [key.topic for key in keys], seed=seed,
    )  # fmt: skip
    rows = []
    for name, target, pair in zip((ASKED_WAVE, *siblings), targets, tests, strict=True):
        mask = answers.is_answered & ~np.isnan(target)
        for i, test in enumerate(pair):
            adjusted = min(1.0, test.adjusted_p_value * n_models)
            hit, chance, excess = estimate_excess(answers, target, mask, i)
            tested = ap.Tested(
                **asdict(excess), p_value=test.p_value, adjusted_p_value=adjusted, test_family=TEST_FAMILY
            )
            rows.append(RecallRow(target=name, tolerance=TOLERANCES[i], hits=hit, chance=chance, excess=tested))
    return rows, None


def estimate_excess(
    answers: Answers, target: Floats, mask: Mask, tolerance_index: int
) -> tuple[ap.Estimate, ap.Estimate, ap.Estimate]:
    """Estimate the share of hits, that without recall, and their difference, with intervals over countries.

    Models recite by country, if they do not recite all. The interval of the difference is that of two independent
    shares (Zou & Donner, Statistics in Medicine 27, 2008): hits within rounding are too rare for Student's.

    Args:
        mask: the answers that count; UNKNOWN is no hit, and has no chance of one.
        tolerance_index: 0 for hits within rounding, 1 for those within `POINTS`.
    """
    is_used = mask & (answers.is_paired | answers.is_unknown)
    countries = {"country": [key.country for key, used in zip(answers.keys, is_used, strict=True) if used]}
    if not answers.is_paired[is_used].any():
        missing = ap.Estimate(None, 0, reason="no ordinary answer")
        return missing, missing, missing
    is_hit = hits(answers.recalled - target, answers.half_unit)[tolerance_index][is_used].astype(float)
    added = np.zeros(len(answers.keys))
    paired = is_used & answers.is_paired
    added[paired] = kernel_shares((answers.ordinary - target)[paired], answers.half_unit[paired])[tolerance_index]
    hit, chance = (ap.mean_over_units(values, countries, (0, 1)) for values in (is_hit, added[is_used]))
    return hit, chance, _subtract(hit, chance)


def _subtract(first: ap.Estimate, second: ap.Estimate) -> ap.Estimate:
    """The difference of two independent shares with intervals."""
    ends = (first.value, first.ci_low, first.ci_high, second.value, second.ci_low, second.ci_high)
    if any(end is None for end in ends):
        value = None if first.value is None or second.value is None else first.value - second.value
        return ap.Estimate(value, first.n + second.n, reason=first.reason or second.reason or "no interval")
    a, a_low, a_high, b, b_low, b_high = (float(end or 0.0) for end in ends)
    low, high = a - b - hypot(a - a_low, b_high - b), a - b + hypot(a_high - a, b - b_low)
    return ap.Estimate(a - b, first.n, max(-1.0, low), min(1.0, high), resampled=first.resampled)


def compare_releases(answers: Answers, released: str | None) -> tuple[ap.Estimate, ap.Estimate, ap.Estimate]:
    """Hits within rounding beyond chance in waves before and after a model's release, and their difference."""
    sides = [None if released is None else is_before(key.wave, released) for key in answers.keys]
    by_side = list(zip(answers.keys, sides, strict=True))
    waves = {side: {key.wave for key, its_side in by_side if its_side is side} for side in (True, False)}
    if released is None or min(len(group) for group in waves.values()) < MIN_WAVES_PER_SIDE:
        reason = (
            "the configuration does not say when the model was released"
            if released is None
            else f"there are not {MIN_WAVES_PER_SIDE} waves before and {MIN_WAVES_PER_SIDE} after the model’s release"
        )
        missing = ap.Estimate(None, 0, reason=reason)
        return missing, missing, missing
    before, after = (
        estimate_excess(answers, answers.published, answers.is_answered & np.array([s is side for s in sides]), 0)[2]
        for side in (True, False)
    )
    return before, after, _subtract(before, after)


# --- agreement --------------------------------------------------------------------------------------------------------


def _orient(answers: Answers, figures: Figures) -> Floats:
    """Answers on published figures as standard scores of their statistic; a share that falls with others is turned.

    The sign is that of the statistic's correlation, over published cells, with the first statistic in the alphabet.
    """
    by_statistic: dict[str, dict[tuple[ap.Cell, str], float]] = {}
    for key, figure in figures.items():
        by_statistic.setdefault(key.statistic, {})[key.cell, key.wave] = figure.value
    reference = by_statistic[min(by_statistic)] if by_statistic else {}
    oriented = np.full(len(answers.keys), np.nan)
    for statistic in {key.statistic for key in answers.keys}:
        values = by_statistic[statistic]
        common = [place for place in values if place in reference]
        pair = np.array([[values[place], reference[place]] for place in common])
        spread = float(np.std(list(values.values())))
        if spread == 0:
            continue
        sign = -1.0 if len(pair) > 2 and pair.std(axis=0).min() > 0 and np.corrcoef(pair.T)[0, 1] < 0 else 1.0
        is_of_it = np.array([key.statistic == statistic for key in answers.keys])
        oriented[is_of_it] = sign * (answers.recalled[is_of_it] - float(np.mean(list(values.values())))) / spread
    return oriented


def estimate_correlation(scores: Floats, oriented: Floats | None, answers: Answers) -> ap.Estimate:
    """Pearson r of a model's and people's scores, with a 95% CI over countries and topics.

    Args:
        oriented: what is taken out of both by regression; None for nothing.
    """
    columns = scores if oriented is None else np.column_stack([scores, oriented])
    present = np.asarray(~np.isnan(columns).any(axis=1))
    x = columns[present]
    if len(x) < 5 or any(map(is_constant, x.T)):
        return ap.Estimate(None, len(x), reason="fewer than 5 different scores of such cells")
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    k = x.shape[1]
    moments = np.column_stack([np.ones(len(x)), x, *(x[:, i] * x[:, j] for i in range(k) for j in range(i, k))])
    replicates = ap.replicate_over_units(moments, lambda sums: correlation_of_sums(sums, k), answers.units(present))
    value = float(correlation_of_sums(moments.sum(axis=0)[None], k)[0])
    if not np.isfinite(value):
        reason = "the scores on one side follow exactly from its answers on published figures"
        return ap.Estimate(None, len(x), reason=reason)
    return ap.estimate_from_replicates(
        value, len(x), replicates.units, ap.FISHER_Z, bounds=(-1, 1), cells=replicates.cells
    )


def correlation_of_sums(sums: Floats, k: int) -> Floats:
    """The correlation of two variables, without a third if k is 3, from sums of 1, variables and their products."""
    n, means = sums[:, :1], sums[:, 1 : k + 1] / sums[:, :1]
    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    products = {
        pair: sums[:, 1 + k + p] / n[:, 0] - means[:, pair[0]] * means[:, pair[1]] for p, pair in enumerate(pairs)
    }

    def correlate(i: int, j: int) -> Floats:
        r: Floats = products[i, j] / np.sqrt(products[i, i] * products[j, j])
        return r

    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip(correlate(0, 1), -1.0, 1.0)
        if k == 2:
            return r
        first, second = correlate(0, 2), correlate(1, 2)
        left = np.minimum(1 - first**2, 1 - second**2)  # without more than rounding errors left there is no r
        r = (r - first * second) / np.sqrt((1 - first**2) * (1 - second**2))
        return np.where(left > 1e-9, np.clip(r, -1.0, 1.0), np.nan)


# --- controls ---------------------------------------------------------------------------------------------------------


def _measure_made_up(values: Mapping[tuple[FigureKey, int], Any]) -> ap.Estimate:
    """Share of made-up topics for which a model gives a figure."""
    answered = [(key, value) for (key, sample), value in values.items() if sample == MADE_UP_SAMPLE]
    units = ap.cell_units([key.cell for key, _ in answered])
    is_figure = [float(value != UNKNOWN) for _, value in answered]
    return ap.mean_over_units(is_figure, units, (0, 1), empty_reason="no answer")


def _measure_continuations(model: str, results: Iterable[ap.ProbeResult], items: Mapping[str, str]) -> ap.Estimate:
    """Share of official wordings that a model continues verbatim."""
    if not items:
        return ap.Estimate(None, 0, reason="the configuration names no file of official wordings")
    verbatim = [
        float(is_verbatim(str(result.value), split_wording(items[result.unit[-1]])[1]))
        for result in results
        if _is_of(result, model) and result.sample == CONTINUATION and result.unit[-1] in items
    ]
    topics = {"topic": list(range(len(verbatim)))}
    return ap.mean_over_units(verbatim, topics, (0, 1), empty_reason="no answer")


def is_verbatim(answer: str, second_half: str) -> bool:
    """Whether an answer has most of the second half of a wording in one run of words, without case and marks."""
    spoken, expected = (
        ["".join(c for c in word.lower() if c.isalnum()) for word in text.split()] for text in (answer, second_half)
    )
    run = SequenceMatcher(None, spoken, expected, autojunk=False).find_longest_match()
    return run.size >= VERBATIM_SHARE * len(expected)
