from __future__ import annotations

import ast
import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import auditor.metrics

MODULES = [module.name for module in pkgutil.walk_packages(auditor.metrics.__path__, "auditor.metrics.")]


def test_every_name_is_what_its_module_says_even_when_all_modules_are_loaded() -> None:
    for module in MODULES:
        import_module(module)
    for name in dir(auditor.metrics):
        exported = getattr(auditor.metrics, name)
        assert not isinstance(exported, ModuleType), f"the module {name} hides the function {name}"
        assert exported.__module__.startswith("auditor.metrics.")
        assert exported.__doc__


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(inspect.getsource(auditor.metrics))
    seen = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("auditor.metrics.")
        for alias in node.names
        if alias.asname == alias.name
    }
    assert seen == {(getattr(auditor.metrics, n).__module__, n) for n in dir(auditor.metrics)}


def test_scipy_loads_on_first_use() -> None:
    code = "import sys, auditor.metrics\nassert 'scipy' not in sys.modules\nprint(auditor.metrics.pearson.__name__)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "pearson\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = auditor.metrics.nothing  # type: ignore[attr-defined]


def test_metrics_import_nothing_else_of_the_program() -> None:
    folder = Path(auditor.metrics.__file__).parent
    imported = {
        str(node.module)
        for source in folder.rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    }
    assert len(imported) > 10
    from_auditor = {name for name in imported if name.startswith("auditor") and not name.startswith("auditor.metrics")}
    assert from_auditor == {"auditor.lazy_imports"}
