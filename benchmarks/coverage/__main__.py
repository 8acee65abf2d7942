"""`python -m benchmarks.coverage`: run the study, write docs/coverage.md; exit code 1 if an interval breaks the rule.

Results are stored in benchmarks/coverage/results.json: a run that was stopped goes on where it ended, and a later run
measures again only what rests on changed sources. With `--only`, the other rows are those of docs/coverage.json.
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
from benchmarks.coverage.page import load_published_rows, write_page
from benchmarks.coverage.results import ResultStore, Rows, fingerprint
from benchmarks.coverage.studies import Job, list_jobs, measure_jobs, to_results, to_sentence_results


def main() -> int:
    """Measure what is not stored, write the page, and print what breaks the rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="processes side by side")
    parser.add_argument(
        "--only", default="", help="keys of worlds that begin with this text; the page has the others as before"
    )
    arguments = parser.parse_args()
    all_jobs = list_jobs()
    jobs = {key: job for key, job in all_jobs.items() if key.startswith(arguments.only)}
    measured = run_jobs(jobs, arguments.processes)
    published = load_published_rows() if arguments.only else {}
    rows_by_key = {key: rows for key in all_jobs if (rows := measured.get(key, published.get(key))) is not None}
    results, planted = to_results(rows_by_key)
    sentences = to_sentence_results(rows_by_key)
    write_page(results, planted, sentences)
    violations = find_violations(results, planted)
    violations += [problem for result in sentences for problem in result.list_problems()]
    print("\n".join(violations) or "every interval holds what it says, outside the known limits")
    return 1 if violations else 0


def run_jobs(jobs: Mapping[str, Job], n_processes: int) -> dict[str, Rows]:
    """Results of all jobs; stored ones are measured again only if their sources have changed."""
    store, start = ResultStore(), time.monotonic()
    hash_by_module = {
        module: fingerprint(module, "benchmarks.coverage.runner") for module in {job.module for job in jobs.values()}
    }
    stored = {key: store.load(key, hash_by_module[job.module]) for key, job in jobs.items()}
    rows_by_key = {key: rows for key, rows in stored.items() if rows is not None}
    # The slowest first, so that the processes end together.
    missing_keys = sorted(set(jobs) - set(rows_by_key), key=lambda key: (-jobs[key].cost, key))
    print(f"{len(rows_by_key)} of {len(jobs)} worlds and designs are stored", file=sys.stderr)
    for i, (key, rows) in enumerate(measure_jobs(missing_keys, n_processes), 1):
        rows_by_key[key] = rows
        store.save(key, hash_by_module[jobs[key].module], rows)
        print(f"{time.monotonic() - start:5.0f} s  {i} of {len(missing_keys)}: {key}", file=sys.stderr)
    return {key: rows_by_key[key] for key in jobs}


if __name__ == "__main__":
    sys.exit(main())
