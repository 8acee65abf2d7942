"""Render the outcome of a check as JUnit XML, for continuous integration."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as xml

from auditor.reports.data.gates.schema import CheckResult, Gate, GateStatus
from auditor.text_safety import escape_invisible


def render_junit(check_result: CheckResult) -> str:
    """Render as JUnit XML: one test suite with a case per gate; failed is a failure, undecided an error."""
    counts = Counter(gate.verdict for gate in check_result.gates)
    attributes = {"tests": str(len(check_result.gates)), "failures": str(counts[GateStatus.FAILED])}
    attributes |= {"errors": str(counts[GateStatus.UNDECIDED]), "skipped": str(counts[GateStatus.SKIPPED]), "time": "0"}
    suites = xml.Element("testsuites", {"name": "auditor check", **attributes})
    suite = xml.SubElement(suites, "testsuite", {"name": escape_invisible(check_result.audit), **attributes})
    for gate in check_result.gates:
        _add_test_case(suite, check_result.audit, gate)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _add_test_case(suite: xml.Element, audit_name: str, gate: Gate) -> None:
    """Append a JUnit test case for one gate; one that did not pass gets a child element with its message."""
    name, class_name = f"{gate.name}[{gate.subject}]", f"auditor.{audit_name}"
    names = {"classname": escape_invisible(class_name), "name": escape_invisible(name), "time": "0"}
    test_case, message = xml.SubElement(suite, "testcase", names), escape_invisible(gate.message)
    tag = {GateStatus.FAILED: "failure", GateStatus.UNDECIDED: "error", GateStatus.SKIPPED: "skipped"}.get(gate.verdict)
    attributes = {"message": message, "type": gate.name} if tag else {}
    xml.SubElement(test_case, tag or "system-out", attributes).text = message
