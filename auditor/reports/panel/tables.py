"""The tables of the panel, in the order in which they are read; every form of the report shows the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import format_count, format_number
from auditor.reports.panel.schema import PanelReport

PanelCell = str | Estimate


class PanelTable(NamedTuple):
    """One table: a caption, column heads, and rows whose first figure is a name."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[PanelCell]]


def build_panel_tables(panel: PanelReport) -> list[PanelTable]:
    """All tables that there is something for."""
    return [table for table in _list_tables(panel) if table.rows]


def _list_tables(panel: PanelReport) -> Iterator[PanelTable]:
    yield PanelTable(
        "Each judge: what it was asked and gave, how often it says VALID, how sure it says it is.",
        ["Judge", "Family", "Asked", "Given", "Cut", "Says VALID", "Confidence"],
        [
            [
                j.judge,
                j.family or "–",
                format_count(j.assigned),
                format_count(j.given),
                format_count(j.shortened),
                j.valid,
                j.confidence,
            ]
            for j in panel.judges
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
        [[j.judge, j.agreement, j.alpha_without] for j in panel.judges],
    )
    yield PanelTable(
        "What each judge leans to, as differences in the share of VALID; 0 is no leaning.",
        ["Judge", "Leniency", "For longer traces", "For its own family", "Later than earlier"],
        [[j.judge, j.leniency, j.verbosity, j.own_family, j.order] for j in panel.judges],
    )
    yield PanelTable(
        "What each way of counting votes makes of the traces.",
        ["Rule", "VALID", "INVALID", "Open", "Opposite of the majority"],
        [
            [v.rule, format_count(v.valid), format_count(v.invalid), format_count(v.open), v.differs]
            for v in panel.votes
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
        [[g.judge, g.what, g.hits, format_number(g.chance)] for g in panel.guesses],
    )
    yield PanelTable(
        "What restating a trace in neutral words does to verdicts, on the same traces.",
        ["Judge", "VALID as written", "VALID restated", "Shift", "Verdicts changed"],
        [[s.judge, s.valid, s.restated, s.shift, s.changed] for s in panel.rewriting],
    )
    yield PanelTable(
        "Planted faults: how often a judge objects with the fault, and without it.",
        ["Judge", "Fault", "Detected", "False alarms", "Difference"],
        [[f.judge, f.fault, f.detected, f.false_alarms, f.difference] for f in panel.faults],
    )
    yield PanelTable(
        "Two traces side by side in both orders: 0.5 for the first is no preference for a place.",
        ["Judge", "Prefers the first", "Same side in both orders"],
        [[p.judge, p.first, p.stable] for p in panel.positions],
    )
    yield PanelTable(
        "Judges on their own traces, which no vote counts.",
        ["Judge", "Says VALID of its own", "Milder with itself than with others"],
        [[s.judge, s.valid, s.preference] for s in panel.own_traces],
    )
