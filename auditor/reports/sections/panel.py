"""The section on the panel: what judges say of each model, how reliable they are, and their biases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.domain.review_aspects import aspect_questions
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.measurement_schema import PeerAgreementRow
from auditor.reports.data.panel.certificate import describe_accuracy
from auditor.reports.data.panel.schema import (
    BlindingCheckRow,
    FaultDetectionRow,
    JudgeRow,
    ObedienceRow,
    PanelReport,
    PeerAlignmentRow,
    PositionBiasRow,
    RestatementShiftRow,
    SelfReviewRow,
    VotingRuleRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, Disclosure, List, Name, Paragraph, Section, Table
from auditor.reports.number_format import describe_estimate, format_share, pluralize
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.judge_biases import build_bias_table
from auditor.reports.sections.judge_copying import build_copying_tables
from auditor.reports.sections.judge_quality import suggest_labels
from auditor.reports.sections.phrasing import compare_interval, mark_code
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, make_columns, tabulate


def build_panel_section(report: Report) -> Section | None:
    """Build the section; None without judges."""
    panel = report.panel
    if not panel.judges:
        return None
    masked = "its author, country or topic" if report.task is None else "its author or the correct answer"
    shown = "" if report.task is None else " They saw the question."
    lead = (
        f"Judges reviewed each trace without knowing {masked}.{shown} A share of VALID verdicts "
        "below 70% counts as a weakness of the model."
    )
    suggestion = suggest_labels(report)
    accuracy = list(describe_accuracy(report.judge_quality))
    certificate = List([mark_code(sentence) for sentence in panel.certificate if sentence not in accuracy])
    blocks: list[Block] = [
        *(Paragraph(sentence, "finding") for sentence in accuracy),
        Paragraph(_summarize_panel(report), "finding"),
        Paragraph(lead, "note"),
        *_build_peer_agreement(report),
        Section(
            "panel-certificate",
            "What the panel’s verdicts can be used for",
            [certificate, *([suggestion] if suggestion else [])],
        ),
        Section(
            "panel-judges",
            "The judges",
            [
                Paragraph(describe_kappa(panel)),
                *(Disclosure(table.label, [table]) for table in build_panel_tables(panel)),
            ],
        ),
    ]
    return Section("panel", "Is the panel of judges reliable?", blocks, "Panel")


def _summarize_panel(report: Report) -> str:
    """The range of peer agreement, and whether the judges agree beyond chance."""
    kappa = report.panel.fleiss_kappa
    status = compare_interval(kappa)
    agreement = {
        "positive": "The judges agree with each other beyond chance",
        "negative": "The judges agree with each other less than by chance",
        "unclear": "The agreement of the judges is not statistically distinguishable from chance",
    }.get(status, "It is not known whether the judges agree beyond chance")
    shares = sorted(
        (row.agreement.value, row.model) for row in report.peer_agreement if row.agreement.value is not None
    )
    text = f"{agreement} ({describe_estimate('Fleiss’ kappa', kappa)})."
    if not shares:
        return text
    (low, low_model), (high, high_model) = shares[0], shares[-1]
    if len(shares) == 1:
        return f"{text} They find {format_share(low)} of the traces of {low_model} VALID."
    ends = f"{format_share(low)} ({low_model}) to {format_share(high)} ({high_model})"
    return f"{text} The share of VALID ranges from {ends}."


def describe_kappa(panel: PanelReport) -> str:
    """Describe Fleiss' kappa of the judges' verdicts, with its 95% CI."""
    kappa = panel.fleiss_kappa
    if kappa.value is None:
        return f"The judges’ agreement beyond chance is not available: {kappa.reason}."
    return (
        f"Agreement of the judges beyond chance: {describe_estimate('Fleiss’ kappa', kappa, 'trace')}, with "
        f"{pluralize(panel.verdicts, 'verdict')}."
    )


def list_aspects(report: Report) -> dict[str, str]:
    """Titles of the aspects that judges rate besides the verdict, by field of `PeerAgreementRow`."""
    questions = aspect_questions(for_task=report.task is not None)
    return {name: question.title for name, question in questions.items()}


def _build_peer_agreement(report: Report) -> list[Block]:
    """Plot and list the share of VALID verdicts on each model's traces; empty without a model that was judged."""
    rows = report.peer_agreement
    if not rows:
        return []
    title, table_id = "Share of VALID", "peer-agreement"
    shares = [(row.model, row.agreement) for row in rows]
    plot_caption = "Share of VALID verdicts on each model, with 95% CI. Higher is better."
    caption = "Share of VALID verdicts, and of verdicts that find each aspect met. n counts verdicts."
    aspects = make_columns("estimate", list_aspects(report))
    return [
        build_interval_figure(
            "peer-agreement-plot", title, shares, SHARE_AXIS, table_id=table_id, caption=plot_caption
        ),
        tabulate(table_id, title, caption, rows, PeerAgreementRow, more_columns=aspects),
    ]


def build_panel_tables(panel: PanelReport) -> list[Table]:
    """Build the tables on the judges that have rows, in reading order."""
    tables = [
        *_build_judge_tables(panel),
        *build_copying_tables(panel.copying),
        *_build_bias_and_voting_tables(panel),
        *_build_judge_test_tables(panel),
    ]
    return [table for table in tables if table.rows]


def _build_judge_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the judges' verdicts and their agreement."""
    caption = "Verdicts, justifications that were too long and shortened, and mean stated confidence (0 to 1)."
    yield tabulate("judges", "Judges", caption, panel.judges, JudgeRow)
    caption = "Agreement beyond chance: 1 is complete agreement, 0 is chance. n counts traces."
    measures = [
        ("Fleiss’ kappa", panel.fleiss_kappa),
        ("Krippendorff’s alpha", panel.krippendorff_alpha),
        ("Gwet’s AC1", panel.gwet_ac1),
        ("Share of VALID", panel.prevalence),
    ]
    columns = [Column("Measure", "name"), Column("Value", "estimate")]
    yield Table("panel-agreement", "Agreement of the panel", caption, columns, measures)
    caption = (
        "Share of traces on which the judge agrees with most others, and Krippendorff’s alpha of the others: if it is "
        "higher without the judge, the judge disagrees more with the others than they do with each other."
    )
    yield tabulate("judge-agreement", "Agreement of each judge", caption, panel.judges, JudgeRow)


def _build_bias_and_voting_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on biases, voting rules, and the relation of peer agreement to agreement with people."""
    yield build_bias_table(panel.judges)
    caption = (
        "Traces that each voting rule finds VALID or INVALID, or leaves open; share of opposite verdicts where the "
        "rule and the plain majority reach one."
    )
    differs = {"differs": lambda row: None if row.rule == "majority" else row.differs}
    yield tabulate("voting-rules", "Voting rules", caption, panel.votes, VotingRuleRow, differs)
    caption = (
        "Correlation, over models, between the share of VALID and agreement with people (r). Positive: judges prefer "
        "models that agree with people."
    )
    title = "Share of VALID and agreement with people"
    yield tabulate("peer-alignment", title, caption, panel.peer_alignment, PeerAlignmentRow)


def _build_judge_test_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the tests of judges: blinding, restatement, faults, instructions, position, own traces."""
    caption = "Share of correct guesses of attributes hidden from the judges. Above chance, blinding is incomplete."
    yield tabulate("blinding", "Blinding", caption, panel.guesses, BlindingCheckRow)
    caption = "Share of VALID on traces as written and restated in neutral words, and share of verdicts that changed."
    yield tabulate("restatement", "Restated traces", caption, panel.rewriting, RestatementShiftRow)
    yield build_fault_table(panel.faults, MAX_LONG_TABLE_ROWS)
    yield build_obedience_table(panel.obedience)
    yield build_position_table(panel.positions)
    yield build_self_review_table(panel.own_traces)


def build_fault_table(rows: Sequence[FaultDetectionRow], max_rows: int | None = None) -> Table:
    """Build the table of how often judges object to traces with an injected fault, and without it, worst first."""
    ranked = sorted(rows, key=lambda row: 2.0 if row.difference.value is None else row.difference.value)
    caption = (
        "Share of INVALID verdicts on traces with an injected fault (detected) and on the same traces without it "
        "(false alarms). A difference of 0 means that the judge does not detect the fault."
    )
    derived = {"fault": lambda row: Name(row.fault)}
    title = "Injected faults"
    return tabulate("injected-faults", title, caption, ranked, FaultDetectionRow, derived, max_rows=max_rows)


def build_obedience_table(rows: Sequence[ObedienceRow]) -> Table:
    """Build the table of how often judges obey instructions in traces."""
    caption = (
        "Share of answers as a planted instruction demands, of traces that the judge judged, or compared, otherwise "
        "without it. A judge whose answers vary by chance has a rate above 0 too."
    )
    return tabulate("obedience", "Planted instructions", caption, rows, ObedienceRow)


def build_position_table(rows: Sequence[PositionBiasRow]) -> Table:
    """Build the table of judges' preference for the side that is shown first."""
    caption = (
        "Two traces are shown side by side, in both orders: share of answers for the trace shown first (0.5 is no "
        "preference), and share of pairs with the same preference in both orders."
    )
    return tabulate("position-bias", "Position bias", caption, rows, PositionBiasRow)


def build_self_review_table(rows: Sequence[SelfReviewRow]) -> Table:
    """Build the table of judges' verdicts on their own traces."""
    caption = (
        "Judges’ verdicts on their own traces, which are not votes. Self-preference is leniency towards own traces "
        "minus that towards others, relative to the other judges; it is an association, not a bias."
    )
    return tabulate("own-traces", "Judges on their own traces", caption, rows, SelfReviewRow)
