"""JSON reports of three simulated audits, and a comparison of two folders of them: speed must not change a figure.

    python benchmarks/golden_reports.py FOLDER                  # make the reports, before a change
    python benchmarks/golden_reports.py OTHER --compare FOLDER  # after it; exit code 1 if a figure differs

The audits are two of `auditor demo` (of two seeds, one with sentence embeddings) and one of the probes `semantic` and
`logic`. Figures of embeddings may differ by 1e-5, all others by 1e-12; times are not compared.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

ENCODER = "all-MiniLM-L6-v2"
DEMO_SEEDS = (7, 8)
TOLERANCE, EMBEDDING_TOLERANCE = 1e-12, 1e-5
EMBEDDED_REPORTS = ("embedded", "consistency")
VOLATILE_PATHS = re.compile(r"(^|\.)(\w+_at|times|environment|\w*seconds|\w*latency\w*|id|judges\.\d+\.order)(\.|$)")
"""Paths in a report that differ from run to run: times, versions, identifiers, and drift over the order of arrival."""


def make_configs() -> dict[str, Any]:
    """The configurations by the reports' names."""
    from auditor.cli.demo import build_demo_config
    from auditor.config import AuditConfig

    plain, other = (build_demo_config(seed) for seed in DEMO_SEEDS)
    consistency = {
        "name": "simulated-consistency",
        "survey": {"source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": ["divorce", "suicide"]},
        "judges": [],
        "models": [{"name": name, "model": f"simulated/{name}"} for name in ("knows-every-culture", "inconsistent")],
        "probes": {"semantic": {"limit": 12}, "logic": {"items": "topics", "samples": 3, "sampled_pairs": 5, "k": [3]}},
        "embedding": {"model": ENCODER},
        "seed": 7,
    }
    consistency["survey"]["topics"] += ["abortion", "euthanasia"]  # type: ignore[index]
    embedded = AuditConfig.model_validate(
        other.model_dump(mode="json", exclude_unset=True) | {"embedding": {"model": ENCODER}}
    )
    return {"demo": plain, "embedded": embedded, "consistency": AuditConfig.model_validate(consistency)}


def make_reports(folder: Path) -> None:
    """Run the three audits in a new database and write their reports to a folder."""
    from auditor.reports.output import render_report
    from auditor.run import run_audit

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name, config in make_configs().items():
            report = run_audit(config, storage=f"sqlite:///{work}/{name}.db").report()
            (folder / f"{name}.json").write_text(render_report(report, "json"), encoding="utf-8")


def iter_differences(before: Any, after: Any, tolerance: float, path: str = "") -> Iterator[str]:
    """Yield a line for each value of a report that differs by more than the tolerance."""
    if VOLATILE_PATHS.search(path):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        if before.keys() != after.keys():
            yield f"{path}: keys {sorted(before.keys() ^ after.keys())} are in one report only"
        for key in before.keys() & after.keys():
            yield from iter_differences(before[key], after[key], tolerance, f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from iter_differences(old, new, tolerance, f"{path}.{i}")
    elif _is_number(before) and _is_number(after):
        if not math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{path}: {before!r} became {after!r}"
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def main() -> int:
    """Make the reports, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", type=Path, metavar="FOLDER", help="folder of the earlier reports")
    arguments = parser.parse_args()
    make_reports(arguments.folder)
    differences = []
    for path in sorted(arguments.compare.glob("*.json")) if arguments.compare else ():
        before, after = (
            json.loads((folder / path.name).read_text("utf-8")) for folder in (path.parent, arguments.folder)
        )
        tolerance = EMBEDDING_TOLERANCE if path.stem in EMBEDDED_REPORTS else TOLERANCE
        differences += [f"{path.stem}: {line}" for line in iter_differences(before, after, tolerance)]
    print("\n".join(differences) or "no differences")
    return bool(differences)


if __name__ == "__main__":
    raise SystemExit(main())
