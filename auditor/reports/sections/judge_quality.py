"""The section on what judges' verdicts are worth, measured on labels by people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.domain.labels import RaterKind
from auditor.errors import format_count
from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Estimate, Tested
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.charts.scatter_plots import ReliabilityPoint, reliability_diagram
from auditor.reports.data.judge_quality.schema import (
    AnnotatorTestRow,
    CorrectedDifferenceRow,
    CorrectedShareRow,
    ErrorFactorRow,
    JudgeAccuracyRow,
    JudgeQualityReport,
    JudgeSplitRow,
    PairJudgeRow,
    PairLabelsReport,
    PanelAccuracyRow,
    TransportRow,
    is_better_than_chance,
)
from auditor.reports.data.panel.certificate import describe_accuracy
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Code,
    Figure,
    FigureGrid,
    Inline,
    List,
    ListItem,
    Paragraph,
    Section,
    Status,
    Table,
)
from auditor.reports.number_format import (
    describe_estimate,
    describe_interval,
    describe_p_value,
    describe_points,
    format_interval,
    format_share,
    format_signed,
    pluralize,
)
from auditor.reports.sections.phrasing import (
    MAX_LONG_TABLE_ROWS,
    build_interval_figure,
    compare_interval,
    slugify_unique,
    sort_by_p_value,
    tabulate,
)
from auditor.storage.probe_results import find_label_form

THESE_TRACES_NOTE = "95% CIs are for these traces: over other random samples of them."


def build_accuracy_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of accuracy and of confidence."""
    caption = (
        "Sensitivity: share of the traces that people find VALID on which the judge agrees; specificity: of those that "
        "people find INVALID. Excess: its share of VALID minus people’s. If unsure: accuracy if all raters that are "
        f"unsure disagreed or agreed. {THESE_TRACES_NOTE} Balanced accuracy: mean of sensitivity and specificity, 0.5 "
        "by chance; its CI and p-value, adjusted for all judges, are for other traces of these cells. n counts labels."
    )
    derived = {"if_unsure": _format_unsure_bounds}
    yield tabulate("judge-accuracy", "Accuracy of each judge", caption, quality.judges, JudgeAccuracyRow, derived)
    caption = (
        "Accuracy of the majority, minus that of the best judge, and beside a majority of judges with the same "
        "sensitivity and specificity whose errors are independent. The best judge is chosen by the same labels, which "
        "flatters it a little; the CI allows for that. 95% CIs are for other traces of these cells. n counts labels."
    )
    panels = [quality.panel] if quality.panel is not None else []
    yield tabulate("panel-accuracy", "Accuracy of the panel", caption, panels, PanelAccuracyRow)
    caption = (
        "Expected calibration error: mean distance between the stated confidence and the share of right verdicts "
        "(lower is better), with its mean and 95% of its values if the confidence were right. Slope: 1 if it is "
        f"right, below 1 for overconfidence. Intercept: 0 if it is right, above 0 if it is too low. {THESE_TRACES_NOTE}"
    )
    rows = [row for row in quality.judges if row.confidence.error is not None]
    derived = {"band": _format_band}
    yield tabulate("judge-confidence", "Confidence of each judge", caption, rows, JudgeAccuracyRow, derived)


def _format_unsure_bounds(row: JudgeAccuracyRow) -> str | None:
    return format_interval(row.accuracy_if_unsure_disagree, row.accuracy_if_unsure_agree) if row.unsure else None


def _format_band(row: JudgeAccuracyRow) -> str:
    return format_interval(row.confidence.error_band_low, row.confidence.error_band_high)


def build_corrected_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of corrected shares and of their differences."""
    caption = (
        "Judges: share of VALID among the verdicts, over other countries and topics. People: from the labels alone. "
        "Corrected: the judges’ share minus their error on the labelled traces; calibrated: with votes and confidence "
        "first calibrated on other labels. Both are for these traces; the next two columns are for other countries and "
        "topics like these. Rogan–Gladen: the majority’s share corrected by its sensitivity and specificity. Excess: "
        "the judges’ share minus people’s. If unsure: corrected share if all raters that are unsure said INVALID or "
        "VALID. n counts labels."
    )
    if_unsure = {
        "if_unsure": lambda row: (
            format_interval(row.corrected_if_unsure_invalid, row.corrected_if_unsure_valid) if row.unsure else None
        )
    }
    yield tabulate("corrected-shares", "Shares of VALID", caption, quality.models, CorrectedShareRow, if_unsure)
    caption = (
        "Share of VALID of the first model minus that of the second: by the judges alone, corrected for these traces, "
        "and corrected for other countries and topics. P-values are for these traces, adjusted for all pairs (Holm). n "
        "counts labels."
    )
    title, rows = "Differences between models", quality.differences
    yield tabulate("corrected-differences", title, caption, rows, CorrectedDifferenceRow, max_rows=MAX_LONG_TABLE_ROWS)


def build_error_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of accuracy by group, of what errors go with, and of the test of one correction."""
    caption = (
        "Accuracy in a group of traces, and the difference from the other traces. Smallest difference: what so many "
        "labels show in 80% of samples, corrected for all rows. A difference that is not shown may still exist. "
        f"P-values are adjusted for all rows (Holm). {THESE_TRACES_NOTE}"
    )
    splits = sort_by_p_value(quality.splits, lambda row: row.difference)
    yield tabulate("judge-splits", "Accuracy by group", caption, splits, JudgeSplitRow, max_rows=MAX_LONG_TABLE_ROWS)
    caption = (
        "Change of the judge’s verdict minus people’s label with one property, the others held fixed; above 0 the "
        "judge is more lenient. Length and position: for one standard deviation. Languages and regions: compared with "
        "the most frequent one. An association, not an effect. P-values are adjusted for all rows (Holm). "
        "n counts labels."
    )
    factors = sort_by_p_value(quality.factors, lambda row: row.effect)
    yield tabulate(
        "judge-errors", "What errors go with", caption, factors, ErrorFactorRow, max_rows=MAX_LONG_TABLE_ROWS
    )
    caption = (
        "Whether the judges’ excess is equal in all groups. Largest: the excess in the group that differs most, minus "
        "that on the other traces. p is of equal errors in all groups (Bonferroni); p (adjusted) counts all such tests "
        "(Holm)."
    )
    tested = [row for row in quality.transport if row.largest_excess.p_value is not None]
    yield tabulate("transport", "Does one correction hold for all?", caption, tested, TransportRow)


def build_replacement_table(rows: Sequence[AnnotatorTestRow]) -> Table:
    """Build the table of the alternative annotator test."""
    caption = (
        "The alternative annotator test (Calderon, Reichart & Dror, ACL 2025): the judge passes if it wins against at "
        "least half of the raters, given ε, what its lower cost is worth: 0.2 if the raters are experts, 0.15 if "
        "skilled, 0.1 for crowd workers. The test over topics decides; the one over traces takes traces as independent "
        "and passes too often. Sentences are adjusted for all judges (Holm)."
    )
    derived = {
        "passed": lambda row: format_passed(row.test.passed),
        "passed_over_traces": lambda row: format_passed(row.test_over_traces.passed),
    }
    return tabulate("replacement-test", "Alternative annotator test", caption, rows, AnnotatorTestRow, derived)


def format_passed(passed: bool | None) -> str:
    """Whether an alternative annotator test was passed, in words."""
    return "not tested" if passed is None else "yes" if passed else "no"


def build_pair_labels_section(report: Report) -> Section | None:
    """Build the section; None without labels of pairs."""
    blocks = [block for labels in report.pair_labels for block in _build_kind(labels, report.audit.name)]
    if not blocks:
        return None
    title = "Do people agree with the judges of pairs?"
    return Section("pair-labels", title, blocks, "Judges of pairs")


def _build_kind(labels: PairLabelsReport, audit: str) -> Iterator[Block]:
    """Build the findings and the table of one kind, or one line that says how to get enough labels."""
    measured = [row for row in labels.judges if row.agreement.value is not None]
    if labels.labels and not labels.judges and labels.reason is None:
        return  # no judge was asked about these pairs
    if not measured:
        yield _describe_missing(labels, audit)
        return
    yield List([_describe_pair_judge(row, labels) for row in measured], is_findings=True)
    yield _build_table(labels)


def _describe_missing(labels: PairLabelsReport, audit: str) -> Paragraph:
    """Say why there are no figures, and with which command to go on."""
    n_labels = max(labels.suggested_labels, labels.sampled)
    plural = find_label_form(labels.kind).plural
    command = f"auditor review {shlex.quote(audit)} --sample {n_labels} --kind {labels.kind}"
    if labels.reason is not None:
        text = f"People’s labels of {plural} are not used: {labels.reason}. To draw a new sample: "
        return Paragraph([text, Code(f"{command} --redraw"), "."], "note")
    text = (
        f"{format_count(labels.labels)} of about {pluralize(n_labels, 'label')} of {plural}: too few to say how "
        "often the judges agree with people. To continue: "
    )
    return Paragraph([text, Code(command), "."])


def _describe_pair_judge(row: PairJudgeRow, labels: PairLabelsReport) -> ListItem:
    """One sentence on a judge; in favour if it agrees with people beyond chance, where that is measured."""
    question = "" if row.question == labels.kind else f" about {row.question}"
    plural = find_label_form(labels.kind).plural
    noun = find_label_form(labels.kind).noun if row.labels == 1 else plural
    interval = describe_interval(row.agreement, 0, "percent")
    text = (
        f"{row.judge} agrees with people{question} on {format_share(row.agreement.value)} of the "
        f"{plural} ({interval}, {format_count(row.labels)} labelled {noun})."
    )
    if row.kappa is None or row.kappa.ci_low is None or row.kappa.ci_high is None:
        return ListItem(text, "neutral")
    is_shown = row.kappa.ci_low > 0 or row.kappa.ci_high < 0
    return ListItem(text, ("positive" if row.kappa.ci_low > 0 else "negative") if is_shown else "unclear")


def _build_table(labels: PairLabelsReport) -> Table:
    """Build the table of one kind of pairs."""
    plural = find_label_form(labels.kind).plural
    caption = (
        f"Agreement: share of the {plural} on which the judge gives the answer of a random rater. If "
        "unsure: the agreement if all raters that are unsure disagreed or agreed. 95% CIs are for these "
        f"{plural}: over other random samples of them. n counts labels of "
        f"{pluralize(len(labels.raters), 'rater')}, whose errors are not removed."
    )
    if labels.kind == "answer_pair":
        caption += (
            " Sensitivity: share of the pairs of which people say yes on which the judge agrees; specificity: of those "
            "of which they say no."
        )
    derived = {"if_unsure": _format_unsure_pair_bounds}
    title = f"Judges of {plural}"
    table_id = f"{labels.kind.replace('_', '-')}-judges"
    return tabulate(table_id, title, caption, labels.judges, PairJudgeRow, derived)


def _format_unsure_pair_bounds(row: PairJudgeRow) -> str | None:
    bounds = row.agreement_if_unsure_disagree, row.agreement_if_unsure_agree
    return format_interval(*bounds) if row.unsure else None


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
    unsure = pluralize(quality.unsure, "trace")
    return Paragraph(
        [
            *([f"People labelled {unsure}, all as unsure. "] if quality.unsure else []),
            "This report does not compare the judges with people on a random sample of traces. To measure the judges’ "
            f"errors and correct for them, label about {pluralize(quality.suggested_labels, 'trace')}: ",
            Code(f"auditor review {name} --sample {quality.suggested_labels}"),
            ". Each model’s share of VALID is then known to ± 10 to 13 percentage points.",
        ],
        "note",
    )


def describe_panel_accuracy(quality: JudgeQualityReport) -> Iterator[str]:
    """Yield how the panel's majority compares with its best judge and with independent judges, if it is known."""
    panel = quality.panel
    if panel is None or panel.accuracy.majority.value is None:
        return
    gain, loss = (_to_points(difference) for difference in (panel.accuracy.gain, panel.accuracy.loss))
    decided = judged = ""
    if panel.accuracy.majority.n < quality.labels:
        n_decided, n_labelled = format_count(panel.accuracy.majority.n), format_count(quality.labels)
        decided = f" that it decides ({n_decided} of {n_labelled} with a label)"
    if panel.accuracy.gain.n < quality.labels:
        judged = " on the traces that both decide,"
    yield (
        f"The panel’s majority agrees with people on {format_share(panel.accuracy.majority.value)} of the traces"
        f"{decided}. Compared with its best judge, {panel.best_judge},{judged} this is "
        f"{describe_points(panel.accuracy.gain.value)} ({describe_interval(gain, 0, 'signed')}); compared with a "
        f"majority of equally accurate judges with independent errors, {format_signed(loss.value, 0)} "
        f"({describe_interval(loss, 0, 'signed')})."
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
            f"{format_count(quality.labels)} of about {pluralize(n_labels, 'label')}: too few to say how often the "
            "judges agree with people. To continue: "
        )
        return Paragraph([text, Code(command), "."])
    interval = describe_interval(_to_points(excess), 0, "signed")
    labels = pluralize(quality.labels, "labelled trace")
    if compare_interval(excess) not in ("positive", "negative"):
        difference = f"{describe_points(excess.value)} ({interval}, {labels})"
        return Paragraph(f"The judges’ share of VALID is not shown to differ from people’s: {difference}.")
    direction = "more" if excess.value >= 0 else "less"
    figures = f"{describe_points(abs(excess.value)).lstrip('+')} {direction} often than people do"
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
        highest = ceiling.max_accuracy
        limit = (
            ""
            if highest.value is None or highest.value > 0.99
            else f" So no judge is expected to agree with a random rater on more than {format_share(highest.value)} "
            f"({describe_interval(highest, 0, 'percent')})."
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
    tested = [row for row in rows if row.test.passed is not None]
    if not tested:
        missing = max(row.missing for row in rows)
        text = (
            "It is not tested whether a judge may replace a person: the test needs "
            f"{rows[0].min_raters} labels of each trace, and {pluralize(missing, 'label')} more of them at least."
        )
        return [Paragraph(text, "note")]
    note: list[Inline] = [
        f"The raters are taken for {RATER_PLURALS[quality.rater_kind]}: ",
        Code("labels.rater_kind"),
        ".",
    ]
    findings = List(_describe_tests([row for row in rows if row.rater_kind == quality.rater_kind]), is_findings=True)
    blocks: list[Block] = [findings, Paragraph(note, "note"), build_replacement_table(rows)]
    return [Section("replacement", "May a judge replace a person?", blocks)]


def _describe_tests(rows: Sequence[AnnotatorTestRow]) -> list[ListItem]:
    """One sentence on the test of each judge, which may replace a rater only given the number of judges (Holm)."""
    from auditor.metrics.intervals.multiple_testing import holm  # loads numpy

    levels = [row.test.passing_level for row in rows]
    adjusted = holm([float("nan") if level is None else level for level in levels])
    shown = [bool(level <= SIGNIFICANCE_LEVEL) for level in adjusted]
    return [_describe_test(row, is_shown=is_shown) for row, is_shown in zip(rows, shown, strict=True)]


def _describe_test(row: AnnotatorTestRow, *, is_shown: bool) -> ListItem:
    """One sentence on the test of a judge against raters of one kind."""
    test = row.test
    if test.passed is None:
        return ListItem(f"{row.judge} was not tested: {test.reason}.", "unclear")
    rater = RATER_NAMES[row.rater_kind]
    correction = " given the number of judges" if test.passed else ""
    verb = f"may replace {rater}" if is_shown else f"is not shown to be able to replace {rater}{correction}"
    return ListItem(
        f"{row.judge} {verb}: it wins against {format_share(test.winning_rate)} of the raters.",
        "positive" if is_shown else "unclear",
    )
