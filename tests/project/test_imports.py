"""Importing the package and `--help` load no heavy library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "litellm",
    "langgraph",
    "torch",
    "textual",
    "sentence_transformers",
    "instructor",
    "xllamacpp",
    "scipy",
    "pandas",
)


def loaded_by(program: str) -> set[str]:
    """Top-level modules that a program loads in a new process."""
    code = f"import sys\n{program}\nprint(*[m for m in sys.modules if '.' not in m])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(process.stdout.split("\n")[-2].split())


@pytest.mark.parametrize(
    "program",
    [
        "import auditor",
        "from auditor import load_config",
        "import auditor.__main__, auditor.cli.app",
        "sys.argv = ['auditor', '--help']\nfrom auditor.cli.app import build_app\ntry: build_app()()\n"
        "except SystemExit: pass",
        "sys.argv = ['auditor', 'experiment', '--help']\nfrom auditor.cli.app import build_app\ntry: build_app()()\n"
        "except SystemExit: pass",
    ],
)
def test_light_imports_load_no_heavy_library(program: str) -> None:
    assert not loaded_by(program) & set(HEAVY)


def test_importing_the_core_touches_no_environment() -> None:
    code = "import os\nbefore = dict(os.environ)\nimport auditor, auditor.run\nassert before == dict(os.environ)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["agents", "prompts", "storage", "tui"])
def test_the_root_folders_have_one_name_each(name: str) -> None:
    code = f"import importlib\nimportlib.import_module('auditor.{name}')\nimportlib.import_module('{name}')"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode != 0
    assert f"import auditor.{name}, not {name}" in process.stderr or "No module named" in process.stderr


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
