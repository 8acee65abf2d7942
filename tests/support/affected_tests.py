"""Runs the tests that a change can affect, the nearest first: `make quick`.

A test file is affected if it imports a changed module, directly or through others. Nearest are the test files that
were changed themselves, then those that are named after the module, then by the number of imports between them.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

import grimp

ROOT = Path(__file__).resolve().parents[2]
LINKED_PACKAGES = ("agents", "prompts", "storage", "tui")
"""Packages of `auditor` that lie at the top level."""
DOCUMENT_TESTS = ("tests.project.test_docs", "tests.project.test_docs_examples")
MAX_FILES = 40
"""Test files that are run; a change in `domain` affects all of them."""
N_NAMED = 8


def changed_files(base: str) -> list[PurePosixPath]:
    """Files that differ from a commit, and files that git does not know yet."""
    commands = (["diff", "--name-only", base], ["ls-files", "--others", "--exclude-standard"])
    listings = [
        subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True) for words in commands
    ]
    return [PurePosixPath(line) for listing in listings for line in listing.stdout.splitlines()]


def module_of(file: PurePosixPath) -> str:
    """Name of a Python file's module, or of the package that contains another file; empty at the top level."""
    parts = list(file.with_suffix("").parts) if file.suffix == ".py" else list(file.parent.parts)
    if parts[-1:] == ["__init__"]:
        parts.pop()
    if parts and parts[0] in LINKED_PACKAGES:
        parts.insert(0, "auditor")
    return ".".join(parts)


def affected_test_files(modules: Iterable[str], graph: grimp.ImportGraph) -> list[str]:
    """Test files that import one of the modules, directly or through others, the nearest first.

    Args:
        modules: names of changed modules; one that the graph lacks (a folder of prompts) stands for its package.
        graph: the imports of both packages.

    Returns:
        Paths relative to the project's folder.
    """
    changed = []
    for name in modules:
        while "." in name and name not in graph.modules:
            name = name.rpartition(".")[0]
        if "." in name:  # not all of `auditor`
            changed.append(name)
    distances, reached = dict.fromkeys(changed, 0), changed
    while reached:
        importers = {importer for name in reached for importer in graph.find_modules_that_directly_import(name)}
        reached = sorted(importers - distances.keys())
        distances |= dict.fromkeys(reached, max(distances.values()) + 1)
    named_after = {f"test_{name.rpartition('.')[2]}_" for name in changed}

    def is_named_after(test: str) -> bool:
        """Whether a test file has a changed module's name, with or without an aspect behind it."""
        return any(f"{test.rpartition('.')[2]}_".startswith(name) for name in named_after)

    tests = [name for name in distances if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")]
    tests.sort(key=lambda name: (distances[name] > 0, not is_named_after(name), distances[name], name))
    return [f"{name.replace('.', '/')}.py" for name in tests]


def run_tests(files: list[str], seconds: float) -> int:
    """Run test files, interrupt them when the time is over, and return pytest's exit code, 0 after an interrupt."""
    words = ["-q", "-x", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--no-header", *files]
    process = subprocess.Popen([sys.executable, "-m", "pytest", *words], cwd=ROOT)
    with suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    print(
        f"\n{seconds:.0f} s are over and no test has failed: the rest is interrupted. make test runs all.", flush=True
    )
    process.send_signal(signal.SIGINT)
    process.wait()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", default="HEAD", help="the commit that the change is compared with")
    parser.add_argument("--seconds", type=float, default=80, help="time for the tests, with what has passed before")
    options = parser.parse_args()
    started_at = time.monotonic()
    files = changed_files(options.base)
    modules = [name for file in files if (name := module_of(file))]
    if any(file.suffix == ".md" and module_of(file) in ("", "docs") for file in files):
        modules += DOCUMENT_TESTS
    affected = affected_test_files(
        modules, grimp.build_graph("auditor", "tests", cache_dir=str(ROOT / ".import_linter_cache"))
    )
    if not affected:
        print("No test imports what was changed.")
        return 0
    print(f"{len(affected)} test files import what was changed; the nearest {min(MAX_FILES, len(affected))} are run:")
    print("  " + "\n  ".join(affected[:N_NAMED] + (["…"] if len(affected) > N_NAMED else [])), flush=True)
    return run_tests(affected[:MAX_FILES], options.seconds - (time.monotonic() - started_at))


if __name__ == "__main__":
    sys.exit(main())
