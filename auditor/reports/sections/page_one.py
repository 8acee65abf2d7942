"""Page one: one list of parts, `PAGE_ONE`, in a fixed order, and what the reader may do next."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from auditor.metrics.intervals.estimate import describe_population
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.reports.data.agreement.alignment import rank_by_error
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES
from auditor.reports.data.cost import CostRow
from auditor.reports.data.coverage.lost_samples import has_large_loss
from auditor.reports.data.panel.certificate import describe_accuracy
from auditor.reports.data.report_model import ROUNDING_ERROR
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Callout,
    Cell,
    Code,
    Column,
    CountShare,
    Inline,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import format_usd, pluralize
from auditor.reports.sections.agreement import describe_closest, list_candidates
from auditor.reports.sections.agreement_words import summarize_alignment
from auditor.reports.sections.baselines import list_corrections, summarize_guesses, summarize_structure
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.judge_quality import describe_excess
from auditor.reports.sections.phrasing import SeriesLabels, find_first_finding, join_first, join_with_and, name_finding
from auditor.reports.sections.probe_sections import (
    find_page_one,
    has_probes_only,
    list_probe_findings,
    list_suggested_thresholds,
)
from auditor.reports.sections.sensitivity import list_options
from auditor.reports.sections.task import build_task_section
from auditor.reports.sections.weaknesses import describe_cultural_finding, list_weaknesses

MAX_STEPS = 4


def list_next_steps(report: Report) -> list[Text]:
    """Up to four steps, the most urgent first; every report has at least one, which is the last of `NEXT_STEPS`."""
    return list(islice((step for list_steps in NEXT_STEPS for step in list_steps(report)), MAX_STEPS))


def _finish_audit(report: Report) -> Iterator[Text]:
    if not report.audit.complete:
        yield ["Finish the audit: ", Code("auditor run"), " with the same configuration resumes it."]


def _enlarge_audit(report: Report) -> Iterator[Text]:
    with_scores = [row for row in report.alignment if row.countries]
    if with_scores and all(min(row.countries, row.topics) < MIN_UNITS for row in with_scores):
        yield (
            f"Ask about at least {MIN_UNITS} countries and {MIN_UNITS} topics. With fewer, no figure has a 95% CI, and "
            "no conclusion about the models is possible."
        )


def _explain_losses(report: Report) -> Iterator[Text]:
    if report.failures.unusable:
        n_calls = pluralize(report.failures.unusable, "call")
        yield [f"Find out why {n_calls} failed, and repeat them: ", _call("errors", report), "."]
    elif any(has_large_loss(row.lost_samples) for row in report.alignment):
        yield "Find out why samples were lost (“What is missing?”) before you compare the models."


def _test_thresholds(report: Report) -> Iterator[Text]:
    if report.audit.thresholds:
        yield ["Test the thresholds of the configuration ([check]): ", _call("check", report), "."]
    else:
        command = _call("check", report, f" {_name_thresholds(report)}")
        yield ["Test the thresholds that you wrote down before the run: ", command, "."]


def _measure_judges(report: Report) -> Iterator[Text]:
    quality = report.judge_quality
    if quality is not None and not quality.is_measured and quality.reason is None:
        command = _call("review", report, f" --sample {quality.suggested_labels}")
        yield ["To measure the judges, label a random sample of traces, not the conflicts: ", command, "."]


def _decide_conflicts(report: Report) -> Iterator[Text]:
    states = report.conflicts.states
    if n_open := states.get("open", 0) + states.get("disputed", 0):
        unresolved = " that the judges could not resolve" if any(model.judge for model in report.audit.models) else ""
        yield [
            f"Decide the {pluralize(n_open, 'conflict')}{unresolved}: ",
            _call("review", report),
            ". Your decisions do not change any model’s agreement with people.",
        ]


def _export_data(report: Report) -> Iterator[Text]:
    yield ["Analyse every figure and answer as data: ", _call("export tables", report), "."]


def _call(command: str, report: Report, options: str = "") -> Code:
    """A command on the audit of a report."""
    return Code(f"auditor {command} {shlex.quote(report.audit.name)}{options}")


def _choose_model(report: Report) -> Iterator[Text]:
    """Yield which model to choose over all countries, if several were ranked."""
    has_methods = len({ranking.method for ranking in report.tiers if ranking.by == "MAE" and ranking.rows}) > 1
    for ranking in report.tiers:
        candidates = list_candidates(ranking)
        if ranking.by == "MAE" and ranking.scope == ALL_COUNTRIES and len(ranking.rows) > 1 and candidates:
            method = f" by {ranking.method} scores" if has_methods else ""
            if len(candidates) == 1 and not ranking.open_by_losses:
                choice = "one of the compared models" if ranking.left_out else "one model"
                yield f"If you choose {choice}{method}, prefer {candidates[0]}: its mean absolute error is lowest."
            else:
                candidates += ranking.open_by_losses
                names = join_with_and(candidates) if len(candidates) <= 4 else join_first(candidates)
                reason = (
                    "lost samples could change their order"
                    if ranking.open_by_losses
                    else "each may have the lowest mean absolute error"
                )
                yield f"Do not choose between {names}{method or ' by these data'}: {reason}."


def _halve_error(report: Report) -> Iterator[Text]:
    """Yield what would halve the standard error of the mean absolute error of the model with the smallest one."""
    best = min(report.alignment, key=rank_by_error, default=None)
    if best is None:
        return
    with_people = [cell for cell in report.audit.cells if cell.survey is not None]
    sizes = len({cell.country for cell in with_people}), len({cell.topic for cell in with_people})
    for row in report.variance:
        is_of_best = (row.model, row.method, row.figure) == (best.model, best.method, "MAE")
        if is_of_best and row.shares is not None and (row.std_error or 0.0) > ROUNDING_ERROR:
            label = SeriesLabels.of(report).label(row)
            for option in islice(list_options(row, *sizes), 1):
                yield f"To halve the standard error of the mean absolute error ({label}), plan {option}."


def _name_thresholds(report: Report) -> str:
    """Options of `auditor check` for what the audit measures: scores, opinions, or whether answers are usable."""
    if report.alignment:
        if any(row.countries for row in report.alignment) and all(row.mae.value is None for row in report.alignment):
            return "--min-pearson YOURS"
        return "--max-mae YOURS --max-region-gap YOURS" if report.regions.gaps else "--max-mae YOURS"
    if thresholds := list_suggested_thresholds(report):
        return " ".join(f"--{name.replace('_', '-')} YOURS" for name in thresholds)
    return "--min-coverage YOURS" if report.task is None else "--min-accuracy YOURS"


NEXT_STEPS: Sequence[Callable[[Report], Iterable[Text]]] = (
    _finish_audit,
    _enlarge_audit,
    _explain_losses,
    _choose_model,
    _test_thresholds,
    _measure_judges,
    _decide_conflicts,
    _halve_error,
    _export_data,
)
"""Steps that each kind of report calls for, the most urgent first."""
MAX_FINDINGS = 4
"""Findings of page one, besides the answer."""
MAX_PROBE_FINDINGS = 5
NOT_MEASURED = "Nothing has been measured yet."
NO_PROBE_FINDING = "The figures of the probes are in their sections; none of them has a finding for this page."
SURVEY_TITLE = "Do the models know what people accept?"
OTHER_TITLE = "What did the audit find?"


def build_summary_section(report: Report) -> Section:
    """Build page one: the full report's first section, and the brief report."""
    blocks = [block for build_part in PAGE_ONE for block in build_part(report)]
    has_answer = any(not isinstance(block, Callout) for block in blocks)
    steps = Section("next", "What to do next", [List(list_next_steps(report))])
    blocks = blocks if has_answer else [Paragraph(NOT_MEASURED, "lead"), *blocks]
    of_probe = find_page_one(report)
    is_about_people = report.audit.survey.survey.title and not has_probes_only(report)
    title = of_probe.title if of_probe is not None else SURVEY_TITLE if is_about_people else OTHER_TITLE
    return Section("summary", title, [*blocks, steps], "Summary")


# --- the parts of page one, in their order ----------------------------------------------------------------------


def _build_answer(report: Report) -> Iterator[Block]:
    """1. The answer, by mean absolute error, with the question; of probes alone, their findings."""
    if (of_probe := find_page_one(report)) is not None:
        yield List(of_probe.findings[:MAX_PROBE_FINDINGS], is_findings=True)
        if len(of_probe.findings) > MAX_PROBE_FINDINGS:
            others = pluralize(len(of_probe.findings) - MAX_PROBE_FINDINGS, "more model")
            yield Paragraph(f"“{of_probe.title}” has {others}.", "note")
    elif has_probes_only(report):
        findings = [finding.finding for finding in list_probe_findings(report) if finding.title is None]
        yield List(findings, is_findings=True) if findings else Paragraph(NO_PROBE_FINDING, "lead")
    elif report.audit.survey.survey.title:
        answer = " ".join(filter(None, (describe_closest(report), summarize_alignment(report.alignment))))
        yield Paragraph(answer, "lead")
        yield Paragraph(_describe_question(report), "note")


def _build_overview(report: Report) -> Iterator[Block]:
    """2. One table, a row for each series of scores, the smallest mean absolute error first."""
    if not report.alignment:
        return
    labels, corrections = SeriesLabels.of(report), list_corrections(report)
    usable = {(row.method, row.name): CountShare(row.ok, row.planned) for row in report.coverage.models}
    refused = {row.name: row.share.value for row in report.refusals.models} if report.refusals is not None else {}
    costs = defaultdict[str | None, list[CostRow]](list)
    for row in report.cost.rows:
        costs[row.name].append(row)
    columns = [
        Column("Model", "name"),
        Column("MAE", "estimate", show_n=False, emphasis=True),
        *([Column("MAE without sampling error", "estimate", show_n=False)] if corrections else []),
        Column("Bias", "estimate", style="signed", show_n=False),
        Column("Concordance", "estimate", show_n=False),
        Column("Usable", "share"),
        *([Column("Refused", "number", style="percent", digits=1)] if refused else []),
        *([Column("Cost", "text")] if report.cost.rows else []),
    ]
    rows: list[list[Cell]] = []
    for series in sorted(report.alignment, key=rank_by_error):
        key = (series.method, series.model)
        corrected = corrections.get(key)
        rows.append(
            [
                labels.label(series),
                series.mae,
                *([corrected.mae if corrected else None] if corrections else []),
                series.bias,
                series.concordance,
                usable.get(key),
                *([refused.get(series.model)] if refused else []),
                *([_format_cost(costs[series.model])] if report.cost.rows else []),
            ]
        )
    population = describe_population((report.audit.survey.clusters, "topic"))
    title, caption = "The models at a glance", f"{OVERVIEW_CAPTION}{population}; {WIDER_WORDS}"
    yield Table("overview", title, caption, columns, rows, is_dense=True, is_whole=True)


def _format_cost(rows: Sequence[CostRow]) -> str:
    """Format the cost of one model's calls: unknown where no price is known, a lower bound where some are not."""
    known = [row.usd for row in rows if row.usd is not None]
    return format_usd(math.fsum(known) if known else None, any(row.lower_bound for row in rows))


def _build_cautions(report: Report) -> Iterator[Block]:
    """3. All cautions, in the order of `list_cautions`."""
    if cautions := list_cautions(report):
        yield Callout("Reasons for caution", [List(cautions)])


def _build_findings(report: Report) -> Iterator[Block]:
    """4. At most four findings: guesses, relations among topics, places, shortfalls."""
    labels = SeriesLabels.of(report)
    findings: list[ListItem | Text] = []
    if report.guesses:
        is_shown = any(claim.is_closer for claim in report.guesses)
        findings.append(ListItem(summarize_guesses(report), "positive" if is_shown else "unclear"))
    if (structure := summarize_structure(report)) is not None:
        findings.append(ListItem(structure, "positive"))
    for place in [] if report.cultural_findings is None else report.cultural_findings.rows[:1]:
        findings.append(ListItem(name_finding(labels.label(place), describe_cultural_finding(place)), "negative"))
    findings += [ListItem(weakness, "negative") for weakness in list_weaknesses(report)]
    if findings:
        yield Section("summary-findings", "What else was found", [List(findings[:MAX_FINDINGS], is_findings=True)])


def _build_judges(report: Report) -> Iterator[Block]:
    """5. How accurate the judges are, where people labelled a random sample of the traces."""
    quality = report.judge_quality
    if quality is not None and quality.labels:
        accuracy = [Paragraph(sentence) for sentence in describe_accuracy(quality)]
        yield Section("summary-judges", "Can the judges be trusted?", [*accuracy, describe_excess(report)])


def _build_probes(report: Report) -> Iterator[Block]:
    """6. One line for a task and for each probe, as far as it holds given all that the probes say."""
    task = build_task_section(report)
    if task is not None and (item := find_first_finding(task)) is not None:
        yield Section(f"summary-{task.id}", task.title, [List([item], is_findings=True)])
    findings = list_probe_findings(report)
    for finding in findings:
        if finding.title is not None:
            yield Section(f"summary-{finding.probe}", finding.title, [List([finding.finding], is_findings=True)])
    others = [finding.finding for finding in findings if finding.title is None and not finding.is_caution]
    if others and not has_probes_only(report):
        yield Section("summary-probes", "What other probes found", [List(others, is_findings=True)])


PAGE_ONE: Sequence[Callable[[Report], Iterable[Block]]] = (
    _build_answer,
    _build_overview,
    _build_cautions,
    _build_findings,
    _build_judges,
    _build_probes,
)
"""What page one has, in this order; 7, the next steps, ends every page."""
OVERVIEW_CAPTION = (
    "MAE is the mean absolute difference from people’s scores (lower is better), bias its mean with the sign "
    "(positive: more permissive). The concordance is 1 only if scores are equal to people’s. 95% CIs are for "
)
WIDER_WORDS = (
    "the words on agreement (hardly: concordance below 0.5; partly: to 0.75; well: to 0.9; closely) rest on wider "
    "ones, which hold for all models together."
)


def _describe_question(report: Report) -> list[Inline]:
    """The question that was asked, as far as it is known, and the scale of the scores."""
    survey = report.audit.survey
    low, high = survey.survey.scale
    others = pluralize(len(survey.topic_questions), "topic")
    own_questions = f"{others} had another question or scale: see “How was this report made?”. "
    return [
        *describe_asked_question(report),
        f" {own_questions if survey.topic_questions else ''}Scores range from −1 (",
        Name(low),
        ") to +1 (",
        Name(high),
        "). People’s score is the mean of their answers. That is not what most people say: where people are divided, "
        "a model that states the majority’s opinion correctly still differs from the mean.",
    ]


def describe_asked_question(report: Report) -> list[Inline]:
    """The question that models were asked: our own, or what the importer of recorded answers states."""
    survey = report.audit.survey
    if not report.audit.imported:
        return ["Each model was asked: “", Name(survey.survey.wording), "”"]
    if survey.question is None:
        return ["The answers were imported; the question that the models were asked is not recorded."]
    return [
        "The answers were imported. According to their importer, each model was asked: “",
        Name(survey.question),
        "”",
    ]
