"""What a call costs one process on a file, one on a PostgreSQL server, and two workers of Ray on this machine.

    python benchmarks/bench_scale.py [--samples 40] [--only sqlite,postgres,ray]

CPU seconds hold on a busy machine too, wall time does not. The scripted server's own CPU is not counted, that of the
database server and of all of Ray's processes is told apart. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

from bench_audit import KEY, ROOT, make_config, run_scripted_server

from auditor.config import RunSection
from auditor.models import litellm_client
from auditor.run import run_audit
from tests.support.ray_nodes import ADDRESS, TOKEN, Host, descendants, head

ENGINES = ("sqlite", "postgres", "ray")
MIN_SAMPLES = 10
"""An audit of a tenth of the samples must be smaller than one of all."""
TICKS = os.sysconf("SC_CLK_TCK")


def measure_engine(url: str, samples: int, storage: str, address: str | None) -> dict[str, Any]:
    """Run audits of a tenth and of all samples in this process; CPU seconds per call come from their difference."""

    litellm_client.load_litellm()
    run_section = RunSection(engine="ray", ray_address=address, workers=2) if address else RunSection()
    measurements = []
    for seed, n_samples in enumerate((1, samples // 10, samples)):  # the first is for imports
        config = make_config(url, n_samples).model_copy(
            update={"name": f"n{n_samples}-{seed}", "seed": seed, "run": run_section}
        )
        wall, cpu = time.perf_counter(), time.process_time()
        report = run_audit(config, storage=storage).report()
        measurements.append(
            (sum(row.sums.attempts for row in report.cost.rows), time.perf_counter() - wall, time.process_time() - cpu)
        )
    (few_calls, _, few_cpu_s), (calls, wall, all_cpu_s) = measurements[1:]
    return {
        "calls": calls,
        "first_calls": measurements[0][0],
        "all_calls": sum(calls for calls, *_ in measurements),
        "wall_s": wall,
        "cpu_s_per_call": (all_cpu_s - few_cpu_s) / (calls - few_calls),
        "memory_mb": _peak_mb(),
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_seconds(pid: int, *, and_children: bool = False) -> float:
    """CPU seconds of a process, with `and_children` also of its children that have ended; 0 if it has ended."""
    try:
        stat_fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, stat_fields[11 : 15 if and_children else 13])) / TICKS


class Watch(threading.Thread):
    """Records the CPU time of Ray's workers while they live.

    Attributes:
        seen: CPU seconds by process id, in the order in which the processes started.
    """

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.seen: dict[int, float] = {}
        self._root, self._end = root, threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.2):
            for pid in descendants(self._root):
                with suppress(OSError):
                    if Path(f"/proc/{pid}/cmdline").read_text().startswith("ray::Worker"):
                        self.seen[pid] = max(self.seen.get(pid, 0.0), cpu_seconds(pid))

    def stop(self) -> list[float]:
        """Stop the thread and return the CPU seconds of all workers, in order of their start."""
        self._end.set()
        self.join()
        return list(self.seen.values())


def measure_in_process(url: str, samples: int, storage: str, address: str | None) -> dict[str, Any]:
    """Run `measure_engine` in a separate process, and return its figures per call."""
    command = [sys.executable, __file__, "--one", url, str(samples), storage, address or ""]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if process.returncode:
        raise SystemExit(f"{storage} failed:\n{process.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return {
        "calls": figures["calls"],
        "first_calls": figures["first_calls"],
        "all_calls": figures["all_calls"],
        "calls_per_s": round(figures["calls"] / figures["wall_s"], 1),
        "driver_cpu_ms_per_call": round(1000 * figures["cpu_s_per_call"], 2),
        "memory_mb": round(figures["memory_mb"]),
    }


def measure_on_server(stack: ExitStack, server: Any, engine: str, url: str, samples: int) -> dict[str, Any]:
    """Measure an engine that writes to a PostgreSQL server, with the server's CPU time and bytes per call."""
    from tests.support.postgres_server import PASSWORD

    storage = server.url(server.database()).replace(f":{PASSWORD}@", "@")
    address, database_cpu_before_s = None, sum(cpu_seconds(pid, and_children=True) for pid in descendants(server.pid))
    if engine == "ray":
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aud-ray-", ignore_cleanup_errors=True)))
        environment = {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
        head_node = stack.enter_context(head(folder, "bench", Host(), "--num-cpus=2", **environment))
        address = head_node.wait_for_output(ADDRESS)
        monitor = Watch(head_node.process.pid)
        monitor.start()
    figures = measure_in_process(url, samples, storage, address)
    if engine == "ray":
        seconds = monitor.stop()  # of each audit's two workers, their start included: the difference is the calls'
        n_calls = figures["calls"] - figures["first_calls"]
        figures["workers_cpu_ms_per_call"] = round(1000 * (sum(seconds[-2:]) - sum(seconds[:2])) / n_calls, 2)
    database_cpu_s = sum(cpu_seconds(pid, and_children=True) for pid in descendants(server.pid)) - database_cpu_before_s
    figures["database_cpu_ms_per_call"] = round(1000 * database_cpu_s / figures["all_calls"], 2)
    with server.connect(storage.rsplit("/", 1)[1]) as connection:
        query = "SELECT pg_database_size(current_database()) - pg_database_size('template1')"
        size = connection.execute(query).fetchone()[0]
    return figures | {"bytes_per_call": round(size / figures["all_calls"])}


def main() -> None:
    """Measure, and print."""
    if sys.argv[1:2] == ["--one"]:
        url, samples, storage, address = sys.argv[2:]
        print(json.dumps(measure_engine(url, int(samples), storage, address or None)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40, help="of each cell; a cell is asked and judged that often")
    parser.add_argument("--only", default=",".join(ENGINES))
    arguments = parser.parse_args()
    if arguments.samples < MIN_SAMPLES:
        parser.error(f"--samples: {arguments.samples} is too few. How to fix: Give at least {MIN_SAMPLES}.")
    from tests.support.postgres_server import PASSWORD, running

    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1", "PGPASSWORD": PASSWORD}
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    figures_by_engine: dict[str, Any] = {}
    with ExitStack() as stack:
        url, server = stack.enter_context(run_scripted_server()), stack.enter_context(running())
        for engine in arguments.only.split(","):
            print(f"{engine} …", file=sys.stderr)
            if engine == "sqlite":
                file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "audits.db"
                figures_by_engine[engine] = measure_in_process(url, arguments.samples, f"sqlite:///{file}", None)
                size = sum(path.stat().st_size for path in file.parent.iterdir() if path.name.startswith("audits.db"))
                figures_by_engine[engine]["bytes_per_call"] = round(size / figures_by_engine[engine]["all_calls"])
            else:
                figures_by_engine[engine] = measure_on_server(stack, server, engine, url, arguments.samples)
    print(json.dumps(figures_by_engine, indent=1))


if __name__ == "__main__":
    main()
