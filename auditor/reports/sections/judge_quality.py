"""The section on what the judges' verdicts are worth, measured on labels by people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from auditor.domain.labels import RaterKind
from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.charts.reliability_diagram import ReliabilityPoint, reliability_diagram
from auditor.reports.data.judge_quality.schema import (
    AnnotatorTestRow,
    JudgeAccuracyRow,
    JudgeQualityReport,
    is_better_than_chance,
)
from auditor.reports.data.panel.certificate import describe_accuracy
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Code, Figure, FigureGrid, Inline, List, ListItem, Paragraph, Section, Status
from auditor.reports.number_format import (
    describe_estimate,
    describe_interval,
    describe_p_value,
    format_share,
    format_signed,
    pluralize,
)
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.judge_quality_tables import (
    build_accuracy_tables,
    build_corrected_tables,
    build_error_tables,
    build_replacement_table,
)
from auditor.reports.sections.phrasing import slugify_unique

RATER_PLURALS: Mapping[RaterKind, str] = {"expert": "experts", "skilled": "skilled raters", "crowd": "crowd workers"}
RATER_NAMES: Mapping[RaterKind, str] = {"expert": "an expert", "skilled": "a skilled rater", "crowd": "a crowd worker"}
TITLE, NAVIGATION_TITLE = "Can the judges be trusted?", "Judges and people"


def build_judge_quality_section(report: Report) -> Section | None:
    """Build the section; None without labels."""
    quality = report.judge_quality
    if quality is None or not quality.labels:
        return None
    excess = describe_excess(report)
    if not quality.is_measured:
        return Section("judge-quality", TITLE, [excess], NAVIGATION_TITLE)
    blocks: list[Block] = [
        *(Paragraph(sentence, "finding") for sentence in describe_accuracy(quality)),
        *(Paragraph(sentence) for sentence in describe_panel_accuracy(quality)),
        excess if quality.judges else replace(excess, role="finding"),
        List([_describe_judge(row) for row in quality.judges], is_findings=True),
        List(_list_remarks(quality)),
        *_build_corrected(quality),
        *_build_diagrams(quality),
        *(table for table in build_accuracy_tables(quality) if table.rows),
        *(table for table in build_error_tables(quality) if table.rows),
        *_build_replacement(quality),
    ]
    return Section("judge-quality", TITLE, blocks, NAVIGATION_TITLE)


def suggest_labels(report: Report) -> Paragraph | None:
    """One line with the command that starts the labelling; None with labels, or without verdicts."""
    quality = report.judge_quality
    if quality is None or quality.labels:
        return None
    name = shlex.quote(report.audit.name)
    if quality.reason is not None:
        return Paragraph(f"People’s labels are not used: {quality.reason.replace('AUDIT', name)}.", "note")
    return Paragraph(
        [
            "This report does not compare the judges with people on a random sample of traces. To measure the judges’ "
            f"errors and correct for them, label about {pluralize(quality.suggested_labels, 'trace')}: ",
            Code(f"auditor review {name} --sample {quality.suggested_labels}"),
            ". Each model’s share of VALID is then known to about ± 10 percentage points.",
        ],
        "note",
    )


def describe_panel_accuracy(quality: JudgeQualityReport) -> Iterator[str]:
    """Yield how the panel's majority compares with its best judge and with independent judges, if it is known."""
    panel = quality.panel
    if panel is None or panel.majority.value is None:
        return
    gain, loss = (_to_points(difference) for difference in (panel.gain, panel.loss))
    yield (
        f"The panel’s majority agrees with people on {format_share(panel.majority.value)} of the traces. Compared with "
        f"its best judge, {panel.best_judge}, this is {format_signed(gain.value, 0)} percentage points "
        f"({describe_interval(gain, 0, 'signed')}); compared with a majority of equally accurate judges with "
        f"independent errors, {format_signed(loss.value, 0)} ({describe_interval(loss, 0, 'signed')})."
    )


def describe_excess(report: Report) -> Paragraph:
    """By how much the judges' share of VALID differs from people's, or how to get enough labels; needs labels."""
    quality = report.judge_quality
    assert quality is not None
    excess = quality.excess
    if excess is None or excess.value is None:
        n_labels = max(quality.suggested_labels, quality.sampled)
        command = f"auditor review {shlex.quote(report.audit.name)} --sample {n_labels}"
        text = (
            f"{quality.labels:,} of about {pluralize(n_labels, 'label')}: too few to say how often the judges agree "
            "with people. To continue: "
        )
        return Paragraph([text, Code(command), "."])
    direction = "more" if excess.value >= 0 else "less"
    figures = f"{abs(100 * excess.value):.0f} percentage points {direction} often than people do"
    interval = describe_interval(_to_points(excess), 0, "signed")
    labels = pluralize(quality.labels, "labelled trace")
    return Paragraph(f"The judges find traces VALID {figures} ({interval}, {labels}).")


def _to_points(share: Estimate) -> Estimate:
    """A difference of shares in percentage points."""
    value, low, high = (None if end is None else 100 * end for end in (share.value, share.ci_low, share.ci_high))
    return replace(share, value=value, ci_low=low, ci_high=high)


def _describe_judge(row: JudgeAccuracyRow) -> ListItem:
    """One sentence on a judge; in favour if it is shown to be better than chance."""
    if row.accuracy.value is None:
        return ListItem(f"{row.judge}: accuracy {describe_estimate('', row.accuracy)}.", "unclear")
    accuracy = describe_interval(row.accuracy, 0, "percent")
    text = (
        f"{row.judge} agrees with people on {format_share(row.accuracy.value)} of the traces ({accuracy}, "
        f"{pluralize(row.labels, 'label')})."
    )
    rates = [
        f"of {'those' if i else 'the traces'} that people find {ruling} it finds {format_share(rate.value)} {ruling}"
        for i, (rate, ruling) in enumerate(((row.sensitivity, "VALID"), (row.specificity, "INVALID")))
        if rate.value is not None
    ]
    if rates:
        joined = ", and ".join(rates)
        text += f" {joined[0].upper()}{joined[1:]}."
    return ListItem(text, _classify(row.balanced_accuracy))


def _classify(balanced: Tested) -> Status:
    """Whether a judge is better than chance, given the number of judges."""
    if not balanced.is_significant:
        return "unclear"
    return "positive" if is_better_than_chance(balanced) else "negative"


def _list_remarks(quality: JudgeQualityReport) -> list[str]:
    """What the labels cannot show: people's own errors, raters that are unsure, groups with few labels."""
    remarks = []
    ceiling = quality.ceiling
    if ceiling is not None and ceiling.agreement.value is not None:
        highest = ceiling.max_accuracy.value
        limit = (
            "" if highest is None else f" No judge can agree with a random rater on more than {format_share(highest)}."
        )
        agreement = describe_interval(ceiling.agreement, 0, "percent")
        remarks.append(
            f"Two raters agree on {format_share(ceiling.agreement.value)} of {pluralize(ceiling.shared, 'trace')} "
            f"({agreement}).{limit}"
        )
    else:
        remarks.append("No trace was labelled by two raters, so it is not known how often people agree.")
    remarks.append(
        "The figures compare a judge with a random rater of this pool. People’s errors are not removed: "
        "a judge’s true accuracy may be higher."
    )
    if quality.unsure:
        remarks.append(
            f"Raters are unsure about {pluralize(quality.unsure, 'trace')}. The tables say how far this could move "
            "the figures."
        )
    if quality.not_used:
        remarks.append(
            f"{pluralize(quality.not_used, 'label')} not used: the trace is not in the random sample, or no judge "
            "ruled on it."
        )
    for row in quality.refused_splits:
        remarks.append(
            f"{row.refused} of {row.groups} {row.dimension}s have too few labels to compare the judges’ accuracy "
            f"between them: {pluralize(row.missing, 'label')} missing."
        )
    remarks += [
        f"It is not tested whether one correction holds for all {row.dimension}s: "
        f"{pluralize(row.missing, 'label')} missing."
        for row in quality.transport
        if row.missing
    ]
    remarks += [
        f"One correction does not hold for all {row.dimension}s: the judges’ errors differ most for "
        f"{row.largest_group} ({describe_p_value(p_value)}). Use the figures of each {row.dimension}."
        for row in quality.transport
        if (p_value := row.largest_excess.adjusted_p_value) is not None and p_value < SIGNIFICANCE_LEVEL
    ]
    return remarks


def _build_corrected(quality: JudgeQualityReport) -> list[Block]:
    """The corrected shares of all models as a plot and tables."""
    if not quality.models:
        return []
    caption = (
        "Share of VALID of each model after correction by people’s labels, with 95% CI for these traces. Higher is "
        "better."
    )
    figure = build_interval_figure(
        "corrected-shares-plot",
        "Corrected share of VALID",
        [(row.model, row.corrected) for row in quality.models],
        SHARE_AXIS,
        table_id="corrected-shares",
        caption=caption,
    )
    status = (
        "Comparisons and checks use the corrected shares."
        if quality.corrected_shares
        else f"Comparisons and checks use the judges’ own shares until each model has {quality.min_labels} labels: "
        f"{pluralize(sum(row.missing_labels for row in quality.models), 'label')} missing."
    )
    tables = [table for table in build_corrected_tables(quality) if table.rows]
    return [Section("corrected", "Corrected shares of VALID", [Paragraph(status), figure, *tables])]


def _build_diagrams(quality: JudgeQualityReport) -> list[Block]:
    """A reliability diagram for each judge that states its confidence."""
    rows = [row for row in quality.judges if row.confidence.bins]
    figures = [
        Figure(
            f"reliability-{slug}",
            reliability_diagram(
                [
                    ReliabilityPoint(bin_.mean_probability, bin_.share, bin_.band_low, bin_.band_high, bin_.n)
                    for bin_ in row.confidence.bins
                ]
            ),
            row.judge,
            _describe_bins(row),
            table_id="judge-confidence",
        )
        for slug, row in zip(slugify_unique(row.judge for row in rows), rows, strict=True)
    ]
    if not figures:
        return []
    note = (
        "A dot is the share of right verdicts among those with about the same stated confidence. On the dotted line "
        "the confidence is right; below it the judge is overconfident. The bars contain 95% of the shares of a judge "
        "whose confidence is right."
    )
    title = "Is a confident judge right more often?"
    return [Section("reliability", title, [Paragraph(note, "note"), FigureGrid(figures)])]


def _describe_bins(row: JudgeAccuracyRow) -> str:
    """The diagram in words."""
    return "; ".join(
        f"confidence {format_share(bin_.mean_probability)}: right on {format_share(bin_.share)}"
        for bin_ in row.confidence.bins
    )


def _build_replacement(quality: JudgeQualityReport) -> list[Block]:
    """Whether each judge may replace a rater, or how many labels the test lacks."""
    rows = quality.replacement
    if not rows:
        return []
    tested = [row for row in rows if row.passed is not None]
    if not tested:
        missing = max(row.missing for row in rows)
        text = (
            "It is not tested whether a judge may replace a person: the test needs "
            f"{rows[0].min_raters} labels of each trace, and {pluralize(missing, 'label')} more of them at least."
        )
        return [Paragraph(text, "note")]
    findings = List([_describe_test(row) for row in rows if row.rater_kind == quality.rater_kind], is_findings=True)
    note: list[Inline] = [
        f"The raters are taken for {RATER_PLURALS[quality.rater_kind]}: ",
        Code("labels.rater_kind"),
        ".",
    ]
    blocks: list[Block] = [findings, Paragraph(note, "note"), build_replacement_table(rows)]
    return [Section("replacement", "May a judge replace a person?", blocks)]


def _describe_test(row: AnnotatorTestRow) -> ListItem:
    """One sentence on the test of a judge against raters of one kind."""
    if row.passed is None:
        return ListItem(f"{row.judge} was not tested: {row.reason}.", "unclear")
    rater = RATER_NAMES[row.rater_kind]
    verb = f"may replace {rater}" if row.passed else f"is not shown to be able to replace {rater}"
    return ListItem(
        f"{row.judge} {verb}: it wins against {format_share(row.winning_rate)} of the raters.",
        "positive" if row.passed else "unclear",
    )
