"""A check for continuous integration: JUnit XML and Markdown."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from auditor.reports.gates.gate_check import CheckResult, Gate, GateStatus
from auditor.reports.pages.markdown_format import escape_markdown
from auditor.reports.pages.report_page import markdown_table
from auditor.text_safety import escape_invisible

STATUS_SYMBOLS = {
    GateStatus.PASSED: "✓ passed",
    GateStatus.FAILED: "✗ failed",
    GateStatus.UNDECIDED: "? undecided",
    GateStatus.SKIPPED: "– skipped",
}


def render_junit(check_result: CheckResult) -> str:
    """One test suite, a case for each gate: a failed one is a failure, one without a verdict an error."""
    counts = {v: sum(g.verdict is v for g in check_result.gates) for v in GateStatus}
    totals = {
        "failures": counts[GateStatus.FAILED],
        "errors": counts[GateStatus.UNDECIDED],
        "skipped": counts[GateStatus.SKIPPED],
    }
    told = {"tests": str(len(check_result.gates)), **{k: str(v) for k, v in totals.items()}, "time": "0"}
    suites = xml.Element("testsuites", {"name": "auditor check", **told})
    suite = xml.SubElement(suites, "testsuite", {"name": escape_invisible(check_result.audit), **told})
    for gate in check_result.gates:
        _add_test_case(suite, check_result.audit, gate)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _add_test_case(suite: xml.Element, audit_name: str, gate: Gate) -> None:
    name = f"{gate.name}[{gate.subject}]"
    case = xml.SubElement(
        suite,
        "testcase",
        {"classname": escape_invisible(f"auditor.{audit_name}"), "name": escape_invisible(name), "time": "0"},
    )
    tag = {GateStatus.FAILED: "failure", GateStatus.UNDECIDED: "error", GateStatus.SKIPPED: "skipped"}.get(gate.verdict)
    if tag is None:
        xml.SubElement(case, "system-out").text = escape_invisible(gate.message)
    else:
        xml.SubElement(
            case, tag, {"message": escape_invisible(gate.message), "type": gate.name}
        ).text = escape_invisible(gate.message)


def render_check_markdown(check_result: CheckResult) -> str:
    """A heading with the verdict and a table of the gates, such as for a pull request."""
    head = f"### auditor check: {escape_markdown(check_result.audit)} {STATUS_SYMBOLS[check_result.verdict]}"
    rows = [[STATUS_SYMBOLS[g.verdict], g.name, g.subject, g.message] for g in check_result.gates]
    return f"{head}\n\n{markdown_table(['', 'Gate', 'Of', 'Found'], rows)}\n"
