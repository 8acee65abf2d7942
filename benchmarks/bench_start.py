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


def shortest_times(command: list[str], turns: int) -> tuple[float, float]:
    """Run a command `turns` times; return its shortest wall and CPU seconds."""
    wall_times, cpu_times = [], []
    for _ in range(turns):
        usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall_times.append(time.perf_counter() - start)
        cpu_times.append(usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime)
    return min(wall_times), min(cpu_times)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    turns = parser.parse_args().turns
    empty_s, empty_cpu_s = shortest_times([sys.executable, "-c", "pass"], turns)
    help_s, help_cpu_s = shortest_times([sys.executable, "-m", "auditor", "--help"], turns)
    figures = {
        "help_s": help_s,
        "help_cpu_s": help_cpu_s,
        "empty_s": empty_s,
        "cpu_ratio_to_empty": help_cpu_s / empty_cpu_s,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
