"""One answer of a model as blocks: its text, the judges' verdicts on it, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.domain import Outcome
from auditor.domain.review_aspects import aspect_questions
from auditor.reports.data.traces.schema import PromptMessage, TraceReport, TraceVerdict
from auditor.reports.document import Block, Inline, List, ListItem, Name, Paragraph, Quote, Status, Strong, Tag
from auditor.reports.number_format import format_count, format_number, format_signed, format_usd, pluralize

OUTCOME_LABELS: Mapping[Outcome, str] = {
    Outcome.OK: "usable",
    Outcome.REFUSED: "refused",
    Outcome.TRUNCATED: "cut off",
    Outcome.UNPARSED: "not readable",
    Outcome.RATE_LIMITED: "rate limit",
    Outcome.TIMEOUT: "timeout",
    Outcome.SERVER_ERROR: "server error",
    Outcome.CLIENT_ERROR: "request rejected",
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
PROMPT_ROLES = {"system": "System message", "user": "Question", "assistant": "Earlier answer"}


def title_answer(trace: TraceReport) -> list[Inline]:
    """The model, the cell, the number of the answer and its result, as a heading."""
    cell: list[Inline] = (
        [" on ", Name(trace.topic), " in ", Name(trace.country)] if trace.country else [" on ", Name(trace.topic)]
    )
    survey = f", people’s {format_signed(trace.survey)}" if trace.survey is not None else ""
    return [Name(trace.model), *cell, f", answer {trace.sample + 1}: ", Name(describe_result(trace)), survey]


def describe_result(trace: TraceReport) -> str:
    """The score or the answer in a few words; else why there is none."""
    if trace.outcome != Outcome.OK:
        return f"no {'score' if trace.country else 'answer'}: {label_outcome(trace.outcome)}"
    if trace.answer is not None:
        return f"answer {trace.answer}"
    return f"score {format_signed(trace.score)}" if trace.score is not None else label_outcome(trace.outcome)


def label_outcome(outcome: str) -> str:
    """Short label of an outcome."""
    return OUTCOME_LABELS[Outcome(outcome)]


def tag_answer(trace: TraceReport) -> list[Tag]:
    """Labels of an answer: its outcome, and how many judges voted VALID."""
    tags = [Tag(label_outcome(trace.outcome), "positive" if trace.outcome == Outcome.OK else "negative")]
    votes = [verdict.valid for verdict in trace.verdicts if verdict.valid is not None]
    return [*tags, Tag(f"{sum(votes)} of {len(votes)} VALID")] if votes else tags


def build_answer_blocks(trace: TraceReport) -> list[Block]:
    """The blocks of an answer, without its prompt."""
    blocks: list[Block] = []
    if sentence := OUTCOME_SENTENCES[Outcome(trace.outcome)]:
        blocks.append(Paragraph(sentence))
    if trace.first_text is not None:
        blocks.append(Quote("First answer, which could not be used; the question was repeated", trace.first_text))
    if trace.text is not None:
        blocks.append(Quote("Answer", trace.text))
    elif trace.outcome == Outcome.OK:
        blocks.append(Paragraph("The text of the answer is not recorded.", "note"))
    if trace.addresses_judge:
        blocks.append(Paragraph("This answer addresses its judge.", "note"))
    if trace.error:
        blocks.append(Quote("Error message", trace.error))
    return [*blocks, *_build_verdicts(trace), Paragraph(_describe_cost(trace), "note")]


def build_prompt_blocks(prompt: Sequence[PromptMessage]) -> list[Block]:
    """The messages that a model was sent."""
    if not prompt:
        return [Paragraph("What the model was asked is not recorded.", "note")]
    return [Quote(PROMPT_ROLES.get(message.role, message.role), message.content) for message in prompt]


def _build_verdicts(trace: TraceReport) -> list[Block]:
    """The number of VALID verdicts, and each verdict with the judge's words."""
    if not trace.verdicts:
        return []
    titles = _title_aspects(for_task=not trace.country)
    votes = [verdict.valid for verdict in trace.verdicts if verdict.valid is not None]
    summary = (
        f"{format_count(sum(votes))} of {pluralize(len(votes), 'judge')} voted VALID:" if votes else "No judge voted:"
    )
    items = [ListItem(_describe_verdict(verdict, titles), _grade_verdict(verdict)) for verdict in trace.verdicts]
    return [Paragraph(summary), List(items, is_findings=True)]


def _grade_verdict(verdict: TraceVerdict) -> Status:
    """The status of a verdict in a list of findings."""
    return "neutral" if verdict.valid is None else "positive" if verdict.valid else "negative"


def _describe_verdict(verdict: TraceVerdict, aspect_titles: Mapping[str, str]) -> list[Inline]:
    """One verdict: the judge, the vote, the aspects, the confidence and the justification."""
    if verdict.valid is None:
        return [Name(verdict.judge), f": no verdict ({label_outcome(verdict.outcome)})"]
    nodes: list[Inline] = [Name(verdict.judge), ": ", Strong("VALID" if verdict.valid else "INVALID")]
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
    parts: list[list[Inline]] = [["Cost ", format_usd(trace.cost_usd) if trace.cost_usd is not None else "not known"]]
    if trace.prompt_tokens is not None and trace.completion_tokens is not None:
        tokens = f"{format_count(trace.prompt_tokens)} + {pluralize(trace.completion_tokens, 'token')}"
        parts.append([tokens])
    if trace.requests:
        parts.append([pluralize(trace.requests, "request")])
    if trace.seconds is not None:
        parts.append([f"{format_number(trace.seconds, 1)} s"])
    if trace.started_at:
        parts.append([f"{trace.started_at[:19].replace('T', ' ')} UTC"])
    if trace.language != "en":
        parts.append([f"language {trace.language}"])
    for label, value in (("model version", trace.served_model), ("finish reason", trace.finish_reason)):
        if value:
            parts.append([f"{label} ", Name(value)])
    nodes = [node for part in parts for node in (", ", *part)]
    return [*nodes[1:], "."]
