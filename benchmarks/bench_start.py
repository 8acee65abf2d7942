"""Start-up: each command beside an import that it cannot do without, measured in turns. Prints JSON.

    python benchmarks/bench_start.py [--turns 7] [--project FOLDER]

The commands read the audit of `auditor demo`. Counted is CPU time, minimum and median of the turns; a ratio is that of
the minima. Bytecode is compiled beforehand, also where
PYTHONDONTWRITEBYTECODE is set, which doubles the time of a start.
`--project` measures another checkout of auditor, with its own environment in `.venv`, for a comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

ROOT = Path(__file__).resolve().parent.parent
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


def measure_cpu_s(command: list[str], folder: str) -> float:
    """CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_starts(python: str, url: str, folder: str, turns: int) -> dict[str, Any]:
    """CPU time of each command and of its reference, taken in turns."""
    auditor = [python, "-m", "auditor"]
    Path(folder, "estimated.toml").write_text(CONFIG)
    Path(folder, "finished.toml").write_text(SERVED_CONFIG.format(url=url))
    for arguments in (["demo"], COMMANDS["second_run"][0]):  # what the commands read; it also compiles all modules
        measure_cpu_s([*auditor, *arguments], folder)
    start = time.perf_counter()
    subprocess.run([*auditor, "--help"], check=True, stdout=subprocess.DEVNULL)
    figures: dict[str, Any] = {"help_s": time.perf_counter() - start, "load": os.getloadavg()[0]}
    for name, (arguments, reference) in COMMANDS.items():
        pairs = [
            (measure_cpu_s([*auditor, *arguments], folder), measure_cpu_s([python, "-c", reference], folder))
            for _ in range(turns)
        ]
        times, references = zip(*pairs, strict=True)
        figures[name] = {
            "min_s": min(times),
            "median_s": statistics.median(times),
            "ratio": min(times) / min(references),
            "median_ratio": statistics.median(a / b for a, b in pairs),
            "turns": pairs,
        }
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
    os.environ["PYTHONPATH"] = str(arguments.project.resolve() if arguments.project else ROOT)
    with run_scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure_starts(python, url, folder, arguments.turns), indent=1))


if __name__ == "__main__":
    main()
