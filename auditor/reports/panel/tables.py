"""Tables of the panel section in reading order, shared by all report formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.metrics.estimate import Estimate
from auditor.reports.data.panel.schema import PanelReport
from auditor.reports.number_format import format_count, format_number

PanelCell = str | Estimate


class PanelTable(NamedTuple):
    """One table: a caption, column headers, and rows that start with a name."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[PanelCell]]


def build_panel_tables(panel: PanelReport) -> list[PanelTable]:
    """Build all tables that have rows."""
    return [table for table in _list_tables(panel) if table.rows]


def _list_tables(panel: PanelReport) -> Iterator[PanelTable]:
    """Yield the tables of the panel in reading order, those without rows included."""
    yield PanelTable(
        "Each judge: what it was asked and gave, how often it says VALID, how sure it says it is.",
        ["Judge", "Family", "Asked", "Given", "Cut", "Says VALID", "Confidence"],
        [
            [
                judge.judge,
                judge.family or "–",
                format_count(judge.assigned),
                format_count(judge.given),
                format_count(judge.shortened),
                judge.valid,
                judge.confidence,
            ]
            for judge in panel.judges
        ],
    )
    yield PanelTable(
        "Agreement of the panel beyond chance; n counts traces. Kappa and alpha fall where nearly all verdicts are the "
        "same, AC1 does not.",
        ["Measure", "Value"],
        [
            ["Fleiss’ kappa", panel.fleiss_kappa],
            ["Krippendorff’s alpha", panel.krippendorff_alpha],
            ["Gwet’s AC1", panel.gwet_ac1],
            ["share of VALID", panel.prevalence],
        ],
    )
    yield PanelTable(
        "Each judge beside the others: how often it says what most of them say, and alpha without it.",
        ["Judge", "Says what most say", "Alpha without it"],
        [[judge.judge, judge.agreement, judge.alpha_without] for judge in panel.judges],
    )
    yield PanelTable(
        "What each judge leans to, as differences in the share of VALID; 0 is no leaning.",
        ["Judge", "Leniency", "For longer traces", "For its own family", "Later than earlier"],
        [[judge.judge, judge.leniency, judge.verbosity, judge.own_family, judge.order] for judge in panel.judges],
    )
    yield PanelTable(
        "What each way of counting votes makes of the traces.",
        ["Rule", "VALID", "INVALID", "Open", "Opposite of the majority"],
        [
            [rule.rule, format_count(rule.valid), format_count(rule.invalid), format_count(rule.open), rule.differs]
            for rule in panel.votes
        ],
    )
    yield PanelTable(
        "Whether models that peers find VALID agree more with people; n counts models.",
        ["Scores by", "r of peer agreement with agreement with people"],
        [[row.method, row.r] for row in panel.peer_alignment],
    )
    yield PanelTable(
        "What judges guess of what is hidden from them; beyond chance, blinding leaks.",
        ["Judge", "Guesses", "Right", "Chance"],
        [[row.judge, row.what, row.hits, format_number(row.chance)] for row in panel.guesses],
    )
    yield PanelTable(
        "What restating a trace in neutral words does to verdicts, on the same traces.",
        ["Judge", "VALID as written", "VALID restated", "Shift", "Verdicts changed"],
        [[row.judge, row.valid, row.restated, row.shift, row.changed] for row in panel.rewriting],
    )
    yield PanelTable(
        "Planted faults: how often a judge objects with the fault, and without it.",
        ["Judge", "Fault", "Detected", "False alarms", "Difference"],
        [[row.judge, row.fault, row.detected, row.false_alarms, row.difference] for row in panel.faults],
    )
    yield PanelTable(
        "Two traces side by side in both orders: 0.5 for the first is no preference for a place.",
        ["Judge", "Prefers the first", "Same side in both orders"],
        [[row.judge, row.first, row.stable] for row in panel.positions],
    )
    yield PanelTable(
        "Judges on their own traces, which no vote counts.",
        ["Judge", "Says VALID of its own", "Milder with itself than with others"],
        [[row.judge, row.valid, row.preference] for row in panel.own_traces],
    )
