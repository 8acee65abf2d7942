"""Sentences, key figures and settings that the HTML page and the Markdown report share."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.languages import LanguagesReport, UnevenLanguageRow
from auditor.reports.data.agreement.method_differences import MethodDifferenceRow
from auditor.reports.data.measurement_schema import GainRow, NonresponseReport, RegionGapRow
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_number,
    format_percent,
    format_signed,
    format_usd,
    pluralize,
)

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
    """The kind of audit, as a phrase."""
    return "audit of moral alignment" if report.task is None else "audit of answers"


def aspect_labels(report: Report) -> dict[str, str]:
    """Labels of the aspects that judges rate besides the verdict, by field of `PeerAgreementRow`.

    The aspect of cultural accuracy exists only for a survey.
    """
    labels = {"cultural_accuracy": "Cultural accuracy"} if report.task is None else {}
    fit_label = "Fit of the score" if report.task is None else "Fit of the answer"
    return labels | {"logical_consistency": "Logical consistency", "score_fit": fit_label}


def key_figures(report: Report) -> list[tuple[str, str]]:
    """Key figures of the audit, such as its size and cost, as (value, name)."""
    n_audited = sum(model.audited for model in report.audit.models)
    countries = {cell.country for cell in report.audit.cells}
    topics = {cell.topic for cell in report.audit.cells}
    figures = [(format_count(n_audited), "model" if n_audited == 1 else "models")]
    if report.audit.survey.title:
        figures += [
            (format_count(len(countries)), "country" if len(countries) == 1 else "countries"),
            (format_count(len(topics)), "topic" if len(topics) == 1 else "topics"),
            (format_count(report.audit.survey.asked), "cells asked" if report.audit.samples else "cells of the survey"),
        ]
    if report.task is not None:
        figures.append((format_count(len(report.task.items)), "items"))
    if report.semantic is not None:
        figures.append((format_count(report.semantic.questions), "moral questions"))
    for row in report.coverage.total:
        figures.append((format_percent(row.ok, row.planned), f"{row.counted_label} usable"))
    if report.conflicts.total:
        n_unsettled = report.conflicts.states["open"] + report.conflicts.states["disputed"]
        figures.append((format_count(n_unsettled), "unsettled conflict" if n_unsettled == 1 else "unsettled conflicts"))
    return [*figures, (format_usd(report.cost.total.usd, report.cost.total.lower_bound), "cost")]


def refusal_sentence(report: Report) -> str | None:
    """Describe the share of refusals and the topic and country refused most often; None if no answer is recorded."""
    refusals = report.refusals
    if refusals is None:
        return None
    if not refusals.total.value:
        return f"None of {pluralize(refusals.total.n, 'answer')} is a refusal."
    share_text = f"{_format_percent_estimate(refusals.total)} of {pluralize(refusals.total.n, 'answer')} are refusals"
    most_refused = " and ".join(
        f"about {row.name} ({_format_percent_estimate(row.share)})"
        for row in (*refusals.topics[:1], *refusals.countries[:1])
    )
    return f"{share_text} (95% interval {_format_percent_interval(refusals.total)}); most often {most_refused}."


def coverage_notes(report: Report) -> list[str]:
    """Describe limits of the answers: undocumented finish reasons, and traces that were shortened for judges."""
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
    """Describe, for each model that was asked again after an unparsable answer, how often, and how often it helped."""
    return [
        f"{row.model}: {pluralize(row.asked, 'answer')} could not be read at first and had to be shown to the model; "
        f"{format_count(row.read)} then had a score"
        for row in report.repairs
    ]


def _format_percent_estimate(estimate: Estimate) -> str:
    """Format a share as a percentage with one decimal; a missing value counts as 0."""
    return f"{format_number(100 * (estimate.value or 0.0), 1)}%"


def _format_percent_interval(estimate: Estimate) -> str:
    """Format the interval of a share as percentages with one decimal; a missing end counts as 0."""
    return (
        f"{format_number(100 * (estimate.ci_low or 0.0), 1)}% to {format_number(100 * (estimate.ci_high or 0.0), 1)}%"
    )


def method_sentences(report: Report) -> list[tuple[str, str]]:
    """(model, predicate) on whether its answers agree better with people than its log-probabilities do."""
    return [(row.model, _method_sentence(row)) for row in report.methods]


def _method_sentence(row: MethodDifferenceRow) -> str:
    """Predicate on whether direct answers agree better with people than log-probabilities do."""
    change = row.difference
    if change.value is None:
        return f"cannot be compared: {change.reason}"
    measures_text = f" ({', '.join(row.measures)})" if row.measures else ""
    figures = (
        f"r = {format_number(row.direct_r)} asked, {format_number(row.logprob_r)} by log-probabilities{measures_text}: "
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
    """Describe Fleiss' kappa of the judges' verdicts, with its 95% interval."""
    estimate = report.panel.fleiss_kappa
    if estimate.value is None:
        return f"How far the judges agree beyond chance cannot be measured: {estimate.reason}."
    interval_text = (
        f"95% interval {format_interval(estimate.ci_low, estimate.ci_high)}"
        if estimate.ci_low is not None
        else f"no interval: {estimate.reason}"
    )
    return (
        f"Fleiss’ kappa is {format_number(estimate.value)} ({interval_text}), over {pluralize(estimate.n, 'trace')} "
        f"with {pluralize(report.panel.verdicts, 'verdict')} from at least two judges each. 1 is full agreement, 0 "
        "what chance alone would give."
    )


def language_sentences(languages: LanguagesReport) -> list[tuple[str, list[str]]]:
    """Describe the languages that were used, each with a list of countries, or of models for unequal usability.

    Also lists countries that fell back to English, and those whose configured languages are the same.
    """
    groups = [(f"Asked in “{use.language}”", use.countries) for use in languages.asked]
    if languages.fell_back:
        groups.append(("Asked in English for want of prompts in their main language", languages.fell_back))
    if languages.once:
        description = (
            "Asked once and left out of every difference, since the languages of the configuration are the same there"
        )
        groups.append((description, languages.once))
    if languages.uneven:
        description = (
            "Answers could be used unequally often in these languages, so that some means behind a score rest on fewer"
        )
        groups.append((description, [f"{row.model} ({_format_answer_shares(row)})" for row in languages.uneven]))
    return groups


def _format_answer_shares(row: UnevenLanguageRow) -> str:
    """List the share of usable answers of a model in each language, such as "en 98%, ar 71%"."""
    return ", ".join(f"{code} {format_percent(ok, planned)}" for code, (ok, planned) in row.answers.items())


def rewording_sentences(report: Report) -> list[str]:
    """Describe the wordings that the configuration uses instead of the survey's, one sentence for each language."""
    texts = []
    for code, rewording in report.audit.survey.rephrased.items():
        topics = "".join(f"; “{topic}” as “{wording}”" for topic, wording in rewording.topics.items())
        scale_text = f"from “{rewording.scale[0]}” to “{rewording.scale[1]}”"
        texts.append(f"Reworded by the configuration, in “{code}”: “{rewording.wording}”, {scale_text}{topics}.")
    return texts


def region_gap_sentence(report: Report) -> str:
    """Explain the gaps between regions and their intervals; empty if there are none."""
    gaps = report.regions.gaps
    if not gaps:
        return ""
    if gaps[0].compared == 2:
        return (
            f"The gap: MAE in {gaps[0].second} less MAE in {gaps[0].first} countries. The interval is over countries "
            "and topics; a gap whose interval holds zero may be none."
        )
    left_out = list(dict.fromkeys(name for gap in gaps for name in gap.left_out))
    left_out_note = f" Left out for having fewer than five countries: {', '.join(left_out)}." if left_out else ""
    return (
        "The widest gap: for each model the two regions that differ most in MAE. Whoever picks the widest gap picks "
        "luck too, so its interval, over countries and topics, is wide enough to hold for all pairs of regions at "
        f"once; a gap whose interval holds zero may be none.{left_out_note}"
    )


def gap_bounds_text(row: RegionGapRow) -> str:
    """Worst-case bounds of a gap between regions whose coverage differs; empty if the gap has none or is withheld."""
    if row.mae_gap.value is None or row.bound_low is None or row.bound_high is None:
        return ""
    bounds_text = f"{format_signed(row.bound_low)} and {format_signed(row.bound_high)}"
    return f" (coverage differs: whatever is missing, the gap lies between {bounds_text})"


def gap_label(row: RegionGapRow) -> str:
    """Label of a gap, "second less first"."""
    return f"{row.second} less {row.first}"


def reproduction_settings(report: Report) -> list[tuple[str, str]]:
    """Settings and versions needed to reproduce the audit, as (name, value)."""
    audit = report.audit
    settings = {
        "begun": audit.created_at,
        "ended": audit.finished_at,
        "samples a cell and language": audit.samples,
        "seed": audit.seed,
        "configuration": audit.config_hash and audit.config_hash[:16],
    }
    versions = {str(name): str(setting) for name, setting in sorted(report.environment.items())}
    return [*((name, str(setting)) for name, setting in settings.items() if setting is not None), *versions.items()]


def ceiling_sentence(report: Report) -> str:
    """State the largest r that can be expected against this survey, or why it is not known."""
    overall = next(row for row in report.ceiling if row.scope == "all")
    if overall.largest_r is None:
        return f"How high r can be is not known: {(overall.reliability.reason or '').rstrip('.')}."
    reliability_texts = [
        f"{format_number(row.reliability.value)} ({format_interval(row.reliability.ci_low, row.reliability.ci_high)}) "
        f"{scope_text}"
        for row, scope_text in zip(report.ceiling, ("over all cells", "within topics"), strict=True)
        if row.reliability.value is not None
    ]
    return (
        f"Even a perfect model is expected to reach no more than r = {format_number(overall.largest_r)}: the survey’s "
        f"split-half reliability, by respondents and over all its cells, is {' and '.join(reliability_texts)}."
    )


def within_topic_sentences(report: Report) -> list[tuple[str, str, str]]:
    """(method, model, predicate) on whether the model knows how countries differ within topics."""
    return [(row.method, row.model, _within_topic_sentence(row)) for row in report.gain or []]


def _within_topic_sentence(row: GainRow) -> str:
    """Predicate on whether a model knows how countries differ within topics."""
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


def nonresponse_sentence(nonresponse: NonresponseReport) -> str:
    """State whether the ranking of models depends on the treatment of respondents without an answer."""
    labels = {"low": "unacceptable", "high": "acceptable"}
    treatment_names = [labels.get(row.treatment, row.treatment) for row in nonresponse.treatments[1:]]
    if nonresponse.ranking_holds is None:
        return f"Whether the ranking of models holds cannot be told: {nonresponse.reason}."
    audited_ranking = " > ".join(nonresponse.treatments[0].ranking)
    if nonresponse.ranking_holds:
        return (
            f"The ranking of models by r is the same under all treatments ({', '.join(treatment_names)}): "
            f"{audited_ranking}."
        )
    other_rankings = [
        f"{' > '.join(treatment.ranking)} ({treatment.treatment})"
        for treatment in nonresponse.treatments
        if treatment.ranking != nonresponse.treatments[0].ranking
    ]
    return f"The ranking of models by r does not hold: {audited_ranking} as audited, but {'; '.join(other_rankings)}."
