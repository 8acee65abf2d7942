"""The small form of EvalMORAAL's tables: its cells give every figure that a model of one's own can have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from auditor.config import AuditConfig
from auditor.replications.joining import join_figures, load_measured_audits
from auditor.replications.planning import ReplicationOptions, plan_audits
from auditor.replications.presets import load_paper
from auditor.run import run_audit
from tests.support.fixed_address import word_encoder
from tests.support.replicated_audits import MODELS

TABLES = (
    "1", "tiers", "self-consistency", "variance", "peer", "conflicts", "regions", "countries", "topics", "errors",
)  # fmt: skip
ALLOWED = ("no_counterpart", "definition")
"""Rows of single published models, and definitions."""


def list_missing(cells: Iterable[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Cells of the tables without a figure, and why."""
    return [
        (cell["published"]["table"], cell["published"]["row"], cell["published"]["column"], cell["detail"])
        for cell in cells
        if cell["published"]["table"] in TABLES and cell["recomputed"] is None and cell["not_run"] not in ALLOWED
    ]


def test_the_cells_of_the_small_form_suffice_for_every_figure(tmp_path: Path) -> None:
    """With the small form's surveys and samples, and simulated models in place of the embedded one."""
    paper, storage = load_paper("evalmoraal"), f"sqlite:///{tmp_path}/small.db"
    simulated = {"models": [{"name": name, "model": f"simulated/{name}"} for name in MODELS]}
    names = {}
    with word_encoder():
        for survey, config in plan_audits(paper, ReplicationOptions(is_small=True)).items():
            names[survey] = f"simulated-{config.name}"
            settings = config.model_dump(mode="json") | simulated | {"name": names[survey]}
            run_audit(AuditConfig.model_validate(settings), storage=storage, preflight=False)
        measured = load_measured_audits(storage, names)
    cells, _ = join_figures(paper, None, measured, {})
    assert {cell.published.table for cell in cells} >= set(TABLES)
    assert list_missing(to_jsonable_python(cells)) == []
