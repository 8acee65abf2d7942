"""What people's ratings say of raters and judges, as tables of rows that screen and plain text both show."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.metrics.agreement import Agreement
from auditor.metrics.calibration import Calibration
from auditor.metrics.proportion import Proportion
from auditor.review.judge_calibration import LEAST_SIDES, JudgeLesson, judge_lessons, judge_weights, lessons
from auditor.review.rater_agreement import RaterAgreement, rater_agreement, said_blind
from auditor.storage.audits import Audit
from auditor.storage.database import Database


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what it is of, its value and 95% interval, and all of it in words.

    Attributes:
        least: the least value that it could have; the most is 1.
    """

    name: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a title, with a note on how they are to be read."""

    title: str
    note: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """All that the ratings of an audit teach so far."""

    raters: RaterAgreement
    judges: tuple[JudgeLesson, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """As tables."""
        return (_raters(self.raters), _judges(self.judges), _calibrations(self.judges))


def summary_of(db: Database, audit: Audit) -> Summary:
    """Read an audit's ratings and verdicts, and work out what they teach."""
    said = said_blind(db, audit.id)
    return Summary(rater_agreement(said), tuple(judge_lessons(lessons(db, audit.id, said))))


def _raters(found: RaterAgreement) -> Table:
    rows = [Row(name, f"{n} decided blind") for name, n in found.decided.items()]
    rows.append(_kappa("all raters: kappa", found.kappa))
    for pair in found.pairs:
        rows.append(_share(f"{pair.one} and {pair.other}: same", pair.same))
        rows.append(_kappa(f"{pair.one} and {pair.other}: kappa", pair.kappa))
    note = "Blind decisions only. Kappa is Fleiss', with a bootstrap interval over conflicts; 0 is chance."
    return Table("Raters", note if found.decided else "Nobody has decided anything blind yet.", tuple(rows))


def _judges(found: tuple[JudgeLesson, ...]) -> Table:
    rows = []
    for judge in found:
        rows.append(_share(f"{judge.judge}: same", judge.same))
        rows.append(_kappa(f"{judge.judge}: kappa", judge.kappa))
    note = "Each side of a conflict: does the majority of a judge's verdicts say what people say?"
    return Table("Judges and people", note if rows else "No judged side has been decided blind yet.", tuple(rows))


def _calibrations(found: tuple[JudgeLesson, ...]) -> Table:
    weights = judge_weights(found)
    rows = []
    for judge in found:
        curve = judge.calibration
        if curve.reason is not None:
            rows.append(Row(f"{judge.judge}: curve", curve.reason))
        else:
            says = zip(("0%", "50%", "100%"), curve.predict([0.0, 0.5, 1.0]), strict=True)
            rows.append(Row(f"{judge.judge}: curve", ", ".join(f"{share} VALID is {p:.0%} right" for share, p in says)))
            rows.append(Row(f"{judge.judge}: error", _errors(curve)))
        unknown = f"too few sides (at least {LEAST_SIDES})"
        weight = unknown if judge.weight is None else f"{weights[judge.judge]:.2f}"
        rows.append(Row(f"{judge.judge}: weight", weight))
    note = (
        "How often people call a side right, by the judge's share of VALID; the error is on ratings not seen. "
        "A weight is what the judge's vote may count in the next audit, 1 on average: `auditor export weights`."
    )
    return Table("What the judges' verdicts are worth", note if rows else "Nothing to learn from yet.", tuple(rows))


def _errors(curve: Calibration) -> str:
    parts = []
    for name, error in (("raw", curve.error_before), ("held out", curve.error_after), ("gain", curve.gain)):
        if error.value is None:
            parts.append(f"{name} {error.reason}")
        else:
            bounds = "" if error.ci_low is None else f" [{error.ci_low:.2f}, {error.ci_high:.2f}]"
            parts.append(f"{name} {error.value:.2f}{bounds}")
    return ", ".join(parts)


def _share(name: str, share: Proportion) -> Row:
    if share.value is None:
        return Row(name, share.reason or "not measured")
    text = f"{share.value:.0%} [{share.ci_low:.0%}, {share.ci_high:.0%}] of {share.n}"
    return Row(name, text, share.value, share.ci_low, share.ci_high)


def _kappa(name: str, kappa: Agreement) -> Row:
    if kappa.value is None:
        return Row(name, kappa.reason or "not measured")
    bounds = "no interval" if kappa.ci_low is None else f"[{kappa.ci_low:+.2f}, {kappa.ci_high:+.2f}]"
    text = f"{kappa.value:+.2f} {bounds} on {kappa.n_items}"
    return Row(name, text, kappa.value, kappa.ci_low, kappa.ci_high, least=-1.0)
