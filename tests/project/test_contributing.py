"""CONTRIBUTING.md: the inner loop runs the nearest tests first, and the targets that it names exist."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import grimp
import pytest

from tests.support.affected_tests import ROOT, affected_test_files, module_of


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("auditor", "tests", cache_dir=str(ROOT / ".import_linter_cache"))


def test_the_file_named_after_a_module_is_first_and_those_that_import_it_follow(graph: grimp.ImportGraph) -> None:
    files = affected_test_files(["auditor.storage.database_errors"], graph)
    assert files[0] == "tests/storage/test_database_errors_outages.py"
    assert "tests/e2e/test_database_restarts.py" in files
    assert "tests/metrics/answers/test_samples.py" not in files


def test_a_changed_test_is_before_tests_that_import_a_changed_module(graph: grimp.ImportGraph) -> None:
    files = affected_test_files(["auditor.run.signals", "tests.surveys.test_countries"], graph)
    assert files[:2] == ["tests/surveys/test_countries.py", "tests/run/test_signals.py"]


def test_prompts_affect_the_tests_of_those_who_read_them(graph: grimp.ImportGraph) -> None:
    assert "tests/prompts/test_loader.py" in affected_test_files(["auditor.prompts.en"], graph)


def test_a_module_outside_both_packages_affects_no_test(graph: grimp.ImportGraph) -> None:
    assert affected_test_files(["benchmarks.suite"], graph) == []


@pytest.mark.parametrize(
    ("file", "module"),
    [("storage/database_errors.py", "auditor.storage.database_errors"),
     ("auditor/metrics/__init__.py", "auditor.metrics"), ("prompts/en/review.md", "auditor.prompts.en"),
     ("README.md", "")],
)  # fmt: skip
def test_files_belong_to_modules(file: str, module: str) -> None:
    assert module_of(PurePosixPath(file)) == module


def test_the_targets_that_it_names_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"quick", "generated", "golden"} <= named
    assert [name for name in sorted(named) if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
