"""`python -m benchmarks.coverage`: run the study, write docs/coverage.md; exit code 1 if an interval breaks the rule.

Results are stored in benchmarks/coverage/results.json: a run that was stopped goes on where it ended, and a later run
measures again only what rests on changed sources.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping

# Before numpy: two processes with several threads each would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.coverage.findings import find_violations
from benchmarks.coverage.page import write_page
from benchmarks.coverage.results import ResultStore, fingerprint
from benchmarks.coverage.runner import Result
from benchmarks.coverage.studies import STUDIES, Job, list_jobs, measure_jobs


def main() -> int:
    """Measure what is not stored, write the page, and print what breaks the rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="processes side by side")
    parser.add_argument("--only", default="", help="studies, separated by commas; the page then holds these only")
    parser.add_argument("--keep-docs", action="store_true", help="do not write docs/coverage.md")
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name]
    studies = [study for study in STUDIES if not names or study.name in names]
    results = run_jobs(list_jobs(studies), arguments.processes)
    if not arguments.keep_docs:
        write_page(results)
    violations = find_violations(results)
    print("\n".join(violations) or "every interval holds what it says, outside the known limits")
    return 1 if violations else 0


def run_jobs(jobs: Mapping[str, Job], n_processes: int) -> list[Result]:
    """Results of all jobs; stored ones are measured again only if their sources have changed."""
    store, start = ResultStore(), time.monotonic()
    source_hashes = {study.name: fingerprint(study) for study, _, _ in jobs.values()}
    results = {key: store.load(key, source_hashes[study.name]) for key, (study, _, _) in jobs.items()}
    missing_keys = [key for key, stored in results.items() if stored is None]
    print(f"{len(jobs) - len(missing_keys)} of {len(jobs)} worlds and designs are stored", file=sys.stderr)
    # The slowest first, so that the processes end together.
    missing_keys.sort(key=lambda key: -jobs[key][2].smaller_side)
    for i, (key, measured) in enumerate(measure_jobs(missing_keys, n_processes), 1):
        results[key] = measured
        store.save(key, source_hashes[jobs[key][0].name], measured)
        print(f"{time.monotonic() - start:5.0f} s  {i} of {len(missing_keys)}: {key}", file=sys.stderr)
    return [result for stored in results.values() for result in stored or ()]


if __name__ == "__main__":
    sys.exit(main())
