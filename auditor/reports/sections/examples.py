"""The section with examples: the largest differences from people, with the model's reasoning and the verdicts on it."""

from __future__ import annotations

from auditor.reports.data.examples import ExampleReport, ExampleVerdict
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Inline, Link, List, ListItem, Name, Paragraph, Quote, Section, Strong
from auditor.reports.number_format import format_count, format_signed, pluralize
from auditor.reports.sections.panel import list_aspects
from auditor.reports.sections.phrasing import join_names


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
        "These are the cells with the largest differences, not typical ones. Each quotation is the answer whose score "
        "is nearest to the model’s mean score, among the answers that judges reviewed. Judges are not named, to keep "
        "reviewers blinded."
    )
    examples = [
        _build_example(example, i, list_aspects(report), report.trace_pages.find(example.country, example.topic))
        for i, example in enumerate(report.examples, 1)
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


def _build_example(example: ExampleReport, position: int, aspect_titles: dict[str, str], page: str) -> Section:
    """One example: its scores, the reasoning and the verdicts, and a link to the page with all answers, if any."""
    difference = example.score - example.survey
    direction = "more permissive" if difference > 0 else "stricter"
    text = (
        f"The model’s score is {format_signed(example.score)}, people’s is {format_signed(example.survey)}: the model "
        f"is {direction} by {format_signed(abs(difference)).lstrip('+')}."
    )
    blocks: list[Block] = [Paragraph(text)]
    if example.reasoning is None:
        blocks.append(Paragraph("No reasoning is stored.", "note"))
    else:
        heading: list[Inline] = ["Reasoning of ", Name(example.model), f", score {format_signed(example.sample_score)}"]
        blocks.append(Quote(heading, example.reasoning, "The text is shortened." if example.shortened else ""))
        blocks += _build_verdicts(example.verdicts, aspect_titles)
    if page:
        blocks.append(Paragraph(Link("All answers on this cell", page=page), "note"))
    return Section(f"example-{position}", [Name(example.model), *_name_cell(example)], blocks)


def _build_verdicts(verdicts: list[ExampleVerdict], aspect_titles: dict[str, str]) -> list[Block]:
    """The number of VALID verdicts on the reasoning, and each verdict in the judge's words."""
    if not verdicts:
        return [Paragraph("No judge has a usable verdict on this reasoning.")]
    n_valid = sum(verdict.valid for verdict in verdicts)
    count = f"{format_count(n_valid)} of {pluralize(len(verdicts), 'judge')} voted VALID:"
    items = [
        ListItem(_describe_verdict(verdict, aspect_titles), "positive" if verdict.valid else "negative")
        for verdict in verdicts
    ]
    return [Paragraph(count), List(items, is_findings=True)]


def _describe_verdict(verdict: ExampleVerdict, aspect_titles: dict[str, str]) -> list[Inline]:
    """One verdict, the aspects that are not met, and the justification."""
    nodes: list[Inline] = [Strong("VALID" if verdict.valid else "INVALID"), *_list_unmet(verdict, aspect_titles)]
    return (
        [*nodes, ". The judge’s justification: “", Name(verdict.justification), "”"] if verdict.justification else nodes
    )


def _list_unmet(verdict: ExampleVerdict, aspect_titles: dict[str, str]) -> list[Inline]:
    """The aspects that a judge finds not met, in brackets; empty without any."""
    titles = [aspect_titles.get(name, name) for name in verdict.unmet_aspects]
    return [" (criteria not met: ", *join_names(titles), ")"] if titles else []
