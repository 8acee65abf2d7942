"""Documents of experiments that replicate a paper."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Tested
from auditor.replications.findings import judge_findings
from auditor.replications.presets import load_paper
from auditor.reports.data.replication import FindingTest, RecomputedCell, TableLayout
from auditor.reports.document import (
    Block,
    Callout,
    Disclosure,
    Figure,
    HeatMap,
    Link,
    List,
    ListItem,
    Paragraph,
    Section,
    Table,
)
from auditor.reports.sections.replication_run import (
    EXTREMES_NOTE,
    Replication,
    build_replication_document,
    prefix_ids,
    summarize_findings,
    summarize_marks,
)
from tests.reports.sections.node_text import text_of
from tests.reports.sections.replicated_cells import filled, missing, own_figure, published


def sections_of(*cells: RecomputedCell, **fields: object) -> list[Section]:
    return list(build_replication_document(Replication("Title", "source", cells, **fields)).sections)  # type: ignore[arg-type]


def texts_of(blocks: list[Block]) -> list[str]:
    return [text_of(block.content) for block in blocks if isinstance(block, Paragraph)]


A, B, C = (published(row) for row in "ABC")
SAME, WORDS, OTHER = ({"mark": mark} for mark in ("same_definition", "other_words", "other_definition"))


@pytest.mark.parametrize(
    ("cells", "summary"),
    [
        ([filled(A, 0.5, **OTHER)], "1 published figure has a counterpart in your audits; it is defined differently."),
        (
            [filled(A, 0.5, **OTHER), filled(B, 0.5, **OTHER)],
            "2 published figures have a counterpart in your audits; all 2 are defined differently.",
        ),
        (
            [filled(A, 0.5, **OTHER), filled(A, 0.4, **WORDS), filled(B, 0.5, **SAME), missing(C, "no_audit")],
            "2 published figures have a counterpart in your audits: 1 is defined as published; 1 is defined as "
            "published, with other words in prompts. 1 published figure was not computed, for the reasons in the "
            "tables.",
        ),
        (
            [
                own_figure("mine", 0.5),
                missing(A, "no_counterpart"),
                missing(B, "no_counterpart"),
                missing(C, "recorded_only"),
            ],
            "1 further figure of your models has no published counterpart. 2 published figures are of models "
            "that are not among yours. To set one of your models beside a published one: --as "
            "MY=THEIRS. 1 published figure is computed only from released scores (--recorded FOLDER).",
        ),
        (
            [filled(published(is_definition=True), 0.4), filled(B, 0.5, **OTHER)],
            "1 published figure has a counterpart in your audits; it is defined differently.",
        ),
    ],
)
def test_the_summary_counts_each_published_figure_once_by_its_best_mark(
    cells: list[RecomputedCell], summary: str
) -> None:
    assert summarize_marks(cells) == summary


def test_departures_of_all_figures_of_a_table_are_named_once_and_others_by_number() -> None:
    cells = [
        filled(A, 0.5, departures=["samples", "cells"], **OTHER),
        filled(B, 0.5, departures=["samples", "cells", "encoder"], **OTHER),
    ]
    [section] = sections_of(*cells)
    shared, note = (block for block in section.blocks if isinstance(block, Paragraph))
    assert (
        text_of(shared.content)
        == "All your figures in this table depart from the paper in: samples, cells (see Departuresdepartures)."
    )
    assert isinstance(shared.content, list)
    assert Link("Departures", "departures") in shared.content
    assert text_of(note.content) == "Departures of single figures: ¹ encoder."


def test_each_table_has_a_title_its_figures_and_a_list_of_them() -> None:
    numbered, named = filled(A, 0.5), filled(published(table="peer", title="Peer agreement"), 0.5)
    titles = [section.contents_title for section in sections_of(numbered, named)]
    assert titles == ["Table 1. Agreement", "Peer agreement"]
    table, disclosure = sections_of(numbered)[0].blocks
    assert isinstance(table, Table)
    assert isinstance(disclosure, Disclosure)
    assert [inner.id for inner in disclosure.blocks if isinstance(inner, Table)] == ["table-1-list"]


@pytest.mark.parametrize(("n_rows", "is_folded"), [(6, False), (7, True)])
def test_published_rows_without_one_of_ours_are_folded_if_there_are_many(n_rows: int, is_folded: bool) -> None:
    rows = [missing(published(f"model {i}"), "no_counterpart") for i in range(n_rows)]
    blocks = sections_of(own_figure("mine", 0.5), *rows)[0].blocks
    [table] = [block for block in blocks if isinstance(block, Table)]
    assert len(table.rows) == (1 if is_folded else n_rows + 1)
    summaries = [text_of(block.summary) for block in blocks if isinstance(block, Disclosure)]
    assert (f"{n_rows} published rows without a figure of yours" in summaries) == is_folded


def test_a_table_without_a_figure_of_ours_says_why() -> None:
    [other_models, released] = sections_of(missing(A, "no_counterpart"), missing(published(table="2"), "recorded_only"))
    assert texts_of(list(other_models.blocks))[0].startswith("No figure of yours: it needs an audit")
    assert texts_of(list(released.blocks))[0].startswith(
        "No figure of yours: the command computes these only from released"
    )


def test_pictures_stand_above_the_table_and_heat_maps_fold_it() -> None:
    cells = [filled(published("Ghana", "a", ""), 0.5, is_own_row=True, model="a")]
    blocks = sections_of(*cells, layouts={"1": TableLayout(heat_map="correlation")})[0].blocks
    assert isinstance(blocks[1], HeatMap)
    assert isinstance(blocks[2], Disclosure)
    assert isinstance(blocks[2].blocks[0], Table)


def test_warnings_stand_first_and_the_note_on_extremes_where_there_is_one() -> None:
    warning = Callout("Reasons for caution", [])
    for is_extreme in (True, False):
        cell = filled(A, 0.5, is_extreme=is_extreme)
        opening = build_replication_document(
            Replication("Title", "source", [cell], callouts=[warning], notes=["note"], details=["WVS: audit rep"])
        ).opening
        assert opening[0] == warning
        assert (EXTREMES_NOTE in texts_of(list(opening))) == is_extreme
        assert [text_of(block.summary) for block in opening if isinstance(block, Disclosure)] == ["Audits and data"]
        assert [list(block.items) for block in opening if isinstance(block, List)] == [["note"]]


def test_sections_of_several_audits_have_ids_of_their_own() -> None:
    table = Table("r", "r", "", (), ())
    figure = Figure("plot", {}, "t", "d", table_id="r")
    section = Section("methods", "Methods", [figure, Disclosure("more", [table])], "Both methods")
    copies = [prefix_ids(section, survey.lower(), survey) for survey in ("WVS", "PEW")]
    assert [copy.id for copy in copies] == ["wvs-methods", "pew-methods"]
    assert text_of(copies[1].title) == "Methods, audit PEW"
    assert copies[1].contents_title == "Both methods, audit PEW"
    copied_figure, disclosure = copies[1].blocks
    assert isinstance(copied_figure, Figure)
    assert isinstance(disclosure, Disclosure)
    assert (copied_figure.id, copied_figure.table_id) == ("pew-plot", "pew-r")
    assert [block.id for block in disclosure.blocks if isinstance(block, Table)] == ["pew-r"]


def test_a_finding_that_the_data_do_not_show_is_not_stated_to_be_false() -> None:
    paper = load_paper("evalmoraal")
    p_values = {"delta_r": 0.0001, "regions.gap": 0.4}
    tests = [
        [FindingTest(figure=Tested(0.1, 9, 0.0, 0.2, p_value=p_values[finding.figure]))]
        if finding.figure in p_values
        else []
        for finding in paper.findings
    ]
    findings = judge_findings(paper.findings, tests)
    summary = summarize_findings(findings)
    assert summary.startswith(
        "Of 5 findings of the paper, 1 is shown, 1 is not shown and 3 cannot be compared on your data."
    )
    [section] = sections_of(findings=findings)
    items = [
        item
        for item in next(block for block in section.blocks if isinstance(block, List)).items
        if isinstance(item, ListItem)
    ]
    assert [(text_of(item.content).split(" (")[0], item.status) for item in items][:3] == [
        ("Shown", "positive"),
        ("Not shown", "unclear"),
        ("Cannot be compared", "unclear"),
    ]
    assert "not hold" not in text_of(section)
