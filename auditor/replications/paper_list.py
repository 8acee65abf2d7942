"""The list of papers and their tables."""

from __future__ import annotations

from auditor.replications.figures import FIGURES, GROUP_FIGURES, MODEL_FIGURES, describe_figure
from auditor.replications.presets import NOTHING_PRINTED, PublishedTable, list_paper_ids, load_paper
from auditor.reports.data.replication import FigureName, PublishedTableInfo


def list_figure_names() -> list[FigureName]:
    """All names that the figures of a preset may have, by the key that they stand under."""
    return [
        *(FigureName(key="model_figure", name=name, meaning=describe_figure(name)) for name in MODEL_FIGURES),
        *(FigureName(key="figure", name=name, meaning=describe_figure(name)) for name in FIGURES),
        *(FigureName(key="group_figure", name=name, meaning=describe_figure(name)) for name in GROUP_FIGURES),
    ]


def list_published_tables() -> list[PublishedTableInfo]:
    """All published tables, by paper and in the order of the paper."""
    return [
        PublishedTableInfo(
            paper=paper.id,
            table=table.id,
            title=table.title,
            place=table.place,
            origin=table.origin or paper.origin,
            n_cells=sum(cell.printed not in NOTHING_PRINTED for cell in paper.iterate_cells(table.id)),
            n_run=_count_runnable(table),
            released=[released.files for released in table.released],
            needs=paper.experiment.needs if paper.experiment else "",
            cost=paper.experiment.cost if paper.experiment else "",
        )
        for paper in map(load_paper, list_paper_ids())
        for table in paper.tables
    ]


def _count_runnable(table: PublishedTable) -> int:
    """Number of published figures that audits give; of a table without any, those of one model."""
    n_published = sum(
        printed not in NOTHING_PRINTED and bool(table.find_figures(row, column))
        for row in table.rows
        if not row.is_definition
        for column, printed in table.read_row(row).items()
    )
    return n_published or sum(map(len, table.list_figures()))
