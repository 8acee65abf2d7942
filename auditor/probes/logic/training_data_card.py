"""The data card of rows for preference tuning: how they were made, their sizes and their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from auditor.metrics.estimate import Estimate
from auditor.probes.logic.comparisons import Relation
from auditor.probes.logic.repair_stages import StageSummary
from auditor.probes.logic.repair_summary import RepairSummary
from auditor.probes.logic.training_data import RepairSettings, TrainingRow
from auditor.reports.document import Code, Column, Document, Inline, Name, Paragraph, Section, Table, Text
from auditor.reports.number_format import format_percent

STAGE_NOTE = (
    "Transitivity and commutativity are means over sets, with 95% CI; n counts sets. Transitivity is by the "
    "comparisons there are: a missing or tied one cannot be part of a cycle. Pairs present: mean share of decided "
    "pairs in a subset."
)


def build_data_card(
    audit_name: str,
    rows: Sequence[TrainingRow],
    settings: RepairSettings,
    summaries: Sequence[RepairSummary],
    stages: Sequence[StageSummary],
) -> Document:
    """Describe the rows, their source and their limits."""
    relations = Counter(row.relation.value for row in rows)
    counts = ", ".join(f"{n} {name}" for name, n in relations.items())
    introduction: list[Inline] = [
        f"{len(rows)} rows for preference tuning, {counts}, of the stage ", Code(settings.stage), ", in the form ",
        Code(settings.form), ".",
    ]  # fmt: skip
    agreement_note = (
        "Agreement with people is before → after the repair, over the questions that people, the judge and the "
        "ranking decide; a dash means not available."
    )
    return Document(
        "Data card",
        f"Comparisons of the audit {audit_name}, stage {settings.stage}",
        "",
        [
            Section(
                "made",
                "How they were made",
                [
                    Paragraph(_describe_stage(settings, has_negated=Relation.NEGATED.value in relations)),
                    Paragraph(_describe_answers(settings)),
                    Paragraph(f"Settings: {_list_settings(settings)}."),
                    _tabulate_judges(rows, summaries),
                    Paragraph(agreement_note),
                    _make_table("stages", stage_columns(settings.k), [format_stage(stage) for stage in stages]),
                    Paragraph(STAGE_NOTE),
                ],
            ),
            Section("columns", "Columns", [Paragraph(_COLUMNS)]),
            Section("limits", "Limits", [Paragraph([_describe_limits(settings), *_USE])]),
        ],
        [Paragraph(introduction)],
    )


_COLUMNS: Sequence[Inline] = (
    Code("prompt"), ", ", Code("chosen"), ", ", Code("rejected"), ": what to train on. ", Code("judge"), ", ",
    Code("context"), ", ", Code("item_a"), ", ", Code("item_b"), " (shown first and second), ", Code("relation"), " (",
    Code("standard"), " or ", Code("negated"), "), ", Code("flipped"), ": where the row comes from.",
)  # fmt: skip
_USE: Sequence[Inline] = (
    " Items may be texts by others, with their own licences. Keep the rows of a set together: split training and test "
    "data by ",
    Code("context"),
    ".",
)


def _describe_stage(settings: RepairSettings, *, has_negated: bool) -> Text:
    """How the answers of a stage were made; `has_negated` is whether there are rows in negated form."""
    noise = (
        f"Of each judge's decided answers to the standard question, {100 * settings.noise:g}% were drawn at random and "
        f"reversed, to simulate errors (seed {settings.seed or 0})."
    )
    if settings.stage in ("raw", "perturbed"):
        negated_note = " So was this share of those to the negated question." if has_negated else ""
        reversed_note = f" {noise}{negated_note}" if settings.stage == "perturbed" else ""
        return (
            f"Judges compared pairs of items. Each row is an answer of a judge.{reversed_note} Nothing was repaired: "
            "the answers may contradict each other. Ties are left out. ",
            Code("flipped"),
            " is always false.",
        )
    noise_note = f" {noise}" if settings.noise else ""
    negated = " and in its negated form" if settings.negated else ""
    sample = (
        f" Of these answers, as many as there were before the repair were drawn at random (seed {settings.seed or 0})."
        if settings.stage == "size-matched"
        else ""
    )
    return (
        f"Judges compared pairs of items.{noise_note} Within each set the items were ranked (method: "
        f"{settings.method}), and every pair was given the answer that follows from the ranking, in both "
        f'orders{negated} (REPAIR of "Aligning with Logic", ICML 2025). Pairs of equal rating, and pairs that no '
        "comparison connects, are left out."
        f"{sample} ",
        Code("flipped"),
        " marks the answers to the standard question that the ranking reverses.",
    )


def _describe_answers(settings: RepairSettings) -> Text:
    """The form of the answers, and of the questions that they answer."""
    if settings.answers == "letter":
        setting = Code('answer = "probability"')
        return (
            "Answers are letters, ",
            Code("A"),
            " or ",
            Code("B"),
            ". The prompt is that of the setting ",
            setting,
            ".",
        )
    return (
        "Answers are JSON. The prompt is that of the setting ",
        Code('answer = "structured"'),
        ", which also allows TIE; no row has that answer.",
    )


def _list_settings(settings: RepairSettings) -> str:
    """The options of the command, as a list."""
    values = {
        "stage": settings.stage, "method": settings.method, "noise": f"{settings.noise:g}",
        "seed": "not set (0; for elo, imported comparisons in the order of their file, others in that of the items)"
        if settings.seed is None
        else settings.seed,
        "negated": "yes" if settings.negated else "no", "answers": settings.answers, "K": settings.k,
    }  # fmt: skip
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _describe_limits(settings: RepairSettings) -> str:
    """What training on the answers of a stage does not do."""
    if settings.stage in ("raw", "perturbed"):
        return "They are not consistent: they train a judge's contradictions, too."
    return "They make a judge agree with itself, not with people: a consistent error remains, and is trained."


def _tabulate_judges(rows: Sequence[TrainingRow], summaries: Sequence[RepairSummary]) -> Table:
    """The counts of each judge."""
    n_rows = Counter(row.judge for row in rows)
    cells = [
        [
            summary.judge, n_rows[summary.judge], summary.questions, summary.flipped,
            format_percent(summary.flipped, summary.questions), format_change(summary.people),
        ]
        for summary in summaries
    ]  # fmt: skip
    return _make_table(
        "judges", ["judge", "rows", "answers", "reversed by the ranking", "share", "agreement with people"], cells
    )


def _make_table(table_id: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table of plain text."""
    cells = [[Name(str(value)) for value in row] for row in rows]
    return Table(table_id, table_id.capitalize(), "", [Column(title) for title in columns], cells)


def stage_columns(k: int) -> list[str]:
    """Titles of the columns of `format_stage`."""
    return ["judge", "stage", f"transitivity (K = {k})", "pairs present", "commutativity", "rows", "rows per set"]


def format_stage(stage: StageSummary) -> list[str | int]:
    """One stage as a row of text: a row of table 2 of the paper."""
    present = stage.transitivity.pairs_present
    return [
        stage.judge,
        f"{stage.stage} + negated" if stage.negated else stage.stage,
        _format_mean(stage.transitivity),
        "–" if present is None else f"{present:.0%}",
        _format_mean(stage.commutativity),
        stage.rows,
        "–" if stage.rows_per_set.value is None else f"{stage.rows_per_set.value:.2f}",
    ]


def _format_mean(estimate: Estimate) -> str:
    """A mean over sets with its interval and the number of sets; a dash where it is not available."""
    if estimate.value is None:
        return "–"
    interval = "" if estimate.ci_low is None else f"{estimate.ci_low:.3f} to {estimate.ci_high:.3f}; "
    return f"{estimate.value:.3f} ({interval}n {estimate.n})"


def format_change(before_after: tuple[float | None, float | None]) -> str:
    """Two shares as "0.50 → 0.80"; a dash where one is None."""
    return " → ".join("–" if value is None else f"{value:.2f}" for value in before_after)
