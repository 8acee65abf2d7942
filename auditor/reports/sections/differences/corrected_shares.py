"""The section of differences between shares of VALID, corrected by people's labels."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.differences.schema import DifferenceReport
from auditor.reports.document import Code, Column, Inline, Section
from auditor.reports.sections.tables import ADJUSTED_P_COLUMN, make_columns, tabulate


def build_corrected_section(differences: DifferenceReport) -> Iterator[Section]:
    """Yield the section; none without a pair of models with enough labels."""
    pairs = [pair for pair in differences.pairs if pair.corrected_shares is not None]
    if not pairs:
        return
    caption: list[Inline] = [
        "Share of VALID of both models after correction by people’s labels, and its difference, second minus first, by "
        "the judges alone and corrected. 95% CIs are for these traces. P-values are adjusted for all pairs (Holm). ",
        Code("--uncorrected"),
        " leaves this table out.",
    ]
    shares = {"first_share": "First share", "second_share": "Second share"}
    columns = [
        *(Column("First", "name"), Column("Second", "name")),
        *make_columns("estimate", shares),
        Column("Judges", "number", "judges", style="signed"),
        Column("Corrected difference", "estimate", "difference", style="signed", emphasis=True),
        ADJUSTED_P_COLUMN,
    ]
    derived = {
        "first_share": lambda pair: pair.corrected_shares.first,
        "second_share": lambda pair: pair.corrected_shares.second,
        "judges": lambda pair: pair.corrected_shares.judges,
        "difference": lambda pair: pair.corrected_shares.difference,
        "adjusted_p_value": lambda pair: pair.corrected_shares.adjusted_p_value,
    }
    table = tabulate("corrected-shares", "Corrected shares of VALID", caption, pairs, columns, derived)
    title = "Is the share of VALID different, after correction?"
    yield Section("corrected-shares", title, [table], contents_title="Corrected shares")
