"""Experiments on judges as pages: planted faults, the order of two sides and own traces, drift, a hold-out."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.experiments.judge_experiments import HoldoutRow
from auditor.reports.experiments.page_building import beyond, figures, page, plot, whose
from auditor.reports.pages.number_format import count
from auditor.reports.pages.report_page import Chapter, Grid, Page
from auditor.reports.pages.svg_charts import CORRELATION, SHARE, Axis
from auditor.reports.panel.schema import PanelPart, ShiftRow

FROM_NONE = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "difference", 0.0)
HALF = Axis(SHARE.low, SHARE.high, SHARE.ticks, "share", 0.5)


def planted_page(audit: str, part: PanelPart) -> Page:
    """Which judges notice faults that are known to be there."""
    told = [sentence for sentence in part.certificate if "planted" in sentence]
    method = (
        "Each fault is planted in traces; a judge's objections to them stand beside its objections to the same traces "
        "without the fault. A judge whose difference may be 0 cannot see the fault, and a panel of such judges repeats "
        "a shared bias instead of finding it. n counts traces."
    )
    grid = Grid(
        "How often each judge objects.",
        ["Judge", "Fault", "With the fault", "Without it", "Difference", "n"],
        [[f.judge, f.fault, *figures(f.detected, f.false_alarms, f.difference)] for f in part.faults],
    )
    plots = [
        drawn
        for judge in dict.fromkeys(f.judge for f in part.faults)
        for drawn in plot(
            ((f.fault, f.difference) for f in part.faults if f.judge == judge),
            FROM_NONE,
            "difference",
            f"{judge}: objections with the fault less without",
        )
    ]
    chapter = Chapter("What judges notice", [method], plots=plots, grids=[grid])
    return page(audit, "planted faults", told[:1], [chapter], "No fault was planted.")


def bias_page(audit: str, part: PanelPart) -> Page:
    """Whether judges prefer a place, or themselves."""
    places = [p.judge for p in part.positions if beyond(p.first, 0.5)]
    milder = [s.judge for s in part.own_traces if beyond(s.preference) > 0]
    no_place, not_milder = "none is shown to prefer what stands first or last", "none is shown to be milder with itself"
    answers = (
        whose(places, len(part.positions), "judges", "prefer a place", no_place),
        whose(milder, len(part.own_traces), "judges", "are milder with themselves", not_milder),
    )
    kept = [chapter for chapter in (_order(part), _own(part)) if chapter.grids[0].rows]
    return page(audit, "order, and own traces", answers, kept, "There was nothing to show to the judges.")


def _order(part: PanelPart) -> Chapter:
    how = (
        "Both sides of a conflict are shown in both orders, outside of any vote; 0.5 is no preference. n counts pairs."
    )
    grid = Grid(
        "What each judge prefers.",
        ["Judge", "Prefers the same side in both orders", "Prefers the first", "n"],
        [[p.judge, *figures(p.stable, p.first)] for p in part.positions],
    )
    plots = plot(((p.judge, p.first) for p in part.positions), HALF, "share", "Share of answers for the first")
    return Chapter("The order of two traces", [how], plots=plots, grids=[grid])


def _own(part: PanelPart) -> Chapter:
    how = (
        "How much milder each judge is with itself than the others are with it, beside how mild it is with the others."
    )
    grid = Grid(
        "What each judge says of its own traces, which no vote counts. n counts traces.",
        ["Judge", "Says VALID of its own", "Milder with itself", "n"],
        [[s.judge, *figures(s.valid, s.preference)] for s in part.own_traces],
    )
    plots = plot(((s.judge, s.preference) for s in part.own_traces), None, "difference", "Milder with itself")
    return Chapter("Judges on their own traces", [how], plots=plots, grids=[grid])


def drift_page(audit: str, other: str, rows: Sequence[ShiftRow]) -> Page:
    """Whether judges say the same later."""
    moved = [f"{r.judge} ({'milder' if beyond(r.shift) > 0 else 'stricter'})" for r in rows if beyond(r.shift)]
    seen = [r for r in rows if r.shift.value is not None]
    answer = whose(moved, len(seen), "judges", "have become another", "none is shown to have become milder or stricter")
    grid = Grid(
        f"Verdicts on the same traces, in {audit} and in {other}; n counts traces.",
        ["Judge", "VALID before", "VALID after", "Verdicts changed", "Shift", "n"],
        [[r.judge, *figures(r.valid, r.restated, r.changed, r.shift)] for r in rows],
    )
    plots = plot(((r.judge, r.shift) for r in rows), None, "difference", "Share of VALID, later less before")
    chapter = Chapter("The same traces, later", plots=plots, grids=[grid])
    none = "No trace was judged by the same judge in both audits."
    return page(f"{audit} and {other}", "drift of judges", [answer], [chapter], none)


def holdout_page(audit: str, rows: Sequence[HoldoutRow]) -> Page:
    """Whether peer agreement tells anything about what was not seen."""
    method = (
        "Cells are split 80 to 20 many times: peer agreement on the larger part against r on the smaller, over models. "
        "And each model is left out in turn: what the line through the others says of it, against what it is."
    )
    grid = Grid(
        "Peer agreement as a prediction of agreement with people.",
        ["Scores by", "Splits", "r on unseen cells", "Error of the mean of the others", "Error on unseen models", "n"],
        [
            [r.method, count(r.splits), *figures(r.unseen_cells, r.error_of_mean, r.error)[:-1], count(r.models)]
            for r in rows
        ],
    )
    plots = plot(((r.method, r.unseen_cells) for r in rows), CORRELATION, "r", "r on unseen cells")
    chapter = Chapter("Held out", [method], plots=plots, grids=[grid])
    none = "There are no verdicts to hold against people."
    return page(audit, "peers against people", [r.sentence for r in rows], [chapter], none)
