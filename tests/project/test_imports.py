"""Importing the package and `--help` load no heavy library; modules that are imported when used."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from auditor.lazy_imports import import_when_used
from tests.project.product_sources import iterate_modules

HEAVY = (
    "litellm", "langgraph", "torch", "textual", "sentence_transformers", "instructor", "xllamacpp", "scipy", "pandas",
)  # fmt: skip


def loaded_by(program: str) -> set[str]:
    """Top-level modules that a program loads in a new process."""
    code = f"import sys\n{program}\nprint(*[m for m in sys.modules if '.' not in m])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(process.stdout.split("\n")[-2].split())


@pytest.mark.parametrize(
    "program",
    [
        "from auditor import load_config",
        "sys.argv = ['auditor', 'experiment', '--help']\nfrom auditor.cli.app import build_app\ntry: build_app()()\n"
        "except SystemExit: pass",
    ],
)
def test_light_imports_load_no_heavy_library(program: str) -> None:
    assert not loaded_by(program) & set(HEAVY)


def test_importing_the_core_touches_no_environment() -> None:
    code = "import os\nbefore = dict(os.environ)\nimport auditor, auditor.run\nassert before == dict(os.environ)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_root_folders_have_one_name_each() -> None:
    program = """
from importlib import import_module
for name in ("agents", "prompts", "storage", "tui"):
    import_module(f"auditor.{name}")
    try:
        import_module(name)
    except ImportError as error:
        assert f"import auditor.{name}, not {name}" in str(error) or "No module named" in str(error), error
    else:
        raise AssertionError(f"{name} can be imported")
"""
    loaded_by(program)


def test_public_names_exist() -> None:
    import auditor  # the import itself is tested

    for name in auditor.__all__:
        assert getattr(auditor, name) is not None
    with pytest.raises(AttributeError):
        _ = auditor.nothing


def test_help_loads_the_libraries_of_the_command_line_only() -> None:
    """Guard against imports that `HEAVY` does not list."""
    run_help = "sys.argv = ['auditor', '--help']\ntry: runpy.run_module('auditor', run_name='__main__')\n"
    loaded = loaded_by(f"import runpy\n{run_help}except SystemExit: pass") - sys.stdlib_module_names
    installed_by = ("__editable__", "_distutils", "_virtualenv", "sitecustomize")
    libraries = {name for name in loaded if not name.startswith(installed_by)}
    assert libraries <= {"__main__", "auditor", "typer", "shellingham", "annotated_doc", "colorama"}


def _list_imported(nodes: list[ast.stmt]) -> dict[str, str]:
    """The full name of each imported module, by its name in the file."""
    modules: dict[str, str] = {}
    for node in nodes:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        modules |= {alias.asname or alias.name: prefix + alias.name for alias in node.names}
    return modules


def test_modules_that_are_imported_when_used_are_those_that_type_checkers_read() -> None:
    n_checked = 0
    for path, module in iterate_modules("import_when_used|not TYPE_CHECKING"):
        for block in module.body:
            if not (isinstance(block, ast.If) and block.orelse and ast.unparse(block.test) == "not TYPE_CHECKING"):
                continue
            lazy = {}
            for node in block.body:
                assert isinstance(node, ast.Assign), path
                assert isinstance(node.value, ast.Call), path
                assert ast.unparse(node.value.func) == "import_when_used", path
                lazy[ast.unparse(node.targets[0])] = ast.literal_eval(node.value.args[0])
            assert lazy == _list_imported(block.orelse), path
            n_checked += len(lazy)
    assert n_checked > 50


def test_a_module_that_is_imported_when_used_gives_its_attributes_and_names_what_is_missing() -> None:
    shared = import_when_used("colorsys")
    sys.modules.pop("colorsys", None)
    assert not hasattr(shared, "__wrapped__")
    assert "colorsys" not in sys.modules
    assert shared.rgb_to_hsv(1, 0, 0) == (0, 1, 1)
    assert "colorsys" in sys.modules
    with pytest.raises(AttributeError, match="colorsys"):
        print(shared.no_such_name)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        print(import_when_used("no_such_module").name)
