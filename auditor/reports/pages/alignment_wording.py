"""Sentences on agreement with people, which claim no more than the confidence intervals support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from auditor.reports.data.measurement_schema import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_count, format_interval, format_number, format_percent, pluralize

AlignmentKind = Literal["agrees", "opposes", "unclear", "unknown"]

STRENGTH_WORDS = ((0.9, "very strongly"), (0.7, "strongly"), (0.4, "moderately"), (0.1, "weakly"), (0.0, "hardly"))
"""Words for |r|: Schober, Boer & Schwarte 2018, Anesthesia & Analgesia 126:1763, table 1."""

MAX_VARIANCE = 0.12
MIN_PEER_AGREEMENT = 0.70
MAX_TOPIC_MAE = 0.4
"""Thresholds of failure, as in EvalMORAAL (arXiv 2510.05942)."""
MIN_COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class AlignmentStatement:
    """One row of the alignment table in words.

    Attributes:
        kind: whether the interval of r lies above 0, below 0 or includes 0; `unknown` where there is none.
        text: predicate of a sentence whose subject is the model.
    """

    row: AlignmentRow
    kind: AlignmentKind
    text: str


def describe_alignment(row: AlignmentRow) -> AlignmentStatement:
    """Describe how well one model agrees with people, with r, its interval, the number of cells and the MAE."""
    kind = _classify_alignment(row)
    if row.pearson_r is None:
        return AlignmentStatement(row, kind, f"cannot be compared with people: {row.reason}")
    distance_text = "" if row.mae is None else f"; on average its score lies {format_number(row.mae)} from theirs"
    interval_text = (
        f"no interval: {row.crossed.pearson_r.reason}"
        if kind == "unknown"
        else f"95% interval {format_interval(*two_way_interval(row))}"
    )
    figures = f"r = {format_number(row.pearson_r)}, {interval_text}, {pluralize(row.n, 'cell')}"
    if kind == "unknown":
        text = f"cannot be judged ({figures})"
    elif kind == "unclear":
        text = f"cannot be told from no relation at all ({figures})"
    else:
        verb = "agrees with people" if kind == "agrees" else "runs against people"
        text = f"{verb} {_strength_words(row)} ({figures})"
    return AlignmentStatement(row, kind, text + distance_text)


def alignment_headline(rows: Sequence[AlignmentRow]) -> str:
    """Summarize the alignment of all models in one sentence."""
    if not rows:
        return "No scores have been measured yet, so nothing can be said of agreement with people."
    kinds = [_classify_alignment(row) for row in rows]
    verbs: dict[AlignmentKind, tuple[str, str, str]] = {
        "agrees": ("agrees", "agree", "with people beyond chance"),
        "opposes": ("runs", "run", "against people beyond chance"),
        "unclear": ("shows", "show", "an agreement that cannot be told from no relation at all"),
        "unknown": ("cannot", "cannot", "be judged, since there is no interval over countries and topics"),
    }
    kind_counts = [(kind, kinds.count(kind)) for kind in verbs if kind in kinds]
    phrases = [f"{n} {verbs[kind][n > 1]} {verbs[kind][2]}{_format_r_range(rows, kind)}" for kind, n in kind_counts]
    if len(rows) == 1:
        return f"The one model scored {phrases[0].removeprefix('1 ')}."
    noun = "models" if len({row.method for row in rows}) == 1 else "series of scores"
    if len(phrases) == 1:
        quantifier = "Both" if len(rows) == 2 else f"All {len(rows)}"
        return f"{quantifier} {noun} {phrases[0].removeprefix(f'{len(rows)} ')}."
    return f"Of {len(rows)} {noun}, {', '.join(phrases[:-1])} and {phrases[-1]}."


def _format_r_range(rows: Sequence[AlignmentRow], kind: AlignmentKind) -> str:
    """The range of r over the rows of one kind, in brackets; empty for kinds without a clear sign of r."""
    r_values = [row.pearson_r for row in rows if row.pearson_r is not None and _classify_alignment(row) == kind]
    if kind not in ("agrees", "opposes"):
        return ""
    return (
        f" (r = {format_number(r_values[0])})"
        if len(r_values) == 1
        else f" (r from {format_number(min(r_values))} to {format_number(max(r_values))})"
    )


def ranking_sentence(rows: Sequence[AlignmentRow]) -> str | None:
    """State whether the intervals separate the best model from all others; None for fewer than two intervals."""
    rows_with_interval = [
        (row, low, high)
        for row in rows
        for low, high in [two_way_interval(row)]
        if low is not None and high is not None
    ]
    if len(rows_with_interval) < 2:
        return None
    best, best_low, _ = max(rows_with_interval, key=lambda entry: entry[0].pearson_r or 0.0)
    n_overlapping = sum(high >= best_low for row, _, high in rows_with_interval if row is not best)
    if not n_overlapping:
        return f"The interval of {_column_label(best, rows)} lies above all others."
    return (
        f"{_column_label(best, rows)} has the largest r, but its interval overlaps those of "
        f"{pluralize(n_overlapping, 'other')}, so this table alone does not make it the best."
    )


def reasons_for_caution(report: Report) -> list[str]:
    """Reasons for caution about the figures, one sentence each; empty if no check found one."""
    return [
        *_coverage_cautions(report),
        *_variance_cautions(report),
        *_panel_cautions(report),
        *_error_cautions(report),
    ]


def _coverage_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about an unfinished audit, and about stages in which too few answers are usable."""
    if not report.audit.complete:
        yield f"The audit has not run to its end (stage: {report.audit.stage}); every figure is provisional."
    for row in report.coverage.total:
        if row.planned and row.ok < MIN_COVERAGE * row.planned:
            usable = format_percent(row.ok, row.planned)
            yield f"Only {usable} of the planned {row.counted_label} can be used; the rest is under coverage."


def _variance_cautions(report: Report) -> Iterator[str]:
    """Yield a caution that names the models whose samples have a variance above `MAX_VARIANCE`, if any."""
    variances = [(row.variance.value, row.model) for row in report.self_consistency]
    high_variances = sorted(
        [(variance, name) for variance, name in variances if variance is not None and variance > MAX_VARIANCE],
        reverse=True,
    )
    if high_variances:
        labels = [f"{name} ({format_number(variance)})" for variance, name in high_variances]
        yield f"The variance of the samples is above {MAX_VARIANCE} on average for {_join_names(labels, 'models')}."


def _panel_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about low peer agreement, repeated verdicts and low agreement of the judges."""
    agreements = [(row.agreement.value, row.model) for row in report.peer_agreement]
    low_agreements = sorted(
        (agreement, name) for agreement, name in agreements if agreement is not None and agreement < MIN_PEER_AGREEMENT
    )
    if low_agreements:
        labels = [f"{name} ({format_number(100 * agreement, 0)}%)" for agreement, name in low_agreements]
        yield f"The judges find less than 70% of the reasoning valid of {_join_names(labels, 'models')}."
    if report.panel.repeated:
        yield (
            f"{pluralize(report.panel.repeated, 'verdict')} of {format_count(report.panel.asked)} are another judge’s "
            "very answer: judges that are one model, asked the same, are one judge, and that they agree says nothing."
        )
    kappa = report.panel.fleiss_kappa
    if kappa.ci_low is not None and kappa.ci_high is not None and kappa.ci_low <= 0:
        chance_phrase = "is less than chance would give" if kappa.ci_high < 0 else "cannot be told from chance"
        yield (
            f"The judges’ agreement {chance_phrase} (Fleiss’ kappa {format_number(kappa.value)}, "
            f"95% interval {format_interval(kappa.ci_low, kappa.ci_high)}); their verdicts tell little."
        )


def _error_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about significant gaps between regions, and topics with a large MAE."""
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        low, high = gap.mae_gap.ci_low, gap.mae_gap.ci_high
        if low is not None and high is not None and (low > 0 or high < 0):
            region_pair = (gap.second, gap.first) if low > 0 else (gap.first, gap.second)
            models_by_region_pair.setdefault(region_pair, []).append(
                f"{gap.model} (by {format_number(abs(gap.mae_gap.value or 0.0))})"
            )
    region_noun = " countries" if report.regions.grouping == "western" else ""
    for (worse, better), labels in models_by_region_pair.items():
        yield f"Further from people in {worse} than in {better}{region_noun}: {_join_names(labels, 'models')}."
    high_error_topics = {
        (row.name, row.model) for row in report.topics if row.mae.value is not None and row.mae.value > MAX_TOPIC_MAE
    }
    model_counts = Counter(topic for topic, _ in sorted(high_error_topics))
    if model_counts:
        labels = [f"{topic} ({pluralize(n, 'model')})" for topic, n in model_counts.most_common()]
        yield f"The mean error is above {MAX_TOPIC_MAE} on {_join_names(labels, 'topics')}."


def two_way_interval(row: AlignmentRow) -> tuple[float | None, float | None]:
    """The interval of r on which sentences are based: over countries and topics; None, None where these are too few.

    Fisher's interval is no substitute, since it treats the cells of one country or topic as independent.
    """
    return row.crossed.pearson_r.ci_low, row.crossed.pearson_r.ci_high


def format_corrected_r(row: AlignmentRow) -> str:
    """Format r corrected for sampling noise with its interval over countries and topics, or why it is missing."""
    if row.corrected_r.value is None:
        return row.corrected_r.reason or ""
    estimate = replace(row.crossed.corrected_r, value=row.corrected_r.value)
    interval_text = estimate.reason if estimate.ci_low is None else format_interval(estimate.ci_low, estimate.ci_high)
    return f"{format_number(estimate.value)} ({interval_text})"


def _classify_alignment(row: AlignmentRow) -> AlignmentKind:
    """Whether the two-way interval of r lies above 0, below 0 or includes 0; `unknown` without r or an interval."""
    low, high = two_way_interval(row)
    if row.pearson_r is None or low is None or high is None:
        return "unknown"
    if low > 0:
        return "agrees"
    return "opposes" if high < 0 else "unclear"


def _strength_words(row: AlignmentRow) -> str:
    """Words for the strength of r, from the weaker to the stronger end of its interval."""
    interval_ends = sorted(abs(end or 0.0) for end in two_way_interval(row))
    weaker_word, stronger_word = (next(word for bound, word in STRENGTH_WORDS if end >= bound) for end in interval_ends)
    return weaker_word if weaker_word == stronger_word else f"{weaker_word} to {stronger_word}"


def _join_names(names: Sequence[str], noun: str, max_names: int = 4) -> str:
    """Join the first `max_names` names by commas, followed by the number of the others ("and 3 more models")."""
    listed_names = ", ".join(names[:max_names])
    return listed_names if len(names) <= max_names else f"{listed_names} and {len(names) - max_names} more {noun}"


def _column_label(row: AlignmentRow, rows: Sequence[AlignmentRow]) -> str:
    """Label of a series of scores: the model, followed by the method if the rows have several methods."""
    return row.model if len({alignment_row.method for alignment_row in rows}) == 1 else f"{row.model} ({row.method})"
