"""The document of differences: the main finding, reasons for caution, and the sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.reports.data.coverage.lost_samples import WorstCaseDifferences
from auditor.reports.data.differences.schema import ComparedSeries, DifferenceReport, SeriesPairDifferences
from auditor.reports.document import Block, Callout, Code, Document, List, Paragraph, Section
from auditor.reports.number_format import format_count, format_percent, format_signed, pluralize
from auditor.reports.sections.differences import (
    CHANGE_LABELS,
    build_corrected_section,
    build_group_sections,
    build_judge_drift_section,
    build_non_inferiority_section,
    build_overall_section,
    build_resolution_section,
    build_verdict_section,
    classify_change,
    describe_pair,
    describe_resolutions,
    describe_verdicts,
    is_reversible,
)
from auditor.reports.sections.over_models import build_attributes_section
from auditor.reports.sections.phrasing import join_with_and, tabulate

SIDES = ("first", "second")
TIERS_NOTE = (
    "To choose among the models of one audit, use the tiers in its report. They test the ratio of two models’ errors, "
    "on the cells that all models share, with one critical value for all pairs. This page tests the difference of two "
    "errors, on the cells that both models share (Holm’s correction). So a pair may be in different tiers and not be "
    "distinguishable here, or the reverse; neither result contradicts the other."
)
MAX_TITLE_NAMES = 4
MAX_LISTED_PAIRS = 6
MAX_DETAILED_PAIRS = 10
"""Pairs with tables by region, country and topic."""


def build_difference_document(differences: DifferenceReport, *, is_brief: bool = False) -> Document:
    """Build the document of differences: overall, coverage, each pair in detail, judges' verdicts, conflicts.

    The brief document of differences between models has only the findings and the overall figures.
    """
    labels = [series.label for series in differences.series]
    labels += [name for judges in differences.judges for name in (judges.first, judges.second)]
    names = list(dict.fromkeys(labels))
    n_more = len(names) - MAX_TITLE_NAMES
    title = " · ".join(names[:MAX_TITLE_NAMES]) + (f" and {n_more} more" if n_more > 0 else "")
    subtitle = f"Reference: {differences.survey}" if differences.survey else "Verdicts on the same traces"
    is_short = is_brief and bool(differences.pairs)
    sections = (
        [build_overall_section(differences), *build_non_inferiority_section(differences)]
        if is_short
        else [*_build_sections(differences)]
    )
    return Document("Differences", title, subtitle, sections, [*_build_opening(differences)])


def build_probe_difference_document(audits: Sequence[str], reason: str, sections: Sequence[Section]) -> Document:
    """Build the document of audits whose scores cannot be compared, but whose probes can.

    Args:
        reason: why scores are not compared, as sentences.
        sections: comparisons by the probes.
    """
    opening = Callout("Scores are not compared", [Paragraph(reason)])
    return Document("Differences", " · ".join(audits), "Figures of probes", list(sections), [opening])


def _build_opening(differences: DifferenceReport) -> Iterator[Block]:
    """Build the main finding, the findings of the first pairs, and the reasons for caution."""
    yield Paragraph(summarize_differences(differences), role="lead")
    listed_pairs = differences.pairs[:MAX_LISTED_PAIRS]
    findings = [
        *(describe_pair(pair) for pair in listed_pairs if len(differences.pairs) > 1),  # one pair is the main finding
        *(describe_verdicts(pair.verdicts) for pair in listed_pairs if pair.verdicts),
        *map(describe_resolutions, differences.settlements),
    ]
    if findings:
        yield List(findings)
    n_unlisted = len(differences.pairs) - len(listed_pairs)
    if n_unlisted:
        yield Paragraph(f"The tables have {pluralize(n_unlisted, 'further pair')}.", "note")
    if differences.pairs and len({series.audit for series in differences.series}) == 1:
        yield Paragraph(TIERS_NOTE, "note")
    if cautions := list(list_cautions(differences)):
        yield Callout("Reasons for caution", [List(cautions)])


def summarize_differences(differences: DifferenceReport) -> str:
    """Summarize the differences in one sentence."""
    if not differences.pairs:
        return describe_verdicts(differences.judges[0])
    if len(differences.pairs) == 1:
        return describe_pair(differences.pairs[0])
    counts = Counter[str](classify_change(pair.mae) for pair in differences.pairs)
    n_pairs = len(differences.pairs)
    n_reversible = sum(map(is_reversible, differences.pairs))
    reversible = f" Lost samples could reverse {n_reversible} of these." if n_reversible else ""
    audits = {series.label: series.audit for series in differences.series}
    first_audits, second_audits = ({audits[getattr(pair, side)] for pair in differences.pairs} for side in SIDES)
    if first_audits == second_audits:
        n_distinct = counts["better"] + counts["worse"]
        n_untested = counts["not tested"] + counts["not measurable"]
        if n_untested == n_pairs:
            return f"No difference in mean absolute error can be tested, in any of {pluralize(n_pairs, 'pair')}."
        pairs = f"{n_distinct} of {pluralize(n_pairs, 'pair')}"
        untested = f" ({format_count(n_untested)} not tested)" if n_untested else ""
        return f"By mean absolute error, one model is closer to people than the other in {pairs}{untested}.{reversible}"
    *others, last = [f"{label} in {counts[change]}" for change, label in CHANGE_LABELS.items() if counts[change]]
    changes = f"{', '.join(others)} and {last}" if others else last
    subject = next(iter(second_audits)) if len(second_audits) == 1 else "the later audit of a pair"
    return f"By mean absolute error, {subject} is {changes} of {pluralize(n_pairs, 'pair')}.{reversible}"


def list_cautions(differences: DifferenceReport) -> Iterator[str]:
    """Yield reasons for caution: models in one audit only, unfinished audits, losses, settings, scores of people."""
    if differences.unpaired:
        names = join_with_and([model.label for model in differences.unpaired])
        yield (
            f"Not compared: {names}, since no other audit has a model of this name. If a model has another name in the "
            "later audit, add --map OLD=NEW."
        )
    for series in differences.series:
        if not series.complete:
            yield f"The audit of {series.label} is not complete; its figures are provisional."
    sampling_by_label = {series.label: series.sampling for series in differences.series}
    for pair in differences.pairs:
        if pair.worst_case is not None:
            yield _describe_lost_samples(pair, pair.worst_case)
        if pair.sampling_settings_differ:
            first, second = (sampling_by_label.get(label) for label in (pair.first, pair.second))
            yield (
                f"{pair.first} ({first}) and {pair.second} ({second}) were asked with different sampling settings, "
                "because a server rejected the configured ones. These may explain a difference."
            )
        if pair.truth_differs:
            yield (
                f"{pluralize(pair.truth_differs, 'cell')} of {pair.first} and {pair.second} have different scores of "
                "people in the two audits and are excluded."
            )


def _describe_lost_samples(pair: SeriesPairDifferences, worst_case: WorstCaseDifferences) -> str:
    """Say how many samples of a pair are lost, and where the difference over all planned samples may lie."""
    shares = [
        f"{format_percent(lost.lost, lost.planned)} of the planned samples of {name}"
        for name, lost in ((pair.first, pair.first_lost_samples), (pair.second, pair.second_lost_samples))
        if lost.lost
    ]
    ranges = [
        f"the difference in {label} may be anything from {format_signed(low)} to {format_signed(high)}"
        for label, figure in (("mean absolute error", worst_case.mae), ("r", worst_case.pearson_r))
        if (low := figure.bound_low if figure.ci_low is None else figure.ci_low) is not None
        and (high := figure.bound_high if figure.ci_high is None else figure.ci_high) is not None
    ]
    bounds = f" Over all planned samples, {' and '.join(ranges)}." if ranges else ""
    return (
        f"{' and '.join(shares)} have no usable score, and may differ from the others. All results are for cells that "
        f"both answered.{bounds}"
    )


def _build_sections(differences: DifferenceReport) -> Iterator[Section]:
    """Build the sections in reading order."""
    if differences.pairs:
        yield build_overall_section(differences)
        yield from build_non_inferiority_section(differences)
        yield from build_corrected_section(differences)
        yield from build_judge_drift_section(differences)
        yield _build_coverage_section(differences)
    if differences.attributes is not None:
        yield build_attributes_section(differences.attributes)
    for i, pair in enumerate(differences.pairs[:MAX_DETAILED_PAIRS], start=1):
        sections = list(build_group_sections(pair, f"pair-{i}"))
        if pair.verdicts is not None:
            sections.append(build_verdict_section(pair.verdicts, f"pair-{i}-verdicts"))
        if len(differences.pairs) == 1:
            yield from sections
        elif sections:
            title = f"{pair.second} compared with {pair.first}"
            subsections = [replace(section, contents_title="") for section in sections]
            yield Section(f"pair-{i}", title, subsections, contents_title=title)
    if len(differences.pairs) > MAX_DETAILED_PAIRS:
        remark = f"Regions, countries and topics are shown for the first {MAX_DETAILED_PAIRS} pairs; "
        yield Section("not-shown", "Not shown", [Paragraph([remark, Code("--json"), " has them for all pairs."])])
    for i, judges in enumerate(differences.judges, start=1):
        yield build_verdict_section(judges, f"judges-{i}")
    for i, resolutions in enumerate(differences.settlements, start=1):
        yield build_resolution_section(resolutions, f"conflicts-{i}")


def _build_coverage_section(differences: DifferenceReport) -> Section:
    """Build the section on coverage: a table of the scored cells per series, and one of the cells per pair."""
    series_table = tabulate(
        "coverage-series",
        "Cells with a usable score",
        "Cells in which people were asked, and those of them with a usable score of the series.",
        differences.series,
        ComparedSeries,
        {"complete": lambda series: "yes" if series.complete else "no"},
    )
    pair_table = tabulate(
        "coverage-pairs",
        "Cells of each pair",
        "Number of cells with a usable score of both series, of one, or of neither. Cells with different scores of "
        "people in the two audits are excluded.",
        differences.pairs,
        SeriesPairDifferences,
    )
    return Section("coverage", "Coverage", [series_table, pair_table], contents_title="Coverage")
