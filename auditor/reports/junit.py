"""Render the outcome of a check as JUnit XML, for continuous integration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from auditor.reports.data.gates.schema import CheckResult, Gate, GateStatus, ModelCheck
from auditor.text_safety import escape_invisible


def render_junit(check_result: CheckResult) -> str:
    """Render as JUnit XML: a test suite with a case per gate, and one with a case per model.

    Failed is a failure, undecided an error.
    """
    audit, gates, models = check_result.audit, check_result.gates, check_result.models
    verdicts = [*(gate.verdict for gate in gates), *(row.verdict for row in models)]
    suites = xml.Element("testsuites", {"name": "auditor check", **_count_verdicts(verdicts)})
    suite = _add_suite(suites, audit, [gate.verdict for gate in gates])
    for gate in gates:
        _add_test_case(suite, f"auditor.{audit}", f"{gate.name}[{gate.subject}]", gate.name, gate)
    suite = _add_suite(suites, f"{audit} models", [row.verdict for row in models])
    for row in models:
        _add_test_case(suite, f"auditor.{audit}.models", row.model, "model", row)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _add_suite(suites: xml.Element, name: str, verdicts: Sequence[GateStatus]) -> xml.Element:
    """Append a JUnit test suite."""
    return xml.SubElement(suites, "testsuite", {"name": escape_invisible(name), **_count_verdicts(verdicts)})


def _count_verdicts(verdicts: Sequence[GateStatus]) -> dict[str, str]:
    """The attributes of a suite that count its cases by verdict."""
    counts = Counter(verdicts)
    return {
        "tests": str(len(verdicts)),
        "failures": str(counts[GateStatus.FAILED]),
        "errors": str(counts[GateStatus.UNDECIDED]),
        "skipped": str(counts[GateStatus.SKIPPED]),
        "time": "0",
    }


def _add_test_case(suite: xml.Element, class_name: str, name: str, kind: str, row: Gate | ModelCheck) -> None:
    """Append a JUnit test case for a gate or a model; one that did not pass gets a child element with its message."""
    names = {"classname": escape_invisible(class_name), "name": escape_invisible(name), "time": "0"}
    test_case, message = xml.SubElement(suite, "testcase", names), escape_invisible(row.message)
    tag = {GateStatus.FAILED: "failure", GateStatus.UNDECIDED: "error", GateStatus.SKIPPED: "skipped"}.get(row.verdict)
    attributes = {"message": message, "type": kind} if tag else {}
    xml.SubElement(test_case, tag or "system-out", attributes).text = message
