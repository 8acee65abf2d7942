"""A large report: 20 models on 1,354 cells, five samples each. Time, memory, and size of the page.

`python benchmarks/bench_report.py`; filling the database takes minutes, and is not counted.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

MODELS, COUNTRIES, TOPICS, SAMPLES, JUDGES = 20, 61, 23, 5, 3


def measure(url: str) -> None:
    """Build and render in this process, which has done nothing else."""
    from auditor.reports.build import build_report
    from auditor.reports.html import render_html
    from auditor.storage.database import open_database

    start, cpu = time.monotonic(), time.process_time()
    with open_database(url, create=False) as db:
        page = render_html(build_report(db, "population"))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"built in {time.monotonic() - start:.1f} s ({time.process_time() - cpu:.1f} s of CPU), wanted: 30")
    print(f"memory {used:.2f} GB, wanted: 1; page {len(page.encode()) / 1e6:.1f} MB, wanted: 10")


def main() -> None:
    """Fill a database, then measure in a fresh process."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    from auditor.storage.database import open_database
    from tests.population import populate

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/audit.db"
        with open_database(url) as db:
            populate(db, models=MODELS, countries=COUNTRIES, topics=TOPICS, samples=SAMPLES, judges=JUDGES)
        subprocess.run([sys.executable, __file__, url], check=True)


if __name__ == "__main__":
    main()
