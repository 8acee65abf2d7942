"""How long the import of a file as large as the World Values Survey's wave 7 takes, and how much memory.

    python benchmarks/bench_surveys.py [--rows 94000] [--columns 600] [--format csv]

Prints JSON: seconds and peak memory of a process of its own, and both as shares of what is allowed.
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

ALLOWED_SECONDS = 10.0
ALLOWED_MB = 500.0
FILE_MAKER = Path(__file__).with_name("make_wvs_file.py")


def measure(path: Path) -> dict[str, float | int | str]:
    """Import a file in this process, and return time and memory, the imports of Python included."""
    start = time.perf_counter()
    from auditor.surveys.importer import import_survey  # its time is part of the measurement

    imported = import_survey(path, "wvs7")
    seconds = time.perf_counter() - start
    # Linux counts in KiB, macOS in bytes.
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 1e6
    return {
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "respondents": imported.facts.respondents,
        "cells": len(imported.survey.scores),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time(), 2),
        "peak_mb": round(peak_mb, 1),
        "seconds_of_allowed": round(seconds / ALLOWED_SECONDS, 3),
        "memory_of_allowed": round(peak_mb / ALLOWED_MB, 3),
        "cores": os.cpu_count() or 0,
    }


def main() -> None:
    """Make a file, import it in a fresh process, print what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=94_000)
    parser.add_argument("--columns", type=int, default=600)
    parser.add_argument("--format", choices=["csv", "sav"], default="csv")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"wvs7.{arguments.format}"
        size_arguments = ["--rows", str(arguments.rows), "--columns", str(arguments.columns)]
        subprocess.run([sys.executable, str(FILE_MAKER), str(file), *size_arguments], check=True)
        subprocess.run([sys.executable, __file__, "--measure", str(file)], check=True)


if __name__ == "__main__":
    main()
