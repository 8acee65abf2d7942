"""The section on the panel: what judges say of each model, how consistent they are, their biases and copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from auditor.domain.decisions import aspect_questions
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.judges.accuracy import Evidence, JudgeDifference
from auditor.metrics.judges.copying import MIN_ERRORS
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.measurement_schema import PeerAgreementRow
from auditor.reports.data.panel.certificate import describe_accuracy
from auditor.reports.data.panel.schema import (
    BlindingCheckRow,
    CopyingReport,
    FaultDetectionRow,
    JudgePairRow,
    JudgeRow,
    ObedienceRow,
    PairVerdict,
    PanelReport,
    PeerAlignmentRow,
    PositionBiasRow,
    RestatementShiftRow,
    SelfReviewRow,
    VotingRuleRow,
)
from auditor.reports.data.report_model import p_column
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, Disclosure, List, Name, Paragraph, Section, Table
from auditor.reports.number_format import describe_estimate, format_share, pluralize
from auditor.reports.sections.judge_quality import suggest_labels
from auditor.reports.sections.phrasing import (
    MAX_LONG_TABLE_ROWS,
    build_interval_figure,
    compare_interval,
    make_columns,
    mark_code,
    sort_by_p_value,
    tabulate,
)

TITLES = {
    "padding": "Padded traces",
    "leniency": "Leniency",
    "verbosity_against_truth": "Longer traces, compared with the truth",
    "verbosity": "Longer traces",
    "own_family": "Own family",
    "order": "Later verdicts",
}
"""Titles of the differences, by field of `JudgeRow`."""
OPTIONAL_FIELDS = ("padding", "verbosity_against_truth")
"""Differences that need an experiment, or a known truth."""
EVIDENCE_TITLES: dict[Evidence, str] = {
    "experiment": "Experiment on the same text",
    "truth": "Compared with the known truth",
    "panel": "Compared with the median judge",
    "association": "Association, not a bias",
}
ADJUSTED_FOR_JUDGES = "P-values are adjusted for the judges (Holm)."


@dataclass(frozen=True, slots=True)
class _BiasRow:
    """One difference of one judge.

    Attributes:
        with_label_errors: the difference with an interval that allows for wrong truths; None where there is none.
    """

    judge: str
    kind: str
    evidence: str
    difference: JudgeDifference
    with_label_errors: Estimate | None


BIAS_COLUMNS = (
    Column("Judge", "name"),
    Column("Kind"),
    Column("Evidence"),
    Column("Difference", "estimate", style="signed", emphasis=True),
    Column("With up to 10% wrong truths", "estimate", "with_label_errors", style="signed", is_optional=True),
    p_column(path="difference.adjusted_p_value"),
)


def build_padding_table(judges: Sequence[JudgeRow]) -> Table:
    """Build the table of the experiment that pads traces; without rows where no trace was padded."""
    caption = (
        "Share of VALID on padded traces minus that on the same traces as written; 0 means no bias. The padding has "
        "no content, so a difference is caused by the length. P-values are adjusted for all biases of the report "
        "(Holm). n counts traces."
    )
    padded = [row for row in judges if row.padding.value is not None]
    return tabulate("padding", "Padded traces", caption, padded, JudgeRow)


def build_bias_table(judges: Sequence[JudgeRow]) -> Table:
    """Build the table of all differences, by kind and judge; those that no judge can have are left out."""
    rows = sort_by_p_value(_build_rows(judges), lambda row: row.difference)
    caption = (
        "Differences in the share of VALID verdicts; 0 means none. Associations do not show a bias, since traces "
        "differ in other ways too."
    )
    title = "Biases and associations of each judge"
    return tabulate("judge-biases", title, caption, rows, BIAS_COLUMNS, max_rows=MAX_LONG_TABLE_ROWS)


def _build_rows(judges: Sequence[JudgeRow]) -> Iterator[_BiasRow]:
    """Yield the rows, without kinds of differences that no judge has a value of."""
    for field, title in TITLES.items():
        differences: list[tuple[str, JudgeDifference]] = [(row.judge, getattr(row, field)) for row in judges]
        if field in OPTIONAL_FIELDS and all(difference.value is None for _, difference in differences):
            continue
        for judge, difference in differences:
            low, high = difference.label_error_ci_low, difference.label_error_ci_high
            yield _BiasRow(
                judge,
                title,
                EVIDENCE_TITLES[difference.evidence],
                difference,
                None if low is None else replace(difference, ci_low=low, ci_high=high),
            )


MAX_LISTED_PAIRS = 45
"""Pairs in the table: all of ten judges. The JSON report has all pairs."""
FINDING_TITLES: dict[PairVerdict, str] = {
    "copies": "copies",
    "errors more alike": "errors more alike",
    "cannot be told from verdicts": "verdicts alone cannot show it",
    "independent as far as shown": "no dependence shown",
}
"""Findings as shown, the strongest first."""


def build_copying_tables(copying: CopyingReport) -> Iterator[Table]:
    """Build the table of pairs of judges, and the effective number of judges; without rows for a single judge."""
    pairs = sorted(copying.pairs, key=_sort_key)[:MAX_LISTED_PAIRS]
    n_left_out = len(copying.pairs) - len(pairs)
    caption = (
        "Share of equal verdicts, and how much more the errors of two judges are correlated than those of other pairs "
        "on labelled traces. With a 95% CI above 0 they are more alike, by copying or by shared training; these CIs "
        "hold for all pairs jointly."
        + (f" Only in the JSON report: {pluralize(n_left_out, 'further pair')}." if n_left_out else "")
    )
    derived = {"verdict": lambda pair: FINDING_TITLES[pair.verdict], "metadata": describe_metadata}
    yield tabulate(
        "judge-pairs", "Dependence between judges", caption, pairs, JudgePairRow, derived, max_rows=MAX_LONG_TABLE_ROWS
    )
    caption = (
        "The effective number of judges says how many judges with independent errors would be worth as much as the "
        f"equal votes of this panel. Only judges with at least {MIN_ERRORS} errors and {MIN_ERRORS} right verdicts on "
        "labelled traces are included."
    )
    columns = [Column("Judges with enough errors", "number", "judges"), Column("Effective number", "estimate")]
    rows = [copying] if copying.pairs else []
    yield tabulate(
        "effective-judges",
        "Effective number of judges",
        caption,
        rows,
        columns,
        {
            "judges": lambda row: len(row.effective_of) if row.label_source else None,
            "effective_number": lambda row: row.effective_judges,
        },
    )


def describe_metadata(pair: JudgePairRow) -> str:
    """Describe what the configuration says of a pair: whether model, family and prompt are the same."""
    if pair.same_model is None:
        return "not known"
    names = ("model", "family", "prompt")
    shared = [
        name
        for name, is_same in zip(names, (pair.same_model, pair.same_family, pair.same_prompt), strict=True)
        if is_same
    ]
    return f"same {' and '.join([', '.join(shared[:-1]), shared[-1]] if shared[1:] else shared)}" if shared else "-"


def _sort_key(pair: JudgePairRow) -> tuple[int, float]:
    """Sort key: the strongest finding first, then the largest excess or agreement."""
    size = pair.agreement.value if pair.excess.value is None else pair.excess.value
    return list(FINDING_TITLES).index(pair.verdict), -(size or 0.0)


def build_panel_section(report: Report) -> Section | None:
    """Build the section; None without judges."""
    panel = report.panel
    if not panel.judges:
        return None
    masked = "its author, country or topic" if report.task is None else "its author or the correct answer"
    shown = "" if report.task is None else " They saw the question."
    lead = (
        f"Judges reviewed each trace without knowing {masked}.{shown} A share of VALID verdicts "
        "below 70% counts as a weakness of the model."
    )
    suggestion = suggest_labels(report)
    accuracy = list(describe_accuracy(report.judge_quality))
    certificate = List([mark_code(sentence) for sentence in panel.certificate if sentence not in accuracy])
    blocks: list[Block] = [
        *(Paragraph(sentence, "finding") for sentence in accuracy),
        Paragraph(_summarize_panel(report), "finding"),
        Paragraph(lead, "note"),
        *_build_peer_agreement(report),
        Section(
            "panel-certificate",
            "What the panel’s verdicts can be used for",
            [certificate, *([suggestion] if suggestion else [])],
        ),
        Section(
            "panel-judges",
            "The judges",
            [Disclosure(table.label, [table]) for table in build_panel_tables(panel)],
        ),
    ]
    return Section("panel", "Is the panel of judges reliable?", blocks, "Panel")


def _summarize_panel(report: Report) -> str:
    """The range of peer agreement, and whether the judges agree beyond chance, by the figure of the certificate."""
    alpha = report.panel.krippendorff_alpha
    status = compare_interval(alpha)
    agreement = {
        "positive": "The judges agree with each other beyond chance",
        "negative": "The judges agree with each other less than by chance",
        "unclear": "The agreement of the judges is not statistically distinguishable from chance",
    }.get(status, "It is not known whether the judges agree beyond chance")
    shares = sorted(
        (row.agreement.value, row.model) for row in report.peer_agreement if row.agreement.value is not None
    )
    text = f"{agreement} ({describe_estimate('Krippendorff’s alpha', alpha)})."
    if not shares:
        return text
    (low, low_model), (high, high_model) = shares[0], shares[-1]
    if len(shares) == 1:
        return f"{text} They find {format_share(low)} of the traces of {low_model} VALID."
    if format_share(low) == format_share(high):
        return f"{text} The share of VALID is {format_share(low)} for every model."
    ends = f"{format_share(low)} ({low_model}) to {format_share(high)} ({high_model})"
    return f"{text} The share of VALID ranges from {ends}."


def list_aspects(report: Report) -> dict[str, str]:
    """Titles of the aspects that judges rate besides the verdict, by field of `PeerAgreementRow`."""
    questions = aspect_questions(for_task=report.task is not None)
    return {name: question.title for name, question in questions.items()}


def _build_peer_agreement(report: Report) -> list[Block]:
    """Plot and list the share of VALID verdicts on each model's traces; empty without a model that was judged."""
    rows = report.peer_agreement
    if not rows:
        return []
    title, table_id = "Share of VALID", "peer-agreement"
    shares = [(row.model, row.agreement) for row in rows]
    plot_caption = "Share of VALID verdicts on each model, with 95% CI. Higher is better."
    caption = "Share of VALID verdicts, and of verdicts that find each aspect met. n counts verdicts."
    aspects = make_columns("estimate", list_aspects(report))
    return [
        build_interval_figure(
            "peer-agreement-plot", title, shares, SHARE_AXIS, table_id=table_id, caption=plot_caption
        ),
        tabulate(table_id, title, caption, rows, PeerAgreementRow, more_columns=aspects),
    ]


def build_panel_tables(panel: PanelReport) -> list[Table]:
    """Build the tables on the judges that have rows, in reading order."""
    tables = [
        *_build_judge_tables(panel),
        *build_copying_tables(panel.copying),
        *_build_bias_and_voting_tables(panel),
        *_build_judge_test_tables(panel),
    ]
    return [table for table in tables if table.rows]


def _build_judge_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the judges' verdicts and their agreement."""
    caption = "Verdicts, justifications that were too long and shortened, and mean stated confidence (0 to 1)."
    yield tabulate("judges", "Judges", caption, panel.judges, JudgeRow)
    caption = "Agreement beyond chance: 1 is complete agreement, 0 is chance. n counts traces."
    measures = [
        ("Fleiss’ kappa", panel.fleiss_kappa),
        ("Krippendorff’s alpha", panel.krippendorff_alpha),
        ("Gwet’s AC1", panel.gwet_ac1),
        ("Share of VALID", panel.prevalence),
    ]
    columns = [Column("Measure", "name"), Column("Value", "estimate")]
    yield Table("panel-agreement", "Agreement of the panel", caption, columns, measures)
    caption = (
        "Share of traces on which the judge agrees with most others, and Krippendorff’s alpha of the others: if it is "
        "higher without the judge, the judge disagrees more with the others than they do with each other."
    )
    yield tabulate("judge-agreement", "Agreement of each judge", caption, panel.judges, JudgeRow)


def _build_bias_and_voting_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on biases, voting rules, and the relation of peer agreement to agreement with people."""
    yield build_bias_table(panel.judges)
    caption = (
        "Traces with a verdict that each voting rule finds VALID or INVALID, or leaves open; share of opposite "
        "verdicts where the rule and the plain majority reach one."
    )
    differs = {"differs": lambda row: None if row.rule == "majority" else row.differs}
    yield tabulate("voting-rules", "Voting rules", caption, panel.votes, VotingRuleRow, differs)
    caption = (
        "Correlation, over models, between the share of VALID and agreement with people (r). Positive: judges prefer "
        "models that agree with people."
    )
    title = "Share of VALID and agreement with people"
    yield tabulate("peer-alignment", title, caption, panel.peer_alignment, PeerAlignmentRow)


def _build_judge_test_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the tests of judges: blinding, restatement, faults, instructions, position, own traces."""
    caption = "Share of correct guesses of attributes hidden from the judges. Above chance, blinding is incomplete."
    yield tabulate("blinding", "Blinding", caption, panel.guesses, BlindingCheckRow)
    caption = "Share of VALID on traces as written and restated in neutral words, and share of verdicts that changed."
    yield tabulate("restatement", "Restated traces", caption, panel.rewriting, RestatementShiftRow)
    yield build_fault_table(panel.faults, MAX_LONG_TABLE_ROWS)
    yield build_obedience_table(panel.obedience)
    yield build_position_table(panel.positions)
    yield build_self_review_table(panel.own_traces)


def build_fault_table(rows: Sequence[FaultDetectionRow], max_rows: int | None = None) -> Table:
    """Build the table of how often judges object to traces with an injected fault, and without it, worst first."""
    ranked = sorted(rows, key=lambda row: 2.0 if row.difference.value is None else row.difference.value)
    caption = (
        "Share of INVALID verdicts on traces with an injected fault (detected) and on the same traces without it "
        "(false alarms). A difference of 0 means that the judge does not detect the fault."
    )
    derived = {"fault": lambda row: Name(row.fault)}
    title = "Injected faults"
    return tabulate("injected-faults", title, caption, ranked, FaultDetectionRow, derived, max_rows=max_rows)


def build_obedience_table(rows: Sequence[ObedienceRow]) -> Table:
    """Build the table of how often judges obey instructions in traces."""
    caption = (
        "Share of answers as a planted instruction demands, of traces that the judge judged, or compared, otherwise "
        "without it. A judge whose answers vary by chance has a rate above 0 too."
    )
    return tabulate("obedience", "Planted instructions", caption, rows, ObedienceRow)


def build_position_table(rows: Sequence[PositionBiasRow]) -> Table:
    """Build the table of judges' preference for the side that is shown first."""
    caption = (
        "Two traces are shown side by side, in both orders: share of answers for the trace shown first (0.5 is no "
        "preference), and share of pairs with the same preference in both orders."
    )
    return tabulate("position-bias", "Position bias", caption, rows, PositionBiasRow)


def build_self_review_table(rows: Sequence[SelfReviewRow]) -> Table:
    """Build the table of judges' verdicts on their own traces."""
    caption = (
        "Judges’ verdicts on their own traces, which are not votes. Self-preference is leniency towards own traces "
        "minus that towards others, relative to the other judges; it is an association, not a bias."
    )
    return tabulate("own-traces", "Judges on their own traces", caption, rows, SelfReviewRow)
