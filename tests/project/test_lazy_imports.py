"""Each command imports only what it needs: measured in processes that run nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.config.installed_probes import list_built_in_names
from auditor.domain.labels import LabelKind
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.run import open_audit, run_audit
from auditor.storage import audits
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.fake_server import FakeServer
from tests.support.fixed_address import word_encoder
from tests.support.known import known
from tests.support.synthetic_audit import populate

NEEDED_BY_NO_QUICK_COMMAND = {
    "litellm", "openai", "instructor", "langgraph", "langchain_core", "langsmith", "scipy.stats", "scipy.optimize",
    "pandas", "torch", "textual", "ray", "httpx",
}  # fmt: skip
NEEDED_BY_GRAPHS = {"langgraph", "langchain_core", "langsmith", "httpx"}
"""Loaded by a run, and by `verify` of an audit with probes: both run the audit's graph on the recorded answers."""
RUN_COMMANDS = """
import json, sys
from auditor.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["auditor", *words]
    try:
        main()
    except SystemExit as exit:
        assert not exit.code, (words, exit.code)
    print("modules:", json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
CONFIG = """
name = "estimated"
judges = "peers"
limits = { budget_usd = 5 }
survey = { source = "wvs7-sample", countries = ["Germany", "Japan"], topics = ["divorce", "suicide"] }
embedding = { model = "none" }

[[models]]
name = "a"
model = "openai/gpt-4o-mini"
api_key = "os.environ/OPENAI_API_KEY"

[[models]]
name = "b"
model = "anthropic/claude-haiku-4-5"
api_key = "os.environ/ANTHROPIC_API_KEY"
"""
SIMULATED_CONFIG: dict[str, Any] = {
    "name": "simulated",
    "survey": {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce", "suicide"]},
    "models": [{"name": name, "model": f"simulated/{name}"} for name in ("knows-every-culture", "inconsistent")],
    "judges": "peers",
    "embedding": {"model": "none"},
}
EVERY_PROBE: dict[str, Any] = {
    "direct": {"samples": 2}, "logprob": {}, "semantic": {"limit": 6},
    "logic": {"items": "topics", "samples": 2, "k": [3]}, "pressure": {"cells": 4},
    "reasoning": {"cells": 4, "interventions": ["norms", "filler"]},
    "memory": {"cells": 4, "made_up": 2},
}  # fmt: skip
TOPICS_OF_EVERYTHING = ("divorce", "suicide", "abortion")
LABELLED_TRACES = 20
EVERYTHING = ("--storage", "sqlite:///everything.db")
MARKDOWN_REPORT = ("report", "--format", "md", "-o", "report.md")
RECORDED_RUN = ("run", "finished.toml", "--storage", "sqlite:///finished.db")
"""Of an audit all of whose answers are recorded: it loads no client."""
PROCESSES: list[dict[tuple[str, ...], set[str]]] = [
    {
        ("report", "--format", "json", "-o", "report.json"): set(), MARKDOWN_REPORT: set(),
        ("init", "new.toml"): set(), ("estimate", "estimated.toml"): set(), ("status", "--json"): set(),
    },
    {
        ("status", *EVERYTHING): set(), ("report", "--format", "json", "-o", "report.json", *EVERYTHING): set(),
        ("report", "--brief", "--format", "text", *EVERYTHING): set(),
        ("report", "-o", "report.html", *EVERYTHING): {"vl_convert"},
    },
    {
        ("verify", "--storage", "sqlite:///cells.db"): set(), ("verify", *EVERYTHING): NEEDED_BY_GRAPHS,
        RECORDED_RUN: NEEDED_BY_GRAPHS,
    },
]  # fmt: skip
"""Commands that one process each runs one after another, with the heavy modules that each loads first."""


@cache
def modules_after(folder: Path, *commands: tuple[str, ...]) -> list[set[str]]:
    """Modules that a process has imported after each command, in a folder with audits' databases; run once."""
    program = [sys.executable, "-c", RUN_COMMANDS, json.dumps(commands)]
    process = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stderr[-2000:]
    lines = process.stderr.splitlines()
    return [set(json.loads(line.removeprefix("modules:"))) for line in lines if line.startswith("modules:")]


def modules_of(folder: Path, *arguments: str) -> set[str]:
    """Modules that the process of a command of `PROCESSES` has imported when that command ends."""
    commands = next(list(commands) for commands in PROCESSES if arguments in commands)
    return modules_after(folder, *commands)[commands.index(arguments)]


def make_audit_of_everything(storage: str) -> None:
    """Run an audit with embeddings, labels and all probes that a survey without people's shares allows."""
    from auditor.storage.database import open_database

    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": [*TOPICS_OF_EVERYTHING]}
    changes = {"name": "simulated", "survey": survey, "probes": EVERY_PROBE, "embedding": {"model": "words"}}
    with word_encoder():
        run_audit(AuditConfig.model_validate(SIMULATED_CONFIG | changes), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, "simulated")
        draw_label_sample(db, audit, LabelKind.TRACE, LABELLED_TRACES)
        session = LabellingSession(db, audit, "ada")
        for sampled in session.sample[:LABELLED_TRACES]:
            session.save(sampled.unit, "VALID")


def write_finished_config(server: FakeServer, folder: Path) -> Path:
    """The config of two providers' models, with the scripted server in their place."""
    config = CONFIG.replace("estimated", "finished").replace("anthropic/claude-haiku-4-5", "openai/other")
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        config = config.replace(key, KEY_VARIABLE)
    config = config.replace("\nmodel =", f'\napi_base = "{server.url}"\nprice = {{ input = 1, output = 1 }}\nmodel =')
    (folder / "finished.toml").write_text(config)
    return folder / "finished.toml"


@pytest.fixture(scope="module")
def recording_server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


@pytest.fixture(scope="module")
def folder(recording_server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with databases: of an audit that lacks answers, one with everything, one without probes and a run one.

    Besides, a config of two providers' models.
    """
    from auditor.storage.database import open_database

    path = tmp_path_factory.mktemp("audits")
    with open_database(f"sqlite:///{path}/auditor.db") as db:
        populate(db, models=3, countries=6, topics=6, samples=2, judges=2)
    make_audit_of_everything(f"sqlite:///{path}/everything.db")
    run_audit(AuditConfig.model_validate(SIMULATED_CONFIG), storage=f"sqlite:///{path}/cells.db")
    (path / "estimated.toml").write_text(CONFIG)
    run_audit(write_finished_config(recording_server, path), storage=f"sqlite:///{path}/finished.db")
    return path


@pytest.mark.parametrize("commands", PROCESSES, ids=["without probes", "everything", "verify"])
def test_a_command_imports_only_what_it_needs(folder: Path, commands: dict[tuple[str, ...], set[str]]) -> None:
    heavy_modules = NEEDED_BY_NO_QUICK_COMMAND | {"vl_convert"}
    loaded = [heavy_modules & modules for modules in modules_after(folder, *commands)]
    assert dict(zip(commands, loaded, strict=True)) == commands


def test_a_report_loads_no_modules_of_probes_without_answers(folder: Path) -> None:
    modules = {f"auditor.probes.{name}.figures.build" for name in list_built_in_names()}
    assert all(find_spec(module) for module in modules)
    assert not modules & modules_of(folder, *MARKDOWN_REPORT)


def test_figures_need_no_nodes_of_documents_and_settings_no_structures_of_answers(folder: Path) -> None:
    modules = {"auditor.reports.document.blocks", "auditor.models.answer_schemas"}
    assert all(map(find_spec, modules))
    for command in (("status", *EVERYTHING), ("report", "--format", "json", "-o", "report.json")):
        assert modules.isdisjoint(modules_of(folder, *command)), command


def test_the_audit_of_everything_has_embeddings_answers_of_all_its_probes_and_labels(folder: Path) -> None:
    report = open_audit("simulated", storage=f"sqlite:///{folder}/everything.db").report()
    assert [row.cosine.value for row in report.self_consistency if row.method == "direct" and row.cosine.value]
    assert {row.method for row in report.alignment} == {"direct", "logprob"}
    semantic, logic = report.find(SemanticReport), report.find(LogicReport)
    assert known(semantic).forms
    assert known(logic).judges
    assert known(report.judge_quality).labels == LABELLED_TRACES


def test_a_run_whose_answers_are_recorded_asks_nothing(folder: Path, recording_server: FakeServer) -> None:
    n_requests = len(recording_server.requests)
    assert n_requests > 0
    modules_of(folder, *RECORDED_RUN)
    assert len(recording_server.requests) == n_requests


def test_the_price_list_is_litellms() -> None:
    """Prices are read from a file of litellm's package, which must be what litellm itself reads."""
    from auditor.models import litellm_client

    price_list, model_cost = litellm_client._read_price_list(), litellm_client.load_litellm().model_cost
    assert len(model_cost) > 1000
    assert all(price_list[model] == entry for model, entry in model_cost.items())
