"""Start-up of the command line: `auditor --help` beside an interpreter that does nothing. Prints JSON.

python benchmarks/bench_start.py [--turns 7]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time


def best(command: list[str], turns: int) -> tuple[float, float]:
    """Shortest wall and CPU seconds of a command."""
    walls, cpus = [], []
    for _ in range(turns):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - start)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(walls), min(cpus)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    turns = parser.parse_args().turns
    empty, empty_cpu = best([sys.executable, "-c", "pass"], turns)
    wall, cpu = best([sys.executable, "-m", "auditor", "--help"], turns)
    found = {"help_s": wall, "help_cpu_s": cpu, "empty_s": empty, "cpu_ratio_to_empty": cpu / empty_cpu}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
