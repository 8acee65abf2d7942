"""Packages with probes, as an installer would leave them in a folder of the import path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from auditor.config import installed_probes

TOY_MODULE = """
from auditor.probes import Needs, Outcome, Probe, ProbeSettings, Reading

class ToySettings(ProbeSettings):
    samples: int = 2
    \"\"\"Number of answers.\"\"\"

class Toy(Probe):
    interface_version = 1
    settings = ToySettings

class Exit(Toy):
    def __init__(self):
        raise SystemExit(3)

class Old(Toy):
    interface_version = 7
"""


def install_package(
    folder: Path, entry_points: str, module: str = TOY_MODULE, *, name: str = "toy-probes", module_name: str = "toy"
) -> None:
    """Write a package with one module and its metadata.

    Args:
        entry_points: lines such as `toy = toy:Toy`, in the group of probes.
    """
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[auditor.probes]\n{entry_points}\n")
    (folder / f"{module_name}.py").write_text(module)


def use_packages(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a folder of packages on the import path; probes of other tests are forgotten, and these after the test."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(installed_probes, "_LOADED", {})
    for module in folder.glob("*.py"):
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    for package in folder.glob("*/__init__.py"):
        monkeypatch.delitem(sys.modules, package.parent.name, raising=False)
    installed_probes.list_probe_sources.cache_clear()
