"""A check for continuous integration: JUnit XML and Markdown."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from auditor.reports.gates.gate_check import CheckResult, Gate, Verdict
from auditor.reports.pages.markdown_format import escape
from auditor.reports.pages.report_page import markdown_table
from auditor.text_safety import visible

SIGNS = {
    Verdict.PASSED: "✓ passed",
    Verdict.FAILED: "✗ failed",
    Verdict.UNDECIDED: "? undecided",
    Verdict.SKIPPED: "– skipped",
}


def junit(result: CheckResult) -> str:
    """One test suite, a case for each gate: a failed one is a failure, one without a verdict an error."""
    counts = {v: sum(g.verdict is v for g in result.gates) for v in Verdict}
    totals = {
        "failures": counts[Verdict.FAILED],
        "errors": counts[Verdict.UNDECIDED],
        "skipped": counts[Verdict.SKIPPED],
    }
    told = {"tests": str(len(result.gates)), **{k: str(v) for k, v in totals.items()}, "time": "0"}
    suites = xml.Element("testsuites", {"name": "auditor check", **told})
    suite = xml.SubElement(suites, "testsuite", {"name": visible(result.audit), **told})
    for gate in result.gates:
        _case(suite, result.audit, gate)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _case(suite: xml.Element, audit: str, gate: Gate) -> None:
    name = f"{gate.name}[{gate.subject}]"
    case = xml.SubElement(
        suite, "testcase", {"classname": visible(f"auditor.{audit}"), "name": visible(name), "time": "0"}
    )
    tag = {Verdict.FAILED: "failure", Verdict.UNDECIDED: "error", Verdict.SKIPPED: "skipped"}.get(gate.verdict)
    if tag is None:
        xml.SubElement(case, "system-out").text = visible(gate.message)
    else:
        xml.SubElement(case, tag, {"message": visible(gate.message), "type": gate.name}).text = visible(gate.message)


def check_markdown(result: CheckResult) -> str:
    """A heading with the verdict and a table of the gates, such as for a pull request."""
    head = f"### auditor check: {escape(result.audit)} {SIGNS[result.verdict]}"
    rows = [[SIGNS[g.verdict], g.name, g.subject, g.message] for g in result.gates]
    return f"{head}\n\n{markdown_table(['', 'Gate', 'Of', 'Found'], rows)}\n"
