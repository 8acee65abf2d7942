"""What the graph remembers: a stage, ids and counts, as plain data, and nothing once the audit has ended."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, get_type_hints

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG

from auditor.agents.checkpoints import open_checkpointer
from auditor.agents.graph import build_graph
from auditor.run import run_audit
from auditor.storage.database import open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer

ONE_CELL = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce"]}


def memory(storage: str) -> Path:
    path = Path(storage.removeprefix("sqlite:///"))
    return path.with_name(f"{path.stem}.graph.db")


def rows(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return sum(connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("checkpoints", "writes"))


@pytest.mark.parametrize("engine", ["file", "server"])
async def test_a_checkpoint_that_names_code_runs_none(
    engine: str, storage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = storage if engine == "file" else request.getfixturevalue("postgres").schema()
    payload = ormsgpack.packb(("os", "system", f"touch {tmp_path / 'owned'}"))
    blob = ormsgpack.packb({"cells": ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, payload)})
    with open_database(url) as db:
        async with open_checkpointer(db) as saver:
            read = saver.serde.loads_typed(("msgpack", blob))
            assert not (tmp_path / "owned").exists()
            assert read == {"cells": f"touch {tmp_path / 'owned'}"}
            with pytest.raises(NotImplementedError):
                saver.serde.loads_typed(("pickle", b"cos\nsystem\n(S'true'\ntR."))


def test_the_state_holds_ids_and_counts_and_no_words_of_models(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, models=2, survey=ONE_CELL, conflicts={"threshold": 0.01}), storage=storage)
    assert rows(memory(storage)) > 0  # it waits for a person
    stored_bytes = b"".join(p.read_bytes() for p in memory(storage).parent.glob("audits.graph.db*"))
    for words in ("hold norm", "SCORE", "Germany", "divorce", KEY, KEY_VARIABLE, server.url):
        assert words.encode() not in stored_bytes, words
    graph = build_graph()
    subgraphs: list[Any] = [subgraph for _, subgraph in graph.get_subgraphs()]
    states = {state for part in (graph, *subgraphs) for state in part.builder.schemas}
    assert {state.__name__ for state in states} > {"AuditState", "LogicState", "SemanticState"}
    for state in states:
        assert all(kind in (str, int, dict[str, str | None]) for kind in get_type_hints(state).values()), state


def test_what_the_graph_remembers_is_deleted_when_the_audit_ends(server: FakeServer, storage: str) -> None:
    audit = config(server.url, models=1, survey=ONE_CELL, judges=[])
    run_audit(audit, storage=storage)
    assert len(server.requests) == json.loads(audit.model_dump_json())["probes"]["direct"]["samples"]
    assert rows(memory(storage)) == 0
