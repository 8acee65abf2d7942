"""Summary of agreement between raters and judges, as tables that the screen and the plain-text interface show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.metrics.judges.agreement import Agreement
from auditor.metrics.labels.calibration import Calibration
from auditor.reports.number_format import pluralize
from auditor.review.rater_agreement import (
    MIN_SIDES,
    JudgeCalibration,
    RaterAgreement,
    calibrate_judges,
    categorize_ratings,
    compute_judge_weights,
    compute_rater_agreement,
    load_blind_ratings,
    load_judged_sides,
    select_decisions,
)
from auditor.storage.audits import Audit
from auditor.storage.database import Database

MIN_KAPPA_RATINGS = 10
"""Conflicts, or sides of conflicts, that both have rated, below which no kappa is shown: it would be mostly noise."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One figure: its name, its text, and for a plot its value with the 95% confidence interval.

    Attributes:
        scale_min: lowest possible value; the highest is 1.
    """

    name: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    scale_min: float = 0.0


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """Rows under a title, with a note on how to read them."""

    title: str
    note: str
    rows: tuple[SummaryRow, ...]


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """Agreement of the raters and calibration of the judges of an audit."""

    raters: RaterAgreement
    judges: tuple[JudgeCalibration, ...]

    @property
    def tables(self) -> tuple[SummaryTable, ...]:
        """Tables on raters, on judges, and on the judges' calibration."""
        return (_make_rater_table(self.raters), _make_judge_table(self.judges), _make_calibration_table(self.judges))


def summarize_ratings(db: Database, audit: Audit) -> RatingSummary:
    """Load an audit's ratings and verdicts, and compute agreement and calibration."""
    blind_ratings = load_blind_ratings(db, audit.id)
    return RatingSummary(
        compute_rater_agreement(categorize_ratings(blind_ratings)),
        tuple(calibrate_judges(load_judged_sides(db, audit, select_decisions(blind_ratings)))),
    )


def _make_rater_table(agreement: RaterAgreement) -> SummaryTable:
    """Return the table on raters: decisions of each, kappa of all, and agreement and kappa of each pair."""
    rows = [SummaryRow(name, pluralize(n, "blind decision")) for name, n in agreement.n_decided_by_rater.items()]
    rows.append(_make_kappa_row("All raters: kappa", agreement.kappa))
    for pair in agreement.pairs:
        rows.append(_make_share_row(f"{pair.rater_a} and {pair.rater_b}: agree", pair.raw_agreement))
        rows.append(_make_kappa_row(f"{pair.rater_a} and {pair.rater_b}: kappa", pair.kappa))
    figures = [agreement.kappa, *(figure for pair in agreement.pairs for figure in (pair.raw_agreement, pair.kappa))]
    note = (
        f"Blind decisions only. Fleiss' kappa is 0 for agreement by chance, 1 for full. {_describe_intervals(figures)}"
    )
    return SummaryTable(
        "Raters", note if agreement.n_decided_by_rater else "There is no blind decision yet.", tuple(rows)
    )


def _make_judge_table(calibrations: tuple[JudgeCalibration, ...]) -> SummaryTable:
    """Return the table on judges: the share of sides on which each agrees with people, and its kappa."""
    rows = []
    for calibration in calibrations:
        rows.append(_make_share_row(f"{calibration.judge}: agrees", calibration.raw_agreement))
        rows.append(_make_kappa_row(f"{calibration.judge}: kappa", calibration.kappa))
    figures = [figure for calibration in calibrations for figure in (calibration.raw_agreement, calibration.kappa)]
    note = (
        "For each side of a conflict: whether the majority of a judge's verdicts agrees with people. "
        f"{_describe_intervals(figures)}"
    )
    return SummaryTable(
        "Judges and people", note if rows else "No side with verdicts has a blind decision yet.", tuple(rows)
    )


def _make_calibration_table(calibrations: tuple[JudgeCalibration, ...]) -> SummaryTable:
    """Return the table on what the judges' verdicts are worth: per judge its calibration curve, error and weight."""
    weights = compute_judge_weights(calibrations)
    rows = []
    for calibration in calibrations:
        curve = calibration.calibration
        if curve.reason is not None:
            rows.append(SummaryRow(f"{calibration.judge}: curve", curve.reason))
        else:
            # How often people call a side right if none, half or all of the judge's verdicts on it are VALID.
            predicted_shares = zip(("0%", "50%", "100%"), curve.predict([0.0, 0.5, 1.0]), strict=True)
            rows.append(
                SummaryRow(
                    f"{calibration.judge}: curve",
                    ", ".join(
                        f"{valid_label} VALID: {probability:.0%} correct"
                        for valid_label, probability in predicted_shares
                    ),
                )
            )
            rows.append(SummaryRow(f"{calibration.judge}: error", _format_errors(curve)))
        no_weight_text = f"too few sides (at least {MIN_SIDES})"
        weight = no_weight_text if calibration.weight is None else f"{weights[calibration.judge]:.2f}"
        rows.append(SummaryRow(f"{calibration.judge}: weight", weight))
    note = (
        "How often people call a side correct, by the share of a judge's verdicts that are VALID. "
        "Errors are on held-out decisions. `auditor export weights` writes the weights for the next audit (mean 1)."
    )
    return SummaryTable(
        "Calibration of the judges", note if rows else "There are no blind decisions on judged sides yet.", tuple(rows)
    )


def _format_errors(curve: Calibration) -> str:
    """Return a curve's mean absolute errors before and after calibration and their difference, with 95% intervals."""
    parts = []
    for name, error in (("before", curve.error_before), ("after", curve.error_after), ("gain", curve.gain)):
        if error.value is None:
            parts.append(f"{name} {error.reason}")
        else:
            bounds = "" if error.ci_low is None else f" [{error.ci_low:.2f}, {error.ci_high:.2f}]"
            parts.append(f"{name} {error.value:.2f}{bounds}")
    return ", ".join(parts)


def _describe_intervals(figures: Iterable[Estimate]) -> str:
    """Say what the intervals are about, and why some figures have none."""
    estimates = [figure for figure in figures if figure.value is not None]
    populations = dict.fromkeys(figure.generalizes_to for figure in estimates if figure.generalizes_to)
    reasons = dict.fromkeys(figure.reason for figure in estimates if figure.ci_low is None and figure.reason)
    sentences = [f"Intervals are for {', '.join(populations)}."] if populations else []
    sentences += [f"No interval: {reason}." for reason in reasons]
    return " ".join(sentences)


def _make_share_row(name: str, share: ShareEstimate) -> SummaryRow:
    """Return a row for a share in [0, 1] with its interval; without a plot, but with the reason, if it is None."""
    if share.value is None:
        return SummaryRow(name, share.reason or "not measured")
    if share.ci_low is None:
        return SummaryRow(name, f"{share.value:.0%} of {share.n}, no interval", share.value)
    text = f"{share.value:.0%} [{share.ci_low:.0%}, {share.ci_high:.0%}] of {share.n}"
    return SummaryRow(name, text, share.value, share.ci_low, share.ci_high)


def _make_kappa_row(name: str, kappa: Agreement) -> SummaryRow:
    """Return a row for a kappa in [-1, 1] with its interval; the reason without a plot if it is not shown."""
    if 0 < kappa.n < MIN_KAPPA_RATINGS:
        return SummaryRow(name, f"shown from {MIN_KAPPA_RATINGS} shared ratings on, {kappa.n} so far")
    if kappa.value is None:
        return SummaryRow(name, kappa.reason or "not measured")
    if kappa.ci_low is None:
        return SummaryRow(name, f"{kappa.value:+.2f} on {kappa.n}, no interval", kappa.value, scale_min=-1.0)
    text = f"{kappa.value:+.2f} [{kappa.ci_low:+.2f}, {kappa.ci_high:+.2f}] on {kappa.n}"
    return SummaryRow(name, text, kappa.value, kappa.ci_low, kappa.ci_high, scale_min=-1.0)
