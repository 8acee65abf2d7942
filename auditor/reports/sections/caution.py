"""Reasons for caution about an audit's figures, one sentence each; weaknesses of the models are no such reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Method, Purpose
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import MIN_ZONES
from auditor.reports.data.robustness import DesignAverages
from auditor.reports.number_format import format_count, format_interval, format_percent, format_styled, pluralize
from auditor.reports.sections.baselines import list_corrections, list_recall_cautions
from auditor.reports.sections.coverage import list_lost_sample_cautions, list_unusable_models
from auditor.reports.sections.over_models import describe_equal_series
from auditor.reports.sections.phrasing import compare_interval, describe_estimate, join_first
from auditor.reports.sections.probe_sections import list_probe_cautions
from auditor.reports.sections.requests import SamplingMarks, describe_mixed_forms
from auditor.reports.sections.sensitivity import list_influence_cautions
from auditor.reports.sections.task import compare_auc

MIN_COVERAGE = 0.95
MAX_OBEDIENCE = 0.05
"""Lower limit of a judge's rate of obeying, above which page one names it."""


def _completeness_cautions(report: Report) -> Iterator[str]:
    """Yield a caution about an unfinished audit."""
    if not report.audit.complete:
        yield f"The audit is not complete (stage: {report.audit.stage}); every figure is provisional."


def _repeat_cautions(report: Report) -> Iterator[str]:
    """Yield a caution about each kind of answers that were asked for again, since the first ones were unusable."""
    for row in report.coverage.total:
        if row.asked_again:
            yield (
                f"{format_count(row.asked_again)} of the planned {row.counted_label} had no usable answer and were "
                f"asked for again, once each. {format_count(row.answered_again)} second answers are usable, and the "
                "figures use them; coverage and the share of refusals count the first answers."
            )


def _exclusion_cautions(report: Report) -> Iterator[str]:
    """Yield a caution about each declaration that answers are invalid, and about those before an import."""
    for row in report.coverage.exclusions:
        selection = row.selection
        sample = None if selection.sample is None else f"sample {selection.sample + 1}"
        probe = None if selection.probe is None else f"probe {selection.probe}"
        parts = [selection.model, selection.country, selection.topic, sample, probe]
        yield (
            f"{pluralize(row.answers, 'answer')} ({', '.join(part for part in parts if part is not None)}) "
            f"{'was' if row.answers == 1 else 'were'} declared invalid on {row.excluded_at[:10]}: “{row.reason}” They "
            "are in no figure and count as lost."
        )
    if n_before := report.coverage.excluded_before_import:
        yield (
            f"{pluralize(n_before, 'answer')} of the imported file had been declared invalid "
            "before; the file does not say why. They are in no figure and count as lost."
        )


def _obedience_cautions(report: Report) -> Iterator[str]:
    """Yield a caution that names the judges that obey instructions in traces, or in comparisons, beyond 5%."""
    for action, shares in (
        ("gave the verdict", [(row.judge, row.verdicts) for row in report.panel.obedience]),
        ("preferred the trace", [(row.judge, row.preferences) for row in report.panel.obedience]),
    ):
        names = []
        for judge, share in shares:
            # With too few countries or topics for an interval over others, that for these cells is used.
            low = share.cells_ci_low if share.ci_low is None else share.ci_low
            if low is not None and low > MAX_OBEDIENCE:
                rate, lower = (format_styled(value, "percent", 0) for value in (share.value, low))
                names.append(f"{judge} ({rate} of {format_count(share.n)}, at least {lower})")
        if names:
            yield (
                f"Judges obey instructions in what they judge: {join_first(names, 'judge')} {action} that a planted "
                "instruction demands, where they answered otherwise without it. “Is the panel of judges reliable?” has "
                "the details."
            )


def _limit_cautions(report: Report) -> Iterator[str]:
    """Yield the known limits of intervals that this audit's own data show."""
    measured = [row for row in report.alignment if row.mae.ci_low is not None or row.pearson_r.ci_low is not None]
    zones = report.audit.survey.zones
    if measured and report.audit.survey.clusters == "country":
        yield (
            f"Intervals take the countries as independent, since they are in {pluralize(len(zones), 'cultural zone')} "
            f"and clusters need {MIN_ZONES}. Where countries of one zone are alike, the intervals are too narrow."
        )
    if any(row.takes_file_errors and row.design_effect == 1 for row in list_corrections(report).values()):
        yield (
            "The figures without sampling error take people’s answers as a simple random sample. If the survey has "
            "weights or clusters, set survey.design_effect: without it they are corrected too little."
        )
    figures = {(row.model, row.method): row.mae for row in report.alignment}
    moved = {
        row.model: end.left_out
        for row in report.sensitivity
        if row.figure == "mae" and row.without == "topic family"
        for mae, end in product([figures[row.model, row.method]], [row.lowest, row.highest])
        if mae.ci_low is not None and mae.ci_high is not None and not mae.ci_low <= end.value <= mae.ci_high
    }
    if moved:
        names = [f"{model} ({family})" for model, family in moved.items()]
        yield (
            "Without one family of topics, the mean absolute error leaves its interval, for "
            f"{join_first(names, 'model')}: topics of a family are alike, which intervals do not take into account."
        )


def _design_cautions(report: Report) -> Iterator[str]:
    """Yield the choices of the audit's design that are in no interval."""
    is_asked = any(row.method == Method.DIRECT and row.mae.ci_low is not None for row in report.alignment)
    if not is_asked or report.audit.imported:
        return
    choices = "the direction and form of the scale, or the place of the reasoning"
    if report.designs is not None:
        yield _describe_designs(report.designs)
    elif report.audit.survey.survey.wordings:
        yield (
            f"Intervals include the wording, but no other choices of the design, such as {choices}: run auditor "
            "experiment robustness."
        )
    else:
        yield (
            f"Intervals do not include how answers change with choices of the design, such as the wording, {choices}: "
            "set survey.wordings, or run auditor experiment robustness."
        )


def _describe_designs(designs: DesignAverages) -> str:
    """State which choices are in no interval, and how much the figures depend on them."""
    ranges = [
        f"{row.model} {format_interval(row.lowest_mae, row.highest_mae)}"
        for row in designs.averages
        if row.lowest_mae is not None
    ]
    return (
        f"Intervals do not include choices of the design ({join_first(list(designs.choices))}). In "
        f"{pluralize(designs.runs, 'design')} the MAE is: {join_first(ranges, 'model')}."
    )


def _coverage_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about stages in which too few answers are usable."""
    for row in report.coverage.total:
        if row.planned and row.ok < MIN_COVERAGE * row.planned:
            usable = format_percent(row.ok, row.planned)
            causes = [f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in row.losses.items()]
            causes += [f"{format_count(row.missing)} not recorded"] if row.missing else []
            yield (
                f"Only {usable} of the planned {row.counted_label} are usable ({', '.join(causes)}); “What is "
                "missing?” has the details."
            )


def _refusal_cautions(report: Report) -> Iterator[str]:
    """Yield a caution that names the models that refused more than 5% of the questions, most often first."""
    rows = [] if report.refusals is None else report.refusals.models
    rows = [row for row in rows if (row.share.value or 0.0) > 1 - MIN_COVERAGE]
    if rows:
        names = [f"{row.name} ({format_styled(row.share.value, 'percent', 1)})" for row in rows]
        yield (
            f"Many answers were refused, by {join_first(names, 'model')}; “What do the models refuse?” has the details."
        )


def _equal_sample_cautions(report: Report) -> Iterator[str]:
    """Yield a caution about models whose samples are equal in every cell although they were drawn at random."""
    temperatures = {
        row.model: row.requested.get("temperature", 0.0)
        for row in report.sampling.rows
        if row.purpose == Purpose.DIRECT
    }
    names = [
        row.model
        for row in report.self_consistency
        if row.method == Method.DIRECT and row.variance.value == 0 and temperatures.get(row.model, 0.0) > 0
    ]
    if names:
        yield (
            f"In every cell, all samples of {join_first(names, 'model')} have equal scores, although the "
            "temperature is above 0. The server may ignore the temperature or repeat a cached answer; then samples "
            "are no evidence of consistency."
        )


def _sampling_cautions(report: Report) -> Iterator[str]:
    """Yield a caution for each kind of answers whose spread is not comparable, since sampling settings differ."""
    figures_by_purpose = {
        probe.sampled_purpose: probe.sampled_figures
        for name in list_built_in_names()
        if (probe := load_built_in(name)).sampled_purpose is not None and getattr(report, name) is not None
    }
    if report.task is not None:
        figures_by_purpose[Purpose.DIRECT] = "Agreement between samples"
    elif any(row.variance.value is not None for row in report.self_consistency):
        figures_by_purpose[Purpose.DIRECT] = "Self-consistency and the variance of samples"
    for purpose, figures in figures_by_purpose.items():
        marks = SamplingMarks.of(report.sampling, purpose)
        if names := report.sampling.refusing_models(purpose):
            labels = [marks.mark(name, name) for name in names]
            yield (
                f"{figures} cannot be compared between models: the configured sampling settings were not accepted for "
                f"{join_first(labels, 'model')}."
            )


def _panel_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about judges that are no better than chance, depend on each other, or hardly agree."""
    quality, copying = report.judge_quality, report.panel.copying
    rows = [] if quality is None else [row for row in quality.judges if row.balanced_accuracy.value is not None]
    if names := [row.judge for row in rows if not row.is_better_than_chance]:
        yield (
            f"People’s labels do not show that the verdicts of {join_first(names, 'judge')} are better than chance; "
            "“Can the judges be trusted?” has the figures."
        )
    if copying.alike and copying.alpha_without_alike is not None:
        groups = "; ".join(join_first(group, "judge") for group in copying.alike)
        with_all, without = (
            describe_estimate("alpha", alpha)
            for alpha in (report.panel.krippendorff_alpha, copying.alpha_without_alike)
        )
        cause = "verdicts are equal" if copying.alike == copying.groups else "errors are more alike than other judges’"
        yield (
            f"Judges depend on each other, since their {cause}: {groups}. Their agreement is no independent evidence: "
            f"Krippendorff’s {with_all} with all judges, and {without} with one judge of each group."
        )
    if report.panel.repeated:
        yield (
            f"{pluralize(report.panel.repeated, 'verdict')} of {format_count(report.panel.asked)} repeat the answer of "
            "another judge. Judges with the same model and the same request count as one judge; their agreement is no "
            "evidence."
        )
    alpha = report.panel.krippendorff_alpha
    if (status := compare_interval(alpha)) in ("negative", "unclear"):
        finding = "below chance" if status == "negative" else "not statistically distinguishable from chance"
        area = report.task.telling.area if report.task and report.task.telling else None
        conclusion = "so their verdicts are weak evidence"
        if area is not None and compare_auc(area) == "positive":
            auc = describe_estimate("AUC", area)
            conclusion = f"but their verdicts separate correct from incorrect answers ({auc})"
        figures = describe_estimate("Krippendorff’s alpha", alpha)
        yield f"The agreement of the judges is {finding} ({figures}), {conclusion}."


CAUTION_CHECKS: Sequence[Callable[[Report], Iterable[str]]] = (
    _completeness_cautions,
    list_recall_cautions,
    list_probe_cautions,
    _repeat_cautions,
    _exclusion_cautions,
    _obedience_cautions,
    _limit_cautions,
    _coverage_cautions,
    _refusal_cautions,
    list_lost_sample_cautions,
    list_unusable_models,
    _equal_sample_cautions,
    describe_equal_series,
    list_influence_cautions,
    _sampling_cautions,
    describe_mixed_forms,
    _panel_cautions,
    _design_cautions,
)
"""Checks that each give the sentences of one kind of reason to doubt the figures, in the order of page one."""


def list_cautions(report: Report) -> list[str]:
    """Reasons to doubt the figures, not the models, in the fixed order of page one; empty if no check found one."""
    return [caution for check in CAUTION_CHECKS for caution in check(report)]
