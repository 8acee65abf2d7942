"""Judges of pairs of answers and of comparisons, measured on random samples of them that people labelled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from auditor.config.probe_section import LabelForm
from auditor.domain.labels import UNSURE, Label, LabelKind, LabelUnit
from auditor.metrics.judge_accuracy import JudgeQuality, judge_quality
from auditor.metrics.label_plan import labels_for_half_width
from auditor.reports.data.judge_quality.label_columns import Bools, LabelColumns, select_columns
from auditor.reports.data.judge_quality.pair_schema import PairJudgeRow, PairLabelsReport
from auditor.reports.data.report_source import FloatArray
from auditor.storage.database import Database
from auditor.storage.label_draws import load_label_frame, load_label_sample
from auditor.storage.labels import load_labels
from auditor.storage.probe_answers import find_labelled_probe, list_label_forms

YES_OR_NO = ("yes", "no")
"""Answers of judges whose sensitivity and specificity are measured."""
CHANGED_REASON = "pairs were added, removed or changed since the random sample was drawn"
SUGGESTED_HALF_WIDTH, PLANNED_SD = 0.1, 0.4
"""Half-width of the interval that the suggested number of labels gives, of a judge that is wrong on 20%."""
Decisions = Mapping[tuple[str, str], Mapping[LabelUnit, str]]
"""Value of each unit, as people label it, by judge and question."""


class LabelledPairs:
    """All pairs of one kind, and people's labels on a random sample of them.

    Attributes:
        units: position of each pair that could be drawn.
        raters: names, in order.
    """

    def __init__(self, db: Database, audit_id: int, kind: LabelKind, labels: Sequence[Label]) -> None:
        self.kind = kind
        frame = load_label_frame(db, audit_id, kind)
        pairs = () if frame is None else frame.units
        numbers = {stratum: number for number, stratum in enumerate(sorted({stratum for _, stratum in pairs}))}
        self.is_outdated = frame is not None and frame.is_outdated
        self.units = {unit: position for position, (unit, _) in enumerate(pairs)}
        self.raters = sorted({label.rater for label in labels})
        self._strata = np.array([numbers[stratum] for _, stratum in pairs], dtype=np.intp)
        self._inclusion = np.full(len(pairs), np.nan)
        for sampled in load_label_sample(db, audit_id, kind):
            if sampled.unit in self.units:
                self._inclusion[self.units[sampled.unit]] = sampled.inclusion
        self._values: defaultdict[int, list[str]] = defaultdict(list)
        for label in labels:
            position = self.units.get(label.unit)
            if position is not None and not np.isnan(self._inclusion[position]):
                self._values[position].append(label.value)

    @property
    def n_sampled(self) -> int:
        """Number of sampled pairs."""
        return int((~np.isnan(self._inclusion)).sum())

    @property
    def n_labelled(self) -> int:
        """Number of pairs with a label other than unsure."""
        return sum(any(value != UNSURE for value in values) for values in self._values.values())

    def is_unsure(self) -> Bools:
        """Whether a rater is unsure of each pair, shape (pairs,)."""
        return np.array(
            [UNSURE in self._values.get(position, ()) for position in range(len(self.units))], dtype=np.bool_
        )

    def shares(self, values: Sequence[str], if_unsure: float | None = None) -> FloatArray:
        """Share of the raters of each pair that chose its value, shape (pairs,); nan without a label.

        Args:
            values: one for each pair, shape (pairs,).
            if_unsure: whether raters that are unsure count as having chosen it, 0 or 1; None leaves them out.
        """
        shares = np.full(len(self.units), np.nan)
        for position, chosen in self._values.items():
            hits = [
                if_unsure if value == UNSURE else float(value == values[position])
                for value in chosen
                if value != UNSURE or if_unsure is not None
            ]
            if hits:
                shares[position] = np.mean(np.array(hits, dtype=np.float64))
        return shares

    def select(self, labels: FloatArray, is_selected: Bools) -> LabelColumns:
        """The sample within a part of the pairs; both arguments have shape (pairs,)."""
        return select_columns(labels, self._inclusion, self._strata, is_selected)


def build_pair_labels(db: Database, audit_id: int) -> list[PairLabelsReport]:
    """Measure the judges of pairs of answers and of comparisons; nothing for a kind without labels."""
    return [report for form in list_label_forms() if (report := _build_kind(db, audit_id, form)) is not None]


def _build_kind(db: Database, audit_id: int, form: LabelForm) -> PairLabelsReport | None:
    """Measure the judges of one kind of pairs; None without labels."""
    labels = load_labels(db, audit_id, form.kind)
    if not labels:
        return None
    pairs = LabelledPairs(db, audit_id, form.kind, labels)
    decisions = find_labelled_probe(pairs.kind).load_pair_decisions(db, audit_id) if pairs.n_labelled else {}
    return PairLabelsReport(
        kind=form.kind.value,
        pairs=len(pairs.units),
        sampled=pairs.n_sampled,
        labels=pairs.n_labelled,
        raters=pairs.raters,
        suggested_labels=labels_for_half_width(SUGGESTED_HALF_WIDTH, PLANNED_SD, max(1, len(pairs.units))),
        judges=list(_measure_judges(pairs, decisions)),
        reason=CHANGED_REASON if pairs.is_outdated else None,
    )


def _measure_judges(pairs: LabelledPairs, decisions: Decisions) -> Iterator[PairJudgeRow]:
    """Measure each judge, by the question that it was asked."""
    answers = {choice.value for choice in pairs.kind.choices} - {UNSURE}
    for (judge, question), by_unit in sorted(decisions.items()):
        values = [by_unit.get(unit, "") for unit in pairs.units]
        is_decided = np.array([bool(value) for value in values], dtype=np.bool_)
        quality, columns = _compare(pairs, values, is_decided)
        worst, best = (_compare(pairs, values, is_decided, if_unsure)[0].accuracy.value for if_unsure in (0.0, 1.0))
        rates = _measure_rates(pairs, values, is_decided) if {*YES_OR_NO} == answers else None
        yield PairJudgeRow(
            judge=judge,
            question=question,
            pairs=int(is_decided.sum()),
            labels=columns.n,
            unsure=int((pairs.is_unsure() & is_decided).sum()),
            agreement=quality.accuracy,
            agreement_if_unsure_disagree=worst,
            agreement_if_unsure_agree=best,
            sensitivity=rates and rates.sensitivity,
            specificity=rates and rates.specificity,
            kappa=rates and rates.kappa,
        )


def _compare(
    pairs: LabelledPairs, values: Sequence[str], is_decided: Bools, if_unsure: float | None = None
) -> tuple[JudgeQuality, LabelColumns]:
    """Compare a judge's decisions with people's, whatever the answers: its accuracy is the share of equal ones."""
    columns = pairs.select(pairs.shares(values, if_unsure), is_decided)
    decided = np.ones(len(columns.rows))
    return judge_quality(decided, columns.labels, inclusion=columns.inclusion, strata=columns.strata), columns


def _measure_rates(pairs: LabelledPairs, values: Sequence[str], is_decided: Bools) -> JudgeQuality:
    """Sensitivity, specificity and kappa of a judge that says yes or no."""
    columns = pairs.select(pairs.shares(["yes"] * len(values)), is_decided)
    verdicts = np.array([value == "yes" for value in values], dtype=np.float64)[columns.rows]
    return judge_quality(verdicts, columns.labels, inclusion=columns.inclusion, strata=columns.strata)
