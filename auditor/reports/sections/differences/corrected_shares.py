"""The section of differences between shares of VALID, corrected by people's labels."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.differences.schema import DifferenceReport, SeriesPairDifferences
from auditor.reports.document import Code, Inline, Section
from auditor.reports.sections.tables import tabulate


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
    table = tabulate("corrected-shares", "Corrected shares of VALID", caption, pairs, SeriesPairDifferences)
    title = "Is the share of VALID different, after correction?"
    yield Section("corrected-shares", title, [table], contents_title="Corrected shares")
