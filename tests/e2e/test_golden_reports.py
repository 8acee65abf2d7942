"""Reports of three simulated audits do not change unnoticed: all figures equal those of the stored reports.

`golden/reports/` holds the JSON reports without what differs from run to run. Figures of embeddings may differ by 1e-5,
all others by 1e-12. A key that a stored report lacks is not compared, so that a new figure needs no renewal. To store
the reports again after a deliberate change:

    AUDITOR_GOLDEN=write pytest tests/e2e/test_golden_reports.py

and read the difference that `git diff` shows.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.demo import build_demo_config
from auditor.config import AuditConfig
from auditor.reports.output import render_report
from auditor.run import run_audit
from tests.support.document_figures import assert_estimates_are_shown
from tests.support.fixed_address import word_encoder

FOLDER = Path(__file__).with_name("golden") / "reports"
TOLERANCE, EMBEDDING_TOLERANCE = 1e-12, 1e-5
VOLATILE_PATHS = re.compile(
    r"(^|\.)(\w+_at|times|environment|auditor|\w*seconds|\w*latency\w*|id|config_hash|semantic\.worst"
    r"|panel\.judges\.\d+\.(order|(padding|leniency|verbosity\w*|own_family)\.adjusted_p_value))$"
)
"""Paths in a report that differ from run to run or between versions: times, versions, identifiers, drift over the order
of arrival with what is adjusted for it, and the order of questions whose scores are equal but for rounding."""
MIN_FIGURES = {"demo": 3000, "embedded": 1000, "consistency": 400}
"""Least number of numbers in a stored report, so that none is compared without its content."""

DEMO_SEEDS = {"demo": 7, "embedded": 8}
DEMO_COUNTRIES = {
    "demo": ["Germany", "Canada", "Nigeria", "Japan", "Turkey", "Brazil"],
    "embedded": ["Germany", "Nigeria", "Japan"],
}
DEMO_TOPICS = ["divorce", "abortion", "suicide", "euthanasia", "homosexuality"]
CONSISTENCY = {
    "name": "simulated-consistency",
    "survey": {
        "source": "wvs7-sample",
        "countries": ["Germany", "Nigeria"],
        "topics": ["divorce", "suicide", "abortion", "euthanasia", "homosexuality", "prostitution", "death penalty"],
    },
    "judges": [],
    "models": [{"name": "inconsistent", "model": "simulated/inconsistent"}],
    "probes": {"semantic": {"limit": 12}, "logic": {"items": "topics", "samples": 3, "sampled_pairs": 5, "k": [3]}},
    "embedding": {"model": "words"},
    "seed": 7,
}


def make_config(name: str) -> AuditConfig:
    if name == "consistency":
        return AuditConfig.model_validate(CONSISTENCY)
    demo = build_demo_config(DEMO_SEEDS[name]).model_dump(mode="json", exclude_unset=True)
    demo["survey"] |= {"countries": DEMO_COUNTRIES[name], "topics": DEMO_TOPICS}
    return AuditConfig.model_validate(demo | ({"embedding": {"model": "words"}} if name == "embedded" else {}))


def without_volatile(value: Any, path: str = "") -> Any:
    """A value of a report without the keys of `VOLATILE_PATHS`."""
    if isinstance(value, dict):
        paths = {key: f"{path}.{key}" for key in value}
        return {key: without_volatile(value[key], p) for key, p in paths.items() if not VOLATILE_PATHS.search(p)}
    return (
        [without_volatile(entry, f"{path}.{i}") for i, entry in enumerate(value)] if isinstance(value, list) else value
    )


def list_figures(report: dict[str, Any]) -> dict[str, Any]:
    """A report without the keys of `VOLATILE_PATHS`; model versions are sorted by name, not by their first answer."""
    figures: dict[str, Any] = without_volatile(report)
    return figures | {"served": sorted(figures["served"], key=lambda row: [str(value) for value in row.values()])}


def iter_differences(before: Any, after: Any, tolerance: float, path: str = "report") -> Iterator[str]:
    """Yield a line for each stored value of a report that is missing or differs by more than the tolerance."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from iter_differences(value, after[key], tolerance, f"{path}.{key}")
            else:
                yield f"{path}.{key} is missing"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from iter_differences(old, new, tolerance, f"{path}.{i}")
    elif is_number(before) and is_number(after):
        if not math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{path}: {before!r} became {after!r}"
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def count_numbers(value: Any) -> int:
    if isinstance(value, (dict, list)):
        return sum(map(count_numbers, value.values() if isinstance(value, dict) else value))
    return int(is_number(value))


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write a report with one line for each entry of its lists, so that `git diff` is readable."""
    lines = []
    for key, value in report.items():
        entries = [json.dumps(entry, separators=(",", ":")) for entry in value] if isinstance(value, list) else []
        text = "[\n" + ",\n".join(entries) + "\n]" if entries else json.dumps(value, separators=(",", ":"))
        lines.append(f"{json.dumps(key)}:{text}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@pytest.mark.parametrize("name", MIN_FIGURES)
def test_figures_equal_those_of_the_stored_report(name: str, tmp_path: Path) -> None:
    with word_encoder():
        report = run_audit(make_config(name), storage=f"sqlite:///{tmp_path / 'audits.db'}").report()
    measured = list_figures(json.loads(render_report(report, "json")))
    path = FOLDER / f"{name}.json"
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        write_report(path, measured)
    stored = list_figures(json.loads(path.read_text(encoding="utf-8")))
    assert count_numbers(stored) > MIN_FIGURES[name]
    tolerance = TOLERANCE if name == "demo" else EMBEDDING_TOLERANCE
    assert not list(iter_differences(stored, measured, tolerance))
    assert_estimates_are_shown(report, name)


def test_a_changed_figure_and_a_missing_one_are_differences() -> None:
    stored = {"rows": [{"r": 0.5, "n": 3, "name": "a"}], "total": 1}
    assert (
        list(iter_differences(stored, {"rows": [{"r": 0.5 + 1e-13, "n": 3, "name": "a"}], "total": 1, "new": 2}, 1e-12))
        == []
    )
    changed = {"rows": [{"r": 0.5 + 1e-11, "name": "b"}]}
    assert list(iter_differences(stored, changed, 1e-12)) == [
        "report.rows.0.r: 0.5 became 0.50000000001", "report.rows.0.n is missing",
        "report.rows.0.name: 'a' became 'b'", "report.total is missing",
    ]  # fmt: skip
