"""Tests in the JSON of reports, comparisons and experiments: Holm's method gives the adjusted p-values of a family."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from pydantic_core import to_jsonable_python

from auditor.experiments.stored_audit import Experiment, ExperimentResult
from auditor.metrics.intervals.multiple_testing import holm


def iterate_tests(node: Any) -> Iterator[dict[str, Any]]:
    """All tests in JSON: the objects with an adjusted p-value."""
    if isinstance(node, dict) and "adjusted_p_value" in node:
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from iterate_tests(child)


def check_families(document: Any, not_checked: Collection[str] = ()) -> list[str]:
    """Check that the adjusted p-values of each family follow from its raw ones; return the names of the families."""
    families: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for test in iterate_tests(document):
        families[test["test_family"]].append(test)
    assert all(test["adjusted_p_value"] is None for test in families.pop(None, []))
    names = [name for name in families if name is not None and name not in not_checked]
    for name in names:
        tested = [test for test in families[name] if test["p_value"] is not None]
        expected = holm([test["p_value"] for test in tested])
        assert [test["adjusted_p_value"] for test in tested] == pytest.approx(expected, abs=1e-12), name
        assert all(test["adjusted_p_value"] is None for test in families[name] if test["p_value"] is None)
    return names


def run_checked(experiment: Experiment, *arguments: Any, **options: Any) -> ExperimentResult:
    """Run an experiment, and check the families of the tests in what `--json` prints."""
    result = experiment(*arguments, **options)
    check_families(to_jsonable_python(result.data))
    return result
