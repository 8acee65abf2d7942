"""Tables on a panel of judges: verdicts, agreement, biases, voting rules, and tests of the judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.data.panel.schema import FaultDetectionRow, PanelReport, PositionBiasRow, SelfReviewRow
from auditor.reports.document import Column, Name, Table

JUDGE_COLUMN = Column("Judge", "name")


def build_panel_tables(panel: PanelReport) -> list[Table]:
    """Build the tables on the judges that have rows, in reading order."""
    tables = [*_build_judge_tables(panel), *_build_voting_tables(panel), *_build_judge_test_tables(panel)]
    return [table for table in tables if table.rows]


def _build_judge_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on judges, their agreement and their biases."""
    judges = [(judge, Name(judge.judge)) for judge in panel.judges]
    yield Table(
        "judges",
        "Judges",
        "Each judge: requested and usable verdicts, justifications that were cut because of their length, the share of "
        "VALID verdicts, and its mean stated confidence (0 to 1).",
        [
            JUDGE_COLUMN,
            Column("Family"),
            *_count_columns("Requested", "Usable", "Shortened"),
            *estimate_columns("Share of VALID", "Confidence"),
        ],
        [
            [name, judge.family, judge.assigned, judge.given, judge.shortened, judge.valid, judge.confidence]
            for judge, name in judges
        ],
    )
    yield _build_agreement_table(panel)
    yield Table(
        "judge-agreement",
        "Agreement of each judge",
        "Each judge compared with the others: how often it agrees with most of them, and the panel’s alpha without it. "
        "A higher alpha than the panel’s suggests an outlier.",
        [JUDGE_COLUMN, *estimate_columns("Agrees with the majority", "Alpha without it")],
        [[name, judge.agreement, judge.alpha_without] for judge, name in judges],
    )
    yield Table(
        "judge-biases",
        "Biases of each judge",
        "Biases of each judge, as differences in the share of VALID; 0 is no bias. Leniency: compared with the other "
        "judges on the same traces. Verbosity: longer compared with shorter traces. Own family: models of its family "
        "compared with others. Order: later compared with earlier verdicts.",
        [JUDGE_COLUMN, *estimate_columns("Leniency", "Verbosity", "Own family", "Order", is_signed=True)],
        [[name, judge.leniency, judge.verbosity, judge.own_family, judge.order] for judge, name in judges],
    )


def _build_agreement_table(panel: PanelReport) -> Table:
    """Build the table of the panel's agreement beyond chance."""
    return Table(
        "panel-agreement",
        "Agreement of the panel",
        "Agreement of judges beyond chance: 1 is complete agreement, 0 is chance. Kappa and alpha are low if nearly "
        "all verdicts are the same; AC1 is not. n counts traces.",
        [Column("Measure", "name"), *estimate_columns("Value")],
        [
            ["Fleiss’ kappa", panel.fleiss_kappa],
            ["Krippendorff’s alpha", panel.krippendorff_alpha],
            ["Gwet’s AC1", panel.gwet_ac1],
            ["Share of VALID", panel.prevalence],
        ],
    )


def _build_voting_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on voting rules, and on the relation of peer agreement to agreement with people."""
    yield Table(
        "voting-rules",
        "Voting rules",
        "Number of traces that each voting rule finds VALID or INVALID or leaves open, and how often it contradicts "
        "the majority where both decide.",
        [
            Column("Rule", "name"),
            *_count_columns("VALID", "INVALID", "Open"),
            *estimate_columns("Contradicts the majority"),
        ],
        [[rule.rule, rule.valid, rule.invalid, rule.open, rule.differs] for rule in panel.votes],
    )
    yield Table(
        "peer-alignment",
        "Peer agreement and agreement with people",
        "Whether models that peers find VALID agree more with people: correlation of peer agreement with r (−1 to +1). "
        "n counts models.",
        [Column("Method", "name"), *estimate_columns("Correlation")],
        [[row.method, row.r] for row in panel.peer_alignment],
    )


def _build_judge_test_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the tests of judges: blinding, restatement, injected faults, position bias, own traces."""
    yield Table(
        "blinding",
        "Blinding",
        "Share of correct guesses of what is hidden from the judges. Blinding is incomplete where it is above chance.",
        [JUDGE_COLUMN, Column("Guessed attribute"), *estimate_columns("Correct guesses"), Column("Chance", "number")],
        [[Name(row.judge), row.what, row.hits, row.chance] for row in panel.guesses],
    )
    yield Table(
        "restatement",
        "Restated traces",
        "Share of VALID on traces as written and on the same traces restated in neutral words, the difference, and the "
        "share of verdicts that changed.",
        [
            JUDGE_COLUMN,
            *estimate_columns("VALID as written", "VALID restated"),
            *estimate_columns("Difference", is_signed=True),
            *estimate_columns("Verdicts changed"),
        ],
        [[Name(row.judge), row.valid, row.restated, row.shift, row.changed] for row in panel.rewriting],
    )
    yield build_fault_table(panel.faults)
    yield build_position_table(panel.positions)
    yield build_self_review_table(panel.own_traces)


def build_fault_table(rows: Sequence[FaultDetectionRow]) -> Table:
    """Build the table of how often judges object to traces with an injected fault, and without it."""
    return Table(
        "injected-faults",
        "Injected faults",
        "Share of traces that each judge finds INVALID: with an injected fault (detected), and the same traces without "
        "it (false alarms). A difference of 0 means that the judge does not detect the fault. n counts traces.",
        [
            JUDGE_COLUMN,
            Column("Fault"),
            *estimate_columns("Detected", "False alarms"),
            Column("Difference", "estimate", style="signed", emphasis=True),
        ],
        [[Name(row.judge), Name(row.fault), row.detected, row.false_alarms, row.difference] for row in rows],
    )


def build_position_table(rows: Sequence[PositionBiasRow]) -> Table:
    """Build the table of judges' preference for the side that is shown first."""
    return Table(
        "position-bias",
        "Position bias",
        "Two traces side by side, in both orders. Share of answers for the trace shown first (0.5 is no preference), "
        "and share of pairs with the same preference in both orders.",
        [JUDGE_COLUMN, *estimate_columns("Prefers the first", "Same in both orders")],
        [[Name(row.judge), row.first, row.stable] for row in rows],
    )


def build_self_review_table(rows: Sequence[SelfReviewRow]) -> Table:
    """Build the table of judges' verdicts on their own traces."""
    return Table(
        "own-traces",
        "Judges on their own traces",
        "Judges’ verdicts on their own traces, which count in no vote. Self-preference: leniency towards itself minus "
        "that towards others, compared with the other judges; 0 is none. n counts traces.",
        [JUDGE_COLUMN, *estimate_columns("VALID for own traces"), *estimate_columns("Self-preference", is_signed=True)],
        [[Name(row.judge), row.valid, row.preference] for row in rows],
    )


def estimate_columns(*titles: str, is_signed: bool = False, show_n: bool = True) -> list[Column]:
    """Columns of estimates with these titles."""
    return [Column(title, "estimate", style="signed" if is_signed else "decimal", show_n=show_n) for title in titles]


def _count_columns(*titles: str) -> list[Column]:
    """Columns of counts with these titles."""
    return [Column(title, "number") for title in titles]
