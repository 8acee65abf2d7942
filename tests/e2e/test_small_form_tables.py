"""The small forms of the papers' tables: cells and sets suffice for every figure, and scripted answers fill them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from pydantic_core import to_jsonable_python

from auditor.config import AuditConfig
from auditor.probes.logic.item_sets import load_item_sets
from auditor.probes.logic.settings import LogicProbe
from auditor.replications.joining import join_figures, load_measured_audits
from auditor.replications.planning import ReplicationOptions, plan_audits
from auditor.replications.presets import load_paper
from auditor.run import run_audit
from tests.e2e.test_semantic_replication import TextEncoder
from tests.support.cli_runner import succeed
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.fixed_address import use_encoder, word_encoder
from tests.support.replicated_audits import MODELS, list_missing

TABLES = (
    "1", "tiers", "self-consistency", "variance", "peer", "conflicts", "regions", "countries", "topics", "errors",
)  # fmt: skip
ALLOWED = ("no_counterpart", "definition")
"""Rows of single published models, and definitions."""


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
    assert list_missing(to_jsonable_python(cells), TABLES, ALLOWED) == []


DATA = ("SummEval", "NovelEval", "CaTeRS")


@pytest.fixture(scope="module")
def probes() -> dict[str, LogicProbe]:
    """The probe of each audit of logic's small form."""
    audits = plan_audits(load_paper("logic"), ReplicationOptions(is_small=True))
    probes = {name: config.probes.find(LogicProbe) for name, config in audits.items()}
    return {name: probe for name, probe in probes.items() if probe is not None}


def list_sizes(probe: LogicProbe) -> list[int]:
    """Number of compared items of each set, before sets are drawn."""
    return [min(len(one.items), probe.max_items) for one in load_item_sets(Path(probe.items), probe.relation)]


def test_transitivity_can_fail_in_every_audit(probes: dict[str, LogicProbe]) -> None:
    """Subsets of five have a cycle only if their pairs are compared: all are, of at least five items."""
    for name in (*DATA, *(f"{name}-CoT" for name in DATA)):
        assert probes[name].max_pairs is None
        assert min(list_sizes(probes[name])) >= 5


def test_figure_9_has_sets_for_each_of_its_sizes(probes: dict[str, LogicProbe]) -> None:
    assert max(list_sizes(probes["SummEval"])) >= max(probes["SummEval"].k) == 8


def test_sets_of_one_data_set_differ_in_size(probes: dict[str, LogicProbe]) -> None:
    """So that means over sets differ from pooled figures."""
    assert len(set(list_sizes(probes["SummEval"]))) > 1


ANSWERS: dict[str | None, dict[str, object]] = {
    "MoralAnswer": {"answer": "Keep a promise, number"}, "OpenAnswer": {"answer": "Air scatters light, number"},
    "RuleOfThumb": {"rule": "Promises bind people, number"}, "Support": {"reason": "Both say so.", "supported": True},
}  # fmt: skip
"""What a scripted server answers in the place of the embedded model, by schema; with a number, all texts differ."""


@pytest.fixture
def _scripted(server: FakeServer) -> Iterator[None]:
    """A server that answers in the place of the embedded model, and a sentence encoder that needs no weights."""

    def script(request: Request) -> Reply:
        fields = ANSWERS[request.schema]
        number = request.body["seed"] % 3
        return completion(json.dumps({k: f"{v} {number}" if isinstance(v, str) else v for k, v in fields.items()}))

    server.script = script
    with (
        mock.patch("auditor.models.embedded_server.start_server_replicas", return_value=((server.url, "key"),)),
        use_encoder(TextEncoder()),
    ):
        yield


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize(
    ("paper", "table", "n_columns"),
    [
        *(("sage", "1", 8), ("sage", "4", 4), ("sage", "figure-3", 4), ("sge", "models", 3)),
        *(("consistency", "example", 1), ("consistency", "questions", 1)),
    ],
)
def test_small_tables_are_filled(paper: str, table: str, n_columns: int, server: FakeServer, tmp_path: Path) -> None:
    """With a figure in every cell of our models, in this many columns."""
    options = ("--small", "--table", table, "--limit", "2", "--json", "--storage", f"sqlite:///{tmp_path}/small.db")
    result = succeed("replicate", paper, *options)
    cells = [cell for cell in json.loads(result.stdout)["cells"] if cell["not_run"] != "no_counterpart"]
    assert [cell["detail"] for cell in cells if cell["recomputed"] is None] == []
    assert len({cell["published"]["column"] for cell in cells}) == n_columns
    assert server.requests
