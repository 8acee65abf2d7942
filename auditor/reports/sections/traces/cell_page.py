"""The page of one cell: all answers on it, by model, and what the models were asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from auditor.domain import Outcome, lettered_options, total_cost
from auditor.reports.data.traces.schema import CellTraces, PromptMessage, SentencePairTrace, TraceReport
from auditor.reports.document import (
    Block,
    Callout,
    Column,
    Disclosure,
    Document,
    Facts,
    Inline,
    Link,
    Name,
    Paragraph,
    Quote,
    Section,
    Table,
)
from auditor.reports.number_format import format_count, format_signed, format_usd, pluralize
from auditor.reports.sections.simulation_note import build_simulation_note, label_kind
from auditor.reports.sections.traces.answer import (
    build_answer_blocks,
    build_prompt_blocks,
    describe_result,
    label_outcome,
    tag_answer,
)


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Where a page leads to; URLs relative to it, empty for none.

    Attributes:
        previous, following: text and URL of the neighbouring cells' pages.
    """

    report: str = ""
    index: str = ""
    previous: tuple[str, str] = ("", "")
    following: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class PageAudit:
    """What the pages say of their audit.

    Attributes:
        n_open_conflicts: if there are any, the pages say why judges are not named.
        is_simulated: whether its models are simulated.
    """

    name: str
    n_open_conflicts: int = 0
    is_simulated: bool = False


def build_cell_document(cell_traces: CellTraces, audit: PageAudit, links: PageLinks) -> Document:
    """Build the page of a cell, or of an item of a task."""
    country, topic = cell_traces.cell
    prompts = _number_prompts(cell_traces.traces)
    kind = "Answers on one cell" if country else "Answers to one item"
    sections = [
        _build_model_section(model, [*traces], i, cell_traces, prompts)
        for i, (model, traces) in enumerate(groupby(cell_traces.traces, key=lambda trace: trace.model), 1)
    ]
    return Document(
        kind=label_kind(kind, is_simulated=audit.is_simulated),
        title=f"{topic}, {country}" if country else topic,
        subtitle=["Audit ", Name(audit.name)],
        sections=[
            *sections,
            *_build_sentence_pairs(cell_traces.sentence_pairs),
            *([_build_prompts_section(prompts)] if cell_traces.traces else []),
        ],
        opening=[
            _build_navigation(links),
            *build_audit_notes(audit),
            Facts(_list_key_figures(cell_traces)),
            *_build_item(cell_traces),
        ],
    )


def build_audit_notes(audit: PageAudit) -> list[Block]:
    """Say that models are simulated, why judges are numbered, and who should not read on; empty if nothing applies."""
    notes: list[Block] = [*build_simulation_note(is_simulated=audit.is_simulated)]
    if not audit.n_open_conflicts:
        return notes
    are_open = "conflict of this audit is open" if audit.n_open_conflicts == 1 else "conflicts of this audit are open"
    text = (
        f"{format_count(audit.n_open_conflicts)} {are_open}. If you review them, decide first: the pages show which "
        "model wrote an answer and how judges voted. Judges are not named until all conflicts are resolved. They are "
        "numbered anew for each answer."
    )
    return [*notes, Callout("Open conflicts", [Paragraph(text)])]


def identify_model_section(position: int) -> str:
    """The id of the section with the answers of one of a page's models, counted from 1."""
    return f"model-{position}"


def _build_navigation(links: PageLinks) -> Paragraph:
    """Links to the list of pages, the report, and the neighbouring cells."""
    targets = [
        ("All answers", links.index),
        ("Report", links.report),
        (f"Previous: {links.previous[0]}", links.previous[1]),
        (f"Next: {links.following[0]}", links.following[1]),
    ]
    nodes: list[Inline] = [node for text, page in targets if page for node in (" · ", Link(text, page=page))]
    return Paragraph(nodes[1:], "note")


def _list_key_figures(cell_traces: CellTraces) -> list[tuple[str, str]]:
    """People's score or the correct answer, and the number, usability and cost of the answers."""
    traces, sentence_pairs = cell_traces.traces, cell_traces.sentence_pairs
    figures = [("people’s score", format_signed(cell_traces.survey))] if cell_traces.survey is not None else []
    if cell_traces.item is not None and cell_traces.item.truth is not None:
        figures.append(("correct answer", cell_traces.item.truth))
    compared = [("sentence pairs", format_count(len(sentence_pairs)))] if sentence_pairs else []
    if not traces:
        return [*figures, *compared]
    n_usable = sum(trace.outcome == Outcome.OK for trace in traces)
    costs = [trace.cost_usd for trace in traces if trace.cost_usd is not None]
    is_lower_bound = any(trace.cost_usd is None and trace.requests for trace in traces)
    return [
        *figures,
        ("answers" if len(traces) > 1 else "answer", format_count(len(traces))),
        ("usable", format_count(n_usable)),
        *compared,
        ("cost", format_usd(total_cost(costs), is_lower_bound and bool(costs))),
    ]


def _build_item(cell_traces: CellTraces) -> list[Block]:
    """The text of an item of a task; empty in an audit of a survey."""
    item = cell_traces.item
    if item is None:
        return []
    return [Quote("Item", "\n".join(part for part in (item.context, item.question, *lettered_options(item)) if part))]


def _build_model_section(
    model: str,
    traces: Sequence[TraceReport],
    position: int,
    cell_traces: CellTraces,
    prompts: dict[tuple[PromptMessage, ...], int],
) -> Section:
    """The answers of one model; the first is open."""
    score, survey = cell_traces.scores.get(model), cell_traces.survey
    text = f"{pluralize(len(traces), 'answer')}, {sum(trace.outcome == Outcome.OK for trace in traces)} usable."
    if score is not None and cell_traces.item is None:
        text += f" Score {format_signed(score)}"
        text += f", people’s {format_signed(survey)}." if survey is not None else "."
    answers = [
        Disclosure(
            f"Answer {trace.sample + 1}",
            [*build_answer_blocks(trace), _link_prompt(trace, prompts)],
            detail=describe_result(trace),
            tags=tag_answer(trace),
            is_open=trace is traces[0],
        )
        for trace in traces
    ]
    return Section(
        identify_model_section(position), Name(model), [Paragraph(text, "note"), *answers], contents_title=model
    )


def _build_sentence_pairs(sentence_pairs: Sequence[SentencePairTrace]) -> list[Section]:
    """The sentence pairs behind log-probability scores, with what was sent for each; empty without any."""
    if not sentence_pairs:
        return []
    rows = [
        (
            Name(row.score.model),
            Name(row.prompt) if row.prompt else None,
            Name(row.score.positive),
            Name(row.score.negative),
            row.score.difference,
            label_outcome(row.score.outcome),
        )
        for row in sentence_pairs
    ]
    columns = (
        Column("Model", "name"),
        Column("What was sent"),
        Column("Positive end"),
        Column("Negative end"),
        Column("Difference", "number", style="signed"),
        Column("Outcome"),
    )
    caption = (
        "Difference: log-probability of the positive end minus that of the negative end, in nats. Above 0, the model "
        "finds the positive end more probable. A score is the mean of these differences, rescaled for each model."
    )
    table = Table("sentence-pairs", "sentence pairs", caption, columns, rows)
    return [Section("logprob", "Sentence pairs", [table], "Log-probabilities")]


def _number_prompts(traces: Sequence[TraceReport]) -> dict[tuple[PromptMessage, ...], int]:
    """Number the different prompts of a cell from 1; answers without a recorded prompt have none."""
    prompts = dict.fromkeys(tuple(trace.prompt) for trace in traces if trace.prompt)
    return {prompt: number for number, prompt in enumerate(prompts, 1)}


def _link_prompt(trace: TraceReport, prompts: dict[tuple[PromptMessage, ...], int]) -> Paragraph:
    """Say which prompt the model was sent."""
    number = prompts.get(tuple(trace.prompt))
    if number is None:
        return Paragraph("What the model was asked is not recorded.", "note")
    text = "what was asked" if len(prompts) == 1 else f"prompt {number}"
    return Paragraph(["See ", Link(text, f"prompt-{number}"), "."], "note")


def _build_prompts_section(prompts: dict[tuple[PromptMessage, ...], int]) -> Section:
    """What the models were asked: each different prompt once."""
    blocks: list[Block] = [] if prompts else [*build_prompt_blocks(())]
    for prompt, number in prompts.items():
        title = "Prompt" if len(prompts) == 1 else f"Prompt {number}"
        blocks.append(Section(f"prompt-{number}", title, build_prompt_blocks(prompt)))
    return Section("asked", "What were the models asked?", blocks, "Prompts")
