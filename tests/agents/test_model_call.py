"""Every call is built in one module."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import auditor
from auditor.agents.model_call import model_fields
from auditor.config import ModelSection

SOURCES = Path(auditor.__file__).parent
MODEL = ModelSection(name="a", model="openai/gpt-4o", api_base="https://llm.example/v1")


def test_fields_are_those_of_the_section() -> None:
    assert model_fields(MODEL) == {
        "name": "a",
        "model": "openai/gpt-4o",
        "server": "https://llm.example/v1",
        "base_model": None,
        "reasoning": None,
        "declared": None,
    }


def test_a_call_computed_from_local_weights_has_no_server() -> None:
    assert model_fields(MODEL, on_this_machine=True)["server"] is None


def test_no_other_module_builds_a_call() -> None:
    modules = {
        path.relative_to(SOURCES).as_posix()
        for path in _modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Call"
    }
    assert modules == {"agents/model_call.py"}


def _modules() -> list[Path]:
    """All source files of the package, those behind its links to folders included."""
    return sorted(
        Path(folder) / name
        for folder, _, names in os.walk(SOURCES, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
