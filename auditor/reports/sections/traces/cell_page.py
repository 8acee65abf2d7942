"""The page of one cell: all answers on it, by model, with verdicts and costs, and what the models were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from auditor.domain import Message, Outcome, Ruling, Verdict, lettered_options, total_cost
from auditor.domain.decisions import aspect_questions
from auditor.reports.data.traces import CellTraces, SentencePairTrace, TraceReport
from auditor.reports.document import (
    Block,
    Callout,
    Column,
    Disclosure,
    Document,
    Facts,
    Inline,
    Link,
    List,
    ListItem,
    Name,
    Paragraph,
    Quote,
    Section,
    Strong,
    Table,
    Tag,
)
from auditor.reports.number_format import format_count, format_number, format_signed, format_usd, pluralize
from auditor.reports.sections.provenance import build_simulation_note, label_kind

OUTCOME_LABELS: Mapping[Outcome, str] = {
    Outcome.OK: "usable",
    Outcome.REFUSED: "refused",
    Outcome.TRUNCATED: "cut off",
    Outcome.UNPARSED: "not readable",
    Outcome.RATE_LIMITED: "rate limit",
    Outcome.TIMEOUT: "timeout",
    Outcome.SERVER_ERROR: "server error",
    Outcome.CLIENT_ERROR: "no response",
    Outcome.OVER_BUDGET: "over budget",
    Outcome.NOT_MEASURABLE: "not measurable",
    Outcome.EXCLUDED: "excluded",
}
OUTCOME_SENTENCES: Mapping[Outcome, str] = {
    Outcome.OK: "",
    Outcome.REFUSED: "The model refused to answer.",
    Outcome.TRUNCATED: "The answer was cut off before its end.",
    Outcome.UNPARSED: "The answer contains no result that can be read.",
    Outcome.RATE_LIMITED: "The provider’s rate limit was exceeded.",
    Outcome.TIMEOUT: "No answer came in time.",
    Outcome.SERVER_ERROR: "The provider’s server failed.",
    Outcome.CLIENT_ERROR: "The provider rejected the request, or it was not sent.",
    Outcome.OVER_BUDGET: "The question was not sent, because the budget was used up.",
    Outcome.NOT_MEASURABLE: "The provider does not support this measurement.",
    Outcome.EXCLUDED: "The answer was declared invalid by a person; no figure uses it.",
}
IMPORTED_FAILURE_SENTENCE = "The imported file has no answer here, or says that the call failed."
PROMPT_ROLES = {"system": "System message", "user": "Question", "assistant": "Earlier answer"}


def title_answer(trace: TraceReport) -> list[Inline]:
    """The model, the cell, the number of the answer and its result, as a heading."""
    answer, cell = trace.trace, trace.trace.cell
    place: list[Inline] = [" in ", Name(cell.country)] if cell.country else []
    survey = f", people’s {format_signed(trace.survey)}" if trace.survey is not None else ""
    number = f", answer {answer.sample + 1}: "
    return [Name(answer.model), " on ", Name(cell.topic), *place, number, Name(describe_result(trace)), survey]


def describe_result(trace: TraceReport) -> str:
    """The score or the answer in a few words; else why there is none."""
    answer = trace.trace
    if answer.outcome != Outcome.OK:
        return f"no {'score' if answer.cell.country else 'answer'}: {label_outcome(answer.outcome)}"
    if answer.answer is not None:
        return f"answer {answer.answer}"
    return f"score {format_signed(answer.score)}" if answer.score is not None else label_outcome(answer.outcome)


def label_outcome(outcome: str) -> str:
    """Short label of an outcome."""
    return OUTCOME_LABELS[Outcome(outcome)]


def _is_imported_failure(trace: TraceReport) -> bool:
    """Whether an imported file has no answer, for a reason that it does not state."""
    return trace.trace.key is None and trace.trace.outcome == Outcome.CLIENT_ERROR


def tag_answer(trace: TraceReport) -> list[Tag]:
    """Labels of an answer: its outcome, and how many judges voted VALID."""
    tags = [Tag(label_outcome(trace.trace.outcome), "positive" if trace.trace.outcome == Outcome.OK else "negative")]
    votes = [row.verdict.ruling is Ruling.VALID for row in trace.verdicts if row.verdict.ruling is not None]
    return [*tags, Tag(f"{sum(votes)} of {len(votes)} VALID")] if votes else tags


def build_answer_blocks(trace: TraceReport) -> list[Block]:
    """The blocks of an answer, without its prompt."""
    blocks: list[Block] = []
    sentence = OUTCOME_SENTENCES[Outcome(trace.trace.outcome)]
    if _is_imported_failure(trace):
        sentence = IMPORTED_FAILURE_SENTENCE
    if sentence:
        blocks.append(Paragraph(sentence))
    if trace.first_text is not None:
        blocks.append(Quote("First answer, which could not be used; the question was repeated", trace.first_text))
    if trace.transcript.text is not None:
        blocks.append(Quote("Answer", trace.transcript.text))
    elif trace.trace.outcome == Outcome.OK:
        blocks.append(Paragraph("The text of the answer is not recorded.", "note"))
    if trace.addresses_judge:
        blocks.append(Paragraph("This answer addresses its judge.", "note"))
    if trace.transcript.error:
        blocks.append(Quote("Error message", trace.transcript.error))
    return [*blocks, *_build_verdicts(trace), Paragraph(_describe_cost(trace), "note")]


def build_prompt_blocks(prompt: Sequence[Message]) -> list[Block]:
    """The messages that a model was sent."""
    if not prompt:
        return [Paragraph("What the model was asked is not recorded.", "note")]
    return [Quote(PROMPT_ROLES.get(message.role, message.role), message.content) for message in prompt]


def _build_verdicts(trace: TraceReport) -> list[Block]:
    """The number of VALID verdicts, and each verdict with the judge's words."""
    if not trace.verdicts:
        return []
    titles = _title_aspects(for_task=not trace.trace.cell.country)
    votes = [row.verdict.ruling is Ruling.VALID for row in trace.verdicts if row.verdict.ruling is not None]
    summary = (
        f"{format_count(sum(votes))} of {pluralize(len(votes), 'judge')} voted VALID:" if votes else "No judge voted:"
    )
    items = [
        ListItem(
            _describe_verdict(row.verdict, titles),
            "neutral" if row.verdict.ruling is None else "positive" if row.verdict.is_valid else "negative",
        )
        for row in trace.verdicts
    ]
    return [Paragraph(summary), List(items, is_findings=True)]


def _describe_verdict(verdict: Verdict, aspect_titles: Mapping[str, str]) -> list[Inline]:
    """One verdict: the judge, the vote, the aspects, the confidence and the justification."""
    if verdict.ruling is None:
        return [Name(verdict.judge), f": no verdict ({label_outcome(verdict.outcome)})"]
    nodes: list[Inline] = [Name(verdict.judge), ": ", Strong("VALID" if verdict.is_valid else "INVALID")]
    details: list[str] = []
    for label, is_met in (("met", True), ("not met", False)):
        titles = [aspect_titles.get(name, name) for name, value in verdict.aspects.items() if value is is_met]
        details += [f"{label}: {', '.join(titles)}"] if titles else []
    details += [f"confidence {format_number(verdict.confidence)}"] if verdict.confidence is not None else []
    nodes += [f" ({'; '.join(details)})"] if details else []
    if verdict.justification:
        nodes += [": “", Name(verdict.justification), "”", " (shortened)" if verdict.shortened else ""]
    return nodes


def _title_aspects(*, for_task: bool) -> dict[str, str]:
    """Titles of the aspects that judges rate, by name."""
    return {name: question.title for name, question in aspect_questions(for_task=for_task).items()}


def _describe_cost(trace: TraceReport) -> list[Inline]:
    """What the answer cost, and how it came about, as one line."""
    calls = trace.transcript
    parts: list[list[Inline]] = [["Cost ", format_usd(calls.cost_usd) if calls.cost_usd is not None else "not known"]]
    if calls.prompt_tokens is not None and calls.completion_tokens is not None:
        tokens = f"{format_count(calls.prompt_tokens)} + {pluralize(calls.completion_tokens, 'token')}"
        parts.append([tokens])
    if calls.attempts:
        parts.append([pluralize(calls.attempts, "request")])
    if calls.known_seconds is not None:
        parts.append([f"{format_number(calls.known_seconds, 1)} s"])
    if calls.started_at:
        parts.append([f"{calls.started_at[:19].replace('T', ' ')} UTC"])
    if trace.trace.language != "en":
        parts.append([f"language {trace.trace.language}"])
    for label, value in (
        ("model version", calls.served_model),
        ("finish reason", calls.finish_reason),
    ):
        if value:
            parts.append([f"{label} ", Name(value)])
    nodes = [node for part in parts for node in (", ", *part)]
    return [*nodes[1:], "."]


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
        for i, (model, traces) in enumerate(groupby(cell_traces.traces, key=lambda trace: trace.trace.model), 1)
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
    n_usable = sum(trace.trace.outcome == Outcome.OK for trace in traces)
    costs = [trace.transcript.cost_usd for trace in traces if trace.transcript.cost_usd is not None]
    is_lower_bound = any(trace.transcript.cost_usd is None and trace.transcript.attempts for trace in traces)
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
    prompts: dict[tuple[Message, ...], int],
) -> Section:
    """The answers of one model; the first is open."""
    score, survey = cell_traces.scores.get(model), cell_traces.survey
    text = f"{pluralize(len(traces), 'answer')}, {sum(trace.trace.outcome == Outcome.OK for trace in traces)} usable."
    if score is not None and cell_traces.item is None:
        text += f" Score {format_signed(score)}"
        text += f", people’s {format_signed(survey)}." if survey is not None else "."
    answers = [
        Disclosure(
            f"Answer {trace.trace.sample + 1}",
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


def _number_prompts(traces: Sequence[TraceReport]) -> dict[tuple[Message, ...], int]:
    """Number the different prompts of a cell from 1; answers without a recorded prompt have none."""
    prompts = dict.fromkeys(tuple(trace.transcript.messages) for trace in traces if trace.transcript.messages)
    return {prompt: number for number, prompt in enumerate(prompts, 1)}


def _link_prompt(trace: TraceReport, prompts: dict[tuple[Message, ...], int]) -> Paragraph:
    """Say which prompt the model was sent."""
    number = prompts.get(tuple(trace.transcript.messages))
    if number is None:
        return Paragraph("What the model was asked is not recorded.", "note")
    text = "what was asked" if len(prompts) == 1 else f"prompt {number}"
    return Paragraph(["See ", Link(text, f"prompt-{number}"), "."], "note")


def _build_prompts_section(prompts: dict[tuple[Message, ...], int]) -> Section:
    """What the models were asked: each different prompt once."""
    blocks: list[Block] = [] if prompts else [*build_prompt_blocks(())]
    for prompt, number in prompts.items():
        title = "Prompt" if len(prompts) == 1 else f"Prompt {number}"
        blocks.append(Section(f"prompt-{number}", title, build_prompt_blocks(prompt)))
    return Section("asked", "What were the models asked?", blocks, "Prompts")
