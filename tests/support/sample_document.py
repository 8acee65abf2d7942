"""A document with every kind of node, in the variants that the renderers distinguish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.charts.interval_plot import CORRELATION_AXIS, IntervalRow, interval_plot
from auditor.reports.charts.scatter_plots import ScorePair, scatter_plot
from auditor.reports.document import (
    BarSegment,
    Block,
    Callout,
    Cell,
    Code,
    Column,
    CountShare,
    Disclosure,
    Document,
    Facts,
    Figure,
    FigureGrid,
    Footnoted,
    HeatMap,
    HeatMapCell,
    Link,
    List,
    ListItem,
    LowerBound,
    Name,
    Paragraph,
    Printed,
    Quote,
    Reason,
    Row,
    Section,
    Status,
    Strong,
    Table,
    Tag,
)
from auditor.reports.number_format import describe_estimate
from tests.reports.hostile_report import EVIL

MODELS = ("alder-7b", "birch-instruct", "נועה-مدل", "日本モデル")
R = (0.62, 0.55, 0.31, -0.08)
TOO_FEW = "fewer than five countries"


def sample_document() -> Document:
    opening: list[Block] = [
        Callout("", [Paragraph("This audit has not run to its end (stage: review). Every figure is provisional.")]),
        Facts(
            [("models", "4"), ("judges", "3"), ("cells", "1\u202f254"), ("verdicts", "10\u202f032"), ("cost", "$12.40")]
        ),
    ]
    sections = [
        Section("answer", "How well do they agree with people?", _findings(), contents_title="Agreement with people"),
        Section("where", "Where they differ from people", _heat_maps(), "Differences by cell", is_landscape=True),
        Section("conflicts", "What is in conflict?", _conflicts(), contents_title="Conflicts"),
        Section("cost", "What did it cost?", _cost(), contents_title="Cost"),
    ]
    return Document(
        kind="Audit against a survey", title="moral-alignment",
        subtitle=["Measured against ", Name("World Values Survey, wave 7 (ערך)")], sections=sections, opening=opening,
        footer=["Made by auditor 0.1.0 from the audit “", Name("moral-alignment"), "”."],
    )  # fmt: skip


def _estimate(value: float, half_width: float = 0.12, n: int = 1254) -> Estimate:
    return Estimate(value, n, value - half_width, value + half_width)


def _findings() -> list[Block]:
    words: tuple[tuple[Status, str], ...] = (
        ("positive", "agrees well with people"),
        ("positive", "agrees moderately with people"),
    )
    words += (("unclear", "may not agree with people"), ("negative", "disagrees with people"))
    items = [
        ListItem([Strong(Name(model)), f" {phrase}: {describe_estimate('r', _estimate(r))}."], status)
        for (status, phrase), model, r in zip(words, MODELS, R, strict=True)
    ]
    columns = [
        Column("Model", "name"),
        Column("r", "estimate", emphasis=True),
        Column("p", "number", style="p_value"),
        Column("Bias", "estimate", style="signed", show_n=False),
        Column("Valid", "estimate", style="percent", digits=0),
        Column("Ceiling", "number"),
        Column("Usable", "share"),
        Column("Read from"),
        Column("Cells", "number"),
    ]
    rows: list[Row | Sequence[Cell]] = [
        [MODELS[0], _estimate(R[0]), 0.0004, _estimate(0.17, 0.05), _estimate(0.87, 0.06), 0.934,
         CountShare(1240, 1254), ("log-probabilities of the prompt, ", Code("echo")), 1254],
        [Name(MODELS[1]), Estimate(R[1], 87, reason=TOO_FEW), 0.0123, Estimate(-0.04, 87, -0.11, 0.03),
         Estimate(0.5, 87, reason=TOO_FEW), 0.933, CountShare(87, 1254), "continuation", 87],
        [MODELS[2], Reason("not available: the scores are constant", 2), Estimate(None, 0, reason=TOO_FEW),
         Estimate(None, 0, reason="no judge answered"), None, CountShare(3, 1254), None, 3],
        Row([None, _estimate(0.4), 0.2, _estimate(0.0), _estimate(0.7), 0.9, CountShare(10, 20), "", 1344],
         is_total=True),
    ]  # fmt: skip
    forest_rows = [IntervalRow(model, r, r - 0.12, r + 0.12) for model, r in zip(MODELS, R, strict=True)]
    scatter = scatter_plot([ScorePair(i / 40 - 0.9, (i * 7 % 60) / 40 - 0.8) for i in range(60)])
    figure = Figure(
        "forest", interval_plot(forest_rows, CORRELATION_AXIS), "Agreement with people",
        "alder-7b 0.62; birch-instruct 0.55", "Pearson’s r.", "alignment",
    )  # fmt: skip
    return [
        Paragraph("Two of 4 models agree with people beyond chance (r from 0.55 to 0.62).", "lead"),
        List(items, is_findings=True),
        Paragraph(["The intervals are over countries and topics. See ", Link("what it cost", "cost"), "."]),
        Callout("Reasons for caution", [List(["3% of the answers are missing.", "Only one language was used."])]),
        figure,
        Table(
            "alignment",
            "Agreement with people",
            "Agreement over the cells (country × topic). Bias is on the scale from −1 (never) to +1 (always).",
            columns,
            rows,
        ),
        Paragraph("Dropped cells lack a side: 12 because people were not asked.", "note"),
        Section(
            "prefer",
            "Which model to prefer",
            [
                Paragraph("A nested section, with small figures."),
                FigureGrid(
                    [Figure(f"small-{i}", scatter, m, f"r {R[i]}", "r = 0.62") for i, m in enumerate(MODELS[:3])]
                ),
                Section("deeper", [Name("Europe"), " and others"], [List(["a plain item", ListItem("another")])]),
            ],
        ),
    ]


def heat_map(label: str, n_rows: int = 12, n_columns: int = 19, *, show_legend: bool = False) -> HeatMap:
    """A heat map with values over the complete scale, and cells in every state."""
    rows = []
    for i in range(n_rows):
        values = [((7 * i + 11 * j) % 41 - 20) / 20 for j in range(n_columns)]
        cells = [
            HeatMapCell(value, f"{value:+.2f}".replace("0.", ".").replace("-", "−"), f"people 0.10, model {value:.2f}")
            for value in values
        ]
        cells[i % n_columns] = HeatMapCell(None, "", "people were not asked", "not_asked")
        cells[(i * 5 + 2) % n_columns] = HeatMapCell(None, "×", "no usable answer", "no_answer")
        rows.append((f"Country {i}" if i else "المغرب", cells))
    topics = [f"someone accepting a bribe, case {j}" if j % 3 else f"divorce {j}" for j in range(n_columns)]
    states = {"not_asked": "people were not asked", "no_answer": "no usable answer"}
    bounds = (0.1, 0.3, 0.5, 0.7)
    return HeatMap(label, topics, rows, bounds, "stricter than people", "more permissive", states, show_legend)


def _heat_maps() -> list[Block]:
    return [
        Paragraph("Each cell is the model’s score less people’s."),
        heat_map("All models", 3, show_legend=True),
        *(Disclosure(Name(model), [heat_map(f"Differences of {model}")], is_open=i < 1, in_print="open") for i,
         model in enumerate(MODELS[:2])),
    ]  # fmt: skip


def _conflicts() -> list[Block]:
    text = "Lying is wrong\nin most cases, *but* <b>not</b> always.\n\n- first\n- second"
    states: tuple[Status, ...] = ("open", "settled")
    quotes = [Quote([Name(model), " says +0.40"], text, "Cosine 0.31.") for model in MODELS[1:3]]
    return [
        Paragraph("31 conflicts: 4 open, 27 settled."),
        Disclosure("By pair of models", [Paragraph("No pair stands out.")], is_open=True, in_print="closed"),
        *(
            Disclosure(
                [Name("Egypt"), " · ", Name("divorce")],
                [Paragraph("They differ by 0.80.", "note"), *quotes, Paragraph(["Note: ", Name("checked")], "note")],
                detail=[Name("alder-7b"), " +0.40 / ", Name("birch-instruct"), " −0.40"],
                tags=[Tag("gradient"), Tag(f"{state} by the judges", state)],
                is_open=state == "open",
                in_print="open" if state == "open" else "hidden",
            )
            for state in states
        ),
    ]


def _cost() -> list[Block]:
    legend = [("ok", "usable"), ("refused", "refused"), ("timeout", "timed out"), ("missing", "not recorded")]
    columns = [
        Column("Model", "name"),
        Column("Planned", "number"),
        Column("Answers", "bar"),
        Column("Refused", "number"),
        Column("Cost", "number", key="usd", style="usd"),
    ]
    rows: list[Row | Sequence[Cell]] = [
        ["alder-7b", 1254, [BarSegment("ok", 1200), BarSegment("refused", 54)], 54, 3.21],
        ["birch-instruct", 1254, [BarSegment("ok", 1), BarSegment("missing", 1253)], 0, LowerBound(0.0123)],
        Row(["all", 2508, [], 54, LowerBound(3.2223)], is_total=True),
    ]
    return [
        Paragraph(["All calls cost $3.22. Run ", Code("auditor report --format json"), " for all numbers."]),
        Table("cost", "Cost", "Calls and cost in US dollars.", columns, rows, legend, is_dense=True),
        _published(),
    ]


def _published() -> Table:
    """A table of another source with figures below it: as printed, with a mark, and with a reason below the table."""
    columns = [Column("Row", "name"), Column("Alpha", "estimate", digits=3), Column("Beta", "estimate")]
    rows: list[Row | Sequence[Cell]] = [
        Row(["Paper-7B", Printed("78,7"), Printed("-0.54")]),
        ["yours", Footnoted(_estimate(0.781), "¹"), Footnoted(Estimate(0.41, 3, reason=TOO_FEW), "²")],
        Row(["Other-13B", Printed("66.1%"), None], is_muted=True),
    ]
    return Table("published", "Published figures", "As printed.", columns, rows, has_reasons_below=True)


_KEY_FIELDS = frozenset(
    (
        "id",
        "table_id",
        "section_id",
        "page",
        "key",
        "interval_key",
        "kind",
        "style",
        "role",
        "status",
        "state",
        "in_print",
        "spec",
    )
)
"""Fields whose texts are not shown."""


def hostile_document() -> Document:
    """The sample document with hostile markup and characters at the start of every text that is shown."""
    return cast(Document, _map_texts(sample_document(), lambda text: EVIL + text))


def _map_texts(node: object, transform: Callable[[str], str]) -> object:
    match node:
        case str():
            return transform(node)
        case Estimate():
            return replace(node, reason=node.reason and transform(node.reason))
        case dict():
            return {key: _map_texts(item, transform) for key, item in node.items()}
        case list() | tuple():
            return type(node)([_map_texts(item, transform) for item in node])
    if not is_dataclass(node) or isinstance(node, type):
        return node
    names = [field.name for field in fields(node) if isinstance(node, Document) or field.name not in _KEY_FIELDS]
    return replace(cast(Any, node), **{name: _map_texts(getattr(node, name), transform) for name in names})
