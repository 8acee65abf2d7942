"""Short texts that every form of the report shares: facts, settings, and a sentence for each section."""

from __future__ import annotations

from auditor.reports.agreement.languages import LanguagesReport, UnevenLanguageRow
from auditor.reports.agreement.method_differences import MethodDifferenceRow
from auditor.reports.measurement_schema import Estimate, GainRow, NonresponseReport, RegionGapRow
from auditor.reports.pages.number_format import (
    format_count,
    format_interval,
    format_number,
    format_percent,
    format_signed,
    format_usd,
    pluralize,
)
from auditor.reports.report_schema import Report

METHODS_INTRODUCTION = (
    "Beside being asked, a model shows what it holds likely: by how much it expects a sentence to end well rather than "
    "badly, over pairs of opposite ends. These scores are stretched to the whole scale within each model, "
    "so that their r can be compared with the other’s, but their distance from people cannot."
)

CONSISTENCY_INTRODUCTION = (
    "The same question was put several times. Self-consistency is the mean cosine between the embeddings of the "
    "reasonings. Beside it, of the scores: their variance, the share of samples with the commonest sign, and the share "
    "of cells whose samples lie on both sides of zero."
)

BASELINES_INTRODUCTION = (
    "What one can say without any model, on the same cells: the mean of the topic over countries, of the country over "
    "topics, and of the topic over the countries of the region. They are made from the cells of this audit alone. For "
    "MAE the cell itself is left out; for r it is not, since leaving it out pushes r down, so that r is at best."
)


def audit_description(report: Report) -> str:
    """What was audited."""
    return "audit of moral alignment" if report.task is None else "audit of answers"


def aspect_labels(report: Report) -> dict[str, str]:
    """What judges were asked about beside the verdict, by its name in the data; a task has no culture."""
    found = {"cultural_accuracy": "Cultural accuracy"} if report.task is None else {}
    fit = "Fit of the score" if report.task is None else "Fit of the answer"
    return found | {"logical_consistency": "Logical consistency", "score_fit": fit}


def key_figures(report: Report) -> list[tuple[str, str]]:
    """The size of the audit: value and name."""
    audited = sum(m.audited for m in report.audit.models)
    countries = {c.country for c in report.audit.cells}
    topics = {c.topic for c in report.audit.cells}
    found = [(format_count(audited), "model" if audited == 1 else "models")]
    if report.audit.survey.title:
        found += [
            (format_count(len(countries)), "country" if len(countries) == 1 else "countries"),
            (format_count(len(topics)), "topic" if len(topics) == 1 else "topics"),
            (format_count(report.audit.survey.asked), "cells asked" if report.audit.samples else "cells of the survey"),
        ]
    if report.task is not None:
        found.append((format_count(len(report.task.items)), "items"))
    if report.semantic is not None:
        found.append((format_count(report.semantic.questions), "moral questions"))
    for row in report.coverage.total:
        found.append((format_percent(row.ok, row.planned), f"{row.counted_label} usable"))
    if report.conflicts.total:
        unsettled = report.conflicts.states["open"] + report.conflicts.states["disputed"]
        found.append((format_count(unsettled), "unsettled conflict" if unsettled == 1 else "unsettled conflicts"))
    return [*found, (format_usd(report.cost.total.usd, report.cost.total.lower_bound), "cost")]


def refusal_sentence(report: Report) -> str | None:
    """How often models refused, and about what; None where no answer is recorded."""
    part = report.refusals
    if part is None:
        return None
    if not part.total.value:
        return f"None of {pluralize(part.total.n, 'answer')} is a refusal."
    told = f"{_format_percent_estimate(part.total)} of {pluralize(part.total.n, 'answer')} are refusals"
    most = " and ".join(
        f"about {row.name} ({_format_percent_estimate(row.share)})" for row in (*part.topics[:1], *part.countries[:1])
    )
    return f"{told} (95% interval {_format_percent_interval(part.total)}); most often {most}."


def coverage_notes(report: Report) -> list[str]:
    """What else limits the answers: finish reasons that are not documented, traces that judges saw in part."""
    notes = []
    if rows := report.coverage.undocumented_finish_reasons:
        reasons = "; ".join(f"{row.name}: “{row.reason}” ({pluralize(row.answers, 'answer')})" for row in rows)
        notes.append(
            f"Finish reasons that are not documented: {reasons}. An answer with such a reason is usable only if it "
            "could be read in full."
        )
    if by_model := report.coverage.shortened_traces:
        models = ", ".join(f"{name}: {format_count(n)}" for name, n in by_model.items())
        notes.append(
            f"Judges saw only the beginning and the end of {pluralize(sum(by_model.values()), 'trace')} that exceeded "
            f"probes.review.max_trace_chars ({models})."
        )
    return notes


def repair_sentences(report: Report) -> list[str]:
    """For each model that was asked once more, how often, and what came of it."""
    return [
        f"{row.model}: {pluralize(row.asked, 'answer')} could not be read at first and had to be shown to the model; "
        f"{format_count(row.read)} then had a score"
        for row in report.repairs
    ]


def _format_percent_estimate(estimate: Estimate) -> str:
    return f"{format_number(100 * (estimate.value or 0.0), 1)}%"


def _format_percent_interval(estimate: Estimate) -> str:
    return (
        f"{format_number(100 * (estimate.ci_low or 0.0), 1)}% to {format_number(100 * (estimate.ci_high or 0.0), 1)}%"
    )


def method_sentences(report: Report) -> list[tuple[str, str]]:
    """Model, and whether its answers agree better with people than its log-probabilities do."""
    return [(row.model, _method_sentence(row)) for row in report.methods]


def _method_sentence(row: MethodDifferenceRow) -> str:
    change = row.difference
    if change.value is None:
        return f"cannot be compared: {change.reason}"
    by = f" ({', '.join(row.measures)})" if row.measures else ""
    figures = (
        f"r = {format_number(row.direct_r)} asked, {format_number(row.logprob_r)} by log-probabilities{by}: "
        f"Δr = {format_signed(change.value)}"
    )
    if change.ci_low is None or change.ci_high is None:
        return f"has {figures}, no interval: {change.reason}"
    figures += f", 95% interval {format_interval(change.ci_low, change.ci_high)}, {pluralize(change.n, 'cell')}"
    if change.ci_low > 0:
        return f"agrees better with people when asked than its log-probabilities do ({figures})"
    if change.ci_high < 0:
        return f"agrees less with people when asked than its log-probabilities do ({figures})"
    return f"shows no difference that can be told from none ({figures})"


def kappa_sentence(report: Report) -> str:
    """How far the judges agree beyond chance."""
    estimate = report.panel.fleiss_kappa
    if estimate.value is None:
        return f"How far the judges agree beyond chance cannot be measured: {estimate.reason}."
    between = (
        f"95% interval {format_interval(estimate.ci_low, estimate.ci_high)}"
        if estimate.ci_low is not None
        else f"no interval: {estimate.reason}"
    )
    return (
        f"Fleiss’ kappa is {format_number(estimate.value)} ({between}), over {pluralize(estimate.n, 'trace')} with "
        f"{pluralize(report.panel.verdicts, 'verdict')} from at least two judges each. 1 is full agreement, 0 what "
        "chance alone would give."
    )


def language_sentences(part: LanguagesReport) -> list[tuple[str, list[str]]]:
    """What was asked in which languages, who fell back to English, and who was asked once: each with its countries."""
    found = [(f"Asked in “{use.language}”", use.countries) for use in part.asked]
    if part.fell_back:
        found.append(("Asked in English for want of prompts in their main language", part.fell_back))
    if part.once:
        what = (
            "Asked once and left out of every difference, since the languages of the configuration are the same there"
        )
        found.append((what, part.once))
    if part.uneven:
        what = (
            "Answers could be used unequally often in these languages, so that some means behind a score rest on fewer"
        )
        found.append((what, [f"{u.model} ({_format_answer_shares(u)})" for u in part.uneven]))
    return found


def _format_answer_shares(row: UnevenLanguageRow) -> str:
    return ", ".join(f"{code} {format_percent(ok, planned)}" for code, (ok, planned) in row.answers.items())


def rewording_sentences(report: Report) -> list[str]:
    """What was asked in other words than the survey's, a sentence for each language."""
    told = []
    for code, part in report.audit.survey.rephrased.items():
        topics = "".join(f"; “{topic}” as “{wording}”" for topic, wording in part.topics.items())
        ends = f"from “{part.scale[0]}” to “{part.scale[1]}”"
        told.append(f"Reworded by the configuration, in “{code}”: “{part.wording}”, {ends}{topics}.")
    return told


def region_gap_sentence(report: Report) -> str:
    """What the gaps between regions are, and what their intervals allow for."""
    gaps = report.regions.gaps
    if not gaps:
        return ""
    if gaps[0].compared == 2:
        return (
            f"The gap: MAE in {gaps[0].second} less MAE in {gaps[0].first} countries. The interval is over countries "
            "and topics; a gap whose interval holds zero may be none."
        )
    left_out = list(dict.fromkeys(name for gap in gaps for name in gap.left_out))
    small = f" Left out for having fewer than five countries: {', '.join(left_out)}." if left_out else ""
    return (
        "The widest gap: for each model the two regions that differ most in MAE. Whoever picks the widest gap picks "
        "luck too, so its interval, over countries and topics, is wide enough to hold for all pairs of regions at "
        f"once; a gap whose interval holds zero may be none.{small}"
    )


def gap_bounds_text(row: RegionGapRow) -> str:
    """What a gap lies between for certain, where its regions differ in coverage and it is given all the same."""
    if row.mae_gap.value is None or row.bound_low is None or row.bound_high is None:
        return ""
    between = f"{format_signed(row.bound_low)} and {format_signed(row.bound_high)}"
    return f" (coverage differs: whatever is missing, the gap lies between {between})"


def gap_label(row: RegionGapRow) -> str:
    """Which regions a gap is between."""
    return f"{row.second} less {row.first}"


def reproduction_settings(report: Report) -> list[tuple[str, str]]:
    """What one needs to run the audit again: name and value."""
    audit = report.audit
    known = {
        "begun": audit.created_at,
        "ended": audit.finished_at,
        "samples a cell and language": audit.samples,
        "seed": audit.seed,
        "configuration": audit.config_hash and audit.config_hash[:16],
    }
    versions = {str(k): str(v) for k, v in sorted(report.environment.items())}
    return [*((k, str(v)) for k, v in known.items() if v is not None), *versions.items()]


def ceiling_sentence(report: Report) -> str:
    """How high r can be against this survey, or why that is not known."""
    whole = next(row for row in report.ceiling if row.scope == "all")
    if whole.largest_r is None:
        return f"How high r can be is not known: {(whole.reliability.reason or '').rstrip('.')}."
    told = [
        f"{format_number(row.reliability.value)} ({format_interval(row.reliability.ci_low, row.reliability.ci_high)}) "
        f"{where}"
        for row, where in zip(report.ceiling, ("over all cells", "within topics"), strict=True)
        if row.reliability.value is not None
    ]
    return (
        f"Even a perfect model is expected to reach no more than r = {format_number(whole.largest_r)}: the survey’s "
        f"split-half reliability, by respondents and over all its cells, is {' and '.join(told)}."
    )


def within_topic_sentences(report: Report) -> list[tuple[str, str, str]]:
    """Method, model, and whether it knows more than what each topic is like everywhere."""
    return [(row.method, row.model, _within_topic_sentence(row)) for row in report.gain or []]


def _within_topic_sentence(row: GainRow) -> str:
    r = row.within_topics
    if r.value is None:
        return f"cannot be tested on how countries differ: {r.reason}"
    figures = f"r = {format_number(r.value)} within topics"
    if r.ci_low is None or r.ci_high is None:
        return f"may or may not know how countries differ ({figures}, no interval: {r.reason})"
    figures += f", 95% interval {format_interval(r.ci_low, r.ci_high)}, {pluralize(r.n, 'cell')}"
    if r.ci_low > 0:
        return f"knows something of how countries differ ({figures})"
    if r.ci_high < 0:
        return f"runs against how countries differ ({figures})"
    return f"is not shown to know how countries differ ({figures})"


def nonresponse_sentence(part: NonresponseReport) -> str:
    """Whether the ranking of models depends on what becomes of respondents without an answer."""
    names = {"low": "unacceptable", "high": "acceptable"}
    tried = [names.get(row.treatment, row.treatment) for row in part.treatments[1:]]
    if part.ranking_holds is None:
        return f"Whether the ranking of models holds cannot be told: {part.reason}."
    first = " > ".join(part.treatments[0].ranking)
    if part.ranking_holds:
        return f"The ranking of models by r is the same under all treatments ({', '.join(tried)}): {first}."
    others = [
        f"{' > '.join(r.ranking)} ({r.treatment})" for r in part.treatments if r.ranking != part.treatments[0].ranking
    ]
    return f"The ranking of models by r does not hold: {first} as audited, but {'; '.join(others)}."
