"""Render the outcome of a check as JUnit XML, for continuous integration."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from auditor.reports.data.gates.gate_check import CheckResult, Gate, GateStatus
from auditor.text_safety import escape_invisible


def render_junit(check_result: CheckResult) -> str:
    """Render as JUnit XML: one test suite with a case per gate; failed is a failure, undecided an error."""
    status_counts = {status: sum(gate.verdict is status for gate in check_result.gates) for status in GateStatus}
    totals = {
        "failures": status_counts[GateStatus.FAILED],
        "errors": status_counts[GateStatus.UNDECIDED],
        "skipped": status_counts[GateStatus.SKIPPED],
    }
    attributes = {
        "tests": str(len(check_result.gates)),
        **{name: str(total) for name, total in totals.items()},
        "time": "0",
    }
    suites = xml.Element("testsuites", {"name": "auditor check", **attributes})
    suite = xml.SubElement(suites, "testsuite", {"name": escape_invisible(check_result.audit), **attributes})
    for gate in check_result.gates:
        _add_test_case(suite, check_result.audit, gate)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _add_test_case(suite: xml.Element, audit_name: str, gate: Gate) -> None:
    """Append a JUnit test case for one gate; one that did not pass gets a child element with its message."""
    name = f"{gate.name}[{gate.subject}]"
    test_case = xml.SubElement(
        suite,
        "testcase",
        {"classname": escape_invisible(f"auditor.{audit_name}"), "name": escape_invisible(name), "time": "0"},
    )
    tag = {GateStatus.FAILED: "failure", GateStatus.UNDECIDED: "error", GateStatus.SKIPPED: "skipped"}.get(gate.verdict)
    if tag is None:
        xml.SubElement(test_case, "system-out").text = escape_invisible(gate.message)
    else:
        xml.SubElement(
            test_case, tag, {"message": escape_invisible(gate.message), "type": gate.name}
        ).text = escape_invisible(gate.message)
