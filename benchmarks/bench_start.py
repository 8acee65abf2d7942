"""Start-up: each command beside an import that it cannot do without, measured in turns. Prints JSON.

    python benchmarks/bench_start.py [--turns 7] [--project FOLDER]

The commands read the audit of `auditor demo`. Counted are CPU and wall time, as minimum and median of the turns; a
ratio is that of the minima. `make bench` installs a wheel, whose bytecode is compiled; PYTHONDONTWRITEBYTECODE, which
would double the time of a start, is unset.
`--project` measures another checkout of auditor, with its own environment in `.venv`, for a comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from turns import compare, summarize

LIGHT_IMPORT = "import pydantic, sqlalchemy, numpy"
LITELLM_IMPORT = "import litellm"
CONFIG = """
name = "estimated"
judges = "peers"
survey = { source = "wvs7-sample" }
embedding = { model = "none" }
models = [
    { name = "a", model = "openai/gpt-4o-mini", api_key = "os.environ/BENCH_KEY" },
    { name = "b", model = "openai/gpt-4o", api_key = "os.environ/BENCH_KEY" },
]
"""
SERVED_CONFIG = """
name = "finished"
judges = []
survey = {{ source = "wvs7-sample", topics = ["divorce", "abortion", "death penalty"] }}
embedding = {{ model = "none" }}
probes = {{ direct = {{ samples = 2 }} }}
models = [{{ name = "m0", model = "openai/m0", api_base = "{url}", api_key = "os.environ/BENCH_KEY" }}]
"""
COMMANDS: dict[str, tuple[list[str], str]] = {
    "status": (["status"], LIGHT_IMPORT),
    "estimate": (["estimate", "estimated.toml"], LIGHT_IMPORT),
    "verify": (["verify"], LIGHT_IMPORT),
    "report_json": (["report", "--format", "json", "-o", "report.json"], LIGHT_IMPORT),
    "report_html": (["report", "-o", "report.html"], LIGHT_IMPORT),
    "help": (["--help"], LIGHT_IMPORT),
    "second_run": (["run", "finished.toml", "--storage", "sqlite:///finished.db"], LITELLM_IMPORT),
}


class Usage(NamedTuple):
    """CPU and wall seconds of a command."""

    cpu_s: float
    wall_s: float


def measure(command: list[str], folder: str) -> Usage:
    """Run a command in a folder."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall_s)


def compare_usages(turns: list[tuple[Usage, Usage]]) -> dict[str, Any]:
    """Times of a command beside those of its reference: minima, medians, their ratios, and all turns."""
    figures: dict[str, Any] = {}
    for field, ratio in (("cpu_s", "ratio"), ("wall_s", "wall_ratio")):
        times, references = ([getattr(usage, field) for usage in usages] for usages in zip(*turns, strict=True))
        figures |= summarize(field, times) | compare(ratio, times, references)
    return figures | {"turns": turns}


def measure_starts(python: str, url: str, folder: str, turns: int) -> dict[str, Any]:
    """Times of each command and of its reference, taken in turns."""
    auditor = [python, "-m", "auditor"]
    Path(folder, "estimated.toml").write_text(CONFIG)
    Path(folder, "finished.toml").write_text(SERVED_CONFIG.format(url=url))
    measure([*auditor, "demo"], folder)  # what the commands read
    for arguments, _ in COMMANDS.values():  # compiles all modules, and asks what the second run finds recorded
        measure([*auditor, *arguments], folder)
    figures: dict[str, Any] = {"load": os.getloadavg()[0]}
    for name, (arguments, reference) in COMMANDS.items():
        figures[name] = compare_usages(
            [
                (measure([*auditor, *arguments], folder), measure([python, "-c", reference], folder))
                for _ in range(turns)
            ]
        )
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--project", type=Path)
    arguments = parser.parse_args()
    from bench_audit import run_scripted_server

    python = str(arguments.project.resolve() / ".venv" / "bin" / "python") if arguments.project else sys.executable
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ |= {"BENCH_KEY": "none", "AUDITOR_TRUST": "BENCH_KEY@127.0.0.1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    if arguments.project:
        os.environ["PYTHONPATH"] = str(arguments.project.resolve())
    with run_scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure_starts(python, url, folder, arguments.turns), indent=1))


if __name__ == "__main__":
    main()
