"""The section with examples: the largest differences from people, with the model's reasoning and the verdicts on it."""

from __future__ import annotations

from collections import Counter

from auditor.reports.data.report_schema import Report
from auditor.reports.data.traces import ExampleReport, ExampleVerdict
from auditor.reports.document import (
    Block,
    Disclosure,
    Inline,
    Link,
    List,
    ListItem,
    Name,
    Paragraph,
    Quote,
    Section,
    Strong,
)
from auditor.reports.number_format import format_count, format_signed, pluralize
from auditor.reports.sections.panel import list_aspects
from auditor.reports.sections.phrasing import join_names

MAX_SHOWN_EXAMPLES = 2
"""Examples that pages show; the JSON report has more."""


def build_examples_section(report: Report) -> Section | None:
    """Build the section; None without direct scores."""
    if not report.examples:
        return None
    largest = report.examples[0]
    lead: list[Inline] = [
        "The largest difference is that of ",
        Name(largest.model),
        *_name_cell(largest),
        f": the model’s score is {format_signed(largest.score)}, people’s {format_signed(largest.survey)}.",
    ]
    note = (
        "These cells are not typical. Each quotation is the reviewed answer whose score is nearest to the model’s mean "
        "score. Judges are not named, to keep reviewers blinded."
    )
    examples = [
        _build_example(example, i, list_aspects(report), report.trace_pages.find(example.country, example.topic))
        for i, example in enumerate(report.examples[:MAX_SHOWN_EXAMPLES], 1)
    ]
    return Section(
        "examples",
        "What do the largest differences look like?",
        [Paragraph(lead, "finding"), *examples, Paragraph(note, "note")],
        "Examples",
    )


def _name_cell(example: ExampleReport) -> list[Inline]:
    """The topic and country of an example, as the end of a phrase."""
    return [" on ", Name(example.topic), " in ", Name(example.country)]


def _build_example(example: ExampleReport, position: int, aspect_titles: dict[str, str], page: str) -> Block:
    """One example: scores, reasoning, verdicts, and a link to the page with all answers; the first is open."""
    difference = example.score - example.survey
    direction = "more permissive" if difference > 0 else "stricter"
    text = (
        f"The model’s score is {format_signed(example.score)}, people’s is {format_signed(example.survey)}: the model "
        f"is {direction} by {format_signed(abs(difference)).lstrip('+')}."
    )
    blocks: list[Block] = [Paragraph(text)] if position > 1 else []
    if example.reasoning is None:
        blocks.append(Paragraph("No reasoning is stored.", "note"))
    else:
        heading: list[Inline] = ["Reasoning of ", Name(example.model), f", score {format_signed(example.sample_score)}"]
        blocks.append(Quote(heading, example.reasoning, "The text is shortened." if example.shortened else ""))
        blocks += _build_verdicts(example.verdicts, aspect_titles)
    if page:
        blocks.append(Paragraph(Link("All answers on this cell", page=page), "note"))
    title = [Name(example.model), *_name_cell(example)]
    if position > 1:
        return Disclosure(title, blocks, detail=f"differs by {format_signed(difference)}")
    return Section(f"example-{position}", title, blocks)


def _build_verdicts(verdicts: list[ExampleVerdict], aspect_titles: dict[str, str]) -> list[Block]:
    """The number of VALID verdicts on the reasoning, and each verdict in the judge's words."""
    if not verdicts:
        return [Paragraph("No judge has a usable verdict on this reasoning.")]
    n_valid = sum(verdict.valid for verdict in verdicts)
    count = f"{format_count(n_valid)} of {pluralize(len(verdicts), 'judge')} voted VALID:"
    items = [
        ListItem(_describe_verdict(verdict, aspect_titles, n), "positive" if verdict.valid else "negative")
        for verdict, n in _count_equal(verdicts)
    ]
    return [Paragraph(count), List(items, is_findings=True)]


def _count_equal(verdicts: list[ExampleVerdict]) -> list[tuple[ExampleVerdict, int]]:
    """The verdicts that differ, in their order, each with the number of judges that gave it in the same words."""
    counts = Counter(verdict.model_dump_json() for verdict in verdicts)
    return [(ExampleVerdict.model_validate_json(text), n) for text, n in counts.items()]


def _describe_verdict(verdict: ExampleVerdict, aspect_titles: dict[str, str], n: int) -> list[Inline]:
    """One verdict, the number of judges that gave it, the aspects that are not met, and the justification."""
    times = f" ({n} judges)" if n > 1 else ""
    ruling = Strong("VALID" if verdict.valid else "INVALID")
    nodes: list[Inline] = [ruling, times, *_list_unmet(verdict, aspect_titles)]
    return [*nodes, ": “", Name(verdict.justification), "”"] if verdict.justification else nodes


def _list_unmet(verdict: ExampleVerdict, aspect_titles: dict[str, str]) -> list[Inline]:
    """The aspects that a judge finds not met, in brackets; empty without any."""
    titles = [aspect_titles.get(name, name) for name in verdict.unmet_aspects]
    return [", criteria not met: ", *join_names(titles)] if titles else []
