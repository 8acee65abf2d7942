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

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_audit import KEY, ROOT, audit_config, scripted_server

from tests.support.ray_nodes import ADDRESS, TOKEN, descendants, head

ENGINES = ("sqlite", "postgres", "ray")
TICKS = os.sysconf("SC_CLK_TCK")


def one(url: str, samples: int, storage: str, address: str | None) -> dict[str, Any]:
    """Audits of a tenth and of all samples in this process: what a call adds is the difference of their CPU time."""
    from auditor.config import RunSection
    from auditor.models import litellm_client
    from auditor.run import run_audit

    litellm_client.load_litellm()
    given = RunSection(engine="ray", ray_address=address, workers=2) if address else RunSection()
    found = []
    for seed, number in enumerate((1, max(1, samples // 10), samples)):  # the first is for imports
        config = audit_config(url, number).model_copy(update={"name": f"n{number}-{seed}", "seed": seed, "run": given})
        wall, cpu = time.perf_counter(), time.process_time()
        report = run_audit(config, storage=storage).report()
        found.append((sum(r.attempts for r in report.cost.rows), time.perf_counter() - wall, time.process_time() - cpu))
    (few, _, little), (calls, wall, much) = found[1:]
    return {
        "calls": calls,
        "first_calls": found[0][0],
        "all_calls": sum(calls for calls, *_ in found),
        "wall_s": wall,
        "cpu_s_per_call": (much - little) / (calls - few),
        "memory_mb": _peak(),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_of(pid: int, *, and_children: bool = False) -> float:
    """CPU seconds of a process, and of those of its children that have ended; 0 once it has ended itself."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, words[11 : 15 if and_children else 13])) / TICKS


class Watch(threading.Thread):
    """Notes the CPU time of Ray's workers for as long as they live.

    Attributes:
        seen: seconds by process, in the order in which they began.
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
                        self.seen[pid] = max(self.seen.get(pid, 0.0), cpu_of(pid))

    def stop(self) -> list[float]:
        """Seconds of all workers, in order."""
        self._end.set()
        self.join()
        return list(self.seen.values())


def measured(url: str, samples: int, storage: str, address: str | None) -> dict[str, Any]:
    """One engine in a process of its own."""
    words = [sys.executable, __file__, "--one", url, str(samples), storage, address or ""]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{storage} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {
        "calls": found["calls"],
        "first_calls": found["first_calls"],
        "all_calls": found["all_calls"],
        "calls_per_s": round(found["calls"] / found["wall_s"], 1),
        "driver_cpu_ms_per_call": round(1000 * found["cpu_s_per_call"], 2),
        "memory_mb": round(found["memory_mb"]),
    }


def on_server(stack: ExitStack, server: Any, engine: str, url: str, samples: int) -> dict[str, Any]:
    """An engine that writes to a server, and how much that comes to there."""
    from tests.support.postgres_server import PASSWORD

    storage = server.url(server.database()).replace(f":{PASSWORD}@", "@")
    address, before = None, sum(cpu_of(pid, and_children=True) for pid in descendants(server.pid))
    if engine == "ray":
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aud-ray-", ignore_cleanup_errors=True)))
        keys = {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
        first = stack.enter_context(head(folder, "bench", "--num-cpus=2", **keys))
        address = first.said(ADDRESS)
        watch = Watch(first.process.pid)
        watch.start()
    found = measured(url, samples, storage, address)
    if engine == "ray":
        seconds = watch.stop()  # of each audit's two workers, their start included: the difference is the calls'
        more = found["calls"] - found["first_calls"]
        found["workers_cpu_ms_per_call"] = round(1000 * (sum(seconds[-2:]) - sum(seconds[:2])) / more, 2)
    used = sum(cpu_of(pid, and_children=True) for pid in descendants(server.pid)) - before
    found["database_cpu_ms_per_call"] = round(1000 * used / found["all_calls"], 2)
    with server.connect(storage.rsplit("/", 1)[1]) as connection:
        query = "SELECT pg_database_size(current_database()) - pg_database_size('template1')"
        size = connection.execute(query).fetchone()[0]
    return found | {"bytes_per_call": round(size / found["all_calls"])}


def main() -> None:
    """Measure, and print."""
    if sys.argv[1:2] == ["--one"]:
        url, samples, storage, address = sys.argv[2:]
        print(json.dumps(one(url, int(samples), storage, address or None)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40, help="of each cell; a cell is asked and judged that often")
    parser.add_argument("--only", default=",".join(ENGINES))
    given = parser.parse_args()
    from tests.support.postgres_server import PASSWORD, running

    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1", "PGPASSWORD": PASSWORD}
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        url, server = stack.enter_context(scripted_server()), stack.enter_context(running())
        for engine in given.only.split(","):
            print(f"{engine} …", file=sys.stderr)
            if engine == "sqlite":
                file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "audits.db"
                found[engine] = measured(url, given.samples, f"sqlite:///{file}", None)
                size = sum(path.stat().st_size for path in file.parent.iterdir() if path.name.startswith("audits.db"))
                found[engine]["bytes_per_call"] = round(size / found[engine]["all_calls"])
            else:
                found[engine] = on_server(stack, server, engine, url, given.samples)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
