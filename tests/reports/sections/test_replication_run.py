"""Documents of experiments that replicate a paper."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.reports.data.replication import Departure, Mark, PublishedCell, RecomputedCell
from auditor.reports.document import Disclosure, Figure, Link, Paragraph, Section, Table
from auditor.reports.sections.replication_run import build_run_document, prefix_ids
from tests.reports.sections.node_text import text_of

ESTIMATE = Estimate(0.5, 9, 0.4, 0.6)


def cell(row: str, mark: Mark, departures: tuple[str, ...] = ()) -> RecomputedCell:
    published = PublishedCell(
        table="1",
        title="t",
        row=row,
        column="r",
        value=0.4,
        printed="0.4",
        quote="0.4",
        place="Table 1",
        origin="paper",
    )
    if mark == "not_run":
        return RecomputedCell(published=published, recomputed=None, difference=None, not_run="no_audit", mark=mark)
    return RecomputedCell(
        published=published, recomputed=ESTIMATE, difference=0.1, mark=mark, departures=list(departures), detail="WVS"
    )


def test_each_published_figure_counts_once_by_its_best_mark() -> None:
    cells = [
        cell("a", "other_definition", ("samples", "cells")),
        cell("a", "other_words", ("prompt",)),
        cell("b", "same_definition"),
        cell("c", "not_run"),
    ]
    departure = Departure(id="samples", description="k: 2, published 5", is_wording=False, size=0.1, size_note="r of x")
    document = build_run_document("Title", "source", cells, [departure], ["note"], [])
    lead = document.opening[0]
    assert isinstance(lead, Paragraph)
    assert lead.content == (
        "3 published figures are beside ours: 1 with the same definition, 1 with the same definition in other words, 1 "
        "not run."
    )
    table = document.sections[0].blocks[0]
    assert isinstance(table, Table)
    rows = [list(row) for row in table.rows if not hasattr(row, "cells")]
    assert [row[-1] for row in rows] == [
        "other definition: samples, cells",
        "same definition, other words: prompt",
        "same definition",
        "not run: no audit of this survey or data set",
    ]
    assert rows[0][3] == ESTIMATE
    assert [section.id for section in document.sections] == ["published-1", "departures"]


def test_published_models_without_one_of_ours_are_listed_as_printed() -> None:
    without_model = [cell(row, "not_run").model_copy(update={"not_run": "no_counterpart"}) for row in ("GPT", "Llama")]
    recorded = cell("Phi", "not_run").model_copy(update={"not_run": "recorded_only"})
    own_cell = cell("mine", "other_words", ("prompt",)).model_copy(update={"is_own_row": True})
    document = build_run_document("Title", "source", [*without_model, own_cell, recorded], [], [], [])
    table, *disclosures = document.sections[0].blocks
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows if not hasattr(row, "cells")] == ["mine"]
    printed = {}
    for disclosure in disclosures:
        assert isinstance(disclosure, Disclosure)
        [inner_table] = disclosure.blocks
        assert isinstance(inner_table, Table)
        printed[disclosure.summary] = list(inner_table.rows)
    assert printed == {
        "2 published figures without a model of yours (--as MY=THEIRS)": [("GPT", "0.4"), ("Llama", "0.4")],
        "1 published figure of released scores (--recorded FOLDER)": [("Phi", "0.4")],
    }
    lead = document.opening[0]
    assert isinstance(lead, Paragraph)
    assert lead.content == (
        "1 figure of your models has no published one beside: 1 with the same definition in other words. 2 published "
        "figures are of other models. 1 published figure is of released scores (--recorded FOLDER)."
    )


def test_departures_of_all_figures_of_a_table_are_named_once() -> None:
    cells = [
        cell("a", "other_definition", ("samples", "cells")),
        cell("b", "other_definition", ("samples", "cells", "encoder")),
        cell("c", "other_words", ("samples",)),
    ]
    note, table = build_run_document("Title", "source", cells, [], [], []).sections[0].blocks
    assert isinstance(note, Paragraph)
    assert "differs from the paper in: samples, cells (see " in text_of(note.content)
    assert isinstance(note.content, list)
    assert Link("Departures", "departures") in note.content
    assert isinstance(table, Table)
    marks = [row[-1] for row in table.rows if not hasattr(row, "cells")]
    assert marks == ["other definition", "other definition: encoder", "same definition, other words: samples"]


def test_a_table_without_published_figures_has_no_column_for_them() -> None:
    own_cell = cell("mine", "same_definition").model_copy(update={"is_own_row": True, "difference": None})
    published = own_cell.published.model_copy(update={"value": None, "printed": "", "quote": ""})
    document = build_run_document("Title", "source", [own_cell.model_copy(update={"published": published})], [], [], [])
    [table] = document.sections[0].blocks
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["row", "figure", "ours", "ours is of", "mark"]
    assert [len(row) for row in table.rows if not hasattr(row, "cells")] == [5]


def test_sections_of_several_audits_have_ids_of_their_own() -> None:
    table = Table("r", "r", "", (), ())
    figure = Figure("plot", {}, "t", "d", table_id="r")
    section = Section("methods", "Methods", [figure, Disclosure("more", [table])])
    copies = [prefix_ids(section, survey.lower(), survey) for survey in ("WVS", "PEW")]
    assert [copy.id for copy in copies] == ["wvs-methods", "pew-methods"]
    assert text_of(copies[1].title) == "PEW: Methods"
    copied_figure, disclosure = copies[1].blocks
    assert isinstance(copied_figure, Figure)
    assert isinstance(disclosure, Disclosure)
    assert (copied_figure.id, copied_figure.table_id) == ("pew-plot", "pew-r")
    assert [block.id for block in disclosure.blocks if isinstance(block, Table)] == ["pew-r"]
