"""Tables on a panel of judges: verdicts, agreement, biases, voting rules, and tests of the judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.data.panel.schema import FaultDetectionRow, PanelReport, PositionBiasRow, SelfReviewRow
from auditor.reports.document import Column, Name, Table
from auditor.reports.sections.tables import make_columns, tabulate

JUDGE_COLUMN = Column("Judge", "name")


def build_panel_tables(panel: PanelReport) -> list[Table]:
    """Build the tables on the judges that have rows, in reading order."""
    tables = [*_build_judge_tables(panel), *_build_bias_and_voting_tables(panel), *_build_judge_test_tables(panel)]
    return [table for table in tables if table.rows]


def _build_judge_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the judges' verdicts and their agreement."""
    caption = (
        "Each judge: requested and usable verdicts, justifications that were cut because of their length, the share of "
        "VALID verdicts, and its mean stated confidence (0 to 1)."
    )
    columns = [
        *(JUDGE_COLUMN, Column("Family")),
        *make_columns("number", {"assigned": "Requested", "given": "Usable", "shortened": "Shortened"}),
        *make_columns("estimate", {"valid": "Share of VALID", "confidence": "Confidence"}),
    ]
    yield tabulate("judges", "Judges", caption, panel.judges, columns)
    caption = (
        "Agreement of judges beyond chance: 1 is complete agreement, 0 is chance. Kappa and alpha are low if nearly "
        "all verdicts are the same; AC1 is not. n counts traces."
    )
    measures = [
        ("Fleiss’ kappa", panel.fleiss_kappa),
        ("Krippendorff’s alpha", panel.krippendorff_alpha),
        ("Gwet’s AC1", panel.gwet_ac1),
        ("Share of VALID", panel.prevalence),
    ]
    columns = [Column("Measure", "name"), Column("Value", "estimate")]
    yield Table("panel-agreement", "Agreement of the panel", caption, columns, measures)
    caption = (
        "Each judge compared with the others: how often it agrees with most of them, and the panel’s alpha without it. "
        "A higher alpha than the panel’s suggests an outlier."
    )
    titles = {"agreement": "Agrees with the majority", "alpha_without": "Alpha without it"}
    columns = [JUDGE_COLUMN, *make_columns("estimate", titles)]
    yield tabulate("judge-agreement", "Agreement of each judge", caption, panel.judges, columns)


def _build_bias_and_voting_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on biases, voting rules, and the relation of peer agreement to agreement with people."""
    caption = (
        "Biases of each judge, as differences in the share of VALID; 0 is no bias. Leniency: compared with the other "
        "judges on the same traces. Verbosity: longer compared with shorter traces. Own family: models of its family "
        "compared with others. Order: later compared with earlier verdicts."
    )
    titles = {"leniency": "Leniency", "verbosity": "Verbosity", "own_family": "Own family", "order": "Order"}
    columns = [JUDGE_COLUMN, *make_columns("estimate", titles, "signed")]
    yield tabulate("judge-biases", "Biases of each judge", caption, panel.judges, columns)
    caption = (
        "Number of traces that each voting rule finds VALID or INVALID or leaves open, and how often it contradicts "
        "the majority where both decide."
    )
    columns = [
        Column("Rule", "name"),
        *make_columns("number", {"valid": "VALID", "invalid": "INVALID", "open": "Open"}),
        Column("Contradicts the majority", "estimate", "differs"),
    ]
    yield tabulate("voting-rules", "Voting rules", caption, panel.votes, columns)
    caption = (
        "Whether models that peers find VALID agree more with people: correlation of peer agreement with r (−1 to +1). "
        "n counts models."
    )
    columns = [Column("Method", "name"), Column("Correlation", "estimate", "r")]
    title = "Peer agreement and agreement with people"
    yield tabulate("peer-alignment", title, caption, panel.peer_alignment, columns)


def _build_judge_test_tables(panel: PanelReport) -> Iterator[Table]:
    """Build the tables on the tests of judges: blinding, restatement, injected faults, position bias, own traces."""
    caption = (
        "Share of correct guesses of what is hidden from the judges. Blinding is incomplete where it is above chance."
    )
    columns = [
        JUDGE_COLUMN,
        Column("Guessed attribute", "text", "what"),
        Column("Correct guesses", "estimate", "hits"),
        Column("Chance", "number"),
    ]
    yield tabulate("blinding", "Blinding", caption, panel.guesses, columns)
    caption = (
        "Share of VALID on traces as written and on the same traces restated in neutral words, the difference, and the "
        "share of verdicts that changed."
    )
    columns = [
        JUDGE_COLUMN,
        *make_columns("estimate", {"valid": "VALID as written", "restated": "VALID restated"}),
        Column("Difference", "estimate", "shift", style="signed"),
        Column("Verdicts changed", "estimate", "changed"),
    ]
    yield tabulate("restatement", "Restated traces", caption, panel.rewriting, columns)
    yield build_fault_table(panel.faults)
    yield build_position_table(panel.positions)
    yield build_self_review_table(panel.own_traces)


def build_fault_table(rows: Sequence[FaultDetectionRow]) -> Table:
    """Build the table of how often judges object to traces with an injected fault, and without it."""
    caption = (
        "Share of traces that each judge finds INVALID: with an injected fault (detected), and the same traces without "
        "it (false alarms). A difference of 0 means that the judge does not detect the fault. n counts traces."
    )
    columns = [
        *(JUDGE_COLUMN, Column("Fault")),
        *make_columns("estimate", {"detected": "Detected", "false_alarms": "False alarms"}),
        Column("Difference", "estimate", style="signed", emphasis=True),
    ]
    return tabulate(
        "injected-faults", "Injected faults", caption, rows, columns, {"fault": lambda row: Name(row.fault)}
    )


def build_position_table(rows: Sequence[PositionBiasRow]) -> Table:
    """Build the table of judges' preference for the side that is shown first."""
    caption = (
        "Two traces side by side, in both orders. Share of answers for the trace shown first (0.5 is no preference), "
        "and share of pairs with the same preference in both orders."
    )
    columns = [JUDGE_COLUMN, *make_columns("estimate", {"first": "Prefers the first", "stable": "Same in both orders"})]
    return tabulate("position-bias", "Position bias", caption, rows, columns)


def build_self_review_table(rows: Sequence[SelfReviewRow]) -> Table:
    """Build the table of judges' verdicts on their own traces."""
    caption = (
        "Judges’ verdicts on their own traces, which count in no vote. Self-preference: leniency towards itself minus "
        "that towards others, compared with the other judges; 0 is none. n counts traces."
    )
    columns = [
        JUDGE_COLUMN,
        Column("VALID for own traces", "estimate", "valid"),
        Column("Self-preference", "estimate", "preference", style="signed"),
    ]
    return tabulate("own-traces", "Judges on their own traces", caption, rows, columns)


def estimate_columns(*titles: str, is_signed: bool = False, show_n: bool = True) -> list[Column]:
    """Columns of estimates with these titles."""
    return [Column(title, "estimate", style="signed" if is_signed else "decimal", show_n=show_n) for title in titles]
