"""Every call is built in one module."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import auditor
from auditor.agents.call_builders import build_call, direct_sampling, model_fields, request_params, review_sampling
from auditor.config import ModelSection
from auditor.domain import Purpose
from tests.support.audit_configs import config

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
    assert modules == {"agents/call_builders.py"}


def _modules() -> list[Path]:
    """All source files of the package, those behind its links to folders included."""
    return sorted(
        Path(folder) / name
        for folder, _, names in os.walk(SOURCES, followlinks=True)
        for name in names
        if name.endswith(".py")
    )


def test_top_p_is_of_direct_answers_only_and_a_models_own_takes_precedence() -> None:
    """Without it, requests are what they were: keys of stored answers do not change."""
    audit = config("http://127.0.0.1:1", probes={"direct": {"top_p": 0.95}, "review": {}})
    plain = config("http://127.0.0.1:1")
    assert request_params(audit.models[0], **direct_sampling(audit, audit.models[0]))["top_p"] == 0.95
    assert "top_p" not in direct_sampling(plain, plain.models[0])
    assert "top_p" not in review_sampling(audit, audit.models[0])
    section = audit.models[0].model_copy(update={"params": {"top_p": 0.5}})
    call = build_call(section, Purpose.DIRECT, (), **direct_sampling(audit, section), seed=1)
    assert call.params["top_p"] == 0.5
