"""The section on conflicts: how many there are, their status, who settled them, and the largest in full."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.domain import ConflictKind, Decision
from auditor.metrics.intervals.estimate import CONFIDENCE_LEVEL, ShareEstimate
from auditor.metrics.people.conflict import MIN_THRESHOLD
from auditor.reports.data.conflicts import (
    ConflictSideReport,
    ConflictsReport,
    ListedConflictReport,
    MethodConflictRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Code,
    Column,
    Disclosure,
    Inline,
    Name,
    Paragraph,
    Quote,
    Row,
    Section,
    Status,
    Table,
    Tag,
)
from auditor.reports.number_format import format_count, format_number, format_share, format_signed, pluralize
from auditor.reports.sections.phrasing import (
    MAX_LONG_TABLE_ROWS,
    describe_estimate,
    describe_interval,
    join_names,
    list_columns,
    make_columns,
    tabulate,
)
from auditor.reports.sections.probe_sections import describe_probe_votes

STATE_LABELS = {
    "open": "open",
    "disputed": "contested",
    "majority": "settled by judges",
    "person": "decided by people",
}
STATE_STATUS: dict[str, Status] = {"open": "open", "disputed": "open", "majority": "settled", "person": "settled"}
VOTING_RULE_LABELS = {
    "majority": "by a majority of the assigned judges",
    "weighted": "by more than half of the assigned weight",
    "dawid_skene": "by Dawid and Skene’s model of the judges",
}
MAX_OPEN_PAIRS = 10
"""Pairs of models above which their table is closed at first."""
MAX_SHOWN_CONFLICTS = 2
"""Conflicts that pages show in full; the JSON report and the data export have more."""


def build_conflicts_section(report: Report) -> Section | None:
    """Build the section; None without a survey or task."""
    if not report.audit.survey.survey.title and report.task is None:
        return None
    finding, *details = describe_conflicts(report)
    blocks: list[Block] = [Paragraph(finding, "finding"), *([Paragraph(" ".join(details))] if details else [])]
    blocks += _build_method_tables(report.conflicts)
    if report.conflicts.total:
        voting = " ".join(filter(None, (describe_voting(report.conflicts), describe_probe_votes(report))))
        blocks += [Paragraph(voting)] if voting else []
        blocks += _build_count_tables(report.conflicts)
        blocks.append(_build_largest_section(report.conflicts))
    return Section("conflicts", "Where do the models disagree?", blocks, contents_title="Conflicts")


def describe_conflicts(report: Report) -> list[str]:
    """How many conflicts there are, how many are in each status, and how a conflict is defined."""
    conflicts = report.conflicts
    voted_kinds = [row for row in conflicts.kinds if ConflictKind(row.kind).is_voted]
    total = sum(row.total for row in voted_kinds)
    counts_by_state = {state: sum(row.states.get(state, 0) for row in voted_kinds) for state in conflicts.states}
    state_counts = [f"{format_count(n)} {STATE_LABELS[state]}" for state, n in counts_by_state.items() if n]
    verb = "is" if total == 1 else "are"
    sentences = [f"There {verb} {pluralize(total, 'conflict')} between models: {', '.join(state_counts)}."]
    if not conflicts.looked_for:
        sentences = ["Conflicts between models were not looked for, since this audit was imported."]
    elif not total:
        sentences = ["There is no conflict between models."]
    elif conflicts.settled.value is not None:
        rule_phrase = VOTING_RULE_LABELS[conflicts.voting.rule if conflicts.voting else "majority"]
        interval = describe_interval(conflicts.settled, 0, "percent")
        sentences.append(
            f"The judges alone settle {format_share(conflicts.settled.value)} ({interval}). A conflict is settled "
            f"{rule_phrase}."
        )
    if total and conflicts.within_noise.value is not None:
        is_known = conflicts.within_noise.n >= total  # else the noise of other differences is not known either
        sentences += _describe_noise(conflicts.within_noise, conflicts.third_quartile.n if is_known else 0)
    sentences.append(_describe_definition(report))
    unvoted_counts = [
        f"{format_count(row.total)} {ConflictKind(row.kind).spec.unvoted_label}"
        for row in conflicts.kinds
        if row.total and not ConflictKind(row.kind).is_voted
    ]
    if unvoted_counts:
        sentences.append(f"Further conflicts are {' and '.join(unvoted_counts)}. Judges do not vote on them.")
    return sentences


def _describe_noise(within_noise: ShareEstimate, n_compared: int) -> Iterator[str]:
    """How many conflicts are within the sampling noise, and how many differences exceed it between equal models.

    Conflicts are the largest of all differences: of those between models that agree everywhere, 15% to nearly all
    exceed the noise, depending on the threshold, though only 5% of all differences do.

    Args:
        n_compared: number of differences between two models on a cell; 0 if the noise of some is not known.
    """
    n_conflicts = within_noise.n
    n_within = round((within_noise.value or 0.0) * n_conflicts)
    yield (
        f"In {format_count(n_within)} of {pluralize(n_conflicts, 'conflict')} with known sampling noise, the scores "
        "differ by no more than that noise."
    )
    n_beyond, n_by_chance = n_conflicts - n_within, round((1 - CONFIDENCE_LEVEL) * n_compared)
    if n_beyond and n_by_chance:
        doubt = ": the others may all be chance" if n_beyond <= n_by_chance else ""
        yield (
            f"By chance alone, up to about {format_count(n_by_chance)} of all {pluralize(n_compared, 'difference')} "
            f"would exceed it{doubt}."
        )


def _describe_definition(report: Report) -> str:
    """Define a conflict between two models, with the threshold and how it was chosen."""
    if report.task is not None and report.task.task.range is None:
        return "Two models are in conflict on an item when their most common answers to it differ."
    subject = "on a cell when their scores" if report.task is None else "on an item when their scores, from −1 to +1,"
    definition = f"Two models are in conflict {subject} differ by at least a threshold"
    threshold, quartile = report.conflicts.threshold, report.conflicts.third_quartile
    quartile_text = describe_estimate("", quartile, "difference")
    is_quartile_positive = quartile.value is not None and quartile.value >= MIN_THRESHOLD
    if threshold == "auto":
        if is_quartile_positive:
            return f"{definition}: the third quartile of this audit’s differences ({quartile_text})."
        reason = ", here 2, since at least three in four of this audit’s differences are zero" if quartile.n else ""
        return f"{definition}{reason}."
    if threshold is None:
        return f"{definition}."
    comparison = f" The third quartile of this audit’s differences is {quartile_text}." if is_quartile_positive else ""
    return f"{definition}, here {threshold:g}.{comparison}"


def describe_voting(conflicts: ConflictsReport) -> str:
    """Describe what weighting the judges' votes changed; empty where each judge had one vote."""
    voting, n_conflicts = conflicts.voting, conflicts.settled.n
    if voting is None or voting.by_weight is None or not n_conflicts:
        return ""
    settled = f"{format_count(voting.by_weight)} of {pluralize(n_conflicts, 'conflict')}"
    if voting.rule == "dawid_skene":
        assumption = "It assumes that the judges’ errors are independent."
        outcome = f"Dawid and Skene’s model of the judges settled {settled}. {assumption}"
    else:
        weights = ", ".join(f"{judge} {format_number(weight)}" for judge, weight in voting.weights.items())
        outcome = f"Weighted votes ({weights}) settled {settled}, by more than half of the assigned weight."
    if voting.by_majority is None:
        return (
            f"{outcome} The result with one vote for each judge is not available, because the adaptive panel did not "
            "ask all judges."
        )
    reversals = f" and settle {format_count(voting.other_side)} for opposite sides" if voting.other_side else ""
    return (
        f"{outcome} With one vote for each judge, {format_count(voting.by_majority)} would be settled. "
        f"Both rules agree on {format_count(voting.same_side or 0)}{reversals}."
    )


def _build_method_tables(conflicts: ConflictsReport) -> Iterator[Table]:
    """Build the tables of conflicts between two methods of one model, and of the largest; none without two methods."""
    rows = conflicts.between_methods
    if rows:
        caption = (
            "Cells in conflict: share of the cells with scores by both methods that differ by at least the threshold. "
            "Opposite signs: number of these whose scores have opposite signs. n counts cells."
        )
        yield tabulate("method-conflicts", "Conflicts between methods", caption, rows, MethodConflictRow)
    examples = [(row.model, row.first, row.second, *example) for row in rows for example in row.largest]
    if examples:
        caption = "Largest conflicts between two methods of one model. Scores are from −1 to +1."
        columns = [
            *list_columns(MethodConflictRow)[:3],
            *make_columns("name", {"country": "Country", "topic": "Topic"}),
            *make_columns("number", {"first_score": "First score", "second_score": "Second score"}, "signed"),
        ]
        yield Table("largest-method-conflicts", "Largest conflicts between methods", caption, columns, examples)


def _build_count_tables(conflicts: ConflictsReport) -> Iterator[Block]:
    """Build the tables that count conflicts by kind and status, and by pair of models."""
    all_column = Column("All", "number", emphasis=True)
    kinds = [ConflictKind(row.kind) for row in conflicts.kinds]
    explanations = "; ".join(f"{kind.label} ({kind.spec.explanation})" for kind in kinds)
    caption = f"Conflicts by kind and status; contested: the people who reviewed it disagree. Kinds: {explanations}."
    state_columns = [Column(STATE_LABELS[state].capitalize(), "number") for state in conflicts.states]
    rows = [
        Row([kind.label, *row.states.values(), row.total]) for kind, row in zip(kinds, conflicts.kinds, strict=True)
    ]
    rows.append(Row(["all", *conflicts.states.values(), conflicts.total], is_total=True))
    columns = [Column("Kind", "name"), *state_columns, all_column]
    yield Table("conflicts-by-kind", "Conflicts by kind and status", caption, columns, rows)
    if conflicts.pairs:
        title, caption = "Conflicts by pair of models", "Conflicts between each pair of models."
        columns = [
            *make_columns("name", {"left": "First model", "right": "Second model"}),
            *(Column(ConflictKind(kind).label.capitalize(), "number") for kind in conflicts.pairs[0].kinds),
            all_column,
        ]
        pairs = sorted(conflicts.pairs, key=lambda row: -row.total)
        rows = [Row([row.left, row.right, *row.kinds.values(), row.total]) for row in pairs]
        table = Table("conflicts-by-pair", title, caption, columns, rows, max_rows=MAX_LONG_TABLE_ROWS)
        yield Disclosure("Conflicts by pair of models", [table], is_open=len(conflicts.pairs) <= MAX_OPEN_PAIRS)


def _build_largest_section(conflicts: ConflictsReport) -> Section:
    """Build the subsection with the largest conflicts."""
    shown = conflicts.largest[:MAX_SHOWN_CONFLICTS]
    title, blocks = "All conflicts, largest first", list[Block]()
    if len(shown) < conflicts.total:
        has_sizes = any(side.answer is None for row in shown for side in (row.left, row.right))
        title = f"The {len(shown)} largest conflicts" if has_sizes else f"{len(shown)} of the conflicts"
        n_others = pluralize(conflicts.total - len(shown), "other is", "others are")
        remark: list[Inline] = [f"The {n_others} in the table ", Code("conflict"), " of the data export ("]
        remark += [Code("auditor export tables"), ") and in ", Code("auditor review"), "."]
        blocks.append(Paragraph(remark, "note"))
    return Section("conflicts-largest", title, [*blocks, *map(_build_conflict, shown)])


def _build_conflict(row: ListedConflictReport) -> Disclosure:
    """Build one conflict: its cell and both sides as the summary; votes, outcome, reasoning and notes as the blocks."""
    cell: list[Inline] = [Name(row.country), " · ", Name(row.topic)] if row.country else [Name(row.topic)]
    notes = [Paragraph(["Note: ", Name(note)], "note") for note in row.notes]
    return Disclosure(
        cell,
        [Paragraph(describe_conflict(row), "note"), *map(_build_quote, (row.left, row.right)), *notes],
        detail=[*_build_side(row.left), " / ", *_build_side(row.right)],
        tags=[Tag(ConflictKind(row.kind).label), Tag(STATE_LABELS[row.state], STATE_STATUS[row.state])],
    )


def _build_side(side: ConflictSideReport) -> list[Inline]:
    """Name one side of a conflict, with its answer or its score."""
    return [Name(side.model), " ", Name(f"“{side.answer}”") if side.answer is not None else format_signed(side.score)]


def _build_quote(side: ConflictSideReport) -> Quote:
    """Quote the reasoning of one side; without any, the note says so."""
    note = "The text is shortened." if side.shortened else "" if side.reasoning else "No reasoning is stored."
    return Quote(_build_side(side), side.reasoning or "", note)


def describe_conflict(row: ListedConflictReport) -> list[Inline]:
    """Describe one conflict: people's score or the right answer, the difference, the judges' votes, and the outcome."""
    is_voted = ConflictKind(row.kind).is_voted
    if row.country:
        score = f"People’s score is {format_signed(row.survey)}."
        nodes: list[Inline] = [score if row.survey is not None else "People there were not asked."]
    elif row.truth is not None:
        nodes = ["The correct answer is ", Name(f"“{row.truth}”"), "."]
    else:
        nodes = ["The correct answer is not known."]
    if row.difference is not None:
        sides = "models’ scores" if is_voted else "two scores"
        scale = " on the scale from −1 to +1" if row.left.answer is not None else ""
        nodes.append(f" The {sides} differ by {format_number(abs(row.difference))}{scale}.")
    if row.seats:
        nodes += _describe_votes(row)
    else:
        nodes.append(" No judge voted." if is_voted else " Judges do not vote on it.")
    if row.decision is not None:
        return [
            *nodes,
            " ",
            *join_names(row.raters),
            " decided: ",
            *_describe_decision(row, Decision(row.decision)),
            ".",
        ]
    if row.within_noise:
        nodes.append(" The difference is within the sampling noise.")
    nodes.append(f" Status: {STATE_LABELS[row.state]}")
    return [*nodes, ", for ", Name(row.winner), "."] if row.winner else [*nodes, "."]


def _describe_votes(row: ListedConflictReport) -> list[Inline]:
    """The judges' votes for each side, and the number of judges that voted for none."""
    nodes: list[Inline] = [f" Of {pluralize(row.seats, 'assigned judge')}, {format_count(row.left.votes)} voted for "]
    n_others = row.seats - row.left.votes - row.right.votes
    link = ", " if n_others else " and "
    end = f", and {format_count(n_others)} favoured neither or gave no verdict." if n_others else "."
    return [*nodes, Name(row.left.model), f"{link}{format_count(row.right.votes)} for ", Name(row.right.model), end]


def _describe_decision(row: ListedConflictReport, decision: Decision) -> list[Inline]:
    """Describe what people decided; a decision for one side names its model."""
    if decision.upheld_side is None:
        return [decision.spec.report_phrase or decision.spec.phrase]
    side = row.left if decision.upheld_side == "left" else row.right
    return [Name(side.model), " is right"]
