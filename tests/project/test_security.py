"""Security checks of all sources: no code in data, no imports from the working directory, no foreign host."""

from __future__ import annotations

import ast
import itertools
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_run import config_file
from tests.project.product_sources import ROOT, iterate_modules, list_sources
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer
from tests.support.patience import PATIENCE_S

CODE_IN_DATA = {"pickle", "cloudpickle", "joblib", "shelve", "dill", "marshal", "jsonpickle"}
EVALUATING = {"eval", "exec", "compile", "__import__"}
MENTIONS = rf"\b(?:{'|'.join(CODE_IN_DATA)}|torch)\b|(?<![.\w])(?:{'|'.join(EVALUATING)})\b"

WATCHED = """
import runpy, socket, sys
asked = []
known = socket.getaddrinfo
def watched(host, *rest, **more):
    asked.append(host if isinstance(host, str) else (host or b"").decode())
    if asked[-1] not in ("127.0.0.1", "localhost", "::1", ""):
        raise socket.gaierror(f"nobody may look up {asked[-1]}")
    return known(host, *rest, **more)
socket.getaddrinfo = watched
sys.argv = ["auditor", *sys.argv[1:]]
try:
    runpy.run_module("auditor", run_name="__main__", alter_sys=False)
finally:
    print("LOOKED UP", sorted(set(asked)), file=sys.stderr)
"""


def test_no_source_deserializes_or_evaluates_code() -> None:
    assert len(list_sources()) > 100
    for path, module in iterate_modules(MENTIONS):
        for node in ast.walk(module):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").split(".")[0]]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in EVALUATING:
                pytest.fail(f"{path}:{node.lineno}: {node.func.id} runs what it is given")
            elif isinstance(node, ast.Call):
                assert ast.unparse(node.func) != "torch.load", f"{path}:{node.lineno}"
            assert not CODE_IN_DATA.intersection(names), f"{path}:{getattr(node, 'lineno', 0)}"


def test_python_subprocesses_do_not_import_from_the_working_directory() -> None:
    n_commands = 0
    for path, module in iterate_modules(r"\bexecutable\b"):
        for node in ast.walk(module):
            words = node.elts if isinstance(node, ast.List) else node.args if isinstance(node, ast.Call) else []
            for word, following in itertools.pairwise(words):
                if ast.unparse(word) == "sys.executable":
                    n_commands += 1
                    assert ast.unparse(following) == "'-P'", (
                        f"{path}: {ast.unparse(node)[:60]}: Python looks there for modules first"
                    )
    assert n_commands >= 4


def test_an_audit_looks_up_only_its_own_host(server: FakeServer, storage: str, tmp_path: Path) -> None:
    assert socket.gethostbyname("localhost")
    survey = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"]}
    file = config_file(tmp_path, config(server.url, models=2, survey=survey))
    command = [
        sys.executable, "-c", WATCHED, "run", str(file), "--storage", storage, "--report", str(tmp_path / "r.html"),
    ]  # fmt: skip
    environment = {**os.environ, KEY_VARIABLE: KEY, "HTTPS_PROXY": "", "HTTP_PROXY": ""}
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    assert "LOOKED UP ['127.0.0.1']" in process.stderr or "LOOKED UP []" in process.stderr, process.stderr
    assert (tmp_path / "r.html").is_file()
