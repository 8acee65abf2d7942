"""Assemble the figures of judges that rest on people's labels, with people's agreement and plans for more labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.config import LabelSection
from auditor.config.probe_section import LabelForm
from auditor.domain.labels import UNSURE, Label, LabelKind, LabelUnit, RaterKind, UnitToLabel
from auditor.domain.terms import Ruling
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.unit_means import share_over_units
from auditor.metrics.judges.accuracy import JudgeQuality, judge_quality
from auditor.metrics.labels.annotator_test import MIN_ITEMS, AnnotatorTest, alternative_annotator_test
from auditor.metrics.labels.label_plan import (
    SequenceInterval,
    half_width_floor,
    labels_for_difference,
    labels_for_half_width,
    stratified_confidence_sequence,
)
from auditor.reports.data.judge_quality.judges import (
    MIN_MODEL_LABELS,
    Groups,
    build_corrected_differences,
    build_corrected_shares,
    build_factor_rows,
    build_judge_rows,
    build_panel_row,
    build_split_rows,
    build_transport_rows,
    count_refused_splits,
    measure_panel_excess,
)
from auditor.reports.data.judge_quality.labelled_traces import (
    Bools,
    LabelColumns,
    LabelledTraces,
    load_labelled_traces,
    select_columns,
)
from auditor.reports.data.judge_quality.schema import (
    AnnotatorTestRow,
    JudgeQualityReport,
    PairJudgeRow,
    PairLabelsReport,
    RaterAgreementRow,
)
from auditor.reports.data.panel.build import compute_peer_agreement
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.storage.database import Database
from auditor.storage.labels import load_label_frame, load_label_sample, load_labels
from auditor.storage.probe_results import find_labelled_probe, list_label_forms
from auditor.storage.votes import VoteArrays
from auditor.surveys.regions import get_grouping

EPSILON_BY_RATER_KIND: Mapping[RaterKind, float] = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
"""What the lower cost of a judge is worth, by the kind of rater (Calderon, Reichart & Dror, ACL 2025)."""
MIN_RATERS = 3
"""Fewest labels of a trace for the test: with two, a rater is compared with a single other one."""
CHANCE_REASON = "raters agree on at most half of the traces, so the limit is not known"


def measure_rater_agreement(traces: LabelledTraces) -> RaterAgreementRow:
    """Estimate how often two random raters of a trace agree, and the limit that this sets to any judge."""
    n = traces.n_ratings
    n_valid = np.nansum(traces.ratings, axis=0)
    is_shared = n >= 2
    n_pairs = np.where(is_shared, n * (n - 1), 1)
    agreement = (n_valid * (n_valid - 1) + (n - n_valid) * (n - n_valid - 1)) / n_pairs
    units = {unit: np.asarray(names)[is_shared].tolist() for unit, names in traces.matrix.units.items()}
    share = share_over_units(
        agreement[is_shared], np.ones(int(is_shared.sum())), units, empty_reason="no trace has labels of two raters"
    )
    return RaterAgreementRow(
        raters=len(traces.raters),
        shared=int(is_shared.sum()),
        agreement=share,
        max_accuracy=_limit_accuracy(share),
    )


def _limit_accuracy(agreement: Estimate) -> Estimate:
    """The largest accuracy that any verdicts can have against a random rater, from the agreement of two raters.

    If a share p of the raters says VALID, two of them agree with probability A = 1 - 2p(1 - p), and the better verdict
    is right with probability (1 + √(2A - 1)) / 2, which is concave in A: by Jensen's inequality it bounds the mean.
    """
    if agreement.value is None:
        return Estimate(None, agreement.n, reason=agreement.reason)
    if agreement.value <= 0.5:
        return Estimate(None, agreement.n, reason=CHANCE_REASON)
    value, low, high = (
        None if end is None else (1 + max(0.0, 2 * end - 1) ** 0.5) / 2
        for end in (agreement.value, agreement.ci_low, agreement.ci_high)
    )
    return Estimate(value, agreement.n, low, high, agreement.reason, agreement.resampled)


def build_annotator_tests(traces: LabelledTraces) -> list[AnnotatorTestRow]:
    """Test for each judge and kind of rater whether it may replace one; the test over topics decides."""
    return [
        _test_judge(traces, judge, kind) for judge in range(len(traces.matrix.judges)) for kind in EPSILON_BY_RATER_KIND
    ]


def _test_judge(traces: LabelledTraces, judge: int, rater_kind: RaterKind) -> AnnotatorTestRow:
    """Test one judge, over traces and over topics, or items of a task."""
    epsilon = EPSILON_BY_RATER_KIND[rater_kind]
    verdicts = traces.matrix.unconditional_verdicts[judge]
    clusters = np.asarray(list(traces.matrix.units.values())[-1])
    plain, clustered = (
        alternative_annotator_test(traces.ratings, verdicts, epsilon=epsilon, min_raters=MIN_RATERS, clusters=labels)
        for labels in (None, clusters)
    )
    return AnnotatorTestRow(
        judge=traces.matrix.judges[judge],
        rater_kind=rater_kind,
        epsilon=epsilon,
        min_raters=MIN_RATERS,
        test=clustered,
        test_over_traces=plain,
        missing=_count_missing(traces, verdicts, clustered),
    )


def _count_missing(traces: LabelledTraces, verdicts: np.ndarray, test: AnnotatorTest) -> int:
    """Further labels for a test of three raters on as few traces as it needs; 0 if it was possible.

    Traces that already have most labels come first, since they lack the fewest.
    """
    if test.passed is not None:
        return 0
    n_ratings = np.sort(traces.n_ratings[~np.isnan(verdicts)])[::-1][:MIN_ITEMS]
    return max(1, int(np.maximum(MIN_RATERS - n_ratings, 0).sum()))


YES_OR_NO = ("yes", "no")
"""Answers of judges whose sensitivity and specificity are measured."""
CHANGED_REASON = "pairs were added, removed or changed since the random sample was drawn"
SUGGESTED_PAIR_HALF_WIDTH, PLANNED_PAIR_SD = 0.1, 0.4
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
        suggested_labels=labels_for_half_width(SUGGESTED_PAIR_HALF_WIDTH, PLANNED_PAIR_SD, max(1, len(pairs.units))),
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


SUGGESTED_HALF_WIDTH = 0.1
"""Half-width of the interval of each model's corrected share that the suggested number of labels gives."""
PLANNED_SD = 0.4
"""Planned standard deviation of labels within the strata of one verdict: of judges that are wrong on 20%."""


def build_judge_quality(source: ReportSource) -> JudgeQualityReport | None:
    """Assemble the figures; without labels only the number that would do. None without verdicts."""
    if not len(source.votes):
        return None
    traces = load_labelled_traces(source)
    if traces is None or not (traces.n_ratings.any() or traces.n_unsure.any()):
        records = source.label_records
        return JudgeQualityReport(
            not_used=len(records.labels),
            sampled=len(records.sample),
            traces=len(source.votes.traces),
            suggested_labels=suggest_labels(source),
            min_labels=MIN_MODEL_LABELS,
            rater_kind=_find_rater_kind(source),
            reason=records.reason,
        )
    groups = group_traces(source, source.votes)
    shares = build_corrected_shares(traces, source.models, source.seed)
    return JudgeQualityReport(
        labels=int((traces.n_ratings > 0).sum()),
        unsure=int((traces.n_unsure > 0).sum()),
        not_used=traces.n_not_used,
        raters=list(traces.raters),
        sampled=int((~np.isnan(traces.inclusion)).sum()),
        traces=len(source.votes.traces),
        suggested_labels=suggest_labels(source),
        min_labels=MIN_MODEL_LABELS,
        excess=measure_panel_excess(traces),
        judges=build_judge_rows(traces),
        panel=build_panel_row(traces),
        splits=build_split_rows(traces, groups),
        refused_splits=count_refused_splits(traces, groups),
        ceiling=measure_rater_agreement(traces),
        factors=build_factor_rows(traces, groups),
        models=shares,
        differences=build_corrected_differences(traces, shares),
        transport=build_transport_rows(traces, groups),
        replacement=build_annotator_tests(traces),
        rater_kind=_find_rater_kind(source),
    )


def _find_rater_kind(source: ReportSource) -> RaterKind:
    """The configured kind of rater; the strictest one of an audit that was imported."""
    return (LabelSection() if source.config is None else source.config.labels).rater_kind


def suggest_labels(source: ReportSource) -> int:
    """Labels that give each model's corrected share an interval of ± 10 to 13 points, for these traces."""
    models = [key[0] for key in source.votes.traces]
    return sum(
        max(
            min(MIN_MODEL_LABELS, models.count(model)),
            labels_for_half_width(SUGGESTED_HALF_WIDTH, PLANNED_SD, models.count(model)),
        )
        for model in sorted(set(models))
    )


def group_traces(source: ReportSource, votes: VoteArrays) -> Groups:
    """The model, language, region and topic of each trace; empty text where there is none."""
    has_countries = any(key[1] for key in votes.traces)
    region_by_country = get_grouping(source.survey).region_by_country if has_countries else {}
    return {
        "model": _to_array([key[0] for key in votes.traces]),
        "language": _to_array([language or "" for language in votes.languages]),
        "region": _to_array([region_by_country.get(key[1], "") for key in votes.traces]),
        "topic": _to_array([key[2] if has_countries else "" for key in votes.traces]),
    }


def _to_array(names: list[str]) -> NDArray[np.str_]:
    return np.array(names, dtype=np.str_)


PLANNED_TOPIC_SD = 0.1
"""Planned standard deviation over topics of the judges' error: it is not known before many topics are labelled."""


class ModelPlanRow(ReportModel):
    """Labels of one model."""

    model: str
    traces: int
    labelled: int
    needed: int
    """Labels in all for the wanted precision, those there are included."""


class LabelPlan(ReportModel):
    """Labels for a wanted precision of the corrected shares, and what the labels so far show."""

    half_width: float
    """Wanted half-width of the 95% interval of each model's corrected share, for these traces."""
    sd: float
    """Standard deviation of label minus verdict within strata that the plan uses."""
    is_sd_measured: bool
    """Whether it is that of the labels so far; else it is assumed."""
    models: list[ModelPlanRow]
    needed: int
    difference: float
    """Difference of two models that is to be shown in 80% of samples."""
    needed_for_difference: int
    """Labels of each model for it, corrected for the number of pairs."""
    topics: int
    floor_elsewhere: float | None
    """Half-width for other countries and topics that no number of labels passes, by the variation of the judges' shares
    over countries and topics; null with too few of them."""
    floor_of_error: float | None
    """The same for the judges' error, if it varies over topics with a standard deviation of 0.10."""
    labelled: int
    low: float | None
    high: float | None
    """People's share of VALID over all traces: ends of a confidence sequence, valid however often one looks. Null
    without a sample that was drawn here."""

    @property
    def may_stop(self) -> bool:
        """Whether the labels so far give people's share of VALID over all traces the wanted precision."""
        return self.low is not None and self.high is not None and (self.high - self.low) / 2 <= self.half_width


def plan_labels(source: ReportSource, half_width: float, difference: float) -> LabelPlan:
    """Plan the labels of an audit with verdicts.

    Args:
        half_width: wanted, of each model's corrected share, in (0, 1).
        difference: between two models that is to be shown, in (0, 1].
    """
    traces = load_labelled_traces(source)
    sd = None if traces is None else measure_sd(traces)
    used_sd = PLANNED_SD if sd is None else sd
    names = [key[0] for key in source.votes.traces]
    models = [model for model in source.models if model in names]
    labelled = [] if traces is None else traces.models[traces.n_ratings > 0].tolist()
    rows = [_plan_model(model, names.count(model), labelled.count(model), half_width, used_sd) for model in models]
    topics = len({key[2] for key in source.votes.traces})
    records = source.label_records
    sequence = None if records.reason else track_share(records.sample, records.labels)
    n_pairs = max(1, len(models) * (len(models) - 1) // 2)
    return LabelPlan(
        half_width=half_width,
        sd=used_sd,
        is_sd_measured=sd is not None,
        models=rows,
        needed=sum(row.needed for row in rows),
        difference=difference,
        needed_for_difference=labels_for_difference(difference, used_sd, n_comparisons=n_pairs),
        topics=topics,
        floor_elsewhere=_widest_half_width([row.agreement for row in compute_peer_agreement(source)]),
        floor_of_error=half_width_floor({"topic": PLANNED_TOPIC_SD}, {"topic": topics}) if topics > 1 else None,
        labelled=0 if sequence is None else sequence.n,
        low=None if sequence is None else sequence.low,
        high=None if sequence is None else sequence.high,
    )


def _plan_model(model: str, n_traces: int, n_labelled: int, half_width: float, sd: float) -> ModelPlanRow:
    """The labels of one model: at least as many as decisions need."""
    needed = max(min(MIN_MODEL_LABELS, n_traces), labels_for_half_width(half_width, sd, n_traces))
    return ModelPlanRow(model=model, traces=n_traces, labelled=n_labelled, needed=needed)


def measure_sd(traces: LabelledTraces) -> float | None:
    """Standard deviation within strata of label minus the panel's share of VALID; None with too few labels."""
    columns = traces.select(~np.isnan(traces.panel_share))
    is_labelled = ~np.isnan(columns.labels)
    n_strata = len(np.unique(columns.strata[is_labelled]))
    if columns.n - n_strata < MIN_MODEL_LABELS:
        return None
    strata = columns.strata[is_labelled]
    errors = columns.labels[is_labelled] - traces.panel_share[columns.rows][is_labelled]
    counts = np.bincount(strata)
    means = np.bincount(strata, errors) / np.maximum(counts, 1)
    return float((((errors - means[strata]) ** 2).sum() / (columns.n - n_strata)) ** 0.5)


def _widest_half_width(estimates: Sequence[Estimate]) -> float | None:
    """Half-width of the widest interval; None without any."""
    widths = [(row.ci_high - row.ci_low) / 2 for row in estimates if row.ci_low is not None and row.ci_high is not None]
    return max(widths, default=None)


def track_share(sample: Sequence[UnitToLabel], labels: Sequence[Label]) -> SequenceInterval | None:
    """People's share of VALID over all traces, from the labels so far in the order of drawing.

    Of each stratum the labels count up to the first trace without one: a rater who picks traces would bias the rest.

    Returns:
        None without a sample, and for one that was imported: the order of its file is no random order.
    """
    by_stratum: dict[tuple[str, ...], list[UnitToLabel]] = {}
    for row in sorted(sample, key=lambda row: row.position):
        by_stratum.setdefault(row.stratum, []).append(row)
    if not by_stratum or () in by_stratum:  # an imported sample has no strata
        return None
    answers: dict[LabelUnit, list[float]] = {}
    for label in labels:
        answers.setdefault(label.unit, [])
        if label.value != UNSURE:
            answers[label.unit].append(float(label.value == Ruling.VALID.value))
    samples = []
    for rows in by_stratum.values():
        n_prefix = next((i for i, row in enumerate(rows) if row.unit not in answers), len(rows))
        samples.append([float(np.mean(a)) if (a := answers[row.unit]) else np.nan for row in rows[:n_prefix]])
    return stratified_confidence_sequence(samples, [rows[0].n_in_stratum for rows in by_stratum.values()])
