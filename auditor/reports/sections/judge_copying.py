"""The tables on judges that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.metrics.judge_copying import MIN_ERRORS
from auditor.reports.data.panel.copying_schema import CopyingReport, JudgePairRow, PairVerdict
from auditor.reports.document import Column, Table
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, tabulate

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
        + (f" {n_left_out} further pairs are only in the JSON report." if n_left_out else "")
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
