"""Sections on missing answers: coverage by cause, refusals, bounds for lost samples, and why requests failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from auditor.metrics.intervals.estimate import BoundedEstimate
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.coverage.build import ReaskRow, RefusalRow, RefusalsReport
from auditor.reports.data.coverage.counts import CoverageReport, CoverageRow
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseFigures, has_unknown_sign
from auditor.reports.data.failures import FailureGroup, UnusableModel
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    BarSegment,
    Block,
    Cell,
    Code,
    Column,
    CountShare,
    Disclosure,
    Inline,
    List,
    ListItem,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import (
    NumberStyle,
    format_count,
    format_number,
    format_percent,
    format_signed,
    format_styled,
    pluralize,
)
from auditor.reports.sections.phrasing import (
    MAX_LONG_TABLE_ROWS,
    SeriesLabels,
    build_finding,
    build_interval_figure,
    describe_interval,
    join_first,
    join_names,
    join_texts,
    join_with_and,
    mark_code,
    tabulate,
)

MAX_PLOTTED_ROWS = 10
ADDRESSING_COMMAND = "auditor traces --addressing-judge"
"""Topics or countries in a plot of refusals; the table has all."""

LONG_GROUPS = ("country", "topic", "item")
"""Groups whose tables show the rows with the smallest share of usable answers only."""

# --- coverage ---------------------------------------------------------------------------------------------------


def build_coverage_section(report: Report) -> Section | None:
    """Build the section on coverage; None if nothing was planned."""
    coverage = report.coverage
    if not coverage.total:
        return None
    groups = (
        ("", coverage.total, True),
        ("model", coverage.models, True),
        ("judge", coverage.judges, False),
        ("country", coverage.countries, False),
        ("topic" if report.task is None else "item", coverage.topics, False),
    )
    causes = list(dict.fromkeys(cause for _, rows, _ in groups for row in rows for cause in row.losses))
    introduction = (
        "A failed request or unusable answer is never turned into a score. It is counted here by its cause and "
        "excluded everywhere else."
    )
    notes = [*map(Paragraph, _list_notes(coverage, is_imported=report.audit.imported))]
    if all(row.ok == row.planned for row in coverage.total):
        planned = f"All planned {join_with_and([row.counted_label for row in coverage.total])}"
    else:
        planned = join_with_and(
            [f"{format_percent(row.ok, row.planned)} of the planned {row.counted_label}" for row in coverage.total]
        )
    finding = Paragraph(f"{planned} are usable.", "finding")
    if not notes and all(row.ok == row.planned for _, rows, _ in groups for row in rows):
        return Section("coverage", "What is missing?", [finding], "Coverage")
    blocks: list[Block] = [finding, Paragraph(introduction, "note")]
    complete = [noun for noun, rows, _ in groups if noun and rows and all(row.ok == row.planned for row in rows)]
    for noun, rows, is_open in groups:
        if rows and noun not in complete:
            table = _build_table(noun, rows, causes)
            blocks.append(Disclosure(f"By {noun}" if noun else "In total", [table], is_open=is_open))
    if complete:
        blocks.append(Paragraph(f"All planned answers of each {join_with_and(complete)} are usable."))
    return Section("coverage", "What is missing?", [*blocks, *notes], "Coverage")


def _build_table(noun: str, rows: Sequence[CoverageRow], causes: Sequence[str]) -> Table:
    """Build the table of one group; `noun` names what its rows are of, empty for the total."""
    labels = {"ok": "usable", **{cause: cause.replace("_", " ") for cause in causes}, "missing": "not recorded"}
    columns = [
        *([Column(noun.capitalize(), "name", "name")] if noun else []),
        Column("Answers", key="counted_label"),
        Column("Planned", "number"),
        Column("Usable", "number", "ok"),
        Column("Share", "share", emphasis=True),
        Column("Breakdown", "bar"),
        *(Column(labels[cause].capitalize(), "number", cause) for cause in causes),
        Column("Not recorded", "number", "missing"),
        *(
            [Column("Asked again", "number"), Column("Answered again", "number")]
            if any(row.asked_again for row in rows)
            else []
        ),
    ]
    derived: dict[str, Callable[[CoverageRow], Cell]] = {
        "share": lambda row: CountShare(row.ok, row.planned),
        "breakdown": lambda row: [
            BarSegment(series, n) for series, n in (("ok", row.ok), *row.losses.items(), ("missing", row.missing))
        ],
        **{cause: partial(_count_losses, cause=cause) for cause in causes},
    }
    repeat_note = (
        " Answers that were asked for again count by the first outcome; figures use the usable second answers "
        "(“Answered again”)."
        if any(row.asked_again for row in rows)
        else ""
    )
    table = tabulate(
        f"coverage-{f'by-{noun}' if noun else 'total'}",
        f"Coverage {f'by {noun}' if noun else 'in total'}",
        "Scores, verdicts and other answers: planned, usable, and missing by cause. “Share” is the usable share of "
        f"the planned answers (higher is better).{repeat_note}",
        sorted(rows, key=lambda row: row.ok / row.planned if row.planned else 1.0) if noun in LONG_GROUPS else rows,
        columns,
        derived,
        max_rows=MAX_LONG_TABLE_ROWS if noun in LONG_GROUPS else None,
    )
    return replace(table, legend=tuple(labels.items()), is_dense=True)


def _count_losses(row: CoverageRow, cause: str) -> int:
    """Number of a row's items that were lost for a cause."""
    return row.losses.get(cause, 0)


def _list_notes(coverage: CoverageReport, *, is_imported: bool) -> Iterable[Text]:
    """Yield limits of the answers: cells that were not planned, undocumented finish reasons, and marked traces."""
    n_unplanned = coverage.unplanned_cells
    if n_unplanned and is_imported:
        yield f"The imported file is not about {pluralize(n_unplanned, 'cell')} of the survey, which are not missing."
    elif n_unplanned:
        yield [
            f"Not planned, and therefore not missing: {pluralize(n_unplanned, 'cell')} of the configured countries and "
            "topics (",
            Code("limits.max_cells"),
            ").",
        ]
    if reasons := coverage.undocumented_finish_reasons:
        texts: list[Text] = [
            [Name(row.name), f": “{row.reason}” ({pluralize(row.answers, 'answer')})"] for row in reasons
        ]
        yield [
            "Some finish reasons are not documented: ",
            *join_texts(texts, "; "),
            ". An answer with such a reason is usable only if it could be read in full.",
        ]
    if by_model := coverage.shortened_traces:
        models = ", ".join(f"{name}: {format_count(n)}" for name, n in by_model.items())
        yield [
            f"Judges saw only the beginning and the end of {pluralize(sum(by_model.values()), 'trace')} longer than ",
            Code("probes.review.max_trace_chars"),
            f" ({models}).",
        ]
    if by_model := coverage.addressing_traces:
        models = ", ".join(f"{name}: {format_count(n)}" for name, n in by_model.items())
        n_traces = pluralize(sum(by_model.values()), "usable trace")
        yield [
            f"Written to a judge, by their words: {n_traces} ({models}). To read them: ",
            Code(ADDRESSING_COMMAND),
            ".",
        ]


# --- refusals ---------------------------------------------------------------------------------------------------


def build_refusals_section(report: Report) -> Section | None:
    """Build the section on refusals; None if no answer to a direct question is recorded."""
    refusals = report.refusals
    if refusals is None:
        return None
    blocks: list[Block] = [Paragraph(_describe_refusals(refusals), "finding")]
    if report.repairs:
        blocks.append(List([*map(_describe_repeated_questions, report.repairs)]))
    if refusals.total.value:
        population = (
            "other items like these"
            if report.task
            else "other countries and topics like these; those by topic for other countries, those by country for "
            "other topics"
        )
        questions = "items" if report.task else "questions"
        note = (
            "A refusal is an answer that the provider marks as one, or that has no readable score and declines to "
            "answer. Declining is recognized in the language of the question and in English. 95% CIs are for "
            f"{population}. With too few refusals, the CI is only for other answers to the same {questions}. n counts "
            "answers."
        )
        topic_noun = "topic" if report.task is None else "item"
        blocks += [
            Paragraph(note, "note"),
            *_build_group_blocks("model", refusals.models),
            *_build_group_blocks(topic_noun, refusals.topics),
            *_build_group_blocks("country", refusals.countries),
        ]
    return Section("refusals", "What do the models refuse?", blocks, "Refusals")


def _describe_refusals(refusals: RefusalsReport) -> Text:
    """State the share of refusals, and the models, topics and countries with most of them, where these differ."""
    total = refusals.total
    if not total.value:
        return f"There are no refusals among {pluralize(total.n, 'answer')}."
    overall = f"{format_styled(total.value, 'percent', 1)} of {pluralize(total.n, 'answer')} are refusals "
    overall += f"({describe_interval(total, 1, 'percent')})."
    models = _select_largest(refusals.models)
    verb = f" {'refuses' if len(models) == 1 else 'refuse'} most often"
    leading: list[Inline] = [*_name_groups(models, verb), ". Overall, "] if models else []
    places = [_name_groups(rows) for rows in map(_select_largest, (refusals.topics, refusals.countries)) if rows]
    most: list[Inline] = [" Refusals are most frequent for ", *join_texts(places, " and "), "."] if places else []
    return [*leading, overall, *most]


MAX_NAMED_GROUPS = 4
"""Models, topics or countries with the same share of refusals that a sentence names."""


def _select_largest(rows: Sequence[RefusalRow]) -> list[RefusalRow]:
    """The models, topics or countries with the largest share of refusals; empty if all have the same share."""
    largest = [row for row in rows if row.share.value == rows[0].share.value]
    return largest if len(largest) < len(rows) else []


def _name_groups(rows: Sequence[RefusalRow], verb: str = "") -> list[Inline]:
    """Name models, topics or countries that have the same share of refusals, with a verb and this share."""
    n_others = len(rows) - MAX_NAMED_GROUPS
    others = f" and {format_count(n_others)} more" if n_others > 0 else ""
    each = f"{format_styled(rows[0].share.value, 'percent', 1)} each"
    share = _describe_share(rows[0]) if len(rows) == 1 else each
    return [*join_names([row.name for row in rows[:MAX_NAMED_GROUPS]]), f"{others}{verb} ({share})"]


def _describe_share(row: RefusalRow) -> str:
    """The share of refusals of one group, and their number."""
    n_refused = format_count(round((row.share.value or 0) * row.share.n))
    return f"{format_styled(row.share.value, 'percent', 1)}: {n_refused} of {pluralize(row.share.n, 'answer')}"


def _describe_repeated_questions(row: ReaskRow) -> Text:
    """State how many answers of a model were asked for again, and how many then had a score."""
    return [
        Name(row.model),
        f": {pluralize(row.asked, 'answer')} could not be read at first and had to be shown to the model again; "
        f"{format_count(row.read)} then had a score.",
    ]


def _build_group_blocks(noun: str, rows: Sequence[RefusalRow]) -> list[Block]:
    """Build the table of refusals by model, topic, item or country, and but for models a plot of the largest shares."""
    if not rows:
        return []
    table = tabulate(
        f"share-refused-by-{noun}",
        f"Refusals by {noun}",
        f"Share of answers that are refusals by {noun}, from 0 to 1, largest first.",
        rows,
        [Column(noun.capitalize(), "name", "name"), Column("Share refused", "estimate", "share", digits=3)],
        max_rows=MAX_LONG_TABLE_ROWS,
    )
    if noun == "model":
        return [table]
    scope = f"the {MAX_PLOTTED_ROWS} largest of {len(rows)}" if len(rows) > MAX_PLOTTED_ROWS else "largest first"
    figure = build_interval_figure(
        f"refusals-by-{noun}",
        f"Share refused by {noun}",
        [(row.name, row.share) for row in rows[:MAX_PLOTTED_ROWS]],
        SHARE_AXIS,
        table_id=table.id,
        caption=f"Share of answers that are refusals by {noun}, over all models, with its 95% CI ({scope}).",
    )
    return [figure, table]


ALL_COUNTRIES = "all countries"
TITLE = "What if the lost samples differ?"


class WorstCaseRow(NamedTuple):
    """Worst-case bounds of one series in one scope."""

    model: str
    scope: str
    lost: LostSamples
    worst_case: WorstCaseFigures


FIGURES: Sequence[tuple[str, str, NumberStyle]] = (
    ("r", "pearson_r", "decimal"),
    ("MAE", "mae", "decimal"),
    ("bias", "bias", "signed"),
)
"""Name of each figure, its attribute, and how it is formatted."""
INTERVAL_NOTE = (
    "95% CIs cover the figure over all planned samples, including lost ones, for other countries and topics like "
    "these (Imbens & Manski 2004)."
)


def list_lost_sample_cautions(report: Report) -> Iterator[str]:
    """Yield a warning on the models of which more than 5% of the planned samples are lost, and on unknown gaps."""
    labels = SeriesLabels.of(report)
    bounded = [(row, row.worst_case) for row in report.alignment if row.worst_case is not None]
    if bounded:
        bounded.sort(key=lambda pair: -(pair[0].lost_samples.share or 0.0))
        shares = [format_percent(row.lost_samples.lost, row.lost_samples.planned) for row, _ in bounded]
        share = shares[0] if shares[0] == shares[-1] else f"{shares[-1]} to {shares[0]}"
        names = join_first([labels.label(row) for row, _ in bounded], "model" if not labels.shows_method else "")
        reference = f" “{TITLE}” has each model." if len(bounded) > 1 else ""
        yield (
            f"{share} of the planned samples of {names} have no usable score, and may differ from the others. Whatever "
            f"the missing scores are, {_describe_bounds([worst_case for _, worst_case in bounded])}.{reference}"
        )
    yield from _list_gap_cautions(report, labels)


def _list_gap_cautions(report: Report, labels: SeriesLabels) -> Iterator[str]:
    """Yield a warning on each two regions between which lost samples leave the sign of a gap open, for any model."""
    bounds_by_pair: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    too_small = {row.region for row in report.regions.rows if row.countries < MIN_UNITS}
    for gap in report.regions.gaps:
        if gap.worst_case is None or not has_unknown_sign(gap.worst_case.mae):
            continue
        if too_small & {gap.first, gap.second}:  # no gap is tested between these, whatever was lost
            continue
        low, high = gap.worst_case.mae.bound_low, gap.worst_case.mae.bound_high
        if low is not None and high is not None:
            bounds_by_pair.setdefault((gap.first, gap.second), []).append((labels.label(gap), low, high))
    for (first, second), bounds in bounds_by_pair.items():
        names = join_first([name for name, _, _ in bounds], "model" if not labels.shows_method else "")
        low, high = min(low for _, low, _ in bounds), max(high for _, _, high in bounds)
        yield (
            f"Because of lost samples, it is not known in which of two regions, {first} or {second}, the mean absolute "
            f"error of {names} is larger: the difference lies between {format_signed(low)} and {format_signed(high)}."
        )


def _describe_bounds(worst_cases: Sequence[WorstCaseFigures]) -> str:
    """Say between which values r and MAE of all models lie: the ends of intervals, or of bounds without an interval."""
    known = [(case.pearson_r, case.mae) for case in worst_cases if get_range(case.mae) or get_range(case.pearson_r)]
    unbounded = [case for case in worst_cases if not (get_range(case.mae) or get_range(case.pearson_r))]
    if not known:
        return f"no bounds are available: {unbounded[0].pearson_r.reason}"
    texts: list[str] = []
    names = ("the correlation (r)", "the mean absolute error")
    if len(worst_cases) > 1:
        names = ("each correlation (r)", "each mean absolute error")
    for name, figures in zip(names, zip(*known, strict=True), strict=True):
        if ranges := [ends for figure in figures if (ends := get_range(figure)) is not None]:
            low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
            texts.append(f"{name} {'' if texts else 'lies '}between {format_number(low)} and {format_number(high)}")
    has_interval = [figure.ci_low is not None for pair in known for figure in pair if get_range(figure)]
    note = (
        "ends of the 95% CIs"
        if all(has_interval)
        else "ends of the 95% CIs where available"
        if any(has_interval)
        else "without sampling error"
    )
    unknown = (
        f". For {len(unbounded)} of these models, bounds are not available: {unbounded[0].pearson_r.reason}"
        if unbounded
        else ""
    )
    return f"{' and '.join(texts)} ({note}){unknown}"


def get_range(figure: BoundedEstimate) -> tuple[float, float] | None:
    """The interval of a figure, or its bounds where it has none; None without either."""
    low = figure.bound_low if figure.ci_low is None else figure.ci_low
    high = figure.bound_high if figure.ci_high is None else figure.ci_high
    return None if low is None or high is None else (low, high)


def build_lost_samples_section(report: Report) -> Section | None:
    """Build the section on worst-case bounds; None where few samples are lost."""
    labels = SeriesLabels.of(report)
    rows = [
        *(
            WorstCaseRow(labels.label(row), ALL_COUNTRIES, row.lost_samples, row.worst_case)
            for row in report.alignment
            if row.worst_case is not None
        ),
        *(
            WorstCaseRow(labels.label(region), region.region, region.lost_samples, region.worst_case)
            for region in report.regions.rows
            if region.worst_case is not None
        ),
    ]
    if not rows:
        return None
    text = (
        "More than 5% of the planned samples of these models have no usable score: they were refused, cut off, "
        "unreadable or failed. The bounds hold whatever scores these lost samples would have had: they assume the "
        "scores from −1 to +1 that make the figure smallest, or largest."
    )
    finding = next(list_lost_sample_cautions(report), "Some regions have lost more than 5% of their planned samples.")
    tables = [_tabulate_bounds(rows, *figure) for figure in FIGURES]
    return Section(
        "lost-samples", TITLE, [Paragraph(finding, "finding"), Paragraph(text, "note"), *tables], "Lost samples"
    )


def _tabulate_bounds(rows: Sequence[WorstCaseRow], name: str, attribute: str, style: NumberStyle) -> Table:
    """Build the table of one figure: over the usable samples, and what it may be over all planned samples."""
    key = f"worst_case.{attribute}"
    columns = (
        Column("Model", "name"),
        Column("Countries", "name", "scope"),
        Column("Samples lost", "share", "lost", path="lost.as_count"),
        Column(f"{name} over usable samples", "number", f"{key}.value", style=style),
        Column(f"Smallest {name}", "number", f"{key}.bound_low", style=style),
        Column(f"Largest {name}", "number", f"{key}.bound_high", style=style),
        Column("95% CI over all planned samples", "interval", key, style=style),
    )
    caption = (
        f"The {name} over the usable samples, and its smallest and largest possible value over all planned samples. "
        f"{INTERVAL_NOTE} The rows with the largest shares of lost samples come first."
    )
    return tabulate(
        f"lost-samples-{name.lower()}",
        f"Worst-case bounds of {name}",
        caption,
        sorted(rows, key=lambda row: -(row.lost.share or 0.0)),
        columns,
        max_rows=MAX_LONG_TABLE_ROWS,
    )


def build_failures_section(report: Report) -> Section | None:
    """Build the section; None where no request failed."""
    failures = report.failures
    if not failures.groups:
        return None
    n_requests = sum(group.requests for group in failures.groups) + failures.requests_not_listed
    unsent_sentence = describe_unsent_calls(failures.unsent_calls)
    unsent_note = f"{unsent_sentence} " if unsent_sentence else ""
    summary = (
        f"{pluralize(n_requests, 'request')} failed. Some were repeated with success; "
        f"{pluralize(failures.unusable, 'call')} {'has' if failures.unusable == 1 else 'have'} no usable answer for "
        f"this reason. {unsent_note}Failures include trial requests, which test which parameters a server accepts."
    )
    table = tabulate(
        "failures",
        "Reasons of failures",
        "Failed requests by model, outcome, HTTP status and message; those that left the most calls without a usable "
        "answer come first. Each row shows the provider’s message for its first request; the messages for its other "
        "requests differ at most in numbers, ids and quoted names.",
        failures.groups,
        FailureGroup,
        {
            "outcome": lambda group: group.outcome.replace("_", " "),
            "message": lambda group: Name(group.message),
            "how_to_fix": lambda group: mark_code(group.how_to_fix) or None,
        },
        max_rows=MAX_LONG_TABLE_ROWS,
    )
    unusable = [_describe_unusable_model(model) for model in failures.unusable_models]
    blocks: list[Block] = [
        Paragraph(summary, "finding"),
        *([List(unusable, is_findings=True)] if unusable else []),
        table,
    ]
    if failures.not_listed:
        remark: Text = [
            f"To list {pluralize(failures.not_listed, 'further reason')} of "
            f"{pluralize(failures.requests_not_listed, 'failed request')}: ",
            Code(f"auditor errors {report.audit.name}"),
        ]
        blocks.append(Paragraph(remark, "note"))
    return Section("failures", "Why did requests fail?", blocks, "Failures")


def describe_unsent_calls(n_unsent: int) -> str:
    """A sentence on the calls that were not sent since their model was stopped; empty if there are none."""
    if not n_unsent:
        return ""
    were = "was" if n_unsent == 1 else "were"
    return f"{pluralize(n_unsent, 'further call')} {were} not sent, since their model was stopped."


def list_unusable_models(report: Report) -> Iterator[str]:
    """Yield a sentence for each model whose answers, or whose verdicts, are all unusable; without the reason."""
    for model in report.failures.unusable_models:
        yield (
            f"No {_result_noun(model)} of {model.name} is usable; “What is missing?” and “Why did requests fail?” list "
            "the reasons."
        )


def _describe_unusable_model(model: UnusableModel) -> ListItem:
    """A finding that names a model without a usable result, with the main reason, which may be a provider's words."""
    text: Text = [f"has no usable {_result_noun(model)}: ", Name(model.reason.rstrip("."))]
    return build_finding(model.name, text, "negative")


def _result_noun(model: UnusableModel) -> str:
    """What the model's results are, in the singular."""
    return "verdict" if model.is_judge else "answer"
