"""What benchmarks share: minima, medians and ratios of turns; the machine, its load, and versions."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = {
    "auditor": "auditor",
    "litellm": "litellm",
    "numpy": "numpy",
    "pydantic": "pydantic",
    "scipy": "scipy",
    "sentence_transformers": "sentence-transformers",
    "sqlalchemy": "sqlalchemy",
    "textual": "textual",
    "torch": "torch",
    "vl_convert": "vl-convert-python",
}
"""Distributions whose versions are printed, by the name of their package."""


def summarize(name: str, values: Sequence[float]) -> dict[str, float]:
    """Minimum of the turns under the name, and their median."""
    return {name: min(values), f"median_{name}": statistics.median(values)}


def compare(name: str, values: Sequence[float], references: Sequence[float]) -> dict[str, float]:
    """Ratio of the minima under the name, and the median of the turns' ratios."""
    ratios = [value / reference for value, reference in zip(values, references, strict=True)]
    return {name: min(values) / min(references), f"median_{name}": statistics.median(ratios)}


def describe_machine() -> dict[str, Any]:
    """The machine and its load, the versions of what is measured, and how auditor is installed."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": _find_processor() or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {name: version(distribution) for name, distribution in PACKAGES.items() if find_spec(name)},
        "system": platform.system(),
        "installed_from": "wheel" if is_wheel() else "source",
    }


def is_wheel() -> bool:
    """Whether auditor is an installed wheel, and not the source tree."""
    spec = find_spec("auditor")
    return spec is not None and "site-packages" in str(spec.origin)


def find_version(command: list[str]) -> str | None:
    """The last line that a command prints; None if it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def find_module_version(python: Path, module: str) -> str | None:
    """Version of a module of another environment; None if it is not installed."""
    return find_version([str(python), "-c", f"from importlib.metadata import version; print(version('{module}'))"])


def _find_processor() -> str | None:
    """Name of the processor on Linux."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)
