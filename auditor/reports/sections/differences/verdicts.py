"""Sections of differences between verdicts of judges, and between settled conflicts."""

from __future__ import annotations

from auditor.reports.data.differences.schema import ResolutionDifferences, VerdictDifferences
from auditor.reports.document import Block, Code, Column, Name, Paragraph, Section, Table
from auditor.reports.number_format import (
    describe_interval,
    describe_p_value,
    describe_populations,
    format_count,
    format_percent,
    format_styled,
    pluralize,
)
from auditor.reports.sections.tables import tabulate

RESOLVER_LABELS = {"majority": "judges", "person": "people"}
SAME_ANSWER_LABELS = {True: "the same", False: "another", None: "not recorded"}


def describe_verdicts(differences: VerdictDifferences) -> str:
    """Describe how often two sides' verdicts agree, and in which direction they changed."""
    n_same = differences.both_valid + differences.both_invalid
    population = f" for {differences.change.generalizes_to}" if differences.change.generalizes_to else ""
    p_value = differences.change.p_value
    p_text = "" if p_value is None else f" ({describe_p_value(p_value)}{population})"
    shared_unit = "the same answer" if differences.about == "answers" else "the same cell"
    n_pairs, n_traces = pluralize(differences.n, "pair"), pluralize(differences.traces, "trace")
    sentences = (
        f"{differences.first} and {differences.second} give the same verdict in "
        f"{format_percent(n_same, differences.n)} of {n_pairs} of verdicts on {shared_unit}, on {n_traces}. "
        f"{format_count(differences.to_valid)} changed from INVALID to VALID and "
        f"{format_count(differences.to_invalid)} from VALID to INVALID{p_text}."
    )
    if differences.about == "answers":
        return sentences
    return f"{sentences} No answer is the same in both, so differences are not due to the judges alone."


def build_verdict_section(differences: VerdictDifferences, section_id: str) -> Section:
    """Build the section on the verdicts of two sides: agreement, change, and the verdicts that differ."""
    agreement_table = Table(
        f"{section_id}-agreement",
        "Agreement of verdicts",
        "Agreement of both sides beyond chance (1 is complete agreement, 0 is chance), and share of VALID, second "
        f"minus first. {describe_populations([differences.kappa, differences.change])}n counts pairs of verdicts.",
        [Column("Measure", "name"), Column("Value", "estimate")],
        [["Agreement (Scott’s pi)", differences.kappa], ["Difference in the share of VALID", differences.change]],
    )
    blocks: list[Block] = [Paragraph(describe_verdicts(differences)), agreement_table]
    if differences.other_answers:
        remark = f"A further {pluralize(differences.other_answers, 'verdict is', 'verdicts are')} on other answers and "
        blocks.append(Paragraph(f"{remark}excluded from all figures."))
    if differences.flips:
        blocks.append(_build_flip_table(differences, f"{section_id}-flips"))
    blocks += _note_unlisted(differences.not_listed, "verdict")
    title = f"Verdicts that differ: {differences.first} and {differences.second}"
    return Section(section_id, title, blocks, contents_title="Verdicts that differ")


def _build_flip_table(differences: VerdictDifferences, table_id: str) -> Table:
    """Build the table of the verdicts that differ."""
    columns = [
        *(Column(title, "name") for title in ("Country", "Topic", "Model", "Judge", "Other judge")),
        Column("Sample", "number"),
        Column(Name(differences.first), "text", "first"),
        Column(Name(differences.second), "text", "second"),
        Column("Answer", "text", "same_answer"),
    ]
    caption = "Verdicts that differ, and whether both are on the same answer."
    derived = {"same_answer": lambda flip: SAME_ANSWER_LABELS[flip.same_answer]}
    return tabulate(table_id, "Verdicts that differ", caption, differences.flips, columns, derived)


def describe_resolutions(differences: ResolutionDifferences) -> str:
    """State how many conflicts two audits settled for different sides."""
    opening = f"{differences.first} and {differences.second} have {pluralize(differences.shared, 'conflict')} in common"
    if differences.n == 0:
        return f"{opening}, none of which both audits settled for one side."
    share = format_styled(differences.share.value, "percent", 0)
    return (
        f"{opening}. The outcome differs in {format_count(differences.flipped)} of {format_count(differences.n)} that "
        f"both settled for one side ({share}, {describe_interval(differences.share, 0, 'percent')})."
    )


def build_resolution_section(differences: ResolutionDifferences, section_id: str) -> Section:
    """Build the section on the conflicts of two audits, with a table of those settled for different sides."""
    title = "Conflicts settled differently"
    blocks: list[Block] = [
        Paragraph(describe_resolutions(differences)),
        Paragraph(
            f"Of the conflicts in common, {format_count(differences.only_first)} are settled only in "
            f"{differences.first}, {format_count(differences.only_second)} only in {differences.second}, and "
            f"{format_count(differences.neither)} in neither."
        ),
    ]
    if differences.flips:
        columns = [
            Column("Country", "name"),
            Column("Topic", "name"),
            Column(f"Upheld in {differences.first}", "name", "first_winner"),
            Column("Settled by", "text", "first_by"),
            Column(f"Upheld in {differences.second}", "name", "second_winner"),
            Column("Settled by", "text", "second_by"),
        ]
        caption = "Conflicts that the two audits settled for different sides."
        derived = {
            "first_by": lambda flip: RESOLVER_LABELS[flip.first_by],
            "second_by": lambda flip: RESOLVER_LABELS[flip.second_by],
        }
        blocks.append(tabulate(f"{section_id}-flips", title, caption, differences.flips, columns, derived))
    blocks += _note_unlisted(differences.not_listed, "conflict")
    return Section(section_id, f"{title}: {differences.first} and {differences.second}", blocks, contents_title=title)


def _note_unlisted(n: int, noun: str) -> list[Block]:
    """Say how many more differences there are than a table lists; an empty list for none."""
    text = f"{pluralize(n, f'further {noun} is', f'further {noun}s are')} not listed; "
    return [Paragraph([text, Code("--flips N"), " lists more."], role="note")] if n else []
