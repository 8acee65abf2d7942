"""Findings of papers, tested on the audits of a replication: which hold, which do not, and which cannot be compared.

A finding is about all models of an audit, and about all audits that it names, so every one of their tests must support
it: its p-value is the largest of them (Berger 1982), and is adjusted for the findings of the paper (Holm 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan

from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Tested
from auditor.metrics.intervals.multiple_testing import intersection_union
from auditor.probes.logic.figures.schema import LogicReport
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.figures import BERTSCORES, LEXICAL_METRICS
from auditor.replications.presets import Paper, PresetFinding
from auditor.replications.survey_figures import DIRECT
from auditor.reports.data.adjusted_tests import adjust_claims
from auditor.reports.data.replication import Finding, FindingRow, FindingTest
from auditor.reports.data.report_model import ClaimTest

NO_AUDIT = "no audit of yours has this figure"
TEXT_NAMES = {"answer": "answers", "rot": "rules of thumb"}
OTHER_MEASURES = ("bleu", "rouge_l", *LEXICAL_METRICS, *BERTSCORES)
"""Measures of consistency that papers compare theirs with."""
FindingReader = Callable[[MeasuredAudit], list[FindingTest]]


def check_findings(paper: Paper, measured: Sequence[MeasuredAudit]) -> list[FindingRow]:
    """Test each finding of a paper on the audits that have its figures, in the order of the preset."""
    return judge_findings(paper.findings, [_collect_tests(finding, measured) for finding in paper.findings])


def judge_findings(findings: Sequence[PresetFinding], tests: Sequence[Sequence[FindingTest]]) -> list[FindingRow]:
    """The result of each finding of a paper by its tests."""
    p_values = [
        intersection_union([_p_value(finding, test.figure) for test in of_finding])
        for finding, of_finding in zip(findings, tests, strict=True)
    ]
    claims = adjust_claims(p_values, "findings of the paper")
    return [_build_row(*row) for row in zip(findings, tests, claims, strict=True)]


def _collect_tests(finding: PresetFinding, measured: Sequence[MeasuredAudit]) -> list[FindingTest]:
    """The figures of a finding in each audit that it is about."""
    return [
        test.model_copy(update={"data": audit.name})
        for audit in measured
        if audit.stored_config is not None and (not finding.audits or audit.name in finding.audits)
        for test in FINDING_FIGURES[finding.figure](audit)
    ]


def _p_value(finding: PresetFinding, figure: Tested) -> float:
    """Two-sided p-value of one figure; 1 if it has the opposite direction, nan without a test."""
    if figure.value is None or figure.p_value is None:
        return float("nan")
    return figure.p_value if (figure.value > 0) == (finding.direction == "positive") else 1.0


def _build_row(finding: PresetFinding, tests: Sequence[FindingTest], claim: ClaimTest) -> FindingRow:
    """The result of one finding, with its tests."""
    is_tested = claim.p_value is not None
    untested = [test for test in tests if isnan(_p_value(finding, test.figure))]
    reason = None if is_tested else (untested[0].figure.reason or NO_AUDIT) if untested else NO_AUDIT
    return FindingRow(
        **{name: getattr(finding, name) for name in Finding.model_fields},
        result="holds" if claim.is_significant else "does not hold" if is_tested else "cannot be compared",
        reason=reason,
        **dict(claim),
        supporting=sum(_p_value(finding, test.figure) < SIGNIFICANCE_LEVEL for test in tests),
        tests=list(tests),
    )


def _read_method_differences(audit: MeasuredAudit) -> list[FindingTest]:
    """r of answers minus r of log-probabilities, of each model."""
    return [FindingTest(model=row.model, figure=row.difference) for row in audit.report.methods]


def _read_region_gaps(audit: MeasuredAudit) -> list[FindingTest]:
    """The gap in MAE between two regions, of each model; the gap in r beside it, raw and corrected for range."""
    return [
        FindingTest(
            model=row.model,
            figure=row.mae_gap,
            pair=f"{row.second} minus {row.first}",
            r_gap=row.r_gap,
            corrected_r_gap=None if row.range_corrected is None else row.range_corrected.gap,
        )
        for row in audit.report.regions.gaps
        if row.method == DIRECT
    ]


def _read_consistency(audit: MeasuredAudit, figure: str) -> list[FindingTest]:
    """The correlation over models of self-consistency, or of the variance of samples, with r."""
    rows = [row.r for row in audit.report.consistency_alignment if (row.method, row.figure) == (DIRECT, figure)]
    return [FindingTest(figure=r) for r in rows]


def _read_peer_alignment(audit: MeasuredAudit) -> list[FindingTest]:
    """The correlation over models of the share of VALID verdicts with r."""
    return [FindingTest(figure=row.r) for row in audit.report.panel.peer_alignment if row.method == DIRECT]


def _read_people_advantages(audit: MeasuredAudit, *, over_answers: bool) -> list[FindingTest]:
    """r of the audit's score with people minus that of word overlap and of BERTScore on the same texts.

    Args:
        over_answers: minus that of the same measure on the answers instead, if the audit's score is of other texts.
    """
    people = audit.trials.get("people")
    rows = [
        row
        for row in (people.differences if people else ())
        if (
            row.metric == row.than_metric and row.text == "answer"
            if over_answers
            else row.metric in OTHER_MEASURES and row.text == row.than_text
        )
    ]
    return [
        FindingTest(figure=row.difference, pair=f"minus {row.metric} of the {TEXT_NAMES.get(row.text, row.text)}")
        for row in rows
    ]


def _read_rule_changes(audit: MeasuredAudit) -> list[FindingTest]:
    """Consistency with a rule to follow minus without one, of each model."""
    return [FindingTest(model=row.model, figure=row.change) for row in audit.trials.get("rules", [])]


def _read_links(audit: MeasuredAudit, *, x: str, y: str) -> list[FindingTest]:
    """Correlations of two figures of preferences over judges, or over wordings; means over sets, as in the paper."""
    logic = audit.report.find(LogicReport)
    return [
        FindingTest(figure=link.r, pair=f"over {link.over}")
        for link in (logic.links if logic else [])
        if link.x.startswith(x) and link.y == y and link.averaged == "instances"
    ]


FINDING_FIGURES: Mapping[str, FindingReader] = {
    "delta_r": _read_method_differences,
    "regions.gap": _read_region_gaps,
    "self_consistency.alignment": partial(_read_consistency, figure="cosine"),
    "variance.alignment": partial(_read_consistency, figure="variance"),
    "peer_agreement.alignment": _read_peer_alignment,
    "people.advantage": partial(_read_people_advantages, over_answers=False),
    "people.advantage_over_answers": partial(_read_people_advantages, over_answers=True),
    "rules.change": _read_rule_changes,
    "transitivity.self_agreement": partial(_read_links, x="transitivity", y="self-agreement"),
    "commutativity.people": partial(_read_links, x="commutativity", y="agreement with people"),
}
"""Readers of the tested figures of findings, by the names that presets use."""
